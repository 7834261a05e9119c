"""A rolling upgrade under load and schema changes: version 1, both at once, version 2, finalized.

Nodes of both versions write rows of one table and add and drop its indexes meanwhile; some are drained
and some are killed. In the end every commit lies within the two versions that it may use, versions
follow one another one by one, no acknowledged change is lost, every index has what its rows say, and
no expiring lease is left.

Walk: `__main__` and `test_schema_smoke` call `schema_upgrade` with a `Run`; the nodes are
`schema_upgrade_worker`s.
"""

import time
from typing import NamedTuple

from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table, place_of, replace
from tenure.cluster.sessions.versions import Versions
from tenure.kv.transaction import Transaction
from tenure.table.consistency import check_indexes
from tenure.table.rows import Layouts
from tenure.version_one.expiring_lease_rows import OldLeaseRows
from tests.faults.harness import Result, Run, wait_for
from tests.faults.job_fleet import HEARTBEAT_SECONDS, TTL_SECONDS, JobFleet
from tests.faults.job_upgrade import FINALIZE_SECONDS_MAX, OLD, finalize, replace_node
from tests.faults.schema_upgrade_worker import TABLE
from tests.unit.table.tables import table
from tests.unit.table.trees import CONTEXT

NODES = ("p0", "p1", "p2")
DURATION_SECONDS = 1.0
USED = b'{"e":"used"'
CREATED = b'{"e":"created"'
GO_ON_SECONDS_MAX = 40.0
EMPTY_SECONDS_MAX = 15.0


class SchemaFleet(JobFleet):
    def _set_up(self) -> None:
        super()._set_up()
        self.catalog = Catalog(self.store.keyspace)

    def start_node(self, name: str, *more: str) -> None:
        times = ("--ttl", str(TTL_SECONDS), "--heartbeat", str(HEARTBEAT_SECONDS))
        lasts = ("--duration", str(DURATION_SECONDS))
        self._launch("tests.faults.schema_upgrade_worker", name, "", (*times, *lasts, *more))

    def create_table(self) -> None:
        made = replace(table(id=TABLE), next_column=9, next_index=9)

        def create(txn: Transaction) -> None:
            self.catalog.put(txn, made)
            self.catalog.put_name(txn, place_of(made), TABLE)

        self.store.transact(create)

    def require_progress(self, result: Result, names: tuple[str, ...], when: str) -> None:
        """Each of these must write rows and change the schema again."""
        before = self.lengths()

        def goes_on() -> bool:
            return all(self.count(USED, before, name) for name in names) and bool(self.count(CREATED, before))

        result.require(wait_for(goes_on, GO_ON_SECONDS_MAX), f"no writes or no schema changes {when}")

    def require_no_trouble(self, result: Result) -> None:
        result.violations += self._troubles
        self._require_no_bugs(result)


def schema_upgrade(run: Run) -> Result:
    """Version 1 to 2 under schema changes: two versions at most, no change lost, indexes right."""
    result = Result()
    with SchemaFleet(run, "schema") as fleet:
        versions = Versions(fleet.store.keyspace, fleet.sessions)
        fleet.start_node(NODES[0], *OLD)
        fleet.await_ready()
        fleet.create_table()
        for name in NODES[1:]:
            fleet.start_node(name, *OLD)
        fleet.await_ready()
        fleet.require_progress(result, NODES, "among nodes of version 1")
        for number, name in enumerate(NODES):
            time.sleep(run.seconds / len(NODES))
            result.require(not finalize(fleet, versions), "finalized while version 1 was there")
            replace_node(fleet, name, is_drained=number % 2 == 0)
            fleet.require_progress(result, NODES, f"after {name} was upgraded")
        finalized = wait_for(lambda: finalize(fleet, versions), FINALIZE_SECONDS_MAX)
        result.require(finalized, "no older node is left, and still it cannot be finalized")
        fleet.require_progress(result, NODES, "after the upgrade was finalized")
        _require_empty(fleet, result)
        fleet.settle(result)
        _judge(fleet, result)
    return result


def _require_empty(fleet: SchemaFleet, result: Result) -> None:
    rows = OldLeaseRows(fleet.store.keyspace, fleet.catalog)

    def is_empty() -> bool:
        return not list(rows.list(fleet.store.snapshot()))

    result.require(wait_for(is_empty, EMPTY_SECONDS_MAX), "expiring leases are left after finalizing")


# ── the verdict ────────────────────────────────────────────────────────────────────────────────


class Used(NamedTuple):
    process: str
    version: int
    at: Timestamp


def _judge(fleet: SchemaFleet, result: Result) -> None:
    modified = _versions(fleet)
    if list(modified) != list(range(1, len(modified) + 1)):
        result.violations.append(f"versions do not follow one another: {list(modified)}")
    logs = fleet.events()
    used = [
        Used(process, event["version"], event["at"])
        for process, events in logs
        for event in events
        if event["e"] == "used"
    ]
    for each in used:
        if not modified[each.version] <= each.at < modified.get(each.version + 2, MAX_AT):
            result.violations.append(f"two versions: {each}")
    names = {kind: _named(logs, kind) for kind in ("created", "dropping", "dropped")}
    _check_indexes(fleet, result, names)
    result.counts |= {"commits": len(used), "versions": len(modified), "indexes": len(names["created"])}
    fleet.require_no_trouble(result)


def _versions(fleet: SchemaFleet) -> dict[int, Timestamp]:
    """When each version of the table was written."""
    keyspace = fleet.store.keyspace
    key = fleet.catalog.key(TABLE)
    span = keyspace.head_span(fleet.catalog.descriptors_head)
    revisions = fleet.store.history(span, since_at=0).revisions
    values = (each.value for each in revisions if each.key == key and each.value is not None)
    return {each.version: each.modified_at for each in map(fleet.catalog.decode, values)}


def _named(logs: list[tuple[str, list[dict[str, object]]]], kind: str) -> set[str]:
    return {str(event["index"]) for _, events in logs for event in events if event["e"] == kind}


def _check_indexes(fleet: SchemaFleet, result: Result, names: dict[str, set[str]]) -> None:
    snapshot = fleet.store.snapshot()
    stored = fleet.catalog.get(snapshot, TABLE)
    assert isinstance(stored, Table)
    there = {index.name for index in stored.indexes}
    lost = names["created"] - names["dropping"] - there
    back = names["dropped"] & there
    result.require(not lost, f"indexes that were acknowledged are gone: {sorted(lost)}")
    result.require(not back, f"indexes that were dropped are there: {sorted(back)}")
    wrong = check_indexes(snapshot, Layouts(fleet.store.keyspace).of(stored), CONTEXT)
    result.violations += [f"index: {each}" for each in wrong[:5]]
