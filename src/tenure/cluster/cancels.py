"""Requests to cancel that reached the wrong process: handed over through the store.

Several processes may serve one port, or stand behind one balancer. A client's request to cancel comes on a
connection of its own, to any of these processes. That process writes a record; the process that runs the
statement sees it in its watch, acts on it and deletes it. Only a digest of the secret is stored.

    process 2: request(pid, secret) ─► record (pid, digest) ─► process 1: follow ─► deliver, delete

Users with the right to it cancel statements and end sessions of others the same way, without a secret.

Requests are few: each process writes so many a second at most, and only for existing instances.

Walk: `front` hands `Cancels.request` to the door, which calls it in a thread; `composition.door_layer` runs
`follow` in a loop.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.follower import Follower
from tenure.kv.keys import CANCELS
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Revision

PIDS = 1 << 16
"""How many pids an instance has: the upper part of a pid names it."""

INSTANCES = 1 << 15
"""The rest of a signed int4. Instances whose ids differ by a multiple of it share their pids."""

REQUESTS_PER_SECOND = 20
"""The sender has not logged in, so requests must not cost much."""

FOLLOW_SECONDS = 1.0
SPACING_SECONDS = 0.02


CANCEL, TERMINATE = b"cancel", b"terminate"
"""In place of a digest, which is longer: by somebody whose right to it was checked."""


class Cancel(Record, frozen=True):
    pid: int
    digest: bytes


def first_pid(instance: int) -> int:
    """The pids of an instance are the `PIDS` from here on."""
    return instance % INSTANCES * PIDS


def has_pid(instance: int, pid: int) -> bool:
    return pid - pid % PIDS == first_pid(instance)


def digest_of(secret: bytes) -> bytes:
    return sha256(secret).digest()


class Cancels:
    def __init__(self, store: Store, sessions: Sessions, instance: Callable[[], int]) -> None:
        self._store = store
        self._sessions = sessions
        self._instance = instance
        self._records = Records(store.keyspace, CANCELS, Cancel, key=("pid", "digest"))
        self._lock = store.env.lock()
        self._allowed, self._since = float(REQUESTS_PER_SECOND), store.env.monotonic()
        self._follower = Follower(
            store,
            [self._records.span()],
            self._deliver_all,
            self._deliver_new,
            spacing_seconds=SPACING_SECONDS,
        )
        self.deliver: Callable[[int, bytes], None] = lambda pid, digest: None
        """Called with a pid of this instance and the secret's digest; the door sets it."""

    def request(self, pid: int, secret: bytes) -> None:
        """Hands a request over; the caller is not told its effect."""
        if self._is_allowed():
            self._store.transact(lambda txn: self._put(txn, Cancel(pid, digest_of(secret))))

    def signal(self, pid: int, what: bytes) -> None:
        """Cancels a statement of any process (`CANCEL`) or ends its session (`TERMINATE`); the caller has
        checked that the user may.
        """
        self._store.transact(lambda txn: self._put(txn, Cancel(pid, what)))

    def _put(self, txn: Transaction, cancel: Cancel) -> None:
        if self._is_served(txn, cancel.pid):
            self._records.put(txn, cancel)

    def _is_served(self, txn: Transaction, pid: int) -> bool:
        return any(has_pid(each.id, pid) for each in self._sessions.instances.scan(txn))

    def _is_allowed(self) -> bool:
        with self._lock:
            now = self._store.env.monotonic()
            gained = (now - self._since) * REQUESTS_PER_SECOND
            self._allowed, self._since = min(REQUESTS_PER_SECOND, self._allowed + gained), now
            if self._allowed < 1:
                return False
            self._allowed -= 1
            return True

    def follow(self) -> float:
        """Acts on the requests of other processes to this one: one step for a loop."""
        self._follower.step(FOLLOW_SECONDS)
        return 0.0

    def _deliver_new(self, revisions: Sequence[Revision]) -> None:
        if any(revision.value is not None for revision in revisions):
            self._deliver_taken()

    def _deliver_all(self, snapshot: Snapshot) -> None:
        if any(True for _ in self._records.scan(snapshot)):
            self._deliver_taken()

    def _deliver_taken(self) -> None:
        for cancel in self._store.transact(self._take):
            self.deliver(cancel.pid, cancel.digest)

    def _take(self, txn: Transaction) -> list[Cancel]:
        """Deletes and returns the requests for this process; also deletes those for processes that are
        gone.
        """
        mine = []
        for each in list(self._records.scan(txn)):
            if has_pid(self._instance(), each.pid):
                mine.append(each)
            elif self._is_served(txn, each.pid):
                continue
            self._records.delete(txn, each.pid, each.digest)
        return mine

    def wake(self) -> None:
        self._follower.wake()

    def close(self) -> None:
        self._follower.close()
