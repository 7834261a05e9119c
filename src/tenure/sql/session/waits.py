"""A transaction that waits for a lock while others may wait for what it uses.

    wait begins ──► somebody waits for a pin of it ──► in a cycle: the youngest of it fails with 40P01
                                                  └──► else its pins are given up ──► the lock is granted
                                                       ──► the same is pinned again

The holder of the lock may be changing the schema, and so wait until the former version has no pins: a
deadlock, which `catalog.leases.crossed_waits` finds. Where a change waits and there is no cycle, the pins are
given up, so that it need not wait for as long as the lock is held; the transaction then goes on only if what
it uses is the same.

A statement that is a transaction of its own gives its pins up after a moment, and no change of the schema
fails for it: it is run again by itself.

Walk: `sql.execution.row_locking` waits for rows and tables in one of these, `sql.execution.session_facts` for
advisory locks.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.base.errors import RetryError
from tenure.catalog.leases.crossed_waits import CrossedWait
from tenure.cluster.locks.lock_waits import CANCEL_SECONDS, LockOptions
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState


class LockWait:
    """One wait of a block; `check` is called often while it lasts."""

    def __init__(self, session: SessionState, block: Block) -> None:
        self._session = session
        self._use = use = block.begun
        self._crossed: CrossedWait | None = None
        if use is not None and block.is_explicit:
            self._crossed = CrossedWait(session.services.crossed_waits, use, session.locks.owner())
        self._env = session.services.env
        self._moment_ends = self._env.monotonic() + CANCEL_SECONDS
        self._is_paused = False

    def check(self) -> None:
        self._session.check()
        if self._use is not None and not self._is_paused and self._should_pause():
            self._is_paused = True
            self._use.pause()

    def _should_pause(self) -> bool:
        if self._crossed is not None:
            return self._crossed.look()
        return self._env.monotonic() >= self._moment_ends

    def end(self) -> None:
        """RetryError if what the transaction uses was changed meanwhile."""
        if self._crossed is not None:
            self._crossed.end()
        if self._is_paused and self._use is not None:
            self._use.resume()


@contextmanager
def waiting(session: SessionState, block: Block, *, what: str = "row") -> Iterator[LockOptions]:
    """How a block asks for a lock: as its session says, with its pins given up where they are in the way."""
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
