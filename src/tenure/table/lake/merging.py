"""Merging a range of an index: older files and newer revisions become new files.

    live rows  k1  k2  k3  k4          at most one of each key
    delta      k2@20  k2@30  k3@25 gone  k5@22

    live       k1  k2@30  k4  k5@22
    past       k2 [.., 20)  k2@20 [20, 30)  k3 [.., 25)

Every revision ends where the next of its key begins. A revision that was visible at a readable time before is
visible in the new files at that time: nothing is lost but tombstones, which files do not need, and revisions
that `Keep` does not need. Past files are sets of revisions with their ends, so any of them can be merged into
one.

Invariant (merge-exact): for every readable T up to the flush time, live and past files together show what the
store and the older files showed.

Walk: `pipeline.merge_tasks` reads both sides of a key range -> `merged`, or past files -> `merged_past` ->
`write_all` -> `lake.format.write`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.storage.engine import HEAD_BYTES, Revision
from tenure.storage.files import Files
from tenure.table.arrays import Bools, Column, Int64s, Keys, Rows
from tenure.table.key_order import argsort
from tenure.table.lake.format import AT, FILE_ROWS, KEY, UNTIL, schema_of, write
from tenure.table.lake.keep import Keep
from tenure.table.lake.manifests import FileShape, WrittenFile
from tenure.table.lake.revision_tables import in_order
from tenure.table.lake.tables import IndexFormat, of_revisions


class MergedRows(NamedTuple):
    live: Rows
    past: Rows
    """Tables in key order, and in time order for one key."""
    changes: int = 0
    """Revisions of the delta."""


def merged(format: IndexFormat, base: Rows, pages: Iterable[Sequence[Revision]], keep: Keep) -> MergedRows:
    """`base` are live rows as a table; `pages` all newer revisions, by key and then time, the revisions of a
    key in one page. Revisions become columns page by page: as Python objects they take more memory.
    """
    delta = [_DeltaPage.of(format, page) for page in pages]
    if not delta:
        return MergedRows(base, _no_past(format.shape))
    keys = pa.concat_arrays([page.keys for page in delta])
    kept, ended = _split(base, keys, np.concatenate([page.first_at for page in delta]))
    del base  # the caller keeps none of it: what is sorted next takes its place
    live = by_key([kept, pa.concat_tables([page.live for page in delta])])
    past = by_key([ended, pa.concat_tables([page.past for page in delta])])
    return MergedRows(live, _needed(past, keep), sum(page.changes for page in delta))


class _DeltaPage(NamedTuple):
    """A page of the delta as columns."""

    keys: Keys
    """Without their head, each once."""
    first_at: Int64s
    """When the first of these revisions of each key begins."""
    live: Rows
    past: Rows
    changes: int

    @classmethod
    def of(cls, format: IndexFormat, page: Sequence[Revision]) -> "_DeltaPage":
        keys = pa.array([revision.key[HEAD_BYTES:] for revision in page], pa.binary())
        is_first = _differs_from_previous(keys)
        is_last = np.append(is_first[1:], True)
        at = np.array([revision.at for revision in page], dtype=np.int64)
        is_row = np.array([revision.value is not None for revision in page])
        until = np.append(at[1:], 0)
        live = of_revisions(format, _picked(page, is_row & is_last))
        superseded = is_row & ~is_last
        past = _with_until(of_revisions(format, _picked(page, superseded)), until[superseded])
        return cls(keys.filter(pa.array(is_first)), at[is_first], live, past, len(page))


class ExchangedRows(NamedTuple):
    live: Rows
    """Those that are the same, and the new ones, in key order."""
    ended: Rows
    """Those that were replaced or removed, as past rows that end when the merge is published."""
    added: int
    """New rows."""
    removed: int
    """Keys that no row has any more."""


def exchanged(live: Rows, added: Rows, compared: Collection[str]) -> ExchangedRows:
    """`added` in place of `live`, both in key order and of one shape. A row that is equal in the compared
    columns stays as it is, with its time.
    """
    keys = _whole(added.column(KEY))
    places = _whole(pc.index_in(live.column(KEY), value_set=keys))
    is_there = np.asarray(places.is_valid())
    before, after = live.filter(pa.array(is_there)), added.take(places.drop_null())
    is_equal = np.ones(len(before), bool)
    for name in {*compared} & {*live.column_names} - {KEY, AT}:
        is_equal &= _equal(_whole(before.column(name)), _whole(after.column(name)))
    stays = is_there.copy()
    stays[is_there] = is_equal
    is_fresh = np.ones(len(added), bool)
    is_fresh[places.drop_null().to_numpy()[is_equal]] = False
    ended = live.filter(pa.array(~stays))
    until = pa.nulls(len(ended), pa.int64())
    ended = ended.add_column(ended.column_names.index(AT) + 1, pa.field(UNTIL, pa.int64()), until)
    kept = by_key([live.filter(pa.array(stays)), added.filter(pa.array(is_fresh))])
    return ExchangedRows(kept, ended, int(is_fresh.sum()), len(live) - len(before))


def _equal(one: Column, other: Column) -> Bools:
    """Where two columns have the same value, or none; numbers are compared bit by bit."""
    if pa.types.is_floating(one.type):
        bits = pa.int64() if one.type == pa.float64() else pa.int32()
        one, other = one.view(bits), other.view(bits)
    is_null = pc.and_(one.is_null(), other.is_null())
    return np.asarray(pc.or_(is_null, pc.fill_null(pc.equal(one, other), False)))


def merged_past(tables: Sequence[Rows], keep: Keep) -> Rows:
    """The rows of several past files as those of one."""
    return in_order([_needed(rows, keep) for rows in tables])


def _needed(rows: Rows, keep: Keep) -> Rows:
    is_needed = needed_rows(keep, rows.column(AT).to_numpy(), rows.column(UNTIL).to_numpy())
    return rows if is_needed.all() else rows.filter(pa.array(is_needed))


def needed_rows(keep: Keep, at: Int64s, until: Int64s) -> Bools:
    """`Keep.needs` for many revisions."""
    points = np.array(keep.points, dtype=np.int64)
    has_point = points.searchsorted(at) < points.searchsorted(until)
    return has_point | (until > keep.threshold)


def _differs_from_previous(keys: Keys) -> Bools:
    different = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    return np.append(True, different)


def _picked(delta: Sequence[Revision], mask: Bools) -> list[Revision]:
    return [delta[int(row)] for row in np.flatnonzero(mask)]


def _split(base: Rows, keys: Keys, at: Int64s) -> tuple[Rows, Rows]:
    """The rows that stay, and those that end when the first newer revision of their key begins."""
    places = pc.index_in(base.column(KEY), value_set=keys).combine_chunks()
    stays = pc.is_null(places)
    kept, ended = base.filter(stays), base.filter(pc.invert(stays))
    ends = at[places.drop_null().to_numpy()]
    return kept, _with_until(ended, ends)


def _with_until(rows: Rows, until: Int64s) -> Rows:
    place = rows.column_names.index(AT) + 1
    return rows.add_column(place, pa.field(UNTIL, pa.int64()), pa.array(until, pa.int64()))


def _no_past(shape: FileShape) -> Rows:
    return schema_of(shape, is_past=True).empty_table()


def by_key(tables: Sequence[Rows]) -> Rows:
    """By key; for equal keys the earlier table's rows come first; stable."""
    tables = [table for table in tables if len(table)] or tables[:1]
    if len(tables) == 1:
        return tables[0]
    if all(_last_key(one) <= _first_key(other) for one, other in pairwise(tables)):
        return pa.concat_tables(tables)
    joined = pa.concat_tables(tables).combine_chunks()
    return joined.take(pa.array(argsort(_whole(joined.column(KEY)))))


