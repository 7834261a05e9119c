"""Duplicate keys of an import: another row of the input has the key, or a row of the table.

    runs of a range, without refused rows ──► no key twice? ──► no key in the table, too?

New rows carry no time: it is that of the commit which publishes their file. Nobody can write the table
meanwhile, so the comparison stays true. Where some bad rows are tolerated, a duplicate key is not an error
yet: nothing is written, and the clashes are the result.

Walk: `bulk.importing.second_pass` merges with `ImportRules`, whose methods the tasks of the merge call.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pyarrow.compute as pc

from tenure.base.errors import UniqueViolation
from tenure.bulk.importing.clashes import clashing
from tenure.bulk.ingest.origins import read_refused, where, without
from tenure.pipeline.merge_inputs import Clash
from tenure.pipeline.runs import LINE, SOURCE, keys_of
from tenure.storage.files import Files
from tenure.table.arrays import Rows
from tenure.table.columns import key_text
from tenure.table.key_order import doubled, plain
from tenure.table.lake.format import KEY
from tenure.table.lake.tables import IndexFormat
from tenure.table.rows import key_values


class ImportRules(NamedTuple):
    """How rows of an import become rows of an index."""

    names: str
    """The file with the names of the input's files, for an error."""
    refused: str
    """The file with rows to skip; empty: there are none."""
    bad_rows_max: int

    @property
    def at(self) -> None:
        return None

    @property
    def replaces(self) -> bool:
        return False

    def admitted(self, lake: Files, rows: Rows) -> Rows:
        return without(rows, read_refused(lake, self.refused))

    def refuse(self, lake: Files, format: IndexFormat, added: Rows, live: Rows) -> tuple[Clash, ...]:
        if self.bad_rows_max:
            return _clashes(format, added, live, self.bad_rows_max)
        raise _error(format, added, live, partial(where, lake, self.names))


def _clashes(format: IndexFormat, added: Rows, live: Rows, rows_max: int) -> tuple[Clash, ...]:
    of_index = (format.layout.table.id, format.index.id)
    return tuple(
        Clash(of_index, key, f"{_message(format)}: Key {_shown(format, key)} is in", is_in_table, origins)
        for key, is_in_table, origins in clashing(added, live, rows_max)
    )


def _error(format: IndexFormat, added: Rows, live: Rows, place_of: Callable[[Rows], str]) -> UniqueViolation:
    """The error for the first duplicate key; rows of the input are compared first."""
    again = doubled(keys_of(added))
    if len(again):
        one, other = sorted(
            (added.slice(int(row), 1) for row in (again[0] - 1, again[0])),
            key=lambda row: (row.column(SOURCE)[0].as_py(), row.column(LINE)[0].as_py()),
        )
        return _duplicate(format, one, f"It is in {place_of(one)}, and in {place_of(other)}.")
    in_table = pc.is_in(plain(keys_of(added)), value_set=keys_of(live))
    row = added.slice(pc.index(in_table, True).as_py(), 1)
    return _duplicate(format, row, f"It is in the table, and in {place_of(row)}.")


def _duplicate(format: IndexFormat, row: Rows, places: str) -> UniqueViolation:
    return UniqueViolation(
        _message(format),
        detail=f"Key {_shown(format, row.column(KEY)[0].as_py())} is there twice. {places}",
        table=format.layout.table,
        constraint=format.index.name,
    )


def _message(format: IndexFormat) -> str:
    return f'duplicate key value violates unique constraint "{format.index.name}"'


def _shown(format: IndexFormat, key: bytes) -> str:
    layout, index = format.layout, format.index
    return key_text(layout.columns, index.columns, key_values(index, key))
