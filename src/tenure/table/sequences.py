"""The values of sequences: drawn in blocks, outside of any transaction.

    store   id ──► last value drawn · is it called · epoch     one record, made by the first call
    node    [ 33 34 35 .. 64 ]                                 a block, handed out from memory

As in PostgreSQL, a value is used up once it was returned, even if its transaction fails: a rollback leaves a
gap, and no transaction waits for another. A node draws a block in a short transaction of its own and hands it
out from memory; the rest of it is a gap too when the node ends.

Values of different nodes interleave, as those of PostgreSQL's sessions with CACHE above 1. And as there, a
node goes on with its block after another has executed setval or RESTART: its next block follows that. On the
node that executed it, the block is dropped at once: so one node alone behaves like PostgreSQL. The record's
epoch tells blocks from before such a change from later ones.

Invariant (sequence-once): between two manual changes of a sequence, no value is returned twice.

Walk: nextval() in a default or a query -> `SessionSequences.next` -> `Sequences.next` -> `_take`.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

from tenure.base.errors import OutOfRange, SequenceExhausted, WrongState
from tenure.catalog.descriptors.definitions import Sequence
from tenure.kv.keys import SEQUENCE_VALUES, Keyspace
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

BLOCK_VALUES = 32
"""Values drawn at once where CACHE is smaller. PostgreSQL, too, logs 32 values ahead."""


class StoredSequence(Record, frozen=True):
    id: int
    last_value: int
    is_called: bool
    epoch: int = 0
    """Raised whenever the value is set manually."""


class SequenceState(NamedTuple):
    """The row of SELECT * FROM sequence."""

    last_value: int
    is_called: bool


Fence = Callable[[Transaction], None]
"""Called in a transaction that is about to commit: it may lower the deadline, or raise."""


class Sequences:
    """The sequences of one tenant, for all threads of a node."""

    def __init__(self, store: Store, keyspace: Keyspace) -> None:
        self._store = store
        self._records = Records(keyspace, SEQUENCE_VALUES, StoredSequence, key=("id",))
        self._lock = store.env.lock()
        self._blocks: dict[int, NumberBlock] = {}
        self._turns: dict[int, AbstractContextManager[object]] = {}

    def next(self, sequence: Sequence, may_wait: Callable[[], None] = lambda: None) -> int:
        """The next value. Raises SequenceExhausted past the last one, unless it cycles.

        `may_wait` is called before a block is drawn, which waits for the store; it may raise instead.
        """
        value = self._from_block(sequence)
        if value is not None:
            return value
        may_wait()
        with self._turn(sequence.id):
            value = self._from_block(sequence)  # another thread may have drawn one meanwhile
            return self._from_new_block(sequence) if value is None else value

    def reserve(self, sequence: Sequence, count: int) -> list[int]:
        """The next values, so many at once: for bulk work, beyond this process's block."""
        values: list[int] = []
        while left := count - len(values):
            values += self._store.transact(partial(self._take, sequence=sequence, count=left)).values
        return values

    def set(
        self, sequence: Sequence, value: int, *, is_called: bool = True, fence: Fence = lambda txn: None
    ) -> int:
        """setval(): the value that comes next, or, if it counts as called, the one before that."""
        if not sequence.minimum <= value <= sequence.maximum:
            raise OutOfRange(
                f'setval: value {value} is out of bounds for sequence "{sequence.name}"'
                f" ({sequence.minimum}..{sequence.maximum})"
            )
        self._put(sequence, value, is_called, fence)
        return value

    def begin(self, txn: Transaction, id: int, value: int, *, is_called: bool) -> None:
        """The same for a sequence that this very transaction creates."""
        self._records.put(txn, StoredSequence(id, value, is_called))

    def restart(
        self, sequence: Sequence, value: int | None = None, *, fence: Fence = lambda txn: None
    ) -> None:
        """ALTER SEQUENCE ... RESTART [WITH], TRUNCATE ... RESTART IDENTITY."""
        self._put(sequence, sequence.start if value is None else value, False, fence)

    def state(self, source: Transaction | Snapshot, sequence: Sequence) -> SequenceState:
        """The last value that this node has returned; else the last that was drawn."""
        stored = self._stored(source, sequence)
        with self._lock:
            block = self._blocks.get(sequence.id)
        if block is not None and (block.epoch, block.end) == (stored.epoch, stored.last_value):
            return SequenceState(block.last_returned, is_called=True)
        return SequenceState(stored.last_value, stored.is_called)

    def forget(self, txn: Transaction, id: int) -> None:
        """Deletes the value of a sequence whose descriptor is dropped."""
        self._records.delete(txn, id)

    # ── blocks ─────────────────────────────────────────────────────────────────────────────────

    def _from_block(self, sequence: Sequence) -> int | None:
        with self._lock:
            block = self._blocks.get(sequence.id)
            if block is None or not block.values or block.rule != _rule(sequence):
                return None
            value = block.values[0]
            self._blocks[sequence.id] = block._replace(values=block.values[1:], last_returned=value)
            return value

    def _turn(self, id: int) -> AbstractContextManager[object]:
        """One thread at a time draws a block of a sequence; the others wait for it."""
        with self._lock:
            return self._turns.setdefault(id, self._store.env.lock())

    def _from_new_block(self, sequence: Sequence) -> int:
        block = self._store.transact(lambda txn: self._take(txn, sequence))
        first = block.values[0]
        with self._lock:
            newest = self._blocks.get(sequence.id)
            if newest is None or newest.epoch <= block.epoch:
                self._blocks[sequence.id] = block._replace(values=block.values[1:], last_returned=first)
        return first

    def _take(self, txn: Transaction, sequence: Sequence, count: int = 0) -> "NumberBlock":
        stored = self._stored(txn, sequence)
        first = _following(sequence, stored)
        bound = sequence.maximum if sequence.increment > 0 else sequence.minimum
        left = (bound - first) // sequence.increment + 1
        count = min(left, count or max(sequence.cache, BLOCK_VALUES))
        values = range(first, first + sequence.increment * count, sequence.increment)
        advanced = StoredSequence(sequence.id, values[-1], is_called=True, epoch=stored.epoch)
        self._records.put(txn, advanced)
        return NumberBlock(advanced.epoch, _rule(sequence), values, values[-1], first)

    def _put(self, sequence: Sequence, value: int, is_called: bool, fence: Fence) -> None:
        def put(txn: Transaction) -> int:
            epoch = self._stored(txn, sequence).epoch + 1
            self._records.put(txn, StoredSequence(sequence.id, value, is_called, epoch))
            fence(txn)
            return epoch

        epoch = self._store.transact(put)
        with self._lock:
            # An empty block of this epoch keeps out one of an older epoch that is being drawn.
            self._blocks[sequence.id] = NumberBlock(epoch, _rule(sequence), range(0), None, value)

    def _stored(self, source: Transaction | Snapshot, sequence: Sequence) -> StoredSequence:
        return self._records.get(source, sequence.id) or StoredSequence(sequence.id, sequence.start, False)


