"""Keys that a transaction requires to be absent: the section checks that at the commit, without an earlier
read.

Reading whether a key is taken, and proving at commit that this is still so, asks the store twice. A
transaction that only needs the key to be free when it commits skips the first read: it provides the error to
raise if the key is taken. Then the whole group of commits costs one lookup.

The store alone can prove that a row is absent only while no row of its index has moved to the lake. So the
index's cleaned mark is required to be absent too, before all other keys.

Invariant (absent): a commit writes nothing if a key that it requires to be absent has a row.

Walk: `Transaction.expect_absent` -> `expect`; at commit `keys` goes into the section, and `failure` turns a
refusal into an error.
"""

from collections.abc import Callable, Container

from tenure.base.errors import BelowMark, TenureError
from tenure.kv.commits import failure
from tenure.kv.keys import Keyspace
from tenure.storage.engine import CommitStatus, Outcome

MakeError = Callable[[], TenureError]
"""Makes the error to raise if the key has a row after all."""


class Absences:
    __slots__ = ("_keyspace", "errors")

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.errors: dict[bytes, MakeError] = {}
        """By key, in the order in which the keys were expected: the first taken one raises its error."""

    def expect(self, key: bytes, make_error: MakeError) -> None:
        self.errors.setdefault(key, make_error)

    def keys(self, written: Container[bytes]) -> tuple[bytes, ...]:
        """For the section: marks, then keys that are still to be written; a write that was undone needs no
        absence.
        """
        if not self.errors:
            return ()
        keys = [key for key in self.errors if key in written]
        guard = self._keyspace.point_guard
        if len(keys) == 1:  # an INSERT of one row
            return guard(keys[0]).cleaned_first, keys[0]
        return tuple(dict.fromkeys([*(guard(key).cleaned_first for key in keys), *keys]))

    def failure(self, outcome: Outcome) -> TenureError:
        """The error that a refusal raises from the commit."""
        if outcome.status is not CommitStatus.TAKEN:
            return failure(outcome)
        make_error = self.errors.get(outcome.key)
        return (
            BelowMark("rows have moved to the lake, where this one was not looked for")
            if make_error is None
            else make_error()
        )
