"""The tasks of a merge, and the kernel that runs one of them.

    RangeTask    live files, revisions of the store and runs of a range of keys ──► new live and past files
    PastTask     some past files ──► one, without revisions that are no longer needed

A range without changes returns nothing: its files stay. Files that a task writes are named after its attempt,
and exist only if the driver publishes the task's result.

Invariant (checked-merge): a merge compares all its input with its checksums itself.

Walk: `pipeline.merge` plans tasks and runs `merge_range` -> `merged`, `merged_past` -> `write_all`.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Span
from tenure.pipeline.merge_inputs import Clash, InputRules
from tenure.pipeline.remote_handles import OpenHandles, StoreHandle, TableVersion, opened
from tenure.pipeline.runs import PRIMARY_KEY, SortedRun, in_order, keys_of, read_runs
from tenure.pipeline.tasks import Attempt
from tenure.storage.engine import HEAD_BYTES, Revision
from tenure.storage.files import Files
from tenure.table.arrays import Column, Rows
from tenure.table.key_arrays import number_column
from tenure.table.key_order import bounds_within, doubled
from tenure.table.lake.checked_files import CheckedFiles
from tenure.table.lake.damage import damage_in
from tenure.table.lake.file_names import stem_of
from tenure.table.lake.format import AT, KEY, REST, VALUE, schema_of
from tenure.table.lake.keep import Keep
from tenure.table.lake.manifests import File, FileShape, WrittenFile
from tenure.table.lake.merging import MergedRows, by_key, exchanged, merged, merged_past, write_all
from tenure.table.lake.ranges import FileRange
from tenure.table.lake.tables import IndexFormat, of_file
from tenure.table.readers import FORMAT
from tenure.table.rows import Layouts


class MergeTarget(NamedTuple):
    """The index of a merge, as its tasks see it."""

    handle: StoreHandle
    version: TableVersion
    index_id: int
    shapes: tuple[FileShape, ...]
    """The manifest's shapes, by number."""
    live_shapes: tuple[FileShape, ...]
    """The shapes of live files: their columns stay even if the version has dropped them."""
    since_at: Timestamp
    until_at: Timestamp
    """The delta lies after the first time, up to the second."""
    keep: Keep
    file_bytes: int
    """The most rows of a file, in memory."""


class DeltaSlice(NamedTuple):
    """How a task reads its part of the delta."""

    until_ats: tuple[Timestamp, ...]
    """The ends of the intervals that are merged one after the other; none: the inputs alone make the base."""
    page_keys: int
    """Keys per read of the store."""


NO_DELTA = DeltaSlice((), 1)


class RangeTask(NamedTuple):
    target: MergeTarget
    range: FileRange
    runs: tuple[SortedRun, ...] = ()
    rules: InputRules | None = None
    """The rules of the runs, if there are any."""
    delta: DeltaSlice = NO_DELTA


class PastTask(NamedTuple):
    target: MergeTarget
    files: tuple[File, ...]


MergeTask: TypeAlias = RangeTask | PastTask


class MergedRange(NamedTuple):
    """The edit of a task; or the clashes that it found instead."""

    gone: tuple[str, ...] = ()
    live: tuple[WrittenFile, ...] = ()
    past: tuple[WrittenFile, ...] = ()
    changes: int = 0
    """Revisions of the store that it merged."""
    added: int = 0
    """Rows of the runs that it merged."""
    removed: int = 0
    """Keys that have no row any more, because the runs replace all rows."""
    clashes: tuple[Clash, ...] = ()


