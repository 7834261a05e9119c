"""Node sessions as records: made once, extended by heartbeats, deleted once.

    existence    (instance, epoch)                 written once, deleted once; observers read it
    expiration   (instance, epoch) -> expires_at   heartbeats write it; a deleter reads it
    freeze       (instance, epoch)                 a mark that no heartbeat may pass
    dead lanes   (instance, epoch) -> lanes        lanes of the dead that may still be open
    instance     id -> address, epoch, version ... shown by `system.sql_instances`

    made ──────► present ──────► expired ──────► deleted
                 heartbeats        still           for ever: nothing writes
                 move the expiry   observable      under this id again

A session is (instance id, epoch); the epoch is the commit timestamp of the session's insert, so it never
repeats. Until its first heartbeat it expires one ttl after its epoch. Existence and expiration are two keys
so that a transaction that observes the session does not conflict with its heartbeats, even if it runs long.

Lanes are rows of the engine, not keys, so no transaction can close them. The one that deletes a session
writes a note of its lanes instead; the note is deleted when they are closed. A node that dies in between
leaves the note, and the slow step of any node continues from there.

Invariant (I14): an expiration never falls, and a frozen session's never grows again.
Invariant (I20): a session that was deleted is never written again.
Invariant (I21): only its deletion makes a session dead, and others delete it only in a transaction that
commits after its expiration. A process that has proved the death of the session's process is not one of the
others: it acts for the dead (`cluster.sessions.reaped_sessions`).
Invariant (dead-lanes): a lane that a session has named is named by that session or by a note,
until it is closed.

Walk: `cluster.sessions.liveness` and `cluster.sessions.deaths` call these inside their transactions.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tenure.base.errors import CorruptData, SessionLost
from tenure.base.timestamp import ZERO_AT, Timestamp, add_seconds, to_text
from tenure.kv.encoding import At, decode, encode
from tenure.kv.keys import DEAD_LANES, EXPIRATIONS, FREEZES, INSTANCES, SESSIONS, Keyspace, Span
from tenure.kv.records import Record, Records, replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.storage.engine import HEAD_BYTES
from tenure.storage.lifelines import Lifeline

INSTANCES_SEARCHED = 16
"""How many instance ids are searched for a gap: a cluster with fewer nodes keeps its ids small."""


class SessionId(NamedTuple):
    instance: int
    epoch_at: Timestamp

    def to_bytes(self) -> bytes:
        return encode((self.instance, At(self.epoch_at)))

    def __str__(self) -> str:
        return f"{self.instance}@{to_text(self.epoch_at)}"


def parse_session_id(data: bytes) -> SessionId | None:
    """Reads an id back; None if it does not have the shape of one, and so names no session."""
    try:
        instance, epoch_at = decode(data)
    except (CorruptData, ValueError):
        return None
    # Exactly these types: a bool is an int to Python, but names no instance.
    if type(instance) is int and type(epoch_at) is At:
        return SessionId(instance, int(epoch_at))
    return None


class Existence(Record, frozen=True):
    instance: int
    epoch_at: Timestamp
    ttl_seconds: float
    """How long it lives without a heartbeat."""
    lanes: tuple[bytes, ...]
    """The node's lanes to the engine: closed when the session is gone, so that no commit can land late."""
    lifeline: Lifeline | None = None
    """The file that proves the death of the node's process, if there is one."""


class Expiration(Record, frozen=True):
    instance: int
    epoch_at: Timestamp
    expires_at: Timestamp


class Freeze(Record, frozen=True):
    instance: int
    epoch_at: Timestamp
    reason: str


class DeadLanes(Record, frozen=True):
    instance: int
    epoch_at: Timestamp
    lanes: tuple[bytes, ...]


class Instance(Record, frozen=True):
    id: int
    epoch_at: Timestamp
    address: str
    started_at: Timestamp
    version: int
    draining: bool = False
    has: tuple[str, ...] = ()
    """The node's resources that some jobs need."""


class ExistingSession(NamedTuple):
    """A session that exists, as a reader finds it."""

    id: SessionId
    expires_at: Timestamp
    lanes: tuple[bytes, ...]
    lifeline: Lifeline | None = None


