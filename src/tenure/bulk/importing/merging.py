"""The second pass: sorted runs and what the table has become its new files, a range of keys per task.

    runs of the range, without rows that were refused ──► sorted together ──► no key twice?
    base + delta of the range ──► live rows ──┴──► no key in both? ──► live files; past files of the delta

New rows carry no time: it is that of the commit which publishes their file. Rows that are there keep theirs.
That nobody can write the table meanwhile makes "no key in both" true for good. Where some bad rows are
tolerated, a key that is there twice is not an error yet: nothing is written, and the clashes are the result.

Walk: `importing.second_pass` calls `tasks_of` and runs `merge_runs` as a kernel, which calls `pipeline.merge`
for what the table has.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.errors import UniqueViolation
from tenure.base.timestamp import Timestamp
from tenure.bulk.importing.clashes import Clash, clashing, without
from tenure.bulk.importing.names import read_refused, where
from tenure.bulk.importing.runs import (
    LINE,
    SOURCE,
    SortedRun,
    cuts,
    in_order,
    keys_of,
    read_runs,
    rows_per_range,
    within,
)
from tenure.bulk.importing.sorting import PRIMARY_KEY
from tenure.kv.store import Store
from tenure.pipeline.merge import RANGE_ROWS, MergedRange, MergeTask, existing, written
from tenure.pipeline.remote_handles import StoreHandle, TableVersion, opened
from tenure.pipeline.tasks import Attempt
from tenure.storage.engine import HEAD_BYTES
from tenure.table.columns import key_text
from tenure.table.key_arrays import number_column
from tenure.table.key_order import argsort, doubled
from tenure.table.lake.format import AT, KEY, VALUE, schema_of
from tenure.table.lake.manifests import Manifest
from tenure.table.lake.merging import MergedRows
from tenure.table.lake.publishing import with_shapes
from tenure.table.lake.ranges import ranges
from tenure.table.lake.tables import IndexFormat
from tenure.table.readers import FORMAT
from tenure.table.rows import key_values

RUN_ROWS, RUN_BYTES = 1 << 19, 64 << 20
"""New rows per task: sorting holds them about three times."""


class RunTask(NamedTuple):
    merge: MergeTask
    runs: tuple[SortedRun, ...]
    names: str
    """The file with the names of the input's files, for an error."""
    refused: str
    """The file with rows to pass over; empty: there are none."""
    bad_rows_max: int


class RunsMerged(NamedTuple):
    range: MergedRange
    added: int = 0
    """New rows in it."""
    clashes: tuple[Clash, ...] = ()


def tasks_of(
    place: StoreHandle,
    version: TableVersion,
    manifest: Manifest,
    store: Store,
    until_at: Timestamp,
    runs: Sequence[SortedRun],
    names: str,
    refused: str,
    bad_rows_max: int,
) -> list[RunTask]:
    span = store.keyspace.index_span(manifest.table, manifest.index)
    head = span.lo[:HEAD_BYTES]
    spread = store.engine.spread(span.lo, span.hi, manifest.flushed_at, RANGE_ROWS)
    rows = rows_per_range(runs, rows_max=RUN_ROWS, bytes_max=RUN_BYTES)
    bounds = [*spread.cuts, *(head + cut for cut in cuts(runs, rows))]
    older = tuple(with_shapes(manifest))
    made = []
    for each in ranges(manifest, span, bounds):
        merge = MergeTask(
            place, version, manifest.index, manifest.shapes, each, older, manifest.flushed_at, until_at
        )
        lo, hi = _bounds(merge)
        made.append(RunTask(merge, within(runs, lo, hi), names, refused, bad_rows_max))
    return made


def _bounds(task: MergeTask) -> tuple[bytes, bytes | None]:
    """Of a range's keys, without their head."""
    lo, hi = task.range.lo, task.range.hi
    head = lo[:HEAD_BYTES]
    return lo[HEAD_BYTES:], hi[HEAD_BYTES:] if hi.startswith(head) else None


