"""Keys that a transaction counts on being absent, without having looked: the section does, when it commits.

To look whether a key is taken, and to prove at commit that this is still so, asks the store twice. A
transaction that only needs the key to be free when it commits leaves out the first: it says what is to be
told if it is not. Then the whole group of commits costs one look.

The store alone can say that a row is absent as long as nothing of its index has left for the lake: that
there is no cleaned mark is one more thing to be absent, before all others.

Invariant (absent): a commit writes nothing if a key that it counts on being absent has a row.

Walk: `Transaction.expect_absent` -> `expect`; at commit `keys` goes into the section, and `failure` says
what a refusal means.
"""

from collections.abc import Callable, Container

from tenure.base.errors import BelowMark, TenureError
from tenure.kv.commits import failure
from tenure.kv.keys import Keyspace
from tenure.storage.engine import CommitStatus, Outcome

Taken = Callable[[], TenureError]
"""Makes the error to raise if the key has a row after all."""


class Absences:
    __slots__ = ("_keyspace", "taken")

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.taken: dict[bytes, Taken] = {}
        """In the order in which they were expected: the first that is taken is told of."""

    def expect(self, key: bytes, taken: Taken) -> None:
        self.taken.setdefault(key, taken)

    def keys(self, written: Container[bytes]) -> tuple[bytes, ...]:
        """For the section: marks, then what is still to be written; a write taken back needs no room."""
        if not self.taken:
            return ()
        keys = [key for key in self.taken if key in written]
        guard = self._keyspace.point_guard
        return tuple(dict.fromkeys([*(guard(key).cleaned_first for key in keys), *keys]))

    def failure(self, outcome: Outcome) -> TenureError:
        """The error that a refusal raises from the commit."""
        if outcome.status is not CommitStatus.TAKEN:
            return failure(outcome)
        taken = self.taken.get(outcome.key)
        return (
            BelowMark("rows have moved to the lake, where this one was not looked for")
            if taken is None
            else taken()
        )
