"""One run of either world, and the verdict on it.

    0 ───────────── faults, bursts of operations ───────────── T1 ───── calm ───── T
                                                                └ everything must end by T

Walk: `__main__` and `shrink` call `run`; it returns a `Result` with violations and figures.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tenure.kv import commit_groups, snapshot, watch
from tests.simulation import (
    lake_world,
    members,
    retention_client,
    retention_world,
    schema_nodes,
    schema_profiles,
    sometimes,
    steering,
)
from tests.simulation.job_knobs import JobKnobs, draw_job_knobs
from tests.simulation.knobs import Knobs, draw_knobs
from tests.simulation.nodes import Cluster
from tests.simulation.predicates import Violation
from tests.simulation.retention_world import RetentionCluster, RetentionKnobs, draw_retention_knobs
from tests.simulation.schema_knobs import EXPIRING, SESSION, SchemaKnobs, draw_schema_knobs
from tests.simulation.shapes import PROFILES
from tests.simulation.tape import Kept, Tape
from tests.simulation.trace import Trace

CALM_SECONDS = 6.0
"""Before the end of a run: what had been committed by then, every watch must have told by the end."""


@dataclass
class Result:
    seed: int
    violations: list[Violation]
    trace: Trace
    tape: Tape
    faults: Counter[str]
    steps: int
    trace_hash: str
    knobs: Knobs


def run(
    seed: int,
    *,
    seconds: float = 60.0,
    nodes: int = 3,
    profile: str = "all",
    kept: Kept | None = None,
    until: float | None = None,
    change: Callable[[Knobs], None] | None = None,
) -> Result:
    """Runs a seed, or what was kept of its tape. With `until` it is cut short and not asked to end well."""
    tape = Tape(seed, kept)
    knobs = _draw(tape, profile, seconds=seconds, nodes=nodes)
    if change is not None:
        change(knobs)
    if not gc.get_freeze_count():
        gc.freeze()  # what was imported need not be looked at after every run
    gc.disable()
    worlds = members.sizes(knobs), schema_nodes.sizes(knobs), retention_world.sizes(knobs)
    with _sizes(knobs), worlds[0], worlds[1], lake_world.sizes(), worlds[2]:
        cluster = _make(tape, knobs, profile)
        hub, trace = cluster.hub, cluster.trace
        cluster.start()
        hub.run(until if until is not None else knobs.seconds - CALM_SECONDS)
        clock_at = cluster.wire.engine.clock_at()
        if until is None:
            hub.run(knobs.seconds)
            trace.stuck += [message for node in cluster.nodes for message in node.stuck(clock_at)]
        violations = [Violation("crash", f"{name}: {error!r}", trace.step) for name, error in hub.crashed]
        violations += cluster.judge(is_whole=until is None)
        violations += cluster.compare()
        sometimes.observe(trace)
        trace_hash = hub.trace_hash()
        hub.close()
    cluster.wire.engine.close()
    gc.enable()
    return Result(seed, violations, trace, tape, cluster.wire.faults, hub.steps, trace_hash, knobs)


def _draw(tape: Tape, profile: str, *, seconds: float, nodes: int) -> Knobs:
    """Knobs of the world that a profile belongs to."""
    if profile in schema_profiles.PROFILES:
        scheme = profile if profile == EXPIRING else SESSION
        return draw_schema_knobs(tape, seconds=seconds, nodes=nodes, scheme=scheme)
    if profile in retention_client.PROFILES:
        return draw_retention_knobs(tape, seconds=seconds, nodes=nodes)
    draw = draw_job_knobs if profile in steering.PROFILES else draw_knobs
    return draw(tape, seconds=seconds, nodes=nodes)


def _make(tape: Tape, knobs: Knobs, profile: str) -> Cluster:
    if isinstance(knobs, SchemaKnobs):
        return schema_nodes.SchemaCluster(tape, knobs, schema_profiles.PROFILES[profile])
    if isinstance(knobs, JobKnobs):
        return members.JobCluster(tape, knobs, steering.PROFILES[profile])
    if isinstance(knobs, RetentionKnobs):
        return RetentionCluster(tape, knobs, retention_client.PROFILES[profile])
    if profile in lake_world.PROFILES:
        return lake_world.LakeCluster(tape, knobs, lake_world.PROFILES[profile])
    return Cluster(tape, knobs, PROFILES[profile])


@contextmanager
def _sizes(knobs: Knobs) -> Iterator[None]:
    """Pages, batches and groups so small that few rows fill them."""
    former = snapshot.PAGE_ROWS, watch.BATCH_ROWS, commit_groups.GROUP_MAX
    snapshot.PAGE_ROWS, watch.BATCH_ROWS = knobs.page_rows, knobs.batch_rows
    commit_groups.GROUP_MAX = knobs.group_max
    try:
        yield
    finally:
        snapshot.PAGE_ROWS, watch.BATCH_ROWS, commit_groups.GROUP_MAX = former
