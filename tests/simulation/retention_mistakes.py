"""Wrong versions of what keeps history as long as somebody needs it: one for each sentence of the design.

Walk: `mutants.MUTANTS` is made of `ALL`, among others; the profiles are those of `retention_client`.
"""

from collections.abc import Callable
from typing import Any

from tenure.base.errors import UndefinedObject
from tenure.base.timestamp import MAX_AT
from tenure.catalog.changes import undrops, zone_changes
from tenure.catalog.changes.table_changes import descriptor_of
from tenure.catalog.descriptors.definitions import is_dropped
from tenure.catalog.descriptors.zones import Zone, all_zones, zones
from tenure.kv import snapshot
from tenure.kv.keys import Keyspace, Span
from tenure.kv.protected_reads import is_protected
from tenure.kv.records import replace
from tenure.kv.thresholds import threshold
from tenure.retention import thresholds
from tenure.retention.job_protections import JobProtections
from tenure.retention.protections import protection_store
from tenure.retention.sweeping import collection, file_sweeps, object_collection, publication, removal
from tenure.retention.sweeping.heads import all_heads
from tenure.retention.sweeping.holds import table_holds
from tenure.retention.sweeping.publication import Decisions
from tenure.retention.sweeping.removal import HeadRemoval
from tenure.retention.tracking.tracker import TrackedState, Tracker
from tenure.storage.engine import Removal, Removes
from tenure.storage.sqlite import removals
from tenure.table.lake.keep import Keep
from tests.simulation import retention_client

RETENTION = "retention"
MERGES, MOVES, DROPS, RACES = (f"retention {each}" for each in ("merges", "moves", "drops", "races"))

# Functions are kept before anything is swapped.
_decide = Decisions.of_index
_get, _scan, _revisions = snapshot.Snapshot.get, snapshot.Snapshot.scan, snapshot.Snapshot.revisions
_merges = HeadRemoval._merges
_marked = Keyspace.marked_heads


def merges_without_claim(self: HeadRemoval, txn: Any) -> tuple[bool, bool]:
    return _merges(self, txn)[0], False


def merges_without_base(self: HeadRemoval, txn: Any) -> tuple[bool, bool]:
    return False, _merges(self, txn)[1]


def holds_by_place(self: Decisions, table: Any) -> Any:
    return table_holds(self._keyspace, self.state, [replace(table, modified_at=0)])


def zones_of_the_state(self: Decisions, table: Any, index: int, _: Any, previous_at: int) -> Any:
    """The zones as they were when the protections were read."""
    then = self._services.store.snapshot(self.state.read_at)
    return _decide(self, table, index, all_zones(then, self._keyspace), previous_at)


def decide_by_now(self: Decisions, table: Any, index: int, found: Any, previous_at: int) -> Any:
    """The versions of tables are known up to the time of the state; the ttl counts from now."""
    self._holds_of(table)
    former, self.now_at = self.now_at, self._services.store.engine.clock_at()
    try:
        return _decide(self, table, index, found, previous_at)
    finally:
        self.now_at = former


def asked_first(read: Callable[..., Any]) -> Callable[..., Any]:
    """Asks for the record, then reads, and believes what it found."""

    def wrong(self: Any, place: Any, **named: Any) -> Any:
        span = place if isinstance(place, Span) else Span(place, place + b"\0")
        is_there = bool(self._protected) and is_protected(
            self._engine, self._keyspace, self._protected, span, self.at
        )
        accepting = self._accepting

        def believing(span: Any, flushed_at: int) -> Any:
            def accept(found: Any, base_at: int) -> int:
                if is_there:
                    snapshot.judge_cleaned(found, flushed_at=max(base_at, flushed_at))
                    return int(self.at)
                return int(accepting(span, flushed_at)(found, base_at))

            return accept

        self._accepting = believing
        return read(self, place, **named)

    return wrong


def revisions_above_threshold(self: Any, span: Any, **named: Any) -> Any:
    """Pages for merges, each refused below the threshold as every other read is."""
    for page in _revisions(self, span, **named):
        found = snapshot.marks(self._engine, self._keyspace, span)
        snapshot.judge(found, read_at=self.at, flushed_at=found.cleaned_at)
        yield page


class _NoJobs:
    def is_open(self, txn: Any, id: int) -> bool:
        return False


_edit = file_sweeps._edit


def edit_without_claim(txn: Any, services: Any, record: Any) -> Any:
    return _edit(txn, services._replace(jobs=_NoJobs()), record)


def dropped_if_collected(draft: Any, catalog: Any, id: int) -> Any:
    """Does not look whether its data is being removed."""
    found = descriptor_of(draft, catalog, id)
    if found is None or not is_dropped(found) or found.draining:
        raise UndefinedObject("there is no dropped descriptor")
    return found


