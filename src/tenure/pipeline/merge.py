"""merge: an index's base, its delta and new rows become a new base, a range of keys per task.

    driver        manifest, time, runs, keep ──► tasks
    range task    live files + revisions of the store + runs ──► live files; what ended ──► past files
    past task     past files that have become many ──► one
    driver        results ──► the edit of the manifest, for `lake.publishing`

Every writer of a base uses this operator: a flush has no runs, an import's rows and a backfill's entries come
as sorted runs, a sweep passes a `Keep` that needs less. Revisions that `keep` does not need are left out.

A range without changes keeps its files, and past files are merged by size (`lake.past_files`). So the cost of
a merge follows the changes. Several indexes can be merged together: their tasks run side by side, and the
caller publishes all of them in one transaction.

Walk: `bulk.flush`, `bulk.importing.second_pass` and `bulk.filling.job` -> `merge` -> `Tasks.run` with
`merge_tasks.merge_range`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.pipeline.merge_inputs import Clash, MergeInputs
from tenure.pipeline.merge_tasks import (
    MergedRange,
    MergeTarget,
    MergeTask,
    PastTask,
    RangeTask,
    bounds_of,
    merge_range,
)
from tenure.pipeline.remote_handles import StoreHandle, TableVersion
from tenure.pipeline.runs import cuts, rows_per_range, within
from tenure.pipeline.tasks import Kernel
from tenure.storage.engine import HEAD_BYTES, Engine
from tenure.table.lake.keep import KEEP_ALL, Keep
from tenure.table.lake.manifests import FileShape, Manifest
from tenure.table.lake.past_files import groups_due, needless
from tenure.table.lake.publishing import ManifestEdit
from tenure.table.lake.ranges import ranges

RANGE_ROWS, RANGE_BYTES = 250_000, 64 << 20
"""Delta per task, which it holds in memory as Python objects, and as columns."""

RUN_ROWS, RUN_BYTES = 1 << 19, 64 << 20
"""New rows per task: sorting holds them about three times."""


class MergeRequest(NamedTuple):
    """One index, and the inputs that are merged into its base."""

    version: TableVersion
    base: Manifest
    at: Timestamp
    """The delta is merged up to this time."""
    inputs: MergeInputs | None = None
    keep: Keep = KEEP_ALL


class MergedIndex(NamedTuple):
    base: Manifest
    """The manifest that the merge began with."""
    edit: ManifestEdit
    added: int
    """Rows of the inputs."""
    clashes: tuple[Clash, ...]
    """If there are any, nothing may be published."""


def merge(
    store: Store,
    handle: StoreHandle,
    requests: Sequence[MergeRequest],
    run: Callable[[Kernel[MergeTask, MergedRange], Sequence[MergeTask]], list[MergedRange]],
) -> list[MergedIndex]:
    """Writes the files of new bases; the caller publishes them. `run` runs a kernel's tasks."""
    planned = [list(_tasks(store, handle, request)) for request in requests]
    results = iter(run(merge_range, [task for tasks in planned for task in tasks]))
    return [
        _merged(request, list(islice(results, len(tasks))))
        for request, tasks in zip(requests, planned, strict=True)
    ]


def _tasks(store: Store, handle: StoreHandle, request: MergeRequest) -> Iterator[MergeTask]:
    version, base, until_at, inputs, keep = request
    span = store.keyspace.index_span(base.table, base.index)
    target = MergeTarget(
        handle, version, base.index, base.shapes, _live_shapes(base), base.flushed_at, until_at, keep
    )
    cut_at = _delta_cuts(store.engine, span, base.flushed_at)
    if inputs is not None:
        rows = rows_per_range(inputs.runs, rows_max=RUN_ROWS, bytes_max=RUN_BYTES)
        cut_at += [span.lo[:HEAD_BYTES] + cut for cut in cuts(inputs.runs, rows)]
    for each in ranges(base, span, cut_at):
        runs = within(inputs.runs, *bounds_of(each)) if inputs is not None else ()
        yield RangeTask(target, each, runs, inputs.rules if inputs is not None and runs else None)
    dropped = set(needless(base, keep))
    for group in groups_due(base.live, [file for file in base.past if file not in dropped]):
        yield PastTask(target, group)


def _delta_cuts(engine: Engine, span: Span, since_at: Timestamp) -> list[bytes]:
    """Keys between which the delta has about as many rows as a task may have, or as many bytes."""
    spread = engine.spread(span.lo, span.hi, since_at, RANGE_ROWS)
    rows = spread.keys * RANGE_BYTES // max(1, spread.size)
    if spread.size > RANGE_BYTES and rows < RANGE_ROWS:
        spread = engine.spread(span.lo, span.hi, since_at, max(1, rows))
    return list(spread.cuts)


def _live_shapes(base: Manifest) -> tuple[FileShape, ...]:
    used = {file.shape for file in base.live}
    return tuple(shape for number, shape in enumerate(base.shapes) if number in used)


def _merged(request: MergeRequest, results: Sequence[MergedRange]) -> MergedIndex:
    gone = {file.name for file in needless(request.base, request.keep)}
    gone |= {name for result in results for name in result.gone}
    live = tuple(written for result in results for written in result.live)
    past = tuple(written for result in results for written in result.past)
    return MergedIndex(
        request.base,
        ManifestEdit(tuple(sorted(gone)), live, past),
        sum(result.added for result in results),
        tuple(clash for result in results for clash in result.clashes),
    )