def merge_runs(task: RunTask, attempt: Attempt) -> RunsMerged:
    """The kernel."""
    place = opened(task.merge.place)
    added = read_runs(place.lake, task.runs, *_bounds(task.merge))
    if added is not None:
        added = without(added, read_refused(place.lake, task.refused))
    found = existing(place, task.merge, must=bool(added))
    if found is None:
        return RunsMerged(MergedRange())
    format, merged, changes = found
    if added:
        added = in_order(added, number_column(format.index))
        named = partial(where, place.lake, task.names)
        try:
            _refuse_doubles(format, added, named)
            merged = merged._replace(live=_together(format, merged, added, named))
        except UniqueViolation:
            if not task.bad_rows_max:
                raise
            return RunsMerged(MergedRange(), clashes=_clashes(format, added, merged.live, task.bad_rows_max))
    range = written(place, task.merge, attempt, format.shape, merged, changes)
    return RunsMerged(range, len(added) if added else 0)


def _together(format: IndexFormat, merged: MergedRows, added: Any, named: Callable[[Any], str]) -> Any:
    """Live rows that are there, and new ones, in the order of keys."""
    rows = _shaped(format, added)
    if not len(merged.live):
        return rows
    both = pa.concat_tables([merged.live, rows]).combine_chunks()
    order = argsort(keys_of(both))
    together = both.take(pa.array(order)).combine_chunks()
    again = doubled(keys_of(together))
    if len(again):
        row = added.slice(int(order[again[0]]) - len(merged.live), 1)
        raise _duplicate(format, row, f"It is in the table, and in {named(row)}.")
    return together


def _shaped(format: IndexFormat, added: Any) -> Any:
    """New rows as files have them; without a time."""
    schema = schema_of(format.shape)
    rows = len(added)
    columns = []
    for field in schema:
        if field.name == VALUE:
            columns.append(values_of(added))
        elif field.name == AT or field.name not in added.column_names:
            columns.append(pa.nulls(rows, field.type))
        else:
            columns.append(added.column(field.name).cast(field.type))
    return pa.table(columns, schema=schema)


def values_of(added: Any) -> Any:
    """Of entries: a unique index's lead to the primary key."""
    if PRIMARY_KEY not in added.column_names:
        return pa.repeat(pa.scalar(FORMAT, pa.binary()), len(added))
    return pc.binary_join_element_wise(FORMAT, added.column(PRIMARY_KEY), b"")


def _refuse_doubles(format: IndexFormat, added: Any, named: Callable[[Any], str]) -> None:
    again = doubled(keys_of(added))
    if not len(again):
        return
    one, other = sorted(
        (added.slice(int(place), 1) for place in (again[0] - 1, again[0])),
        key=lambda row: (row.column(SOURCE)[0].as_py(), row.column(LINE)[0].as_py()),
    )
    raise _duplicate(format, one, f"It is in {named(one)}, and in {named(other)}.")


def _clashes(format: IndexFormat, added: Any, live: Any, rows_max: int) -> tuple[Clash, ...]:
    index = (format.layout.table.id, format.index.id)
    return tuple(
        Clash(index, key, f"{_message(format)}: Key {_shown(format, key)} is in", is_in_table, origins)
        for key, is_in_table, origins in clashing(added, live, rows_max)
    )


def _duplicate(format: IndexFormat, row: Any, places: str) -> UniqueViolation:
    return UniqueViolation(
        _message(format),
        detail=f"Key {_shown(format, row.column(KEY)[0].as_py())} is there twice. {places}",
        table=format.layout.table,
        constraint=format.index.name,
    )


def _message(format: IndexFormat) -> str:
    return f'duplicate key value violates unique constraint "{format.index.name}"'


def _shown(format: IndexFormat, key: bytes) -> str:
    layout, index = format.layout, format.index
    return key_text(layout.columns, index.columns, key_values(index, key))
