"""A reader's view of a base's columns: which files, which rows of them, and where its columns are.

    T >= F    live files, without the rows whose keys have changed since F
    T <  F    live files by `at`, past files by `at` and `until`

A column is in the file, or has its `filled` value where the file is older than the column. A value in `rest`,
or of a type that has changed since, is not read here: such a query reads rows instead.

Walk: `table.columnar` plans with `scans`; `sql.duck.base_scan_sql` writes them as DuckDB's SQL.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.kv.keys import Span
from tenure.storage.engine import HEAD_BYTES
from tenure.table.arrow import Unrepresentable
from tenure.table.column_batches import WantedColumns
from tenure.table.columns import CompiledColumn
from tenure.table.lake.format import AT, UNTIL, name_of
from tenure.table.lake.hidden_rows import HiddenRows, hidden_at
from tenure.table.lake.manifests import File, FileShape, Manifest

WIDER = {"int2": ("int4", "int8"), "int4": ("int8",), "float4": ("float8",), "varchar": ("text",)}
"""The types as which values of a family may be read unchanged."""


class Times(NamedTuple):
    """Which rows of a file were visible at a time."""

    at: Timestamp
    is_published: bool
    """Whether rows without a time of their own existed by then."""
    has_until: bool


class FileScan(NamedTuple):
    file: File
    filled: frozenset[int]
    """The columns that the file does not have."""
    times: Times | None
    """None if all of its rows were visible."""
    hidden: bytes | None
    """A bitmap of rows that are hidden, or None."""

    def columns(self, kepts: Iterable[int]) -> Iterator[str]:
        """The columns to read, by their names in the file."""
        yield from (name_of(id) for id in kepts if id not in self.filled)
        if self.times is not None:
            yield AT
            if self.times.has_until:
                yield UNTIL


Scans: TypeAlias = tuple[FileScan, ...]


class VisibleBase(NamedTuple):
    """A base as one reader sees it."""

    manifest: Manifest
    kepts: Mapping[int, CompiledColumn]
    """The columns that are wanted."""
    scans: Scans


def visible_base(
    manifest: Manifest,
    wanted: WantedColumns,
    at: Timestamp,
    hidings: Iterable[HiddenRows],
    within: Span | None,
) -> VisibleBase:
    """Raises Unrepresentable if a value may be elsewhere than in its column."""
    files = [file for file in visible_files(manifest, at) if _meets(file, within)]
    kepts = {id: wanted.layout.columns[id] for id in wanted.columns}
    live = frozenset(file.name for file in manifest.live)
    scans = tuple(
        FileScan(
            file,
            _filled(file, manifest.shapes[file.shape], kepts),
            _times(manifest, file, at, is_live=file.name in live),
            hidden_at(hidings, file, at),
        )
        for file in files
    )
    return VisibleBase(manifest, kepts, scans)


def visible_files(manifest: Manifest, at: Timestamp) -> Sequence[File]:
    """The files that have rows visible at a time."""
    if at >= manifest.flushed_at:
        return manifest.live
    past = [file for file in manifest.past if file.first_at <= at < file.until]
    return [file for file in manifest.live if file.first_at <= at] + past


def _meets(file: File, within: Span | None) -> bool:
    if within is None:
        return True
    head = within.lo[:HEAD_BYTES]
    return head + file.last >= within.lo and head + file.first < within.hi


def _times(manifest: Manifest, file: File, at: Timestamp, *, is_live: bool) -> Times | None:
    if at >= manifest.flushed_at:
        return None
    return Times(at, file.published_at <= at, not is_live)


def _filled(file: File, shape: FileShape, kepts: Mapping[int, CompiledColumn]) -> frozenset[int]:
    has = {column.id: column.type for column in shape.columns}
    for id, kept in kepts.items():
        if id in file.odd or (id in has and not _reads_as(has[id], kept.type.ref)):
            raise Unrepresentable(f'file "{file.name}" has values of column "{kept.name}" in another form')
    return frozenset(id for id in kepts if id not in has)


def _reads_as(has: TypeRef, wanted: TypeRef) -> bool:
    if has == wanted:
        return True
    if has.is_array or wanted.is_array or has.enum or wanted.enum:
        return False
    if has.name == wanted.name:
        return has.name == "varchar"
    return wanted.name in WIDER.get(has.name, ())
