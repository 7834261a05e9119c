"""The content of a lake file, and how one is written.

    key      the key without its head, order-preserving; rows are sorted by it (of one key: by time)
    at       when the row was written; NULL if that is when the file was published
    until    of a past file: when it was replaced or deleted; NULL likewise
    c<id>    the columns of rows, by column id, in the Arrow types of `table.arrow`
    rest     packed values by column id that have no column above: of columns that the shape does not
             have, and values that Arrow cannot represent; mostly nothing
    value    for an entry of a secondary index, instead of columns: as in the store

Columns are identified by id, so a rename costs nothing, a dropped column is simply not read, and one that was
added later reads as its `filled` value.

The footer has the first key of each row group; so a lookup reads one group. Groups are small: a point
lookup decodes one, and scans lose nothing. Before it stand the checksums of all chunks (`lake.chunk_sums`).

Invariant (file-exact): the result of `entries` reads, by any version of the table, as the stored value did.

Walk: merges call `write`; `lake.checked_files` reads files with `footer_of`; `lake.groups` turns rows back
into stored values by `entries`.
"""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tenure.base.errors import CorruptData, NewerFormat
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.type_names import type_of
from tenure.storage.files import Files
from tenure.table.arrays import Buffer, Rows
from tenure.table.arrow import arrow_type, packed
from tenure.table.lake.chunk_sums import Chunks, with_sums
from tenure.table.lake.manifests import AS_PUBLISHED, File, FileColumn, FileShape, WrittenFile
from tenure.table.packing import pack, unpack, unpack_columns
from tenure.table.readers import FORMAT as ROW_FORMAT
from tenure.table.rows import Layout

KEY, AT, UNTIL, REST, VALUE = "key", "at", "until", "rest", "value"

GROUP_ROWS = 8_192
FILE_ROWS = 1 << 20
"""The most rows of a file: a task holds one in memory, and a merge rewrites no more than it must."""

FORMAT = b"1"
_FORMAT, _GROUPS = b"tenure.format", b"tenure.groups"
COMPRESSION = "snappy"
DICTIONARY_BYTES = 16 << 10
"""Distinct values of a row group's column. One that has more is written without a dictionary: with one,
writing rows with a distinct text, number and time each took 1.4 to 2 times the CPU and a sixth more space.
"""
COMPRESSED_MAX = 0.75
"""The fraction of a column's bytes that compression may leave. Above it the column is not compressed: with
hashes as texts and times in no order, compression took half as much CPU again for a seventh of the space.
Uncompressed columns are read faster.
"""
OLDER_CHECKSUM_BYTES = 16


def name_of(column: int) -> str:
    return f"c{column}"


def shape_of(layout: Layout, index: int) -> FileShape:
    """The shape of an index's files as of a version: columns that are public; all else is in `rest`."""
    keyed = layout.indexes[index]
    if not keyed.is_primary:
        return FileShape((), is_entries=True)
    columns = [layout.columns[id] for id in sorted(layout.public)]
    return FileShape(tuple(FileColumn(kept.id, kept.type.ref, kept.id in keyed.in_key) for kept in columns))


def column_type(ref: TypeRef) -> pa.DataType:
    """The Arrow type of a column in a file; of an enum its members' bytes."""
    return pa.binary() if ref.enum and not ref.is_array else arrow_type(type_of(_unnamed(ref)))


def _unnamed(ref: TypeRef) -> TypeRef:
    """An array of an enum is opaque: the names of its members do not matter here."""
    return TypeRef("text", is_array=True) if ref.enum else ref


def schema_of(shape: FileShape, *, is_past: bool = False) -> pa.Schema:
    fields = [(KEY, pa.binary()), (AT, pa.int64())] + [(UNTIL, pa.int64())] * is_past
    if shape.is_entries:
        return pa.schema([*fields, (VALUE, pa.binary())])
    fields += [(name_of(column.id), column_type(column.type)) for column in shape.columns]
    return pa.schema([*fields, (REST, pa.binary())])


# ── writing ────────────────────────────────────────────────────────────────────────────────────


def write(files: Files, name: str, shape: FileShape, table: Rows) -> WrittenFile:
    """Writes rows, sorted by key, as one file that exists when this returns."""
    keys = table.column(KEY)
    firsts = [keys[row].as_py() for row in range(0, len(keys), GROUP_ROWS)]
    described = table.replace_schema_metadata({_FORMAT: FORMAT, _GROUPS: pack(firsts)})
    plain = [KEY, AT, UNTIL, REST, VALUE]
    dictionaries = [name for name in table.column_names if name not in plain and _repeats(table, name)]
    body, tail = with_sums(_parquet(described, dictionaries, _compressions(described, dictionaries)))
    with files.create(name) as output:
        output.write(body)
        output.write(tail)
    bounds = firsts[0], keys[len(keys) - 1].as_py()
    size, whole = len(body) + len(tail), checksum(body, tail)
    times, ends = _times(table), (len(tail), checksum(tail))
    odd = _odd(table, shape)
    return WrittenFile(
        File(name, *bounds, len(keys), size, whole, 0, *times, odd, *ends, table.nbytes), shape
    )


