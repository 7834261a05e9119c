"""Sorted runs of whole rows: one for each index of a table, and one for each of its foreign keys.

    whole rows (`ingest.rows`) ──► keys ──► sorted ──► runs

Rows are gathered until they are as many as a task may hold; then they are sorted and written, and the next
are gathered. Where numbers have the order of the keys (`key_arrays.number_column`), keys are made from the
sorted numbers. Each row carries its origin, until its keys are proved unique.

    run of the primary index     key · columns · rest · source · line
    run of another index         key · primary key (of a unique one) · source · line
    run of a foreign key         key in the index that it refers to · source · line; each key once

Walk: `importing.sorting` and `resetting.sorting` add rows to `RunChunks`; `filling.entries` makes the entries
of one index by `entries_of`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.env import SystemEnv
from tenure.bulk.ingest.defaults import Blocks, Defaults, RowNumbers, random_uuid
from tenure.bulk.ingest.rows import RowBatch, RowCompleter, holds
from tenure.bulk.ingest.statement_facts import StatementFacts
from tenure.catalog.descriptors.definitions import ForeignKey, Table
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.expr.functions.function import Context
from tenure.expr.types.datatype import Type
from tenure.expr.types.zones import session_zone
from tenure.kv.keys import KEY_BYTES_MAX
from tenure.pipeline.reading.tasks import Reject
from tenure.pipeline.remote_handles import OpenHandles, TableVersion
from tenure.pipeline.runs import (
    LINE,
    PRIMARY_KEY,
    SOURCE,
    SortedRun,
    evened,
    in_order,
    joined,
    keys_of,
    write_run,
)
from tenure.storage.engine import HEAD_BYTES
from tenure.storage.files import Files
from tenure.table.arrays import Column, Keys, Rows
from tenure.table.arrow import is_opaque
from tenure.table.compiled_index import CompiledIndex
from tenure.table.key_arrays import KeyColumn, entry_arrays, key_array, key_columns, number_column, too_long
from tenure.table.key_order import doubled
from tenure.table.lake.format import KEY, REST, name_of
from tenure.table.rows import Layout, Layouts
from tenure.table.sequences import Sequences

CHUNK_BYTES = 48 << 20
"""Rows of so many bytes are sorted at a time; sorting holds them about three times."""

FIXED_BYTES_MAX = 64
"""More bytes than a key needs for any value of fixed size: a decimal of 38 digits is the largest."""


class SortedReference(NamedTuple):
    """A foreign key, and the unique index of its target that has the referenced keys."""

    constraint: ForeignKey
    parts: tuple[KeyColumn, ...]
    """The columns of the referring table, in the order of that index."""
    target: Table
    target_index: int


class SortedSplits(NamedTuple):
    rows: int
    indexes: dict[int, tuple[SortedRun, ...]]
    references: dict[int, tuple[SortedRun, ...]]
    """By the constraint's id."""
    rejects: tuple[Reject, ...]


def layout_of(place: OpenHandles, version: TableVersion) -> Layout:
    enums = {enum.id: enum for enum in version.enums}
    return Layouts(place.store.keyspace).of(version.table, enums.__getitem__)


def row_completer(
    place: OpenHandles,
    layout: Layout,
    facts: StatementFacts,
    sequences: Sequence[SequenceDescriptor],
    first_row: int,
) -> RowCompleter:
    env = SystemEnv()
    numbers = RowNumbers(layout.table.version, first_row)
    by_id = {each.id: each for each in sequences}
    blocks = Blocks(Sequences(place.store, place.store.keyspace), by_id)
    context = Context(
        facts.now_micros,
        facts.now_micros,
        random_uuid(env),
        numbers,
        clock_micros=env.wall_micros,
        zone=session_zone(facts.zone),
        sequences=blocks,
        session={"user": facts.user, "session_user": facts.user, "database": facts.database},
    )
    return RowCompleter(layout, Defaults(env, context, numbers, blocks), context)


def with_short_keys(
    layout: Layout, batch: RowBatch, file: str, rows: RowCompleter
) -> tuple[RowBatch, list[Reject]]:
    """Without rows whose keys are too long for an index. Only long values make long keys, so most are not
    checked.
    """
    is_bad = np.zeros(len(batch.lines), bool)
    rejects: list[Reject] = []
    for index in layout.indexes.values():
        if not _may_be_long(layout, index, batch):
            continue
        keys = _keys(layout, index, batch)
        for row in too_long(keys).tolist():
            if not is_bad[row]:
                reason = f'index row size exceeds maximum {KEY_BYTES_MAX} for index "{index.name}"'
                rejects.append(Reject(file, int(batch.lines[row]), "", reason, "54000", ""))
                is_bad[row] = True
    return (batch.without(is_bad), rejects) if rejects else (batch, rejects)


def _may_be_long(layout: Layout, index: CompiledIndex, batch: RowBatch) -> bool:
    """Whether the longest values of its columns together would make a key that is too long."""
    ids = {*index.columns, *layout.indexes[index.primary].columns}
    return (
        bool(batch.rest)
        or sum(_longest(layout.columns[id].type, batch.columns[id]) for id in ids)
        > KEY_BYTES_MAX - HEAD_BYTES
    )


def _longest(kind: Type, column: Column) -> int:
    """The most bytes of a key that a column's values take."""
    if not pa.types.is_string(column.type) and not pa.types.is_binary(column.type):
        return FIXED_BYTES_MAX
    # A zero byte of a text takes two; in an opaque value, each packed byte may be an element.
    grows = 16 if is_opaque(kind) else 2
    return FIXED_BYTES_MAX + grows * (pc.max(pc.binary_length(column)).as_py() or 0)


