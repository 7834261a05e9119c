"""merge: an index's base, its delta and new rows become a new base, a range of keys per task.

    driver        manifest, time, runs, keep ──► tasks
    range task    live files + revisions of the store + runs ──► live files; what ended ──► past files
    past task     past files that have become many ──► one
    driver        results ──► the edit of the manifest, for `lake.publishing`

Every writer of a base uses this operator: a flush has no runs, an import's rows and a backfill's entries come
as sorted runs, a sweep passes a `Keep` that needs less. Revisions that `keep` does not need are left out.

A task holds a bounded part of the delta (`RANGE_BYTES`, less where its process has less memory). Ranges are
cut by the size of all revisions of their keys. A single key may have more than a task can hold: then the
delta is merged interval by interval, oldest first.

A range without changes keeps its files, and past files are merged by size (`lake.past_files`). So the cost of
a merge follows the changes. Several indexes can be merged together: their tasks run side by side, and the
caller publishes all of them in one transaction.

Walk: `bulk.flush`, `bulk.importing.second_pass`, `bulk.resetting.job` and `bulk.filling.job` -> `merge` ->
`Tasks.run` with `merge_tasks.merge_range`.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.pipeline.merge_inputs import Clash, MergeInputs
from tenure.pipeline.merge_tasks import (
    NO_DELTA,
    DeltaSlice,
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
from tenure.pipeline.tasks import TASK_BYTES, Kernel
from tenure.storage.engine import HEAD_BYTES, Engine
from tenure.table.lake.keep import KEEP_ALL, Keep
from tenure.table.lake.manifests import FileShape, Manifest
from tenure.table.lake.past_files import groups_due, needless
from tenure.table.lake.publishing import ManifestEdit
from tenure.table.lake.ranges import ranges

RANGE_BYTES = 64 << 20
"""The most delta, or new rows, of a task; and the most rows of a file, in memory. Files of wide rows that are
larger would make later merges of them larger.
"""

HELD_TIMES = 8
"""Measured: a task holds a range and a file of that size, as columns, filtered, sorted and encoded."""

RUN_ROWS = 1 << 19
"""New rows per task."""

PAGE_BYTES, PAGE_KEYS_MAX = 4 << 20, 10_000
"""Revisions that a task holds as Python objects at a time, about; and keys per read of the store."""


class MergeRequest(NamedTuple):
    """One index, and the inputs that are merged into its base."""

    version: TableVersion
    base: Manifest
    at: Timestamp
    """The delta is merged up to this time."""
    inputs: MergeInputs | None = None
    keep: Keep = KEEP_ALL
    rewrites: frozenset[str] = frozenset()
    """Past files to be written again without what `keep` does not need."""


class MergedIndex(NamedTuple):
    base: Manifest
    """The manifest that the merge began with."""
    edit: ManifestEdit
    added: int
    """Rows of the inputs."""
    removed: int
    """Keys that rows had, and have no more: where inputs replace the rows."""
    clashes: tuple[Clash, ...]
    """If there are any, nothing may be published."""


def merge(
    store: Store,
    handle: StoreHandle,
    requests: Sequence[MergeRequest],
    run: Callable[[Kernel[MergeTask, MergedRange], Sequence[MergeTask]], list[MergedRange]],
    *,
    task_bytes: int = TASK_BYTES,
) -> list[MergedIndex]:
    """Writes the files of new bases; the caller publishes them. `run` runs a kernel's tasks, each of which
    may hold `task_bytes`.
    """
    range_bytes = min(RANGE_BYTES, task_bytes // HELD_TIMES)
    planned = [list(_tasks(store, handle, request, range_bytes)) for request in requests]
    results = iter(run(merge_range, [task for tasks in planned for task in tasks]))
    return [
        _merged(request, list(islice(results, len(tasks))))
        for request, tasks in zip(requests, planned, strict=True)
    ]


def _tasks(store: Store, handle: StoreHandle, request: MergeRequest, range_bytes: int) -> Iterator[MergeTask]:
    version, base, until_at, inputs, keep, rewrites = request
    span = store.keyspace.index_span(base.table, base.index)
    shapes = _live_shapes(base)
    target = MergeTarget(
        handle, version, base.index, base.shapes, shapes, base.flushed_at, until_at, keep, range_bytes
    )
    delta = _Delta(store.engine, span, base.flushed_at, until_at, range_bytes)
    cut_at = delta.cuts
    if inputs is not None:
        rows = rows_per_range(inputs.runs, rows_max=RUN_ROWS, bytes_max=range_bytes)
        cut_at += [span.lo[:HEAD_BYTES] + cut for cut in cuts(inputs.runs, rows)]
    for each in ranges(base, span, cut_at):
        runs = within(inputs.runs, *bounds_of(each)) if inputs is not None else ()
        rules = inputs.rules if inputs is not None and (runs or inputs.rules.replaces) else None
        yield RangeTask(target, each, runs, rules, delta.slice_of(each.lo))
    dropped = set(needless(base, keep))
    left = [file for file in base.past if file not in dropped]
    groups = groups_due(base.live, left)
    grouped = {file.name for group in groups for file in group}
    groups += [(file,) for file in left if file.name in rewrites - grouped]
    for group in groups:
        yield PastTask(target, group)


class _Delta:
    """The delta of an index, cut into portions that a task can hold."""

    def __init__(
        self, engine: Engine, span: Span, since_at: Timestamp, until_at: Timestamp, range_bytes: int
    ) -> None:
        portions = engine.portions(span.lo, span.hi, since_at, until_at, range_bytes)
        self._firsts = [portion.first for portion in portions]
        self._slices: list[DeltaSlice] = []
        for portion, (lo, hi) in zip(portions, pairwise([*self._firsts, span.hi]), strict=True):
            page_keys = max(1, min(PAGE_KEYS_MAX, portion.keys * PAGE_BYTES // portion.size))
            until_ats: tuple[Timestamp, ...] = (until_at,)
            if portion.size > 2 * range_bytes:  # one of its keys alone has as much
                until_ats = tuple(_intervals(engine, Span(lo, hi), since_at, until_at, range_bytes))
            self._slices.append(DeltaSlice(until_ats, page_keys))

    @property
    def cuts(self) -> list[bytes]:
        return self._firsts[1:]

    def slice_of(self, lo: bytes) -> DeltaSlice:
        """The slice of the range that begins at a key; ranges are cut where portions begin."""
        if not self._slices:
            return NO_DELTA
        return self._slices[max(0, bisect_right(self._firsts, lo) - 1)]


def _intervals(
    engine: Engine, span: Span, since_at: Timestamp, until_at: Timestamp, size_max: int
) -> Iterator[Timestamp]:
    """The ends of intervals with about so many bytes of revisions each: halves, as often as needed.

    A single timestamp is one commit, whose size is bounded.
    """
    size = sum(each.size for each in engine.portions(span.lo, span.hi, since_at, until_at, 1 << 60))
    if size <= size_max or until_at - since_at == 1:
        yield until_at
        return
    middle_at = (since_at + until_at) // 2
    yield from _intervals(engine, span, since_at, middle_at, size_max)
    yield from _intervals(engine, span, middle_at, until_at, size_max)


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
        sum(result.removed for result in results),
        tuple(clash for result in results for clash in result.clashes),
    )