def merge_range(task: MergeTask, attempt: Attempt) -> MergedRange:
    """The kernel."""
    place = opened(task.target.handle)
    if isinstance(task, PastTask):
        return _merge_past(place, task, attempt)
    added = _added_rows(place, task)
    format = _format(place, task.target, task.target.live_shapes)
    files = _RangeFiles(place.lake, format.shape, task.target.file_bytes, _stem(task.target, attempt))
    rows = _merged_delta(place, task, format, files)
    if task.rules is not None and task.rules.replaces:
        return _replaced(place, task, task.rules, format, files, rows, added)
    if rows is None:
        if added is None and not task.range.is_cut:
            return MergedRange()
        rows = merged(format, _live_rows(place, format, task), (), task.target.keep)
    if added is None or task.rules is None:
        return files.written(task, rows)
    added = in_order(added, number_column(format.index))
    live = by_key([rows.live, _in_format(format, added, task.rules.at)])
    if len(doubled(keys_of(live))):
        return MergedRange(clashes=task.rules.refuse(place.lake, format, added, rows.live))
    return files.written(task, rows._replace(live=live))._replace(added=len(added))


def _replaced(
    place: OpenHandles,
    task: RangeTask,
    rules: InputRules,
    format: IndexFormat,
    files: "_RangeFiles",
    rows: MergedRows | None,
    added: Rows | None,
) -> MergedRange:
    """The new rows in place of those that are there; rows that are the same stay as they are."""
    has_delta = rows is not None
    if rows is None:
        rows = merged(format, _live_rows(place, format, task), (), task.target.keep)
    fresh = schema_of(format.shape).empty_table()
    compared: list[str] = []
    if added is not None:
        added = in_order(added, number_column(format.index))
        if len(doubled(keys_of(added))):
            return MergedRange(clashes=rules.refuse(place.lake, format, added, rows.live))
        fresh, compared = _in_format(format, added, rules.at), added.column_names
    exchange = exchanged(rows.live, fresh, [*compared, REST, VALUE])
    if not (has_delta or exchange.added or exchange.removed or task.range.is_cut):
        return MergedRange()
    past = by_key([rows.past, exchange.ended])
    written = files.written(task, rows._replace(live=exchange.live, past=past))
    return written._replace(added=exchange.added, removed=exchange.removed)


def bounds_of(range: FileRange) -> tuple[bytes, bytes | None]:
    """The bounds of a range's keys, without their head; None: to the end of the index."""
    head = range.lo[:HEAD_BYTES]
    return range.lo[HEAD_BYTES:], range.hi[HEAD_BYTES:] if range.hi.startswith(head) else None


class _RangeFiles:
    """The files that a task writes, and how many revisions it has merged."""

    def __init__(self, lake: Files, shape: FileShape, file_bytes: int, stem: str) -> None:
        self._lake = lake
        self._shape = shape
        self._file_bytes = file_bytes
        self._stem = stem
        self._past: list[WrittenFile] = []
        self._intervals = 0
        self._changes = 0

    def write_past(self, rows: MergedRows) -> None:
        """Writes the past rows of an interval, so that they need not be held during the next."""
        self._past += self._write(f"past{self._intervals}" if self._intervals else "past", rows.past)
        self._intervals += 1
        self._changes += rows.changes

    def written(self, task: RangeTask, rows: MergedRows) -> MergedRange:
        """Writes the live rows, and the past rows of the last interval."""
        self.write_past(rows)
        live = self._write("live", rows.live)
        gone = tuple(file.name for file in task.range.files)
        return MergedRange(gone, tuple(live), tuple(self._past), self._changes)

    def _write(self, kind: str, rows: Rows) -> list[WrittenFile]:
        return write_all(self._lake, f"{self._stem}-{kind}", self._shape, rows, self._file_bytes)


def _stem(target: MergeTarget, attempt: Attempt) -> str:
    return stem_of(target.handle.tenant, target.version.table.id, target.index_id, attempt.name)


def _format(place: OpenHandles, target: MergeTarget, older: tuple[FileShape, ...]) -> IndexFormat:
    enums = {enum.id: enum for enum in target.version.enums}
    layout = Layouts(place.store.keyspace).of(target.version.table, enums.__getitem__)
    return IndexFormat.of(layout, target.index_id, older)


# ── the content of a range ──────────────────────────────────────────────────────────────────────────


