"""Locking rows: a statement locks the rows that it finds, and reads again if they changed before it had the
locks.

    find the rows ─► lock them ─► has anything that was found changed meanwhile?
         ▲                              │ yes: forget what was read, read at a later time
         └──────────────────────────────┘ no: go on

Rows are locked before they are updated, deleted or returned by SELECT ... FOR UPDATE, so that transactions
that want the same row queue instead of failing each other at commit. Reads of the statement before it had its
locks may be too old. The client has seen none of them, so they are dropped and read again. Reads of earlier
statements of the transaction must still be valid (40001 if not). Locks only order the waiters; the validation
at commit ensures correctness.

In a READ COMMITTED block the rows that a statement finds are not reads of the transaction, except those that
it locks. If one of these has changed before it was locked, the statement finds its rows again at a newer
time, and keeps those that it had found before: a row that comes to match meanwhile is left alone. A query
with LIMIT takes any rows that it finds then.

SKIP LOCKED takes any rows that are free. Rows that it skipped, or did not reach, do not count as read: other
transactions may change them, and add rows, before this one commits. Only the rows that it took are validated.
So workers on one queue do not fail each other. This holds only if the statement reads the table for nothing
else.

FOR UPDATE may stand anywhere in a query, in its subqueries too: every row that passes a Lock node of the
plan is locked (`Passing`), also one that the nodes above leave out.

On the door's loop nothing waits: a lock that is not free at once moves the statement to a thread.

Walk: `statements.dml.writing` and `statements.dml.queries` call `settled`, which asks the row locks of
`cluster.locks`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tenure.base.errors import RetryError
from tenure.catalog.descriptors.definitions import Table
from tenure.cluster.locks.lock_table import LockMode
from tenure.cluster.locks.lock_waits import WaitPolicy
from tenure.kv.reads import Reads
from tenure.sql.execution.execution import Execution
from tenure.sql.plans.plan import Filter, Limit, Lock, Plan, Project, Query, Scan, walk
from tenure.sql.rows.run import Tuple
from tenure.sql.session.answers import NotShort
from tenure.sql.session.waits import waiting

T = TypeVar("T")

SINGLE_LOCKS_MAX = 16
"""So many rows of SKIP LOCKED are tried one by one in a round, so that LIMIT 1 finds the first that is free
at once; the others together, at the end of the round, as each try may be a transaction of its own."""

ROUNDS_MAX = 100
"""How often the rows of one statement are found again before it gives up: each round locks more of them."""


def settled(
    execution: Execution,
    query: Query,
    find: Callable[["Passing"], list[T]],
    key_of: Callable[[T], bytes] | None = None,
    *,
    target: Table | None = None,
    sure_keys: Sequence[bytes] = (),
) -> list[T]:
    """The result of `find`, as of a time at which all locks were held.

    Locked are the rows that passed the Lock nodes of the query, and for each result the row of `target` that
    `key_of` names.

    `sure_keys` are keys that the statement is sure to touch: locked before anything is read.
    """
    txn = execution.block.use.txn
    before = txn.proof.mark()
    passing = Passing(execution, query)
    relation = "" if target is None else target.name
    if execution.block.is_read_committed:
        return _settled_by_statement(execution, query, find, key_of, passing, relation, sure_keys)
    queues = _queues(query, target)
    if sure_keys and not holds(execution, sure_keys):
        acquire(execution, sure_keys, relation=relation)
        freshen(execution)
    for _ in range(ROUNDS_MAX):
        found = find(passing)
        keys = [] if key_of is None else [key_of(each) for each in found]
        is_still = passing.is_still and set(keys) <= set(sure_keys)
        if keys and not is_still:
            acquire(execution, keys, relation=relation)
        is_whole = is_still or passing.lock()
        for table in queues:
            _count_only(execution, table, before, [*passing.held, *keys])
        if is_still or (is_whole and is_fresh(execution)):
            return found
        txn.proof.forget(before)
        freshen(execution)
    raise RetryError("rows kept changing while they were being locked")


def _settled_by_statement(
    execution: Execution,
    query: Query,
    find: Callable[["Passing"], list[T]],
    key_of: Callable[[T], bytes] | None,
    passing: "Passing",
    relation: str,
    sure_keys: Sequence[bytes],
) -> list[T]:
    """The same in a READ COMMITTED block."""
    txn = execution.block.use.txn
    keeps_first = not any(isinstance(plan, Limit) for plan in _plans(query))
    found_first: set[bytes] | None = None
    if sure_keys and not holds(execution, sure_keys):
        acquire(execution, sure_keys, relation=relation)
        txn.renew()  # nothing was read yet
    for _ in range(ROUNDS_MAX):
        txn.start_finding()
        passing.passed.clear()
        found = find(passing)
        if key_of is not None and found_first is not None:
            found = [each for each in found if key_of(each) in found_first]
        keys = [] if key_of is None else [key_of(each) for each in found]
        is_still = passing.is_still and holds(execution, keys)
        if keys and not is_still:
            acquire(execution, keys, relation=relation)
        is_whole = is_still or passing.lock()
        touched = dict.fromkeys([*passing.passed, *keys])
        if is_still or (is_whole and txn.proof.are_unchanged(touched)):
            txn.start_writing()
            txn.proof.hold(touched)
            return found
        if keeps_first and found_first is None:
            found_first = set(keys)
            passing.keep_first()
        txn.renew()
    raise RetryError("rows kept changing while they were being locked")


def _plans(query: Query) -> list[Plan]:
    roots = [query.plan, *(each.plan for each in query.nested), *query.shared]
    return [plan for root in roots for plan in walk(root)]


def _queues(query: Query, target: Table | None) -> list[Table]:
    """The tables from which the query takes free rows (SKIP LOCKED), and which it reads for nothing else.

    That of the rows which are then changed it reads once more, for these.
    """
    plans = _plans(query)
    skipped = {plan.table.id: plan.table for plan in plans if isinstance(plan, Lock) and plan.wait == "skip"}
    scans = Counter(plan.table.id for plan in plans if isinstance(plan, Scan))
    target_id = 0 if target is None else target.id
    return [table for id, table in skipped.items() if scans[id] == (2 if id == target_id else 1)]


def _count_only(execution: Execution, table: Table, before: Reads, keys: Sequence[bytes]) -> None:
    """Only the rows that were taken, of all reads of a table, count for the validation."""
    txn = execution.block.use.txn
    span = execution.block.layout(table).keyspace.table_span(table.id)
    txn.proof.forget(before, within=span)
    for key in keys:
        if span.lo <= key < span.hi:
            txn.get(key)


class Passing:
    """The rows that pass the Lock nodes of a plan, round after round."""

    def __init__(self, execution: Execution, query: Query) -> None:
        self._execution = execution
        self._outer = frozenset(map(id, _outer_locks(query.plan)))
        self._keys: dict[int, bytes] = {}
        """For the nodes that give the query's own rows: the last key that passed."""
        self._locked: set[tuple[bytes, LockMode]] = set()
        self._skipped: set[bytes] = set()
        self._awaited: dict[int, tuple[Lock, list[bytes]]] = {}
        """The keys to lock at the end of the round, by node."""
        self._singles = 0
        self._keeps_first = False
        """Only rows pass that have passed before."""
        self.passed: set[bytes] = set()
        """The keys that have passed, and were not skipped; for READ COMMITTED blocks, of this round."""

    @property
    def held(self) -> list[bytes]:
        return [key for key, _ in self._locked]

    @property
    def is_still(self) -> bool:
        """Whether all keys of this round had been locked before it began."""
        return not self._awaited and not self._singles

    def passes(self, lock: Lock, row: Tuple) -> bool:
        """Notes a row; False if it is to be skipped because another transaction has locked it."""
        layout = self._execution.block.layout(lock.table)
        key = layout.primary.prefix([row[position] for position in lock.key])
        if not self._takes(lock, key):
            return False
        self.passed.add(key)
        return True

    def _takes(self, lock: Lock, key: bytes) -> bool:
        if id(lock) in self._outer:
            self._keys[id(lock)] = key
        if (key, _mode(lock)) in self._locked:
            return True
        if self._keeps_first and lock.wait != "skip":
            return False
        if lock.wait == "skip":
            if key in self._skipped:
                return False
            if self._singles < SINGLE_LOCKS_MAX:
                self._singles += 1
                return self._acquire(lock, [key])
        self._awaited.setdefault(id(lock), (lock, []))[1].append(key)
        return True

    def keep_first(self) -> None:
        """From now on only rows pass that have passed before: all of those are locked."""
        self._keeps_first = True

    def keys_of_row(self) -> tuple[bytes, ...]:
        """The keys that were locked for the query's last row."""
        return tuple(self._keys.values())

    def lock(self) -> bool:
        """Locks the keys of the round and ends it; False if rows that passed should have been skipped."""
        awaited, self._awaited, self._singles = self._awaited, {}, 0
        return all(self._acquire(lock, keys) for lock, keys in awaited.values())

    def _acquire(self, lock: Lock, keys: list[bytes]) -> bool:
        mode = _mode(lock)
        acquired = acquire(
            self._execution, keys, relation=lock.table.name, mode=mode, wait=WaitPolicy(lock.wait)
        )
        self._locked.update((key, mode) for key in acquired)
        missed = set(keys).difference(acquired)
        self._skipped |= missed
        return not missed


