"""Changes that have moved to the lake: every revision between two times, a piece of the key range at a time.

A watch that has fallen behind a flush or an import finds a gap. The lake has the revisions of the gap, in its
live and past files, with their times; rows of an import have the time of its commit.

The times lie between two versions of the table, so one version reads all of them.

Walk: `changefeed.table_stream` takes pieces from `scan_changes` -> `table.lake.scanning.Scanner`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.changefeed.version_rows import Values, VersionRows
from tenure.kv.store import Store

if TYPE_CHECKING:
    from tenure.table.lake.checked_files import CheckedFiles


class StoredChange(NamedTuple):
    suffix: bytes
    """The key without its head."""
    at: Timestamp
    values: Values | None
    """The columns `read_ids`; None: the row is deleted."""


def scan_changes(
    store: Store,
    files: "CheckedFiles",
    rows: VersionRows,
    cursor: bytes,
    *,
    since_at: Timestamp,
    until_at: Timestamp,
) -> Iterator[list[StoredChange]]:
    """By key, and for one key by time; a piece has all changes of its keys."""
    # Arrow is imported when there is something to read: a node whose feeds keep up is smaller.
    from tenure.pipeline.writing.cells import cells_of_batch
    from tenure.table.key_arrays import key_array, key_columns
    from tenure.table.lake.format import AT, name_of
    from tenure.table.lake.revision_tables import DELETED, ODD
    from tenure.table.lake.scanning import Scanner, ScanRequest

    layout, ids = rows.layout, rows.read_ids
    parts = key_columns(layout.primary)
    types = [layout.columns[id].type for id in ids]
    request = ScanRequest(layout, layout.primary.id, ids, until_at, since_at, is_all=True)
    for table in Scanner(store, files, request, rows.span_after(cursor)).tables():
        whole = table.combine_chunks()
        columns = {part.column: whole.column(name_of(part.column)) for part in parts}
        keys = key_array(parts, columns, whole.column(ODD)).to_pylist()
        (batch,) = whole.to_batches(max_chunksize=len(whole))
        values = zip(*(cells.listed() for cells in cells_of_batch(batch, ids, types)), strict=True)
        times, deleted = whole.column(AT).to_pylist(), whole.column(DELETED).to_pylist()
        yield [
            StoredChange(suffix, at, None if is_deleted else row)
            for suffix, at, is_deleted, row in zip(keys, times, deleted, values, strict=True)
        ]