def _parquet(table: Rows, dictionaries: Sequence[str], compression: str | dict[str, str]) -> Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=GROUP_ROWS,
        compression=compression,
        use_dictionary=dictionaries,
        dictionary_pagesize_limit=DICTIONARY_BYTES,
        store_decimal_as_integer=True,
        write_statistics=[name for name in table.column_names if name not in (KEY, REST, VALUE)],
    )
    return sink.getvalue()


def _compressions(table: Rows, dictionaries: Sequence[str]) -> str | dict[str, str]:
    """By column, judged by its first row group: one that hardly shrinks is not compressed."""
    if len(table) <= GROUP_ROWS:
        return COMPRESSION
    sample = _parquet(table.slice(0, GROUP_ROWS), dictionaries, COMPRESSION)
    group = pq.read_metadata(pa.BufferReader(sample)).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    return {
        each.path_in_schema: COMPRESSION
        if each.total_compressed_size <= COMPRESSED_MAX * each.total_uncompressed_size
        else "none"
        for each in columns
    }


def _repeats(table: Rows, name: str) -> bool:
    """Whether values repeat, judged by the first rows: else a dictionary only costs time."""
    some = table.column(name).slice(0, GROUP_ROWS)
    return bool(2 * pc.count_distinct(some).as_py() <= len(some))


def _times(table: Rows) -> tuple[Timestamp, Timestamp, Timestamp]:
    """The time of rows without one, and the first and last times at which a row is visible."""
    at = table.column(AT)
    until = table.column(UNTIL) if UNTIL in table.column_names else pa.chunked_array([[0]], pa.int64())
    is_published = at.null_count or until.null_count
    first_at = pc.min(at).as_py()
    return (
        AS_PUBLISHED if is_published else ZERO_AT,
        AS_PUBLISHED if first_at is None else first_at,
        AS_PUBLISHED if until.null_count else pc.max(until).as_py(),
    )


def checksum(*pieces: Buffer) -> bytes:
    """By the function that processors have instructions for."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(memoryview(piece))
    return digest.digest()


def has_checksum(data: Buffer, expected: bytes) -> bool:
    """Files of earlier versions have one of another kind."""
    if len(expected) == OLDER_CHECKSUM_BYTES:
        return hashlib.blake2b(memoryview(data), digest_size=OLDER_CHECKSUM_BYTES).digest() == expected
    return checksum(data) == expected


def _odd(table: Rows, shape: FileShape) -> tuple[int, ...]:
    if shape.is_entries or table.column(REST).null_count == len(table):
        return ()
    return tuple(
        sorted({id for rest in table.column(REST).drop_null().to_pylist() for id in unpack_columns(rest)})
    )


# ── reading ────────────────────────────────────────────────────────────────────────────────────


class Footer(NamedTuple):
    """The data of a file without its rows."""

    metadata: Any
    firsts: Sequence[bytes]
    """The first key of each row group."""
    starts: Sequence[int]
    """The number of that row in the file."""
    chunks: Chunks


def footer_of(name: str, metadata: pq.FileMetaData, chunks: Chunks) -> Footer:
    described = metadata.metadata or {}
    if described.get(_FORMAT) != FORMAT:
        raise NewerFormat(
            f'file "{name}" has format {described.get(_FORMAT, b"none").decode()}; this version reads 1',
            hint="Run the newer version that wrote it.",
        )
    firsts = unpack(described[_GROUPS])
    if len(firsts) != metadata.num_row_groups:
        raise CorruptData(
            f'file "{name}" has {metadata.num_row_groups} row groups where {len(firsts)} are expected'
        )
    rows = [metadata.row_group(number).num_rows for number in range(len(firsts))]
    return Footer(metadata, firsts, list(accumulate(rows, initial=0))[:-1], chunks)


def entries(shape: FileShape, rows: Rows) -> list[bytes]:
    """The values of rows as they would be in the store."""
    if shape.is_entries:
        values: list[bytes] = rows.column(VALUE).to_pylist()
        return values
    kept = [column for column in shape.columns if not column.is_in_key]
    ids = [column.id for column in kept]
    columns = [packed(column.type, rows.column(name_of(column.id))) for column in kept]
    rests: Iterable[bytes | None] = rows.column(REST).to_pylist()
    found = []
    for row, rest in zip(zip(*columns, strict=True) if columns else [()] * len(rows), rests, strict=True):
        value = dict(zip(ids, row, strict=True))
        if rest is not None:
            value |= unpack_columns(rest)
        found.append(ROW_FORMAT + pack(value))
    return found
