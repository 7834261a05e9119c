"""merge: an index's older base and its delta become a new base, a range of keys per task.

    driver   manifest, the time to merge up to, ranges ──► tasks
    task     live files of the range + revisions of the store ──► new live and past files
    driver   results ──► what the new base replaces, for `lake.publishing`

A task whose range has nothing new keeps its files. So the cost of a flush follows the files that changes
fall into.

Invariant (checked-merge): what a merge takes in was compared with its checksums by the merge itself.

Walk: `bulk.flush` -> `merge` -> `Tasks.run` with `merge_range` -> `table.lake.merging`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Span
from tenure.kv.records import Record
from tenure.kv.store import Store
from tenure.pipeline.remote_handles import Opened, StoreHandle, TableVersion, opened
from tenure.pipeline.tasks import Attempt
from tenure.storage.engine import HEAD_BYTES, Revision
from tenure.table.key_order import bounds_within
from tenure.table.lake.checked_files import CheckedFiles
from tenure.table.lake.damage import damage_in
from tenure.table.lake.file_names import stem_of
from tenure.table.lake.format import KEY, schema_of
from tenure.table.lake.manifests import File, FileShape, Manifest, Written
from tenure.table.lake.merging import MergedRows, merged, write_all
from tenure.table.lake.publishing import Replaced, with_shapes
from tenure.table.lake.ranges import FileRange, ranges
from tenure.table.lake.tables import IndexFormat, of_file
from tenure.table.rows import Layouts

RANGE_ROWS = 250_000
"""Delta per task: what it holds in memory as Python's values."""

PAGE_KEYS = 10_000
"""Keys per read of the store."""


class MergeTask(Record, frozen=True):
    place: StoreHandle
    version: TableVersion
    index: int
    shapes: tuple[FileShape, ...]
    """Of the manifest, by number."""
    range: FileRange
    older: tuple[FileShape, ...]
    """Those in use, whose columns stay."""
    since_at: Timestamp
    until_at: Timestamp


class MergedRange(NamedTuple):
    gone: tuple[str, ...] = ()
    live: tuple[Written, ...] = ()
    past: tuple[Written, ...] = ()
    changes: int = 0
    """Revisions of the store that it took in."""


def merge(
    place: StoreHandle,
    version: TableVersion,
    manifest: Manifest,
    store: Store,
    until_at: Timestamp,
    run: "Callable[[Sequence[MergeTask]], list[MergedRange]]",
) -> Replaced:
    """Merges all that the store has up to a time; what comes of it is yet to be published."""
    span = store.keyspace.index_span(manifest.table, manifest.index)
    spread = store.engine.spread(span.lo, span.hi, manifest.flushed_at, RANGE_ROWS)
    tasks = [
        MergeTask(
            place,
            version,
            manifest.index,
            manifest.shapes,
            each,
            tuple(with_shapes(manifest)),
            manifest.flushed_at,
            until_at,
        )
        for each in ranges(manifest, span, spread.cuts)
    ]
    return replaced(run(tasks))


def replaced(results: Sequence[MergedRange]) -> Replaced:
    gone = {name for result in results for name in result.gone}
    live = tuple(written for result in results for written in result.live)
    past = tuple(written for result in results for written in result.past)
    return Replaced(tuple(sorted(gone)), live, past)


def merge_range(task: MergeTask, attempt: Attempt) -> MergedRange:
    """The kernel: merges one range."""
    place = opened(task.place)
    found = existing(place, task)
    if found is None:
        return MergedRange()
    format, made, changes = found
    return written(place, task, attempt, format.shape, made, changes)


def written(
    place: Opened, task: MergeTask, attempt: Attempt, shape: FileShape, made: MergedRows, changes: int
) -> MergedRange:
    """Writes what takes the place of a range's files."""
    stem = stem_of(task.place.tenant, task.version.table.id, task.index, attempt.name)
    return MergedRange(
        tuple(file.name for file in task.range.files),
        tuple(write_all(place.lake, f"{stem}-live", shape, made.live)),
        tuple(write_all(place.lake, f"{stem}-past", shape, made.past)),
        changes,
    )


def existing(
    place: Opened, task: MergeTask, *, must: bool = False
) -> tuple[IndexFormat, MergedRows, int] | None:
    """What the table has of a range, and how many changes of the store that took in; None if its files may
    stay as they are, unless they `must` not.
    """
    delta = _delta(place.store, task)
    if not delta and not task.range.is_cut and not must:
        return None
    format = _format(place.store, task)
    return format, merged(format, _live_rows(place, format, task), delta), len(delta)


def _delta(store: Store, task: MergeTask) -> list[Revision]:
    snapshot = store.snapshot(task.until_at)
    span = Span(task.range.lo, task.range.hi)
    pages = snapshot.revisions(span, since_at=task.since_at, limit=PAGE_KEYS)
    return [revision for page in pages for revision in page]


def _format(store: Store, task: MergeTask) -> IndexFormat:
    enums = {enum.id: enum for enum in task.version.enums}
    layout = Layouts(store.keyspace).of(task.version.table, enums.__getitem__)
    return IndexFormat.of(layout, task.index, task.older)


def _live_rows(place: Opened, format: IndexFormat, task: MergeTask) -> Any:
    # Nothing is known of the files yet: what a merge takes in is checked, whatever was read before.
    files = CheckedFiles(place.lake, damage_in(place.store))
    tables = [_file_rows(files, format, file, task) for file in task.range.files]
    return pa.concat_tables(tables) if tables else schema_of(format.shape).empty_table()


def _file_rows(files: CheckedFiles, format: IndexFormat, file: File, task: MergeTask) -> Any:
    rows = files.read_groups(file, range(len(files.footer(file).firsts)))
    head = task.range.lo[:HEAD_BYTES]
    if head + file.first < task.range.lo or head + file.last >= task.range.hi:
        lo, hi = task.range.lo[HEAD_BYTES:], _end(task.range, head)
        rows = rows.slice(*bounds_within(rows.column(KEY), lo, hi))
    return of_file(format, file, task.shapes[file.shape], rows)


def _end(range: FileRange, head: bytes) -> bytes | None:
    return range.hi[HEAD_BYTES:] if range.hi.startswith(head) else None
