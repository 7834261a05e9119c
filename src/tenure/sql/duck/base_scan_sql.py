"""A table's rows in the lake as DuckDB's SQL.

    SELECT CAST(c1 AS BIGINT) AS c1, CAST('new' AS VARCHAR) AS c4
      FROM read_parquet(['…/live-1.parquet', …])                                       nothing of them changed
    SELECT ... FROM read_parquet(['…/live-7.parquet'], file_row_number=true)
      WHERE get_bit($b104_0::BLOB::BIT, file_row_number::INTEGER) <> 1                  without hidden rows
    SELECT ... FROM h3.f WHERE get_bit($b104_1::BLOB::BIT, rowid::INTEGER) <> 1         a file that is held

DuckDB pushes filters and columns through a UNION ALL into each scan, and reads no row group that the
statistics rule out; the bitmap is looked at for the rows that are left. In a join it is part of the scan,
since the planner would not know how many rows to expect otherwise.

Where only the first rows in some order are wanted, files with hidden rows are one scan, too: each scan of its
own reads some twenty row groups before it knows which of them cannot have such a row. Which bitmap is meant,
the name of the file says; one that is not known ends the query.

Walk: `duck.engine` -> `base_sql`; `table.lake.visible_files` says what there is to scan.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from tenure.sql.duck.duck_types import NotShared, literal, quoted, shape_of
from tenure.storage.files import Files
from tenure.table.columns import CompiledColumn
from tenure.table.lake.visible_files import FileScan, Times, VisibleBase

TOGETHER_FILES_MAX = 64
"""In one scan, of files with hidden rows: for each row group, the bitmaps of all are gone through."""

GLOB = frozenset("*?[")
"""Characters that a path must not have: DuckDB would read it as a glob pattern."""


class BaseSql(NamedTuple):
    selects: list[str]
    """The SELECTs to be joined by UNION ALL."""
    bitmaps: dict[str, bytes]
    """Parameters by name."""


def base_sql(
    table: int,
    based: VisibleBase,
    lake: Files | None,
    held_tables: Mapping[str, str],
    *,
    is_alone: bool = False,
    is_first: bool = False,
) -> BaseSql:
    """Raises NotShared if DuckDB cannot read the files, or a value cannot be written as a literal.

    `held_tables`: those that take the place of files. `is_alone`: no other table is read, nor this one again;
    `is_first`: only its first rows in some order are.
    """
    if lake is None or not GLOB.isdisjoint(lake.duck_root):
        raise NotShared("a lake that DuckDB cannot read")
    result = BaseSql([], {})
    read = [scan for scan in based.scans if scan.file.name not in held_tables]
    kept = [[scan] for scan in based.scans if scan.file.name in held_tables]
    for scans in (*kept, *_together(read, files_max=TOGETHER_FILES_MAX if is_first else 1)):
        conditions = _visible(scans[0].times)
        hidden = {f"b{table}_{len(result.bitmaps) + at}": scan.hidden for at, scan in enumerate(scans)}
        bitmaps = {name: bits for name, bits in hidden.items() if bits is not None}
        if bitmaps:
            result.bitmaps.update(bitmaps)
            # Of an equality DuckDB expects a single row, and builds the hash table of a join from these.
            one = _one_after_scan(based, scans[0]) if is_alone else "1"
            row = "rowid" if scans[0].file.name in held_tables else "file_row_number"
            conditions.append(f"{_bit(scans, list(bitmaps), lake, row)} <> {one}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        columns = ", ".join(_column(each, scans[0]) for each in based.kepts.values()) or "TRUE AS alive"
        source = held_tables.get(scans[0].file.name) or _files(scans, lake)
        result.selects.append(f"SELECT {columns} FROM {source}{where}")
    return result


def _bit(scans: Sequence[FileScan], bitmaps: Sequence[str], lake: Files, row: str) -> str:
    """SQL that is 1 for a hidden row of one of these files."""
    bits = [f"get_bit(${name}::BLOB::BIT, {row}::INTEGER)" for name in bitmaps]
    if len(bits) == 1:
        return bits[0]
    paths = [quoted(lake.duck_path(scan.file.name)) for scan in scans]
    whens = " ".join(f"WHEN {path} THEN {bit}" for path, bit in zip(paths, bits, strict=True))
    return f"CASE filename {whens} ELSE error('a file of another name') END"


def _one_after_scan(based: VisibleBase, scan: FileScan) -> str:
    """The number one, in a way that makes DuckDB look at it when the scan has left out what it can.

    A condition on one column alone is part of the scan, and is looked at for every row; not one on two.
    """
    for kept in based.kepts.values():
        if kept.id not in scan.filled and kept.type.ref.name not in ("text", "bytea"):
            return f"CASE WHEN c{kept.id} IS NULL THEN 1 ELSE 1 END"
    return "1"


def _together(scans: Sequence[FileScan], *, files_max: int) -> Iterator[Sequence[FileScan]]:
    """Scans that differ by their file alone are one, so many at most of those that have a bitmap."""
    for (has_hidden, *_), alike in groupby(sorted(scans, key=_likeness), _likeness):
        of_a_kind = list(alike)
        step = files_max if has_hidden else len(of_a_kind)
        yield from (of_a_kind[start : start + step] for start in range(0, len(of_a_kind), step))


def _likeness(scan: FileScan) -> tuple[bool, int, Times]:
    return scan.hidden is not None, scan.file.shape, scan.times or Times(0, False, False)


def _column(kept: CompiledColumn, scan: FileScan) -> str:
    value = literal(kept.type, kept.filled).sql if kept.id in scan.filled else f"c{kept.id}"
    return f"CAST({value} AS {shape_of(kept.type).sql}) AS c{kept.id}"


def _files(scans: Sequence[FileScan], lake: Files) -> str:
    names = ", ".join(quoted(lake.duck_path(scan.file.name)) for scan in scans)
    numbered = ", file_row_number=true" if scans[0].hidden is not None else ""
    return f"read_parquet([{names}], hive_partitioning=false{numbered})"


def _visible(times: Times | None) -> list[str]:
    """Rows without a time of their own have the file's."""
    if times is None:
        return []
    published_sql = "TRUE" if times.is_published else "FALSE"
    conditions = [f'coalesce("at" <= {times.at}, {published_sql})']
    if times.has_until:
        conditions.append(f'coalesce("until" > {times.at}, NOT {published_sql})')
    return conditions