class NumberBlock(NamedTuple):
    epoch: int
    rule: tuple[object, ...]
    """The definition of the sequence: a block from before ALTER SEQUENCE is not used after it."""
    values: range
    end: int | None
    last_returned: int
    """The last value that was returned from it."""


def _rule(sequence: Sequence) -> tuple[object, ...]:
    return sequence.increment, sequence.minimum, sequence.maximum, sequence.is_cycle, sequence.cache


def _following(sequence: Sequence, stored: StoredSequence) -> int:
    """The value after the last drawn one."""
    is_ascending = sequence.increment > 0
    value = stored.last_value + (sequence.increment if stored.is_called else 0)
    if is_ascending and value <= sequence.maximum:
        return max(value, sequence.minimum)
    if not is_ascending and value >= sequence.minimum:
        return min(value, sequence.maximum)
    if sequence.is_cycle:
        return sequence.minimum if is_ascending else sequence.maximum
    which, bound = ("maximum", sequence.maximum) if is_ascending else ("minimum", sequence.minimum)
    raise SequenceExhausted(f'nextval: reached {which} value of sequence "{sequence.name}" ({bound})')


class SessionSequences:
    """The sequences of one SQL session: the `sequences` of its Context."""

    def __init__(
        self,
        sequences: Sequences,
        descriptor: Callable[[int], Sequence],
        may_wait: Callable[[], None] = lambda: None,
        may_write: Callable[[str, int], None] = lambda function, id: None,
        fence: Fence = lambda txn: None,
    ) -> None:
        """`descriptor` returns a sequence by its id, as the transaction sees it; `may_wait` is called before
        anything that waits for the store, and may raise; `may_write` before a function that writes the
        sequence; `fence`
        before a write of setval is committed.
        """
        self._sequences = sequences
        self._descriptor = descriptor
        self._may_wait = may_wait
        self._may_write = may_write
        self._fence = fence
        self._current: dict[int, int] = {}
        self._last: int | None = None

    def over(self, declared: Mapping[int, object]) -> "SessionSequences":
        """The same, with sequences that are not stored: looked up there first."""

        def descriptor(id: int) -> Sequence:
            found = declared.get(id)
            return found if isinstance(found, Sequence) else self._descriptor(id)

        return SessionSequences(self._sequences, descriptor, self._may_wait, self._may_write, self._fence)

    def next(self, id: int) -> int:
        self._may_write("nextval", id)
        value = self._sequences.next(self._descriptor(id), self._may_wait)
        self._current[id] = value
        self._last = id
        return value

    def current(self, id: int) -> int:
        if id not in self._current:
            name = self._descriptor(id).name
            raise WrongState(f'currval of sequence "{name}" is not yet defined in this session')
        return self._current[id]

    def last(self) -> int:
        if self._last is None:
            raise WrongState("lastval is not yet defined in this session")
        return self._current[self._last]

    def set(self, id: int, value: int, is_called: bool) -> int:
        self._may_write("setval", id)
        self._may_wait()
        self._sequences.set(self._descriptor(id), value, is_called=is_called, fence=self._fence)
        if is_called:
            self._current[id] = value
        return value

    def discard(self) -> None:
        """DISCARD SEQUENCES."""
        self._current.clear()
        self._last = None
