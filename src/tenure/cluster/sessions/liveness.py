"""A node's own session: made before anything is done under it, kept alive, given up last.

    step():  no session ──► create ──► session ──► heartbeat ──► heartbeat ...
                                          │
                              found gone or frozen, or expired while the
                              store is away: `done` is set, all that depends
                              on it is dropped, a new one is made

`expires_at` is the last expiration of this very session that the store acknowledged, and zero once the
session is done. A transaction that commits below it, or observes the session, knows that the session's claims
are still held.

A heartbeat that fails because the store is away changes nothing until the session expires: the next step
tries again. After the expiry others may have deleted the session and taken over its claims, and a node that
cannot check must not go on as if they had not: it gives the session up. A node that finds its expired session
still there goes on under it.

No step waits for ever: each commit here has a deadline, after which its outcome is not waited for. Nothing
depends on a heartbeat until it is acknowledged, and the next one overtakes it.

Invariant (I13): `expires_at` is never above what a committed and acknowledged heartbeat of the
same epoch wrote.
Invariant (I20): a lost session is not revived: the node goes on under a new one.

Walk: `composition.cluster_layer` runs `step` in a loop; leases and jobs ask for `session()`; drain ends in
`release`.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from tenure.base.env import Env
from tenure.base.errors import OutcomeUnknown, RetryError, SessionLost, StoreError, TooEarly
from tenure.base.settings import LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.base.timestamp import ZERO_AT, Timestamp, add_seconds
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.lifelines import Lifeline

RETRY_SECONDS = 0.05
"""Pause after a heartbeat that lost a race; it is far more urgent than the next regular one."""

JITTER = 0.1

BEATS_MIN = 2
"""Heartbeats within a ttl, however long their interval."""

_log = logging.getLogger(__name__)


class NodeSession:
    """One session of this node; other nodes know only its id."""

    def __init__(self, sessions: Sessions, id: SessionId, expires_at: Timestamp, env: Env) -> None:
        self._sessions = sessions
        self._expires_at = expires_at
        self.id = id
        self.done = env.event()

    @property
    def expires_at(self) -> Timestamp:
        return ZERO_AT if self.done.is_set() else self._expires_at

    def observe(self, txn: Transaction) -> None:
        self._sessions.observe(txn, self.id)

    def acknowledged(self, expires_at: Timestamp) -> None:
        """Called when a heartbeat was committed; acknowledgements may come out of order."""
        self._expires_at = max(self._expires_at, expires_at)


class NodeLiveness(Protocol):
    """How a node is alive: by a session, or as in version 1."""

    def session(self) -> NodeSession: ...

    def session_id(self) -> SessionId | None: ...

    def last_instance(self) -> int: ...

    def announce(self, address: str) -> None: ...

    def step(self) -> float | None: ...

    def drain(self) -> None: ...

    def release(self) -> None: ...


class Liveness:
    def __init__(
        self,
        store: Store,
        sessions: Sessions,
        settings: Callable[[], Settings],
        *,
        address: str,
        version: int,
        has: Iterable[str] = (),
        lifeline: Lifeline | None = None,
        join: Callable[[Transaction], None] = lambda txn: None,
        beside: Callable[[Transaction, int], None] = lambda txn, instance: None,
        on_lost: Callable[[NodeSession], None] = lambda session: None,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._settings = settings
        self._address = address
        self._version = version
        self._has = tuple(has)
        self._lifeline = lifeline
        self._join = join
        """Called in the transaction that makes a session: raises if this node may not be part of the
        cluster.
        """
        self._beside = beside
        """Additional writes of each heartbeat, for nodes of an older version."""
        self._on_lost = on_lost
        self._started_at = store.clock.now()
        self._session: NodeSession | None = None
        self._released = False
        self._named_lanes: tuple[bytes, ...] = ()
        """The lanes that the last session names: the node that deletes the session closes them."""
        self._doubtful_lanes: tuple[bytes, ...] = ()
        """Lanes of a session that may exist or may still be created, until they are closed."""
        self._least_pause = 1 - JITTER
        """The least fraction of the interval that the next pause takes."""

    def session(self) -> NodeSession:
        """The node's current session; SessionLost while it has none."""
        session = self._session
        if session is None or session.done.is_set():
            raise SessionLost("this node has no session just now; it is getting a new one")
        return session

    def session_id(self) -> SessionId | None:
        """The id of the node's current session; None while it has none."""
        session = self._session
        return None if session is None or session.done.is_set() else session.id

    def last_instance(self) -> int:
        """The instance id of the node's session; while it has none, of the last one."""
        assert self._session is not None, "the node has had no session yet"
        return self._session.id.instance

    def announce(self, address: str) -> None:
        """Publishes the node's address; its next sessions contain it from the start."""
        self._address = address
        instance = self.session().id.instance
        self._store.transact(lambda txn: self._sessions.set_address(txn, instance, address))

    def step(self) -> float | None:
        """Keeps the session alive, or makes a new one; returns the seconds to the next step."""
        if self._released:
            return None
        session = self._session
        if session is None or session.done.is_set():
            self._session = self._create(None if session is None else session.id.instance)
            self._least_pause = JITTER
            return 0.0
        try:
            return self._beat(session)
        except SessionLost as error:
            self._lose(session, str(error))
            return 0.0
        except (StoreError, OutcomeUnknown):
            if self._store.clock.now() > session.expires_at:
                self._lose(session, f"session {session.id} has expired, and the store cannot be asked")
            raise

    def _lose(self, session: NodeSession, why: str) -> None:
        _log.warning("%s; getting a new session", why)
        session.done.set()
        self._on_lost(session)

    def _create(self, wanted: int | None) -> NodeSession:
        ttl_seconds = self._settings()[LIVENESS_TTL]
        self._use_fresh_lanes()

        def create(txn: Transaction) -> tuple[Transaction, int]:
            txn.deadline_at = add_seconds(self._store.clock.now(), ttl_seconds)
            self._join(txn)
            instance = self._sessions.create(
                txn,
                ttl_seconds=ttl_seconds,
                lanes=self._store.lanes(),
                address=self._address,
                started_at=self._started_at,
                version=self._version,
                has=self._has,
                wanted=wanted,
                lifeline=self._lifeline,
            )
            self._beside(txn, instance)
            return txn, instance

        lanes = self._store.lanes()
        try:
            # Nodes that start together draw the same instance id; all but one of them draw again.
            txn, instance = self._store.transact(create, urgent=True)
        except (OutcomeUnknown, SessionLost):
            self._doubtful_lanes = lanes
            raise
        self._named_lanes = lanes
        epoch_at = txn.commit_at
        assert epoch_at is not None, "a session was made without a commit"
        session = SessionId(instance, epoch_at)
        return NodeSession(self._sessions, session, add_seconds(epoch_at, ttl_seconds), self._store.env)

    def _use_fresh_lanes(self) -> None:
        """Gives each session lanes of its own; those of a session that may still be created are closed
        first.
        """
        for lane in self._doubtful_lanes:
            self._store.engine.close_lane(lane)
        if not {*self._store.lanes()}.isdisjoint(self._named_lanes + self._doubtful_lanes):
            self._store.renew_lanes()
        self._doubtful_lanes = ()

    def _beat(self, session: NodeSession) -> float:
        ttl_seconds = self._settings()[LIVENESS_TTL]
        txn = self._store.begin(urgent=True)
        # A heartbeat that is stuck for too long to be useful must not land later.
        txn.deadline_at = add_seconds(self._store.clock.now(), ttl_seconds)
        try:
            self._sessions.extend(txn, session.id, ttl_seconds=ttl_seconds)
            self._beside(txn, session.id.instance)
            commit_at = txn.commit()
        except TooEarly:
            return self._pause(ttl_seconds)  # it was lowered; the expiration lies further away already
        except RetryError:
            return RETRY_SECONDS
        finally:
            txn.rollback()
        session.acknowledged(add_seconds(commit_at, ttl_seconds))
        return self._pause(ttl_seconds)

    def _pause(self, ttl_seconds: float) -> float:
        """The heartbeat's interval with some jitter; nodes started together diverge at the first one.

        It is never longer than the session lives: the two settings are changed one after the other.
        """
        least, self._least_pause = self._least_pause, 1 - JITTER
        seconds = min(self._settings()[LIVENESS_HEARTBEAT], ttl_seconds / BEATS_MIN)
        return seconds * self._store.env.rng.uniform(least, 1 + JITTER)

    def drain(self) -> None:
        """Publishes that this node is stopping; its session lives on until `release`."""
        session = self._session
        if session is not None and not session.done.is_set():
            self._store.transact(lambda txn: self._sessions.mark_draining(txn, session.id))

    def release(self) -> None:
        """Deletes the session, last of all: when no transaction, commit or job is left under it."""
        self._released = True
        session = self._session
        if session is None or session.done.is_set():
            return

        def release(txn: Transaction) -> None:
            txn.deadline_at = add_seconds(self._store.clock.now(), self._settings()[LIVENESS_TTL])
            self._sessions.release(txn, session.id)

        self._store.transact(release, urgent=True)
        session.done.set()
