"""Revisions as tables: the newest of each key, the ends, and the deletions.

    began    k1@10  k1@20  k2@15        ended    k1 until 20   k2 until 30
    k2 ended at 30, and nothing of it began then: it was deleted

Walk: `lake.scanning` combines its reads with these.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.timestamp import Timestamp
from tenure.kv.encoding import decode
from tenure.table.arrays import Bools, Column, Rows
from tenure.table.arrow import Unrepresentable, array
from tenure.table.key_order import argsort
from tenure.table.lake.format import AT, KEY, REST, UNTIL, name_of
from tenure.table.lake.tables import IndexFormat
from tenure.table.packing import pack, unpack_columns

ODD, DELETED = "odd", "deleted"

Deletion: TypeAlias = tuple[bytes, Timestamp]
"""A key without its head, and when its row was deleted."""


def in_order(tables: Sequence[Rows]) -> Rows:
    """By key and then time; each of the tables is in that order already."""
    filled = [table for table in tables if len(table)]
    if len(filled) < 2:
        return filled[0] if filled else tables[0]
    joined = pa.concat_tables([table.select(filled[0].column_names) for table in filled]).combine_chunks()
    by_time = np.argsort(joined.column(AT).to_numpy(), kind="stable")
    keys = _whole(joined.column(KEY)).take(pa.array(by_time))
    return joined.take(pa.array(by_time[argsort(keys)]))


def _whole(column: Column) -> Column:
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def began_within(rows: Rows, since_at: Timestamp, until_at: Timestamp) -> Rows:
    at = rows.column(AT)
    return rows.filter(pc.and_(pc.greater(at, since_at), pc.less_equal(at, until_at)))


def deletions(begun: Rows, ended: Sequence[Rows], since_at: Timestamp, until_at: Timestamp) -> list[Deletion]:
    """Rows that ended within a time without being replaced."""
    found: set[Deletion] = set()
    for rows in ended:
        until = rows.column(UNTIL)
        within = rows.filter(pc.and_(pc.greater(until, since_at), pc.less_equal(until, until_at)))
        found.update(zip(within.column(KEY).to_pylist(), within.column(UNTIL).to_pylist(), strict=True))
    if found:
        found.difference_update(zip(begun.column(KEY).to_pylist(), begun.column(AT).to_pylist(), strict=True))
    return sorted(found)


def there_still(rows: Rows) -> Rows:
    """Marked as not deleted."""
    return rows.append_column(DELETED, pa.array(np.zeros(len(rows), bool)))


def gone(format: IndexFormat, schema: pa.Schema, deleted: Sequence[Deletion]) -> Rows:
    """Deletions as rows: the columns of the key, and no others."""
    columns = {name: pa.nulls(len(deleted), schema.field(name).type) for name in schema.names}
    columns[KEY] = pa.array([key for key, _ in deleted], pa.binary())
    columns[AT] = pa.array([at for _, at in deleted], pa.int64())
    columns[DELETED] = pa.array([True] * len(deleted), pa.bool_())
    odd: list[dict[int, Any]] = [{} for _ in deleted]
    elements = [decode(key) for key, _ in deleted]
    for place, (kept, _) in enumerate(format.index.parts):
        if name_of(kept.id) in columns:
            packed = [kept.type.pack(kept.from_key(each[place])) for each in elements]
            try:
                columns[name_of(kept.id)] = array(kept.type, packed)
            except Unrepresentable:
                for row, value in zip(odd, packed, strict=True):
                    row[kept.id] = value
    columns[ODD] = pa.array([pack(row) if row else None for row in odd], pa.binary())
    return pa.table([columns[name] for name in schema.names], schema=schema)


def with_odd(rows: Rows, columns: Sequence[int]) -> Rows:
    """With `odd` in place of `rest`: values of other columns than these are left out."""
    place = rows.column_names.index(REST)
    rest = rows.column(REST)
    if rest.null_count < len(rest):
        wanted = frozenset(columns)
        kept = [None if each is None else _kept(each, wanted) for each in rest.to_pylist()]
        rest = pa.array(kept, pa.binary())
    return rows.set_column(place, pa.field(ODD, pa.binary()), rest)


def _kept(rest: bytes, wanted: frozenset[int]) -> bytes | None:
    kept = {id: value for id, value in unpack_columns(rest).items() if id in wanted}
    return pack(kept) if kept else None


def newest(rows: Rows) -> Rows:
    """The last revision of each key."""
    return rows.filter(pa.array(~_is_followed(rows)))


def with_until(rows: Rows) -> Rows:
    """With the time at which the next revision of the key began; NULL for the last."""
    at = rows.column(AT).to_numpy()
    is_followed = _is_followed(rows)
    until = pa.array(np.append(at[1:], 0)[: len(at)], pa.int64(), mask=~is_followed)
    return rows.append_column(pa.field(UNTIL, pa.int64()), until)


def _is_followed(rows: Rows) -> Bools:
    """Whether the next row has the same key."""
    if not len(rows):
        return np.zeros(0, bool)
    keys = rows.column(KEY).combine_chunks()
    keys = _whole(keys) if isinstance(keys, pa.ChunkedArray) else keys
    same = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    return np.append(same, False)