def _outer_locks(plan: Plan) -> Iterator[Lock]:
    """The Lock nodes that are passed once for each row that the plan gives."""
    while isinstance(plan, Filter | Project | Limit | Lock):
        if isinstance(plan, Lock):
            yield plan
        plan = plan.input


def _mode(lock: Lock) -> LockMode:
    return LockMode.SHARE if lock.is_shared else LockMode.EXCLUSIVE


def acquire(
    execution: Execution,
    keys: Sequence[bytes],
    *,
    relation: str,
    mode: LockMode = LockMode.EXCLUSIVE,
    wait: WaitPolicy = WaitPolicy.WAIT,
) -> Sequence[bytes]:
    """Locks rows for the transaction; returns those it acquired."""
    session, block = execution.session, execution.block
    locks = session.services.locks
    owner = session.locks.owner_in(block)
    if execution.inline:
        if not locks.try_acquire(owner, keys, mode):
            raise NotShort
        return keys
    with waiting(session, block) as how:
        return locks.acquire(
            owner,
            keys,
            mode=mode,
            wait=wait,
            timeout=how.timeout,
            canceled=how.canceled,
            relation=relation,
        ).keys


def holds(execution: Execution, keys: Sequence[bytes]) -> bool:
    """Whether the transaction has locked these rows before: then no other transaction has changed them
    since."""
    session = execution.session
    return session.services.locks.holds(session.locks.owner_in(execution.block), keys)


def await_hold(execution: Execution, table: Table) -> None:
    """Waits for a transaction that holds the table which a statement is about to write.

    A transaction that has written or locked rows of the table does not wait: others may wait for it already.
    """
    session, block = execution.session, execution.block
    locks = session.services.locks
    if table.id not in locks.tables.held:
        return
    span = session.services.store.keyspace.table_span(table.id)
    owner = session.locks.owner_in(block)
    if locks.has_in_table(owner, table.id, span) or block.use.txn.written(span):
        return
    if locks.tables.left_seconds(table.id) <= 0:
        return
    if execution.inline:
        raise NotShort
    with waiting(session, block, what=f'relation "{table.name}"') as how:
        locks.tables.await_end(owner, table.id, how)


def is_fresh(execution: Execution) -> bool:
    """Whether all reads of the transaction are still valid; moves its read time up to now if they are."""
    try:
        execution.block.use.refresh()
    except RetryError:
        return False
    return True


def freshen(execution: Execution) -> None:
    """Moves the transaction's time up to now. Raises RetryError if what it read before has changed."""
    execution.block.use.refresh()
