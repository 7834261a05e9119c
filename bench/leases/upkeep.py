"""What leases cost while nothing changes: 40,000 tables in 200 databases, 300 nodes, 10 virtual minutes.

    lease writes                        none with the schema lease; the expiring scheme's beside it
    CPU of a node with a full cache     at most 1 % of a core: heartbeats, looks, sweeps

All 300 nodes have a session that lives by heartbeats, and a schema lease; three of them have the
catalog in memory and keep up with it. After each commit that writes to the catalog, or to the records of who
waits, each of the three looks, as a node does that is woken by it; for deaths it looks as often as its gap
allows. CPU is that of this process, with the engine's reads and without a disk.

With the expiring scheme the same three hold a lease on every table. They are taken in groups, over the
time between two renewals, and used once a minute. That is measured with fewer tables, and writes and CPU
of the renewals are multiplied: each group is renewed in one step, so both grow with the tables.

Walk: `bench.__main__` -> `run`.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from bench.leases.places import (
    DATABASES,
    DATABASES_QUICK,
    TABLES,
    TABLES_QUICK,
    change,
    objects,
)
from bench.leases.virtual import Cluster, Member
from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note
from tenure.base.settings import LEASE_DURATION, LEASE_POLL_INTERVAL, LIVENESS_TTL
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table
from tenure.catalog.leases.blockers import SchemaLeaseTable
from tenure.catalog.leases.lease_rows import LeaseRows
from tenure.catalog.leases.node_leases import Leases
from tenure.catalog.leases.wait_records import WaitRecords
from tenure.cluster.sessions.deaths import SPACING_SECONDS, Deaths
from tenure.kv.keys import OLD_LEASES, SCHEMA_LEASES
from tenure.version_one.descriptor_leases import LOOK, RENEWAL, DescriptorLeases
from tenure.version_one.expiring_lease_rows import OldLeaseRows
from tenure.version_one.expiring_scheme import ExpiringLeases

NODES, NODES_QUICK = 300, 6
FULL = 3
"""How many of them have the catalog in memory."""
VIRTUAL_SECONDS, VIRTUAL_SECONDS_QUICK = 600.0, 60.0
TABLES_EXPIRING, TABLES_EXPIRING_QUICK = 4_000, 40
"""With the expiring scheme: ten virtual minutes of 120,000 leases would take real ones."""
GROUPS = 20
"""So many groups of tables are leased one after the other: leases are not all taken at once."""
USE_SECONDS = 60.0
FIRST_SECONDS = 0.1
STEP_SECONDS = 0.001
"""Virtual time that a step takes; without it one that is early by a rounding error would run for ever."""
RENEWALS = "renewals"
CPU_PERCENT = 1.0


class Cost(NamedTuple):
    writes: float
    """Lease rows written per second, by all nodes."""
    cpu: dict[str, float]
    """Of a node with a full cache, on average: percent of a core, by part."""

    @property
    def percent(self) -> float:
        return sum(self.cpu.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{part} {percent:.3f}" for part, percent in self.cpu.items())
        per_minute = self.percent / 100 * 60
        return (
            f"{self.writes:,.1f} lease writes/s, {per_minute:.2f} CPU s per node and minute, "
            f"{self.percent:.3f} % of a core ({parts})"
        )


def run(quick: bool) -> list[Ratio]:
    nodes, seconds = (NODES_QUICK, VIRTUAL_SECONDS_QUICK) if quick else (NODES, VIRTUAL_SECONDS)
    databases, tables = (DATABASES_QUICK, TABLES_QUICK) if quick else (DATABASES, TABLES)
    fewer = TABLES_EXPIRING_QUICK if quick else TABLES_EXPIRING
    ours = _schema_lease(nodes, objects(databases, tables), seconds)
    peer = _expiring(nodes, objects(databases, fewer), seconds, times=tables / fewer)
    note(f"leases.upkeep: {tables:,} tables, {nodes} nodes, {FULL} with full caches, {seconds:.0f} virtual s")
    note(f"  schema lease: {ours}")
    note(f"  expiring: {peer}; measured with {fewer:,} tables, writes and renewals times {tables / fewer:g}")
    return [
        compare(
            "leases.upkeep.writes",
            ours=ours.writes,
            peer=peer.writes,
            unit="writes/s",
            bar=Bar.AT_MOST,
            limit=0.0,
        ),
        compare(
            "leases.upkeep.cpu", ours=ours.percent, peer=CPU_PERCENT, unit="%", bar=Bar.AT_MOST, limit=1.0
        ),
        compare(
            "leases.upkeep.cpu_beside_expiring", ours=ours.percent, peer=peer.percent, unit="%", bar=Bar.NONE
        ),
    ]


def _follow_deaths(cluster: Cluster, member: Member) -> Deaths:
    """Has a node learn of deaths, which it does whatever its leases are like."""
    deaths = Deaths(member.store, member.sessions)

    def follow() -> float:
        with member.timed("deaths"):
            deaths.wake()
            return SPACING_SECONDS + deaths.follow()

    cluster.add(follow, in_seconds=SPACING_SECONDS)
    return deaths


# ── the schema lease ───────────────────────────────────────────────────────────────────────────────


def _schema_lease(nodes: int, made: Sequence[AnyDescriptor], seconds: float) -> Cost:
    with closing(Cluster(nodes, made)) as cluster:
        for member in cluster.members[FULL:]:
            _write_lease(member)
        full = [_Full(cluster, member) for member in cluster.members[:FULL]]
        since_at = _begin(cluster)
        cluster.live_for(seconds)
        cost = Cost(cluster.written(SCHEMA_LEASES, since_at) / seconds, _cpu(cluster, seconds))
        cluster.verify(since_at, seconds)
        for each in full:
            each.verify(made[-1].id, version=1)
        change(cluster.store, cluster.catalog, made[-1].id)
        cluster.signal()
        for each in full:
            each.verify(made[-1].id, version=2)
    return cost


def _begin(cluster: Cluster) -> Timestamp:
    """From here on all is counted; returns when that is."""
    for member in cluster.members:
        member.cpu.clear()
    return cluster.store.snapshot().at


def _cpu(cluster: Cluster, seconds: float) -> dict[str, float]:
    """Percent of a core, by part, on average of the nodes with full caches."""
    full = cluster.members[:FULL]
    return {
        part: 100 * sum(member.cpu[part] for member in full) / FULL / seconds for part in sorted(full[0].cpu)
    }


def _write_lease(member: Member) -> None:
    """A schema lease, as others see it: its row."""
    rows = LeaseRows(member.store.keyspace, member.sessions)
    member.store.transact(lambda txn: rows.write(txn, member.liveness.session().id))


class _Full:
    """A node with the whole catalog in memory, and what its loops do about leases and sessions."""

    def __init__(self, cluster: Cluster, member: Member) -> None:
        self._member = member
        store, session = member.store, member.liveness.session
        catalog = Catalog(store.keyspace)
        rows = LeaseRows(store.keyspace, member.sessions)
        self._leases = Leases(store, catalog, rows, session, lambda: member.settings)
        self._leases.renew()
        self._leases.step(seconds_max=0.0)
        waits = WaitRecords(store.keyspace).span()
        self._waits = store.watch([waits], since_at=store.snapshot().at)
        self._deaths = _follow_deaths(cluster, member)
        self._table = SchemaLeaseTable(store, rows, self._deaths, lambda: session().id)
        cluster.listen(self._look_at_catalog, [catalog.span])
        cluster.listen(self._look_at_waits, [waits])
        cluster.add(self._sweep, in_seconds=member.settings[LIVENESS_TTL])

    def _look_at_catalog(self) -> None:
        with self._member.timed("catalog"):
            self._leases.step(seconds_max=0.0)

    def _look_at_waits(self) -> None:
        """For schema changes that this node may hold up."""
        with self._member.timed("waits"):
            self._waits.next(0.0, changes_only=True)

    def _sweep(self) -> float:
        with self._member.timed("sweeps"):
            self._deaths.reap()
            self._table.sweep()
        return self._member.settings[LIVENESS_TTL]

    def verify(self, id: int, *, version: int) -> None:
        """Checks that the lease is good now, and stands for the catalog as it is."""
        use = self._leases.bind(self._member.store.begin())
        found = use.descriptor(id)
        use.close()
        assert found is not None and found.version == version, f"version {version} is not in use"


# ── the expiring scheme ────────────────────────────────────────────────────────────────────────────


def _expiring(nodes: int, made: Sequence[AnyDescriptor], seconds: float, *, times: float) -> Cost:
    tables = [each.id for each in made if isinstance(each, Table)]
    with closing(Cluster(nodes, made)) as cluster:
        full = [_FullExpiring(cluster, member) for member in cluster.members[:FULL]]
        renewal_seconds = RENEWAL * cluster.members[0].settings[LEASE_DURATION]
        for group in range(GROUPS):
            for each in full:
                each.lease(tables[group::GROUPS])
            cluster.live_for(renewal_seconds / GROUPS)
        cluster.live_for(renewal_seconds / GROUPS / 2)  # what is counted begins and ends between two groups
        for member in cluster.members[:FULL]:
            _follow_deaths(cluster, member)
        since_at = _begin(cluster)
        cluster.live_for(seconds)
        writes = cluster.written(OLD_LEASES, since_at)
        cpu = _cpu(cluster, seconds)
        cluster.verify(since_at, seconds)
        expected = FULL * len(tables) * seconds / renewal_seconds
        # A renewal may come one look early, so that there are a few more of them.
        earliest = expected / (1 - LOOK)
        assert expected - 1 < writes <= earliest + FULL * len(tables) / GROUPS, (
            f"{writes} lease writes instead of {expected:.0f}"
        )
        for each in full:
            each.verify()
    return Cost(writes * times / seconds, cpu | {RENEWALS: cpu[RENEWALS] * times})


class _FullExpiring:
    """A node that has an expiring lease on every table, and what its loops do about these."""

    def __init__(self, cluster: Cluster, member: Member) -> None:
        self._member = member
        self._tables: list[int] = []
        store, session = member.store, member.liveness.session
        catalog = Catalog(store.keyspace)
        self._rows = OldLeaseRows(store.keyspace, catalog)
        self._each = DescriptorLeases(
            store, catalog, self._rows, lambda: session().id.instance, lambda: member.settings
        )
        self._leases = ExpiringLeases(store, catalog, self._each, session, lambda: self._settings)
        # The first step cannot be woken, so it is short.
        self._settings = member.settings.with_value(LEASE_POLL_INTERVAL, FIRST_SECONDS)
        self._leases.step()
        self._settings = member.settings
        self._watch = store.watch([catalog.span], since_at=store.snapshot().at)
        cluster.listen(self.look, [catalog.span])
        cluster.add(self._renew)
        cluster.add(self._use_all, in_seconds=USE_SECONDS)

    def look(self) -> None:
        """What its step does while it waits, when some node changes the catalog."""
        with self._member.timed("catalog"):
            self._watch.next(0.0, changes_only=True)

    def _renew(self) -> float:
        with self._member.timed(RENEWALS):
            self._leases.wake()
            self._leases.step()
        # Nothing is due now: it says when something will be. A step takes some time on a real clock.
        return max(STEP_SECONDS, self._each.renew_due())

    def lease(self, tables: Sequence[int]) -> None:
        """Uses tables for the first time, and from then on."""
        self._tables += tables
        self._use(tables)

    def _use_all(self) -> float:
        self._use(self._tables)
        return USE_SECONDS

    def _use(self, tables: Sequence[int]) -> None:
        use = self._leases.bind(self._member.store.begin())
        for id in tables:
            assert use.descriptor(id) is not None
        use.close()

    def verify(self) -> None:
        """Checks that there is a good lease on every table."""
        store, own = self._member.store, self._each.owner()
        now_at = store.clock.now()
        good = {
            row.descriptor
            for row in self._rows.list(store.snapshot())
            if row.owner == own and row.expires_at > now_at
        }
        assert good == set(self._tables), f"{len(good)} leases on {len(self._tables)} tables"
