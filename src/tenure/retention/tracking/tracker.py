"""A node's copy of the protections, as of a time that it knows.

    poll: the meta record ── same version ──► the same list, as of now
                          └─ another ──────► the whole list, read in the same snapshot

Sweeps compute thresholds from this state, and publish them in a transaction that reads the meta record at
this state's version: an old state delays a sweep and never lets it remove too much. The state is read anew
every `kv.protected_timestamp.refresh_interval`, and at once after a zone has changed on any node.

Invariant (I31): the state of a tracker is the list of protections as of its `read_at`.

Walk: `composition.protection_layer` runs `step` in a loop; sweeps call `refresh_now`; this reads
`protections.protection_catalog`.
"""

from collections.abc import Callable, Iterable

from tenure.base.settings import PROTECTED_REFRESH_INTERVAL, Settings
from tenure.base.timestamp import Timestamp, seconds_between
from tenure.catalog.descriptors.zones import zones
from tenure.kv.follower import Follower
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_catalog import ProtectionCatalog
from tenure.retention.protections.protection_records import Protection
from tenure.retention.tracking.span_index import SpanIndex

SPACING_SECONDS = 0.1
"""The time between two looks for changed zones."""

WAIT_SECONDS = 1.0
"""How long one step waits for a changed zone at most."""


class TrackedState:
    """All protections as of `read_at`; frozen, and shared between states of equal versions."""

    __slots__ = ("_by_object", "_by_span", "read_at", "records", "version")

    def __init__(self, version: int, read_at: Timestamp, records: Iterable[Protection]) -> None:
        self.version = version
        """That of the meta record."""
        self.read_at = read_at
        self.records = tuple(records)
        self._by_span = SpanIndex((lo, hi, each) for each in self.records for lo, hi in each.spans)
        by_object: dict[int, list[Protection]] = {}
        for each in self.records:
            for id in each.objects:
                by_object.setdefault(id, []).append(each)
        self._by_object = by_object

    def as_of(self, read_at: Timestamp) -> "TrackedState":
        """The same protections, proved to be all of them at a later time."""
        state = TrackedState.__new__(TrackedState)
        state.version, state.read_at, state.records = self.version, read_at, self.records
        state._by_span, state._by_object = self._by_span, self._by_object
        return state

    def records_over(self, lo: bytes, hi: bytes) -> list[Protection]:
        """The protections with a span that overlaps [lo, hi), once per such span."""
        return self._by_span.over(lo, hi)

    def records_of(self, objects: Iterable[int]) -> list[Protection]:
        """The protections that have one of these databases, schemas and tables as target, each once."""
        found = {each.id: each for id in objects for each in self._by_object.get(id, ())}
        return list(found.values())

    @property
    def oldest_at(self) -> Timestamp | None:
        """The oldest protected time, which the catalog's own history must reach; None: there is none."""
        return min((each.at for each in self.records), default=None)


class Tracker:
    def __init__(self, store: Store, settings: Callable[[], Settings]) -> None:
        self._store = store
        self._settings = settings
        self._catalog = ProtectionCatalog(store.keyspace)
        self._lock = store.env.lock()
        self._state: TrackedState | None = None
        self._refreshed = 0.0
        """When the state was last read, by the monotonic clock."""
        span = zones(store.keyspace).span()
        self._zones = Follower(store, [span], self._refresh, spacing_seconds=SPACING_SECONDS)

    @property
    def state(self) -> TrackedState:
        return self._state or self.refresh_now()

    def age_seconds(self) -> float:
        """How old the state is."""
        return seconds_between(self.state.read_at, self._store.clock.now())

    def refresh_now(self) -> TrackedState:
        """Reads what has changed, and returns the newest state; from any thread."""
        self._refresh(self._store.snapshot())
        assert self._state is not None, "it was just read"
        return self._state

    def _refresh(self, snapshot: Snapshot) -> None:
        began, former = self._store.env.monotonic(), self._state
        version = self._catalog.metadata(snapshot).version
        if former is not None and former.version == version:
            state = former.as_of(snapshot.at)
        else:
            state = TrackedState(version, snapshot.at, self._catalog.list_all(snapshot).records)
        with self._lock:
            if self._state is None or self._state.read_at <= state.read_at:
                self._state, self._refreshed = state, began

    def version(self, txn: Transaction) -> int:
        """The version of the protections; the transaction commits only while it is this one."""
        return self._catalog.metadata(txn).version

    def step(self) -> float:
        """Waits a moment for a change of the zones; refreshes after one, and when it is time: for a loop."""
        has_refreshed = self._zones.step(WAIT_SECONDS)
        due = self._refreshed + self._settings()[PROTECTED_REFRESH_INTERVAL]
        if not has_refreshed and self._store.env.monotonic() >= due:
            self.refresh_now()
        return 0.0

    def wake(self) -> None:
        """Ends the wait of a step in progress."""
        self._zones.wake()

    def close(self) -> None:
        self._zones.close()
