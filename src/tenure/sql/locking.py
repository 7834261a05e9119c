"""Locked and fresh: how a statement comes to rows that nobody else is changing.

    find the rows ─► lock them ─► has anything that was found changed meanwhile?
         ▲                              │ yes: forget what was read, read at a later time
         └──────────────────────────────┘ no: go on

Rows are locked before they are updated, deleted or given to a SELECT ... FOR UPDATE, so that those who
want the same row queue instead of failing one another at commit. What the statement read before it had
its locks it may have read too early; nobody has been told of it, so it is taken back and read again.
What earlier statements of the transaction read must still hold (40001 if not). Locks only decide who
waits; the commit's validation decides what is right.

On the door's loop nothing waits: a lock that is not free at once moves the statement to a thread.

Walk: `statements.writes` and `statements.queries` call `settled` -> `cluster.locks`.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from tenure.base.errors import RetryError
from tenure.cluster.lock_table import Mode
from tenure.cluster.lock_waits import Wait
from tenure.sql.answers import NotShort
from tenure.sql.execution import Execution

T = TypeVar("T")

ROUNDS_MAX = 100
"""How often the rows of one statement are found again before it gives up: each round locks more of them."""


def settled(
    execution: Execution, find: Callable[[], list[T]], lock: Callable[[list[T]], None], *, relation: str
) -> list[T]:
    """What `find` gives, after `lock` has locked it, as of a time at which all locks were held."""
    txn = execution.block.use.txn
    before = txn.mark_reads()
    for _ in range(ROUNDS_MAX):
        found = find()
        lock(found)
        if is_fresh(execution):
            return found
        txn.forget_reads(before)
        freshen(execution)
    raise RetryError(f'rows of relation "{relation}" kept changing while they were being locked')


def acquire(
    execution: Execution,
    keys: Sequence[bytes],
    *,
    relation: str,
    mode: Mode = Mode.EXCLUSIVE,
    wait: Wait = Wait.WAIT,
) -> Sequence[bytes]:
    """Locks rows for the transaction; returns those it got."""
    session, block = execution.session, execution.block
    locks = session.parts.locks
    owner = session.surroundings.owner_in(block)
    if execution.inline:
        if not locks.try_acquire(owner, keys, mode):
            raise NotShort
        return keys
    return locks.acquire(
        owner,
        keys,
        mode=mode,
        wait=wait,
        timeout=session.variables.seconds("lock_timeout"),
        canceled=session.check,
        relation=relation,
    ).keys


def is_fresh(execution: Execution) -> bool:
    """Whether all that the transaction has read is so now; moves its time up to now if it is."""
    try:
        execution.block.use.refresh()
    except RetryError:
        return False
    return True


def freshen(execution: Execution) -> None:
    """Moves the transaction's time up to now. Raises RetryError if what it read before has changed."""
    execution.block.use.refresh()
