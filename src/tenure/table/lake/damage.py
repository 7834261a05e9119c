"""Errors for damaged or missing files of the lake, with what is left of the index.

    the newest manifest names it     CorruptData: table, index and file; what the store and other files have
    it does not, or there is none    BaseMoved: the reader's manifest is old, and it begins anew

Nothing is repaired, and no result is kept: once the right file is back, it is read.

Walk: `table.lake.bases`, `pipeline.merge_tasks` and `pipeline.remote_handles` hand `damage_in` to the
`lake.checked_files` they open, which raise its error.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tenure.base.errors import BaseMoved, CorruptData, TenureError
from tenure.base.timestamp import Timestamp, micros_of
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.thresholds import cleaned_mark
from tenure.table.lake.checked_files import MISSING, Chunk, Damage
from tenure.table.lake.file_names import index_of
from tenure.table.lake.manifests import File, Manifest, Manifests

NAMES_MAX = 5
"""How many files are named."""

DAMAGED_HINT = (
    "Put the file back as it was, from a copy of the lake of this store. The rest of the table can be read "
    "by key; TRUNCATE and DROP TABLE work. See docs/reference/damaged-files.md."
)

MISSING_HINT = f"Is this the lake that belongs to the store? See --lake. If it is: {DAMAGED_HINT}"


def damage_in(store: Store) -> Damage:
    """Makes the errors for files of this store's lake."""

    def damage(file: File, wrong: str, chunk: Chunk | None = None) -> TenureError:
        return _judged(store, file, wrong, chunk)

    return damage


def _judged(store: Store, file: File, wrong: str, chunk: Chunk | None) -> TenureError:
    snapshot, manifests = store.snapshot(), Manifests(store.keyspace)
    manifest = manifests.get(snapshot, *index_of(file.name))
    if manifest is None or file.name not in {each.name for each in manifest.files}:
        return BaseMoved(f'file "{file.name}" {wrong}, and is no longer part of the lake')
    table = Catalog(store.keyspace).get(snapshot, manifest.table)
    cleaned_at = cleaned_mark(snapshot, store.keyspace, store.keyspace.head(manifest.table, manifest.index))
    replaced = _replaced(manifests, snapshot, manifest)
    return CorruptData(
        f'file "{file.name}" of {_index_text(manifest, table)} {wrong}{_chunk_text(table, chunk)}',
        detail=_left(manifest, file, cleaned_at, replaced),
        hint=MISSING_HINT if wrong == MISSING else DAMAGED_HINT,
    )


def _replaced(manifests: Manifests, snapshot: Snapshot, manifest: Manifest) -> list[str]:
    """Files of the index that merges have replaced, and that were not deleted yet."""
    index = manifest.table, manifest.index
    return [file.name for file in manifests.dropped(snapshot) if (file.table, file.index) == index]


def _index_text(manifest: Manifest, table: object) -> str:
    if not isinstance(table, Table):
        return f"table {manifest.table}, index {manifest.index}"
    names = {index.id: index.name for index in table.indexes}
    return f'table "{table.name}", index "{names.get(manifest.index, manifest.index)}"'


def _chunk_text(table: object, chunk: Chunk | None) -> str:
    if chunk is None:
        return ""
    columns = table.columns if isinstance(table, Table) else ()
    names = {f"c{column.id}": column.name for column in columns}
    return f', in column "{names.get(chunk.column, chunk.column)}", row group {chunk.group}'


def _left(manifest: Manifest, file: File, cleaned_at: Timestamp, replaced: Sequence[str]) -> str:
    others = len(manifest.files) - 1
    said = [f"The file has {file.rows} rows; {others} other files of the index are not affected."]
    if cleaned_at:
        said.append(f"What was written after {_time_text(cleaned_at)} is in the store.")
    else:
        said.append("All that was written by SQL is still in the store.")
    if replaced:
        names = ", ".join(f'"{name}"' for name in replaced[:NAMES_MAX])
        more = f" and {len(replaced) - NAMES_MAX} more" if len(replaced) > NAMES_MAX else ""
        said.append(f"Files that merges have replaced are there until they are deleted: {names}{more}.")
    return " ".join(said)


def _time_text(at: Timestamp) -> str:
    return str(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros_of(at)))
