"""A transaction that waits for a lock gives up its pins meanwhile.

    wait begins ──► a moment later: its pins are given up ──► the lock is granted ──► the same is pinned again

The holder of the lock may be changing the schema, and so wait until the former version has no pins: a
deadlock, if the waiting transaction kept its own. Deadlocks are detected among waits for locks and among
waits for leases, but not across both, so this one would last until the holder gives up
(`lease.holder_grace`).

A wait that is over in a moment keeps its pins: then a change of the schema that comes meanwhile does not
fail it.

Walk: `sql.execution.row_locking` waits for rows and tables in one of these, `sql.execution.session_facts` for
advisory locks.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.base.errors import RetryError
from tenure.cluster.locks.lock_waits import CANCEL_SECONDS, LockOptions
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState


class LockWait:
    """One wait of a block; `check` is called often while it lasts."""

    def __init__(self, session: SessionState, block: Block) -> None:
        self._session = session
        self._use = block.begun
        self._env = session.services.env
        self._pauses_at = self._env.monotonic() + CANCEL_SECONDS
        self.is_paused = False

    def check(self) -> None:
        self._session.check()
        if self._use is not None and not self.is_paused and self._env.monotonic() >= self._pauses_at:
            self.is_paused = True
            self._use.pause()

    def end(self) -> None:
        """RetryError if what the transaction uses was changed meanwhile."""
        if self.is_paused and self._use is not None:
            self._use.resume()


@contextmanager
def waiting(session: SessionState, block: Block, *, what: str = "row") -> Iterator[LockOptions]:
    """How a block asks for a lock: as its session says, with its pins given up if that takes long."""
    lock_wait = LockWait(session, block)
    try:
        yield LockOptions(
            timeout=session.variables.seconds("lock_timeout"), canceled=lock_wait.check, what=what
        )
    except BaseException:
        try:
            lock_wait.end()
        except RetryError:
            pass  # the block is told so if it goes on, from a savepoint
        raise
    lock_wait.end()
