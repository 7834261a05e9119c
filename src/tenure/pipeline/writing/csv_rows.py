"""Rows as CSV, byte for byte as PostgreSQL's COPY ... TO ... (FORMAT csv) writes them.

A field is quoted if it contains a delimiter, a quote or a line end, or would be read as NULL. NULL is an
empty field; an empty text is "".

A whole batch is joined at once: where all the bytes of a column show that none of it needs quotes, its values
are not checked one by one. Repeated texts, such as states, are checked once each.

Walk: `writing.files` -> `csv_bytes`.
"""

import re
from collections.abc import Sequence
from datetime import tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.pipeline.reading.quick import laid_out, mask
from tenure.pipeline.writing.cells import Cells
from tenure.pipeline.writing.formats import CsvOut
from tenure.pipeline.writing.texts import is_text, texts
from tenure.table.arrays import Bools, Buffer, Column

QUOTE = '"'

SAMPLE_ROWS, SAMPLE_DISTINCT_MAX = 1024, 64
"""Hashing all texts pays where so many first ones have no more than so many distinct values."""

_FORMULA = r"^[=+\-@\t\r]"
_NEVER_SPECIAL = frozenset(
    [
        "bool",
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "numeric",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "uuid",
    ]
)
_IN_PLAIN = re.compile(r"[0-9A-Za-z:+\-. ]")
"""The characters that texts of these types consist of."""


def csv_header(names: Sequence[str], csv: CsvOut) -> bytes:
    fields = [_quoted(pa.array([name], pa.string()), csv, is_only=len(names) == 1) for name in names]
    return bytes(_joined(fields, csv)) if names else b"\n"


def csv_bytes(columns: Sequence[Cells], rows: int, csv: CsvOut, zone: tzinfo) -> Buffer:
    """A batch as bytes, or a buffer."""
    if not columns:
        return b"\n" * rows
    return _joined([_field(cells, csv, zone, is_only=len(columns) == 1) for cells in columns], csv)


def _field(cells: Cells, csv: CsvOut, zone: tzinfo, *, is_only: bool) -> Column:
    column = texts(cells, zone)
    kind = cells.kind
    if csv.guards_formulas and is_text(kind):
        column = _guarded(column)
    is_plain = kind.family in _NEVER_SPECIAL and not kind.ref.is_array and not csv.null
    if is_plain and not _IN_PLAIN.fullmatch(csv.delimiter):
        return column
    return _quoted(column, csv, is_only=is_only)


def _guarded(column: Column) -> Column:
    is_formula = pc.match_substring_regex(column, _FORMULA)
    return pc.if_else(is_formula, pc.binary_join_element_wise("'", column, ""), column)


def _quoted(column: Column, csv: CsvOut, *, is_only: bool) -> Column:
    if _repeats(column):
        coded = column.dictionary_encode()
        return _quoted(coded.dictionary, csv, is_only=is_only).take(coded.indices)
    needs = _with_bytes(column, csv.delimiter, QUOTE, "\n", "\r")
    needs |= mask(pc.equal(column, csv.null))
    if is_only:
        needs |= mask(pc.equal(column, "\\."))
    if not needs.any():
        return column
    chosen = column.filter(pa.array(needs))
    in_quotes = pc.binary_join_element_wise(QUOTE, pc.replace_substring(chosen, QUOTE, QUOTE * 2), QUOTE, "")
    return pc.replace_with_mask(column, pa.array(needs), in_quotes)


def _repeats(column: Column) -> bool:
    """Whether there are few distinct ones, judged by the first rows."""
    return len(column) > SAMPLE_ROWS and len(pc.unique(column.slice(0, SAMPLE_ROWS))) <= SAMPLE_DISTINCT_MAX


def _with_bytes(column: Column, *bytes: str) -> Bools:
    """Which texts contain one of some bytes: found in all of them at once."""
    data, places = laid_out(column)
    is_special = np.zeros(256, bool)
    is_special[[ord(each) for each in bytes]] = True
    found = np.zeros(len(column), bool)
    found[np.searchsorted(places, np.flatnonzero(is_special[data]), "right") - 1] = True
    return found


def _joined(fields: Sequence[Column], csv: CsvOut) -> Column:
    ended = pc.fill_null(fields[-1], csv.null) if fields[-1].null_count else fields[-1]
    last = pc.binary_join_element_wise(ended, "", "\n")
    lines = pc.binary_join_element_wise(
        *fields[:-1], last, csv.delimiter, null_handling="replace", null_replacement=csv.null
    )
    return laid_out(lines)[0]