def _keys(layout: Layout, index: CompiledIndex, batch: RowBatch) -> Keys:
    rest = batch.rest_array() if batch.rest else None
    parts = key_columns(index)
    if index.is_primary:
        return key_array(parts, batch.columns, rest)
    primary = key_columns(layout.indexes[index.primary])
    return entry_arrays(parts, primary, batch.columns, rest, is_unique=index.is_unique).keys


class RunChunks:
    """Gathers rows, and writes them as runs."""

    def __init__(
        self, files: Files, stem: str, layout: Layout, references: Sequence[SortedReference], context: Context
    ) -> None:
        self._files = files
        self._stem = stem
        self._layout = layout
        self._references = references
        self._context = context
        self._tables: dict[str, list[Any]] = {}
        self._size = 0
        self._runs = 0
        self.rows = 0
        self.indexes: dict[int, list[SortedRun]] = {id: [] for id in layout.indexes}
        self.references: dict[int, list[SortedRun]] = {each.constraint.id: [] for each in references}

    def add(self, batch: RowBatch, source: int) -> None:
        if not len(batch.lines):
            return
        self.rows += len(batch.lines)
        for index in self._layout.indexes.values():
            self._gather(f"i{index.id}", self._of_index(index, batch, source))
        for reference in self._references:
            self._gather(f"f{reference.constraint.id}", reference_keys(reference, batch, source))
        if self._size >= CHUNK_BYTES:
            self.write()

    def _gather(self, name: str, rows: Rows) -> None:
        if len(rows):
            self._tables.setdefault(name, []).append(rows)
            self._size += rows.nbytes

    def _of_index(self, index: CompiledIndex, batch: RowBatch, source: int) -> Rows:
        if index.is_primary:
            columns = {name_of(id): column for id, column in sorted(batch.columns.items())}
            rows = pa.table({**columns, REST: batch.rest_array(), **_origin(batch, source)})
            # Keys of sorted numbers are made faster, and need not be sorted.
            return rows if number_column(index) is not None else _with_keys(index, rows)
        batch = within_index(self._layout, index, batch, self._context)
        return pa.table({**entries_of(self._layout, index, batch), **_origin(batch, source)})

    def write(self) -> None:
        for name, tables in self._tables.items():
            rows = self._sorted(name, joined(tables))
            tables.clear()
            runs = self.indexes if name[0] == "i" else self.references
            if name[0] == "f":
                rows = _distinct(rows)
            self._runs += 1
            runs[int(name[1:])].append(
                write_run(self._files, f"{self._stem}-{name}-{self._runs}.arrow", rows)
            )
        self._tables = {}
        self._size = 0

    def _sorted(self, name: str, rows: Rows) -> Rows:
        if KEY in rows.column_names:
            return in_order(evened(rows))
        index = self._layout.indexes[int(name[1:])]
        return evened(_with_keys(index, in_order(rows, number_column(index))))


def _with_keys(index: CompiledIndex, rows: Rows) -> Rows:
    columns = {part.column: rows.column(name_of(part.column)) for part in key_columns(index)}
    return rows.add_column(0, KEY, key_array(key_columns(index), columns, rows.column(REST)))


def within_index(layout: Layout, index: CompiledIndex, batch: RowBatch, context: Context) -> RowBatch:
    """The rows that have entries in an index: those for which its predicate holds."""
    if index.index.predicate is None or index.predicate is None:
        return batch
    is_within = holds(batch, index.index.predicate, index.predicate, layout.columns, context)
    return batch.without(~np.asarray(is_within.fill_null(False)))


def entries_of(layout: Layout, index: CompiledIndex, batch: RowBatch) -> dict[str, Column]:
    """The entries of rows in a secondary index: keys, and primary keys for a unique one."""
    rest = batch.rest_array() if batch.rest else None
    primary = key_columns(layout.indexes[index.primary])
    entries = entry_arrays(key_columns(index), primary, batch.columns, rest, is_unique=index.is_unique)
    return {KEY: entries.keys, PRIMARY_KEY: entries.primary} if index.is_unique else {KEY: entries.keys}


def _origin(batch: RowBatch, source: int) -> dict[str, Column]:
    sources = pa.array(np.full(len(batch.lines), source, np.int32))
    return {SOURCE: sources, LINE: pa.array(batch.lines, pa.int64())}


def reference_keys(reference: SortedReference, batch: RowBatch, source: int) -> Rows:
    """The keys that rows refer to; one with a NULL refers to nothing."""
    is_nothing = np.zeros(len(batch.lines), bool)
    for id in reference.constraint.columns:
        if batch.columns[id].null_count:
            is_nothing |= batch.is_null(id)
    if is_nothing.any():
        batch = batch.without(is_nothing)
    rest = batch.rest_array() if batch.rest else None
    keys = key_array(reference.parts, batch.columns, rest)
    rows = pa.table({KEY: keys, **_origin(batch, source)})
    # Many rows refer to few keys: only the first of each key goes on.
    return _distinct(in_order(rows))


def _distinct(rows: Rows) -> Rows:
    again = doubled(keys_of(rows))
    if not len(again):
        return rows
    kept = np.ones(len(rows), bool)
    kept[again] = False
    return rows.filter(pa.array(kept))