def marked_by_thresholds(self: Keyspace, keys: Any) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Forgets that the cleaned mark says what was imported."""
    return (), _marked(self, keys)[1]


def deadline_by_old_zones(protection: Any, _: Any, histories: Any, indexes: Any) -> int:
    """As if every zone had kept history for as long as it likes."""
    return MAX_AT


def configure_unchained(txn: Any, keyspace: Any, key: Any, *, gc_ttl_seconds: int) -> None:
    zones(keyspace).put(txn, Zone(key[0], key[1], gc_ttl_seconds))


def kept_if_newer(at: int, until_at: int, removal_at: int, points: Any) -> bool:
    """Drops the revision that is visible at the threshold itself."""
    return at > removal_at or any(at <= point < until_at for point in points)


NEWEST_DROPPED = (
    (removals, "is_kept", kept_if_newer),
    (removals, "_DELETE_WINDOW", removals._DELETE_WINDOW.replace("until <= ?", "at <= ?")),
)


def without_points(threshold_at: int, holds: Any) -> Keep:
    return Keep(threshold_at)


def refresh_version_alone(self: Tracker, source: Any) -> None:
    """Says that its list is of the newest version, and does not read the list again."""
    former, version = self._state, self._catalog.metadata(source).version
    records = self._catalog.list_all(source).records if former is None else former.records
    self._state = TrackedState(version, source.at, records)


def end_at_drop(versions: Any) -> Any:
    ended = thresholds._last_run(versions, is_dropped)
    return ended[0].modified_at if ended else None


def collect_without_version(txn: Any, services: Any, decisions: Any, *rest: Any) -> bool:
    table, ended_at, _ = rest
    decided = decisions.of(txn, all_heads(services.keyspace, table))
    if services.catalog.get(txn, table.id) != table or not thresholds.may_collect(
        ended_at, [each.decision.keep for each in decided]
    ):
        return False
    for each in decided:
        collection._begin(txn, services, each, ended_at)
    return True


def begin_unlooked(self: HeadRemoval, txn: Any, rows: int) -> Any:
    """Does not look whether its record is still the one that it began with; takes the threshold anew."""
    record, keyspace = self.record, self._services.keyspace
    kind = Removes.SUPERSEDED if any(self._merges(txn)) else Removes.GARBAGE
    at = threshold(txn, keyspace, record.head)
    span = keyspace.head_span(record.head)
    txn.remove(Removal(*span, kind, at, rows, points=record.keep.points, after=record.cursor))
    return removal.Batch(record, False)


ALL: tuple[tuple[Any, ...], ...] = (
    ("threshold read again by a removal", ((HeadRemoval, "begin", begin_unlooked),), RACES),
    ("tombstone taken under a claim", ((HeadRemoval, "_merges", merges_without_claim),), MERGES),
    ("tombstone swept above a base", ((HeadRemoval, "_merges", merges_without_base),), MERGES),
    ("targets covered by today's place", ((Decisions, "_holds_of", holds_by_place),), MOVES),
    ("zones not read at the publication", ((Decisions, "of_index", zones_of_the_state),), RETENTION),
    ("kept points left out", ((thresholds, "_pair", without_points),), RETENTION),
    (
        "a merge judged by the threshold",
        ((snapshot.Snapshot, "revisions", revisions_above_threshold),),
        MERGES,
    ),
    ("manifest edited without the claim", ((file_sweeps, "_edit", edit_without_claim),), MERGES),
    ("half a table brought back", ((undrops, "_dropped", dropped_if_collected),), DROPS),
    (
        "collected without a version",
        ((collection, "begin_table", collect_without_version),),
        DROPS,
    ),
    ("a dropped table ends at its drop", ((object_collection, "end_of", end_at_drop),), DROPS),
    ("head clock not moved by an import", ((Keyspace, "marked_heads", marked_by_thresholds),), MERGES),
    ("protect ignores the ttl", ((protection_store, "deadline", deadline_by_old_zones),), RETENTION),
    ("protect ignores thresholds", ((protection_store, "check_thresholds", lambda *_: None),), RETENTION),
    (
        "a zone changed without the meta record",
        (
            (zone_changes, "configure", configure_unchained),
            (retention_client, "configure", configure_unchained),
        ),
        RETENTION,
    ),
    ("newest revision below the threshold dropped", NEWEST_DROPPED, RETENTION),
    ("a tracker keeps its list at a new version", ((Tracker, "_refresh", refresh_version_alone),), RETENTION),
    ("an ended job leaves its protection", ((JobProtections, "release_all", lambda *_: None),), RETENTION),
)

IN_SCENARIOS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "sweep by now and not by the state's time": ((Decisions, "of_index", decide_by_now),),
    "sweep published from an old list": ((publication, "is_current", lambda *_: True),),
    "record asked before the rows": (
        (snapshot.Snapshot, "get", asked_first(_get)),
        (snapshot.Snapshot, "scan", asked_first(_scan)),
    ),
}
"""Those that seeds meet too seldom. `tests/unit/retention/test_mistakes.py` finds the first two, each in one
order of events; `tests/unit/kv/test_protected_interleavings.py` finds the third by trying every place for it.
"""
