"""NOTIFY and LISTEN across nodes: notifications are records, and a watch carries them to every node.

    NOTIFY ─► a record in the transaction's writes ─► commit ─► the watch of each node ─► its listeners

A record is written with its transaction, so it comes with the commit or not at all, and a savepoint takes it
back. The watch gives each commit once and in order. It reads revisions, not the newest state, so a record may
be deleted as soon as it is committed: each node deletes its own, and those of nodes that are gone (`tidy`).

A transaction notifies of the same channel and payload once: the key has a digest of both.

A node that has been away for longer than revisions are kept does not know what it has missed: its listeners
are told to end their sessions (`lose`), so that clients connect again and look for themselves.

Invariant (notified-once): a listener gets each notification that was committed after it began to listen
once, in commit order, or is told that some are lost.

Walk: `sql.session.channels` calls `put`, `add` and `remove`; `composition.door_layer` runs `follow` and
`tidy` in loops.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import count
from typing import NamedTuple, Protocol

from tenure.base.timestamp import Timestamp
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.follower import Follower
from tenure.kv.keys import NOTIFICATIONS
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Revision

FOLLOW_SECONDS = 1.0
DELETED_AT_ONCE = 1_000
"""Records per transaction that deletes them."""


class Notification(Record, frozen=True):
    instance: int
    epoch_at: Timestamp
    transaction: int
    digest: bytes
    number: int
    """Orders those of one transaction."""
    database: int
    pid: int
    channel: str
    payload: str

    @property
    def sender(self) -> SessionId:
        return SessionId(self.instance, self.epoch_at)


class Arrival(NamedTuple):
    """A notification that was committed."""

    at: Timestamp
    transaction: int
    pid: int
    channel: str
    payload: str


class Listener(Protocol):
    def arrive(self, arrival: Arrival) -> None:
        """Called from the thread that follows the store: must not wait."""
        ...

    def lose(self) -> None:
        """Some may have been missed."""
        ...


class Notifications:
    def __init__(self, store: Store, sessions: Sessions, session: Callable[[], SessionId]) -> None:
        self._store = store
        self._sessions = sessions
        self._session = session
        key = ("instance", "epoch_at", "transaction", "digest")
        self._records = Records(store.keyspace, NOTIFICATIONS, Notification, key=key)
        self._numbers = count(1)
        self._listeners: dict[tuple[int, str], list[Listener]] = {}
        self._lock = store.env.lock()
        self._follower = Follower(store, [self._records.span()], self._load, self._deliver)

    # ── sending ────────────────────────────────────────────────────────────────────────────────

    def next_number(self) -> int:
        """A number for a transaction, or for the next of its notifications."""
        return next(self._numbers)

    def put(
        self, txn: Transaction, transaction: int, *, database: int, pid: int, channel: str, payload: str
    ) -> None:
        """Notifies when the transaction commits."""
        digest = sha256(f"{channel}\0{payload}".encode()).digest()
        key = (*self._session(), transaction, digest)
        if self._records.get(txn, *key) is None:
            number = self.next_number()
            self._records.put(txn, Notification(*key, number, database, pid, channel, payload))

    # ── listening ──────────────────────────────────────────────────────────────────────────────

    def clock_at(self) -> Timestamp:
        """All that is committed from now on has a later time."""
        return self._store.engine.clock_at()

    def add(self, listener: Listener, database: int, channel: str) -> None:
        with self._lock:
            self._listeners.setdefault((database, channel), []).append(listener)

    def remove(self, listener: Listener, database: int, channel: str) -> None:
        with self._lock:
            listeners = self._listeners[database, channel]
            listeners.remove(listener)
            if not listeners:
                del self._listeners[database, channel]

    # ── following ──────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """From here on nothing is missed; called before the first session."""
        self._follower.load()

    def follow(self) -> float:
        """Hands over what was committed: one step for a loop."""
        self._follower.step(FOLLOW_SECONDS)
        return 0.0

    def _load(self, snapshot: Snapshot) -> None:
        """After a gap, or if a record could not be read; nobody listens at the start."""
        with self._lock:
            listeners = {id(each): each for channel in self._listeners.values() for each in channel}
        for each in listeners.values():
            each.lose()

    def _deliver(self, revisions: Sequence[Revision]) -> None:
        committed = [
            (each.at, self._records.decode(each.value)) for each in revisions if each.value is not None
        ]
        for at, each in sorted(committed, key=lambda found: (found[0], found[1].number)):
            arrival = Arrival(at, each.transaction, each.pid, each.channel, each.payload)
            for listener in self._heard_by(each):
                listener.arrive(arrival)

    def _heard_by(self, notification: Notification) -> list[Listener]:
        with self._lock:
            return list(self._listeners.get((notification.database, notification.channel), ()))

    def tidy(self) -> None:
        """Deletes records of this node, and of nodes that are gone: a slow step for a loop."""
        snapshot, mine = self._store.snapshot(), self._session()
        spent = [
            each
            for each in self._records.scan(snapshot)
            if each.sender == mine or self._sessions.find(snapshot, each.sender) is None
        ]
        for start in range(0, len(spent), DELETED_AT_ONCE):
            some = spent[start : start + DELETED_AT_ONCE]
            self._store.transact(lambda txn, some=some: self._delete(txn, some))  # type: ignore[misc]

    def _delete(self, txn: Transaction, spent: Sequence[Notification]) -> None:
        for each in spent:
            self._records.delete(txn, *each.sender, each.transaction, each.digest)

    def wake(self) -> None:
        self._follower.wake()

    def close(self) -> None:
        self._follower.close()
