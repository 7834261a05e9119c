"""Dead sessions: answered from memory where a mistake is harmless, and from the store where it is not.

    is_dead(id)       from memory, in a microsecond; "no" may only mean "not known yet"
    is_alive(id)      from the store, as of the read
    await_death(id)   returns when the session is gone, and deletes it once it has expired

A dead session stays dead, so a death may be remembered for ever; that a session is alive may not. Therefore
the memory holds deaths alone, and no wait relies on not finding one there. A wait reads the store, wakes at
the session's expiry, and deletes the session itself, so that it depends on no other node. The node that
deletes a session closes its lanes: a commit of the dead node that is still on its way cannot land.

    delete the session, note its lanes ──► close the lanes ──► remove the note
                                       any node's `reap` goes on from here

Never the other way round: until it is deleted, a session may turn out to be alive.

Invariant (I21): a session is called dead only if its existence record was found absent.
Invariant (dead-lanes): a lane is closed before the note that names it is deleted.

Walk: `composition.background` runs `follow` and `reap` in loops; jobs and leases call the other three.
"""

from collections.abc import Callable, Sequence

from tenure.base.errors import RetryError, TooEarly
from tenure.base.timestamp import Timestamp, seconds_between
from tenure.cluster.sessions.session_records import ExistingSession, SessionId, Sessions
from tenure.kv.follower import ChangeWait, Follower
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.storage.engine import Revision

DEATHS_MAX = 20_000
"""Deaths remembered; a forgotten one only costs a read."""

PAUSE_SECONDS = 0.05
"""The pause between two attempts to delete a session that has expired by this node's clock, but not by the
store's.
"""

SPACING_SECONDS = 0.1
"""The time between two looks for deaths while others commit: the result saves reads and decides nothing."""

FOLLOW_SECONDS = 1.0
"""How long one step of `follow` waits for changes at most."""


class Deaths:
    def __init__(self, store: Store, sessions: Sessions) -> None:
        self._store = store
        self._sessions = sessions
        self._dead: dict[SessionId, None] = {}
        self.on_death: Callable[[], None] = lambda: None
        """Called after `follow` has read of a death, or may have missed one."""
        self._lock = store.env.lock()
        self._follower = Follower(
            store, [sessions.span()], self._load, self._apply, spacing_seconds=SPACING_SECONDS
        )
        self._follower.load()

    def is_dead(self, session: SessionId) -> bool:
        """Whether it is known here to be dead; False proves nothing."""
        return session in self._dead

    def is_alive(self, session: SessionId) -> bool:
        """Whether it exists in the store, expired or not."""
        return session not in self._dead and self._find(session) is not None

    def await_death(self, session: SessionId, *, timeout: float | None = None) -> bool:
        """Waits until the session is gone, deleting it when it has expired; False after `timeout`."""
        env = self._store.env
        deadline = None if timeout is None else env.monotonic() + timeout
        changes = ChangeWait(self._store, [self._sessions.span()], since_at=self._store.snapshot().at)
        try:
            while True:
                pause_seconds = self._bury_or_pause(session)
                if pause_seconds is None:
                    return True
                left = pause_seconds if deadline is None else deadline - env.monotonic()
                if left <= 0:
                    return False
                with env.waiting():
                    changes.wait(min(left, pause_seconds))
        finally:
            changes.close()

    def _bury_or_pause(self, session: SessionId) -> float | None:
        """None if it is gone now; else how long to wait before looking again."""
        present = None if session in self._dead else self._find(session)
        if present is None:
            return None
        seconds = seconds_between(self._store.clock.now(), present.expires_at)
        if seconds > 0:
            return seconds
        return None if self.bury(session) else PAUSE_SECONDS

    def bury(self, session: SessionId) -> bool:
        """Deletes a session that has expired; False if it is still there afterwards."""
        txn = self._store.begin()
        try:
            present = self._sessions.delete_expired(txn, session)
            txn.commit()
        except (TooEarly, RetryError):
            return False
        finally:
            txn.rollback()
        self._remember(session)
        if present is not None and present.lanes:
            self._close_lanes(session, present.lanes)
        return True

    def _close_lanes(self, session: SessionId, lanes: tuple[bytes, ...]) -> None:
        """Closes a dead session's lanes and deletes the note; may be repeated, also by two nodes at once."""
        for lane in lanes:
            self._store.engine.close_lane(lane)
        self._store.transact(lambda txn: self._sessions.forget_lanes(txn, session))

    def reap(self, own: SessionId | None = None) -> None:
        """Deletes expired sessions that nobody waits for, and completes burials that were interrupted.

        A slow step for a loop. A node whose heartbeat is late leaves its own session: the heartbeat may still
        extend it, as long as nobody else needs it gone.
        """
        now_at = self._store.clock.now()
        snapshot = self._store.snapshot()
        for session, lanes in list(self._sessions.dead_lanes(snapshot)):
            self._close_lanes(session, lanes)
        for present in list(self._sessions.list(snapshot)):
            if present.expires_at < now_at and present.id != own:
                self.bury(present.id)

    def expiry(self, session: SessionId) -> Timestamp | None:
        """When it may be deleted, as of now; None if it is dead."""
        present = None if session in self._dead else self._find(session)
        return None if present is None else present.expires_at

    def follow(self) -> float:
        """Reads of deaths as they happen: one step for a loop."""
        self._follower.step(FOLLOW_SECONDS)
        return 0.0

    def _load(self, snapshot: Snapshot) -> None:
        """Earlier deaths are not remembered here; code that acts on deaths reads the store itself."""
        self.on_death()

    def _apply(self, revisions: Sequence[Revision]) -> None:
        deaths = [revision.key for revision in revisions if revision.value is None]
        for key in deaths:
            self._remember(self._sessions.id_of(key))
        if deaths:
            self.on_death()

    def _find(self, session: SessionId) -> ExistingSession | None:
        # A transaction, because it starts over by itself if history is collected between its reads.
        present = self._store.transact(lambda txn: self._sessions.find(txn, session))
        if present is None:
            self._remember(session)
        return present

    def _remember(self, session: SessionId) -> None:
        with self._lock:
            self._dead[session] = None
            if len(self._dead) > DEATHS_MAX:
                del self._dead[next(iter(self._dead))]

    def wake(self) -> None:
        """Ends the wait of a `follow` in progress."""
        self._follower.wake()

    def close(self) -> None:
        self._follower.close()