class Sessions:
    """The sessions of one tenant; every function belongs to the caller's transaction."""

    def __init__(self, keyspace: Keyspace) -> None:
        key = ("instance", "epoch_at")
        self._existence = Records(keyspace, SESSIONS, Existence, key=key)
        self._expiration = Records(keyspace, EXPIRATIONS, Expiration, key=key)
        self._freeze = Records(keyspace, FREEZES, Freeze, key=key)
        self._dead_lanes = Records(keyspace, DEAD_LANES, DeadLanes, key=key)
        self.instances = Records(keyspace, INSTANCES, Instance, key=("id",))

    def span(self) -> Span:
        """The span of the existence records, which a watch for deaths follows."""
        return self._existence.span()

    def id_of(self, key: bytes) -> SessionId:
        """The session whose existence record has this key."""
        instance, epoch_at = decode(key[HEAD_BYTES:])
        assert isinstance(instance, int) and isinstance(epoch_at, At)
        return SessionId(instance, int(epoch_at))

    def create(
        self,
        txn: Transaction,
        *,
        ttl_seconds: float,
        lanes: tuple[bytes, ...],
        address: str,
        started_at: Timestamp,
        version: int,
        has: tuple[str, ...] = (),
        wanted: int | None = None,
        lifeline: Lifeline | None = None,
    ) -> int:
        """Makes a session and its instance; returns the instance id. The commit timestamp is its epoch.

        `wanted` is the id that the node had before, reused if no session has it.
        """
        instance = self.free_instance(txn, wanted)
        self._existence.put(txn, Existence(instance, ZERO_AT, ttl_seconds, lanes, lifeline), stamp="epoch_at")
        record = Instance(instance, ZERO_AT, address, started_at, version, has=has)
        self.instances.put(txn, record, stamp="epoch_at")
        return instance

    def set_address(self, txn: Transaction, instance: int, address: str) -> None:
        """Publishes the address of an instance."""
        found = self.instances.get(txn, instance)
        if found is None:
            raise SessionLost(f"instance {instance} is gone")
        self.instances.put(txn, replace(found, address=address))

    def free_instance(self, txn: Transaction, wanted: int | None = None) -> int:
        """A free instance id: `wanted` if it is free, else a gap near the start, else the next.

        Every session has its instance's record, so only those are read. The reads are validated at the
        commit, so that two nodes that start at once do not both get one id.
        """
        if wanted is not None and self.instances.get(txn, wanted) is None:
            return wanted
        first = [each.id for each in self.instances.scan(txn, limit=INSTANCES_SEARCHED)]
        for number, used in enumerate(first, start=1):
            if number != used:
                return number
        if len(first) < INSTANCES_SEARCHED:
            return len(first) + 1
        (last,) = self.instances.scan(txn, limit=1, reverse=True)
        return last.id + 1

    def extend(self, txn: Transaction, session: SessionId, *, ttl_seconds: float) -> None:
        """Moves the expiration to the commit timestamp + ttl; SessionLost if it may not be moved.

        If the ttl was lowered, the expiration must not fall: the commit then fails as too early, and the old,
        later expiration stays.

        The expiration is deleted with the existence, so from the first heartbeat on reading it covers both: a
        session deleted meanwhile fails the commit either way.
        """
        stored = self._expiration.get(txn, *session) or self.find(txn, session)
        if stored is None:
            raise SessionLost(f"session {session} is gone")
        if self._freeze.get(txn, *session) is not None:
            raise SessionLost(f"session {session} is frozen: it will expire and be deleted")
        txn.not_before_at = add_seconds(stored.expires_at, -ttl_seconds) - 1
        record = Expiration(session.instance, session.epoch_at, ZERO_AT)
        self._expiration.put(txn, record, stamp="expires_at", plus=add_seconds(ZERO_AT, ttl_seconds))

    def observe(self, txn: Transaction, session: SessionId) -> None:
        """If `txn` commits, the session exists at its commit timestamp, expired or not."""
        if self._existence.get(txn, *session) is None:
            raise SessionLost(f"session {session} is gone")

    def freeze(self, txn: Transaction, session: SessionId, reason: str) -> None:
        """Lets no further heartbeat pass: within one ttl the session expires in the ordinary way."""
        if self._existence.get(txn, *session) is not None:
            self._freeze.put(txn, Freeze(session.instance, session.epoch_at, reason))

    def delete_expired(self, txn: Transaction, session: SessionId) -> ExistingSession | None:
        """Deletes another node's session in a transaction that commits after its expiration, or not at all.

        Returns the deleted session, None if it is gone already. The commit fails as too early if the session
        has not expired.
        """
        present = self.find(txn, session)
        if present is not None:
            txn.not_before_at = max(txn.not_before_at or ZERO_AT, present.expires_at)
            self._delete(txn, session, present.lanes)
        return present

    def release(self, txn: Transaction, session: SessionId) -> None:
        """Deletes the node's own session, or that of a reaped process: only when nothing done under it is
        left.
        """
        existence = self._existence.get(txn, *session)
        if existence is not None:
            self._delete(txn, session, existence.lanes)

    def mark_draining(self, txn: Transaction, session: SessionId) -> None:
        instance = self.instances.get(txn, session.instance)
        if instance is not None and instance.epoch_at == session.epoch_at:
            self.instances.put(txn, replace(instance, draining=True))

    def find(self, txn: Transaction | Snapshot, session: SessionId) -> ExistingSession | None:
        existence = self._existence.get(txn, *session)
        if existence is None:
            return None
        expiration = self._expiration.get(txn, *session)
        return _present(existence, expiration)

    def list(self, txn: Transaction | Snapshot) -> Iterator[ExistingSession]:
        expirations = {(each.instance, each.epoch_at): each for each in self._expiration.scan(txn)}
        for existence in self._existence.scan(txn):
            yield _present(existence, expirations.get((existence.instance, existence.epoch_at)))

    def dead_lanes(self, txn: Transaction | Snapshot) -> Iterator[tuple[SessionId, tuple[bytes, ...]]]:
        """The dead sessions whose lanes may still be open."""
        for each in self._dead_lanes.scan(txn):
            yield SessionId(each.instance, each.epoch_at), each.lanes

    def forget_lanes(self, txn: Transaction, session: SessionId) -> None:
        """Deletes the note of a dead session's lanes: only when they are closed."""
        if self._dead_lanes.get(txn, *session) is not None:
            self._dead_lanes.delete(txn, *session)

    def _delete(self, txn: Transaction, session: SessionId, lanes: tuple[bytes, ...]) -> None:
        if lanes:
            self._dead_lanes.put(txn, DeadLanes(session.instance, session.epoch_at, lanes))
        self._existence.delete(txn, *session)
        self._expiration.delete(txn, *session)
        self._freeze.delete(txn, *session)
        instance = self.instances.get(txn, session.instance)
        if instance is not None and instance.epoch_at == session.epoch_at:
            self.instances.delete(txn, session.instance)


def _present(existence: Existence, expiration: Expiration | None) -> ExistingSession:
    session = SessionId(existence.instance, existence.epoch_at)
    if expiration is None:
        expires_at = add_seconds(session.epoch_at, existence.ttl_seconds)
    else:
        expires_at = expiration.expires_at
    return ExistingSession(session, expires_at, existence.lanes, existence.lifeline)