def _first_key(rows: Rows) -> bytes:
    key: bytes = rows.column(KEY)[0].as_py()
    return key


def _last_key(rows: Rows) -> bytes:
    key: bytes = rows.column(KEY)[len(rows) - 1].as_py()
    return key


def _whole(column: Column) -> Column:
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else column.combine_chunks()


def write_all(files: Files, stem: str, shape: FileShape, rows: Rows, bytes_max: int) -> list[WrittenFile]:
    """Rows as files of about the same size, none too large; none if there are no rows."""
    parts = [part for piece in _cut(rows) for part in _halved(piece, bytes_max)]
    return [write(files, f"{stem}-{number}.parquet", shape, part) for number, part in enumerate(parts)]


def _cut(rows: Rows) -> Iterator[Rows]:
    """A key with several revisions stays in one file."""
    count = -(-len(rows) // FILE_ROWS)
    size = -(-len(rows) // count) if count else 0
    start = 0
    while start < len(rows):
        end = _end_of_key(rows, min(len(rows), start + size))
        yield rows.slice(start, end - start)
        start = end


def _halved(rows: Rows, bytes_max: int) -> Iterator[Rows]:
    """Halves, as often as needed: wide rows may stand beside many narrow ones."""
    middle = _end_of_key(rows, len(rows) // 2) if rows.nbytes > bytes_max and len(rows) > 1 else len(rows)
    if middle == len(rows):
        yield rows
        return
    yield from _halved(rows.slice(0, middle), bytes_max)
    yield from _halved(rows.slice(middle), bytes_max)


def _end_of_key(rows: Rows, end: int) -> int:
    """The first row from there on that has another key than the row before it."""
    keys = rows.column(KEY)
    while end < len(rows) and keys[end].as_py() == keys[end - 1].as_py():
        end += 1
    return end
