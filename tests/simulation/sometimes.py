"""What must happen now and then, or the runs prove nothing: counted, and asked for.

Walk: `cluster.run` calls `observe` at the end of each run; `__main__` prints what was not seen.
"""

from tenure.kv.keys import EXPIRATIONS, SESSIONS, Keyspace
from tenure.storage.engine import CommitStatus, Removes
from tests.simulation.job_trace import JobTrace, Running
from tests.simulation.trace import Get, Trace, Txn

SOMETIMES = (
    "refresh succeeded",
    "refresh failed",
    "parent refreshed over a child's write",
    "parent validated over a child's write",
    "parent refused because of a stranger",
    "child stayed when its parent did not commit",
    "transaction aborted by deadline",
    "transaction refused as too early",
    "ambiguous commit found landed",
    "ambiguous commit refused",
    "late commit landed",
    "late commit refused",
    "outcome unknown",
    "node refused for skew",
    "clock pushed by a read",
    "read refused below threshold",
    "commit refused below a mark",
    "BaseMoved",
    "sweep removed something",
    "cleaning removed something",
    "watch fell below a mark",
    "watch woken by poll after a lost signal",
    "group of several commits",
    "group with a refused and a committed member",
    "phantom refused",
    "crash after commit before ack",
    "operation cancelled",
    "reads forgotten",
    "restart",
)

JOB_SOMETIMES = (
    "heartbeat found its row gone",
    "session given up alive",
    "session deleted by another",
    "session not deleted: too early",
    "expired session observed",
    "frozen session died",
    "instance id recycled",
    "several nodes race for one claim",
    "lost claim noticed by the fence",
    "lost session noticed by the fence",
    "request noticed by the fence",
    "run told to stop",
    "job adopted after death",
    "revert ran",
    "retry later",
    "panic inside a terminal step",
    "effect written by a helper",
    "drain",
    "start failed",
    "node upgraded",
    "node rolled back",
    "older node refused",
    "older instance found its row gone",
    "older instance removed by another",
    "job taken from old by mixed",
    "job taken from mixed by old",
    "finalizing refused: an older instance",
    "version finalized",
    "setting changed",
    "heads swept",
    "heartbeat too early after a lowered ttl",
    "ended job forgotten",
    "job taken from the other runner",
    "both tenants have jobs",
)
"""Of the world of sessions and jobs."""

SCHEMA_SOMETIMES = (
    "schema change waited for a lease",
    "two versions leased at once",
    "commit under the version before the newest",
    "deletion of an abandoned lease",
    "transaction aborted by deadline",
    "epoch bump during lease acquisition",
    "name resolved by the old map",
    "a change reverted",
    "a change adopted by another node",
    "change canceled",
    "collapse into one commit",
    "children path",
    "holder ended",
    "use of a lost session ended",
    "session frozen",
    "phantom refused",
    "kept plan used",
    "glance believed",
    "glance not believed",
    "insert left what was there",
    "drain",
    "restart",
)
"""Of the world of schema changes."""

LAKE_SOMETIMES = (
    "flushed",
    "imported",
    "cleaning removed something",
    "commit refused below a mark",
    "watch fell below a mark",
    "restart",
)
"""Of the world of rows that move to the lake."""

RETENTION_SOMETIMES = (
    "protect refused for the ttl",
    "protect refused for a threshold",
    "protect refused at the limit",
    "transaction aborted by deadline",
    "sweep held back by a protection",
    "sweep kept a point",
    "sweep replaced under way",
    "sweep removed something",
    "sweep from an old state",
    "cleaning removed something",
    "files swept by a merge",
    "file dropped by an edit",
    "table collected",
    "undrop refused: collected",
    "brought back",
    "imported",
    "read in the name of a protection",
    "read refused below threshold",
    "watch fell below a mark",
    "held and read",
    "restart",
)
"""Of the world of retention."""


def observe(trace: Trace) -> None:
    """Counts what only the whole history shows."""
    seen = trace.seen
    for raised, name in (
        ("DeadlinePassed", "transaction aborted by deadline"),
        ("TooEarly", "transaction refused as too early"),
        ("OutcomeUnknown", "outcome unknown"),
        ("ClockAhead", "node refused for skew"),
    ):
        seen[name] += seen[f"raised {raised}"]
    for landing in trace.landings:
        for removal in landing.removals:
            if landing.removed:
                is_cleaning = removal.removes is Removes.FLUSHED
                seen["cleaning removed something" if is_cleaning else "sweep removed something"] += 1
    claims = trace.claims if isinstance(trace, JobTrace) else {}
    if isinstance(trace, JobTrace):
        seen["both tenants have jobs"] += all(trace.jobs.values())
        seen["job taken from the other runner"] += _taken_beside(trace)
    for txn in trace.txns:
        if txn.refusals and txn.id in claims:
            seen["several nodes race for one claim"] += 1
        if txn.refusals:
            _observe_refusals(trace, txn)
        if txn.children:
            _observe_family(trace, txn)


def _taken_beside(trace: JobTrace) -> int:
    """How often a job's function began in a process where another runner's had not ended."""
    under_way: dict[tuple[str, int], list[Running]] = {}
    found = 0
    for running in trace.running:
        process = running.process.partition(",")[0]
        others = under_way.setdefault((process, running.job), [])
        found += any(
            each.process != running.process and (each.ended or running.began) >= running.began
            for each in others
        )
        others.append(running)
    return found


def _observe_refusals(trace: Trace, txn: Txn) -> None:
    found = {key for read in txn.reads if not isinstance(read, Get) for key, _ in read.rows}
    for refusal in txn.refusals:
        status, _, key, *_ = refusal.outcome
        if status is CommitStatus.BELOW_MARK:
            trace.seen["commit refused below a mark"] += 1
        elif status is CommitStatus.TOO_EARLY and _deletes_session(txn):
            trace.seen["session not deleted: too early"] += 1
        elif status is CommitStatus.TOO_EARLY and _writes(txn, EXPIRATIONS):
            trace.seen["heartbeat too early after a lowered ttl"] += 1
        elif status is CommitStatus.CONFLICT and txn.children:
            trace.seen["parent refused because of a stranger"] += 1
        elif status is CommitStatus.CONFLICT and key not in refusal.commit.points and key not in found:
            trace.seen["phantom refused"] += 1


def _writes(txn: Txn, table: int) -> bool:
    head = Keyspace(txn.tenant).head(table)
    return any(put.key.startswith(head) for put in txn.puts)


def _deletes_session(txn: Txn) -> bool:
    head = Keyspace(txn.tenant).head(SESSIONS)
    return any(put.value is None and put.key.startswith(head) for put in txn.puts)


def _observe_family(trace: Trace, txn: Txn) -> None:
    landed = [child for child in txn.descendants() if child.landed]
    if not landed:
        return
    if txn.ended and not txn.landed and txn.state == "aborted":
        trace.seen["child stayed when its parent did not commit"] += 1
    written = {key for child in landed if child.landed_at for key in child.final_writes(child.landed_at)}
    points = {read.key for read in txn.reads if isinstance(read, Get)}
    if txn.landed and points & written:
        trace.seen["parent validated over a child's write"] += 1
    if any(read.read_at > child.landed_at for read in txn.reads for child in landed if child.landed_at):
        trace.seen["parent refreshed over a child's write"] += 1
