"""The older way to be alive, for clusters in which version 1 still runs.

In version 1 a node is an instance id with a heartbeat, and a job is held by an instance id:

    old heartbeat   instance -> expires_at        written by nodes of both versions until finalized
    lease           a job's `lease_instance`      beside the session's claim

A node of version 1 knows nothing of sessions: it takes a job whose lease is nobody's, or of an
instance whose heartbeat has run out. A newer node keeps both up and respects both. Either takes a
job over only in a transaction that commits after the heartbeat it found, and every write of a run
reads the lease and the run number: so a job has one effect also where the two meet.

Invariant (old-lease): a lease moves to another instance only after the heartbeat of the former
has expired or is gone.

Walk: `node.py` uses `OldLiveness` for a node told to be of version 1; `Liveness` calls `beat` while the
cluster is not finalized; `cluster.jobs.claims` reads the heartbeats.
"""

from collections.abc import Callable

from tenure.base.errors import RetryError, SessionLost, TooEarly
from tenure.base.settings import LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.base.timestamp import ZERO_AT, Timestamp, add_seconds
from tenure.cluster.sessions.liveness import JITTER, RETRY_SECONDS, NodeSession
from tenure.cluster.sessions.session_records import Instance, SessionId, Sessions
from tenure.cluster.sessions.versions import OLDEST, Versions
from tenure.kv.keys import OLD_HEARTBEATS, Keyspace
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction


class OldHeartbeat(Record, frozen=True):
    instance: int
    expires_at: Timestamp


class OldHeartbeats:
    """The heartbeats by instance id of one tenant."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._records = Records(keyspace, OLD_HEARTBEATS, OldHeartbeat, key=("instance",))

    def beat(self, txn: Transaction, instance: int, *, ttl_seconds: float) -> None:
        record = OldHeartbeat(instance, ZERO_AT)
        self._records.put(txn, record, stamp="expires_at", plus=add_seconds(ZERO_AT, ttl_seconds))

    def stop(self, txn: Transaction, instance: int) -> None:
        self._records.delete(txn, instance)

    def expiry(self, txn: Transaction | Snapshot, instance: int) -> Timestamp:
        """When an instance's heartbeat runs out; zero if it has none."""
        found = self._records.get(txn, instance)
        return ZERO_AT if found is None else found.expires_at

    def outlive(self, txn: Transaction, instance: int) -> None:
        """Lets a transaction commit only after an instance's heartbeat has run out."""
        expires_at = self.expiry(txn, instance)
        if expires_at:
            txn.not_before_at = max(txn.not_before_at or ZERO_AT, expires_at)


class OldLiveness:
    """A node's life in version 1: the same face as `Liveness`, without a session in the store."""

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
        pass  # it lives after all, or somebody else was first
    finally:
        txn.rollback()
