"""The unique keys that a READ COMMITTED transaction adds: each must be absent when it commits.

A key that was found to be absent is a constraint of its own (`CommitProof.guard`). If another transaction has
touched it before the commit, it is looked at again: it may be absent once more, else that is a violation. A
key that the transaction itself has written before was proved then.

The rows are kept for that until the commit, so a statement may have only so many. The keys of further ones
are plain reads: if one changes, the commit is refused (40001).

Walk: `table.write` notes each key that it has found to be absent, and calls `guard` after them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tenure.base.errors import UniqueViolation
from tenure.kv.reads import Reads
from tenure.kv.transaction import Transaction
from tenure.table.compiled_index import CompiledIndex
from tenure.table.rows import Row

GUARDED_MAX = 10_000
"""Keys of a statement that are looked at again, with their rows in memory: some 10 MB."""


class NewKey(NamedTuple):
    keyed: CompiledIndex
    row: Row
    key: bytes


class NewKeys:
    def __init__(self, violation: Callable[[CompiledIndex, Row], UniqueViolation]) -> None:
        self._violation = violation
        self._keys: list[NewKey] = []
        """Those that are not guarded yet."""
        self._count = 0

    def note(self, txn: Transaction, index: CompiledIndex, row: Row, key: bytes) -> None:
        """The key was just read, and is absent."""
        if key not in txn.buffer.writes:
            self._keys.append(NewKey(index, row, key))

    def guard(self, txn: Transaction, before: Reads) -> None:
        """All that was read since a mark were keys that were noted."""
        keys, self._keys = self._keys, []
        self._count += len(keys)
        if keys and self._count <= GUARDED_MAX:
            txn.proof.guard(before, partial(self._look_again, txn, keys))

    def _look_again(self, txn: Transaction, keys: Sequence[NewKey]) -> None:
        before = txn.proof.mark()
        txn.read_ahead(each.key for each in keys)
        for index, row, key in keys:
            if txn.proof.get_committed(key) is not None:
                raise self._violation(index, row)
        txn.proof.guard(before, partial(self._look_again, txn, keys))
