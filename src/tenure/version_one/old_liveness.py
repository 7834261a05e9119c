"""The liveness of a node in version 1: an instance id with a heartbeat of its own, and no session.

Walk: `version_one.wiring` makes an `OldLiveness` for a node told to be of version 1, and calls `reap_old` on
newer nodes.
"""

from collections.abc import Callable

from tenure.base.errors import RetryError, SessionLost, TooEarly
from tenure.base.settings import LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.base.timestamp import ZERO_AT, add_seconds
from tenure.cluster.sessions.liveness import JITTER, RETRY_SECONDS, NodeSession
from tenure.cluster.sessions.session_records import Instance, SessionId, Sessions
from tenure.cluster.sessions.versions import OLDEST, Versions
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.version_one.old_heartbeats import OldHeartbeats


class OldLiveness:
    """The liveness of a node in version 1: the interface of `Liveness`, without a session in the store."""

    def __init__(
        self,
        store: Store,
        sessions: Sessions,
        heartbeats: OldHeartbeats,
        versions: Versions,
        settings: Callable[[], Settings],
        *,
        address: str,
        on_lost: Callable[[NodeSession], None] = lambda session: None,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._heartbeats = heartbeats
        self._versions = versions
        self._settings = settings
        self._address = address
        self._on_lost = on_lost
        self._started_at = store.clock.now()
        self._session: NodeSession | None = None

    def session(self) -> NodeSession:
        if self._session is None or self._session.done.is_set():
            raise SessionLost("this node has no instance id just now; it is getting a new one")
        return self._session

    def session_id(self) -> SessionId | None:
        return None if self._session is None or self._session.done.is_set() else self._session.id

    def last_instance(self) -> int:
        assert self._session is not None, "the node has had no instance id yet"
        return self._session.id.instance

    def announce(self, address: str) -> None:
        self._address = address
        instance = self.session().id.instance
        self._store.transact(lambda txn: self._sessions.set_address(txn, instance, address))

    def step(self) -> float:
        session = self._session
        if session is None or session.done.is_set():
            self._session = self._join()
            return self._pause()
        ttl_seconds = self._settings()[LIVENESS_TTL]
        txn = self._store.begin(urgent=True)
        try:
            self._check(txn, session)
            self._heartbeats.beat(txn, session.id.instance, ttl_seconds=ttl_seconds)
            session.acknowledged(add_seconds(txn.commit(), ttl_seconds))
        except RetryError:
            return RETRY_SECONDS
        finally:
            txn.rollback()
        return self._pause()

    def _pause(self) -> float:
        return self._settings()[LIVENESS_HEARTBEAT] * self._store.env.rng.uniform(1 - JITTER, 1 + JITTER)

    def _join(self) -> NodeSession:
        ttl_seconds = self._settings()[LIVENESS_TTL]

        def join(txn: Transaction) -> tuple[Transaction, int]:
            self._versions.join(txn, OLDEST)
            instance = self._sessions.free_instance(txn)
            record = Instance(instance, ZERO_AT, self._address, self._started_at, OLDEST)
            self._sessions.instances.put(txn, record)
            self._heartbeats.beat(txn, instance, ttl_seconds=ttl_seconds)
            return txn, instance

        # Nodes that start together draw the same instance id; all but one of them draw again.
        txn, instance = self._store.transact(join, urgent=True)
        assert txn.commit_at is not None, "an instance was made without a commit"
        identity = SessionId(instance, ZERO_AT)
        return NodeSession(self._sessions, identity, add_seconds(txn.commit_at, ttl_seconds), self._store.env)

    def _check(self, txn: Transaction, session: NodeSession) -> None:
        found = self._sessions.instances.get(txn, session.id.instance)
        if found is None or found.started_at != self._started_at:
            session.done.set()
            self._on_lost(session)
            raise SessionLost(f"instance {session.id.instance} was given to another process")

    def drain(self) -> None:
        return None

    def release(self) -> None:
        session = self._session
        if session is None or session.done.is_set():
            return
        instance = session.id.instance

        def leave(txn: Transaction) -> None:
            self._check(txn, session)
            self._sessions.instances.delete(txn, instance)
            self._heartbeats.stop(txn, instance)

        self._store.transact(leave, urgent=True)
        session.done.set()


def reap_old(store: Store, sessions: Sessions, heartbeats: OldHeartbeats) -> None:
    """Removes instances of version 1 whose heartbeat has run out: a slow step for a loop."""
    snapshot = store.snapshot()
    now_at = store.clock.now()
    for found in list(sessions.instances.scan(snapshot)):
        if found.epoch_at == ZERO_AT and heartbeats.expiry(snapshot, found.id) < now_at:
            _forget(store, sessions, heartbeats, found)


def _forget(store: Store, sessions: Sessions, heartbeats: OldHeartbeats, instance: Instance) -> None:
    txn = store.begin()
    try:
        if sessions.instances.get(txn, instance.id) == instance:
            heartbeats.outlive(txn, instance.id)
            sessions.instances.delete(txn, instance.id)
            heartbeats.stop(txn, instance.id)
        txn.commit()
    except (TooEarly, RetryError):
        pass  # it is alive after all, or another node was first
    finally:
        txn.rollback()
