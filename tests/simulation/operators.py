"""What people do to a cluster of sessions and jobs: upgrade it node by node, finalize, change settings.

    version 1 on every node ──► each is drained or crashes, and comes back as version 2 ──► finalized
                                 └ now and then it is rolled back, and upgraded again

Finalizing is tried from time to time all along: it must be refused while a node of version 1 lives,
and go through in the end.

Walk: `members.JobCluster` has an `Operator` per tenant; its nemesis calls `change_setting` and `sweep_heads`.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tenure.base.errors import OlderInstances, TenureError
from tenure.base.setting_kinds import render_duration
from tenure.base.settings import (
    JOBS_ADOPT_INTERVAL,
    JOBS_RETENTION,
    LIVENESS_HEARTBEAT,
    LIVENESS_TTL,
    VERSION,
)
from tenure.base.timestamp import add_seconds
from tenure.cluster.sessions.versions import OLDEST, PROGRAM
from tenure.kv.keys import JOB_CONTROL, SESSIONS, SETTINGS
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tests.simulation.job_knobs import ADOPTS, RETENTIONS, TTLS

if TYPE_CHECKING:
    from tests.simulation.members import JobCluster, Member
    from tests.simulation.processes import Process

KEPT = (2.0, 1.0, 5.0)
"""How much history of the system's heads is left, in seconds: less than a node may stand still."""

FINALIZE_SECONDS = 1.0
"""Between two tries to finalize once the faults are over."""


class Operator:
    """Who looks after the nodes of one tenant."""

    def __init__(self, cluster: "JobCluster", tenant: int) -> None:
        self._cluster = cluster
        self._tenant = tenant
        self._is_finalized = False

    def upgrade(self) -> None:
        cluster, tape = self._cluster, self._cluster.tape
        end = cluster.knobs.faults_end
        for member in cluster.members_of(self._tenant):
            name = member.machine.name
            at = end * tape.between(f"{name}.upgrade", 0.02, 0.85)
            cluster.hub.call_later(at, partial(self._install, member, PROGRAM))
            if tape.chance(f"{name}.roll back", 0.3):
                back_at = at + (0.9 * end - at) * tape.between(f"{name}.back", 0.05, 1.0)
                cluster.hub.call_later(back_at, partial(self._install, member, OLDEST))
            cluster.hub.call_later(0.95 * end, partial(self._install, member, PROGRAM))
        cluster.hub.spawn(None, "operator", self._finalize_again_and_again)

    def _install(self, member: "Member", version: int) -> None:
        """Replaces a node's program: by a drain, or its process crashes and the other one comes up."""
        if member.version == version:
            return
        cluster = self._cluster
        member.version = version
        cluster.trace.seen["node upgraded" if version == PROGRAM else "node rolled back"] += 1
        if not member.machine.is_up:
            return
        site = f"{member.machine.name}.install"
        if member.process is None or cluster.tape.chance(site, 0.4):
            member.cut_power(restart_after=cluster.soon(site))
        else:
            member.drain()

    def _finalize_again_and_again(self) -> None:
        cluster = self._cluster
        while not self._is_finalized:
            is_faulty = cluster.wire.is_faulty()
            cluster.hub.sleep(
                cluster.tape.between("finalize.wait", 2.0, 8.0) if is_faulty else FINALIZE_SECONDS, "operator"
            )
            up = [each for each in cluster.members_of(self._tenant) if each.process is not None]
            if up:
                member = up[cluster.tape.pick("finalize.node", len(up))]
                assert member.process is not None
                member.env.spawn("finalize", partial(self._finalize, member.process))

    def _finalize(self, process: "Process") -> None:
        seen = self._cluster.trace.seen
        try:
            process.store.transact(lambda txn: process.settings.set(txn, VERSION.name, str(PROGRAM)))
        except OlderInstances:
            seen["finalizing refused: an older instance"] += 1
        except TenureError:
            seen["finalizing failed"] += 1
        else:
            seen["version finalized"] += not self._is_finalized
            self._is_finalized = True


def change_setting(cluster: "JobCluster", process: "Process") -> None:
    """Somebody sets or resets a cluster setting, on any node."""
    changes = (_set_ttl, _set_ttl, _set_adopt_interval, _set_retention, _reset)
    change = cluster.tape.choose("nemesis.setting", changes)
    work = change(cluster, process)

    def run() -> None:
        try:
            process.store.transact(work)
        except TenureError:
            cluster.trace.seen["changing a setting failed"] += 1
        else:
            cluster.trace.seen["setting changed"] += 1

    process.env.spawn("setting", run)


def sweep_heads(cluster: "JobCluster", process: "Process") -> None:
    """A collector publishes thresholds over heads of the system: nodes that have stood still get a gap."""
    seconds = cluster.tape.choose("nemesis.kept", KEPT)
    keyspace = process.store.keyspace

    def publish(txn: Transaction) -> None:
        for table in (SETTINGS, SESSIONS, JOB_CONTROL):
            publish_threshold(txn, keyspace, keyspace.head(table), add_seconds(txn.read_at, -seconds))

    def run() -> None:
        try:
            process.store.transact(publish)
        except TenureError:
            cluster.trace.seen["sweeping heads failed"] += 1
        else:
            cluster.trace.seen["heads swept"] += 1

    process.env.spawn("sweep", run)


Change = Callable[[Transaction], None]


def _set_ttl(cluster: "JobCluster", process: "Process") -> Change:
    ttl_seconds = cluster.tape.choose("nemesis.ttl", TTLS)
    heartbeat_seconds = ttl_seconds / cluster.knobs.beats

    def work(txn: Transaction) -> None:
        process.settings.set(txn, LIVENESS_TTL.name, render_duration(ttl_seconds))
        process.settings.set(txn, LIVENESS_HEARTBEAT.name, render_duration(heartbeat_seconds))

    return work


def _set_adopt_interval(cluster: "JobCluster", process: "Process") -> Change:
    seconds = cluster.tape.choose("nemesis.adopt", ADOPTS)
    return lambda txn: process.settings.set(txn, JOBS_ADOPT_INTERVAL.name, render_duration(seconds))


def _set_retention(cluster: "JobCluster", process: "Process") -> Change:
    seconds = cluster.tape.choose("nemesis.retention", RETENTIONS)
    return lambda txn: process.settings.set(txn, JOBS_RETENTION.name, render_duration(seconds))


def _reset(cluster: "JobCluster", process: "Process") -> Change:
    """Back to what the command line gave; the two of liveness together, as they were set."""

    def work(txn: Transaction) -> None:
        for setting in (LIVENESS_TTL, LIVENESS_HEARTBEAT, JOBS_ADOPT_INTERVAL, JOBS_RETENTION):
            process.settings.reset(txn, setting.name)

    return work