def _merged_delta(
    place: OpenHandles, task: RangeTask, format: IndexFormat, files: _RangeFiles
) -> MergedRows | None:
    """The live rows with the whole delta, interval by interval; None if there is no delta."""
    rows: MergedRows | None = None
    for pages in _delta(place, task):
        first = next(pages, None)
        if first is None:
            continue
        if rows is not None:
            files.write_past(rows)
        rows = merged(
            format,
            _live_rows(place, format, task) if rows is None else rows.live,
            chain((first,), pages),
            task.target.keep,
        )
    return rows


def _delta(place: OpenHandles, task: RangeTask) -> Iterator[Iterator[Sequence[Revision]]]:
    """The revisions of the range: for each interval its pages, without empty ones."""
    target, delta = task.target, task.delta
    snapshot = place.store.snapshot(target.until_at)
    span = Span(task.range.lo, task.range.hi)
    for since_at, until_at in pairwise((target.since_at, *delta.until_ats)):
        pages = snapshot.revisions(span, since_at=since_at, until_at=until_at, limit=delta.page_keys)
        yield filter(None, pages)


def _live_rows(place: OpenHandles, format: IndexFormat, task: RangeTask) -> Rows:
    files = _unread_files(place)
    lo, hi = bounds_of(task.range)
    tables = []
    for file in task.range.files:
        rows = _file_rows(files, format, task.target, file)
        is_cut = file.first < lo or (hi is not None and file.last >= hi)
        tables.append(rows.slice(*bounds_within(rows.column(KEY), lo, hi)) if is_cut else rows)
    return pa.concat_tables(tables) if tables else schema_of(format.shape).empty_table()


def _unread_files(place: OpenHandles) -> CheckedFiles:
    """Without earlier results: a merge checks all its input."""
    return CheckedFiles(place.lake, damage_in(place.store))


def _file_rows(files: CheckedFiles, format: IndexFormat, target: MergeTarget, file: File) -> Rows:
    rows = files.read_groups(file, range(len(files.footer(file).firsts)))
    return of_file(format, file, target.shapes[file.shape], rows)


# ── new rows ───────────────────────────────────────────────────────────────────────────────────────


def _added_rows(place: OpenHandles, task: RangeTask) -> Rows | None:
    if task.rules is None:
        return None
    rows = read_runs(place.lake, task.runs, *bounds_of(task.range))
    admitted = None if rows is None else task.rules.admitted(place.lake, rows)
    return admitted if admitted is not None and len(admitted) else None


def _in_format(format: IndexFormat, added: Rows, at: Timestamp | None) -> Rows:
    """New rows in the format of files, as of a time; None: they get it when they are published."""
    columns = []
    for field in schema_of(format.shape):
        if field.name == VALUE:
            columns.append(_entry_values(added))
        elif field.name == AT and at is not None:
            columns.append(pa.repeat(pa.scalar(at, field.type), len(added)))
        elif field.name == AT or field.name not in added.column_names:
            columns.append(pa.nulls(len(added), field.type))
        else:
            columns.append(added.column(field.name).cast(field.type))
    return pa.table(columns, schema=schema_of(format.shape))


def _entry_values(added: Rows) -> Column:
    """The values of entries: those of a unique index are the primary key."""
    if PRIMARY_KEY not in added.column_names:
        return pa.repeat(pa.scalar(FORMAT, pa.binary()), len(added))
    return pc.binary_join_element_wise(FORMAT, added.column(PRIMARY_KEY), b"")


# ── past files ─────────────────────────────────────────────────────────────────────────────────────


def _merge_past(place: OpenHandles, task: PastTask, attempt: Attempt) -> MergedRange:
    target = task.target
    # Columns that only these files have stay, too: reads of the past may need them.
    format = _format(place, target, tuple(target.shapes[file.shape] for file in task.files))
    files = _unread_files(place)
    tables = [_file_rows(files, format, target, file) for file in task.files]
    rows = merged_past(tables, target.keep)
    written = write_all(place.lake, f"{_stem(target, attempt)}-past", format.shape, rows, target.file_bytes)
    return MergedRange(tuple(file.name for file in task.files), past=tuple(written))
