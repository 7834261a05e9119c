"""Proves that existing rows satisfy an element before readers rely on it.

By then every writer has enforced it for as long as the snapshot is old, so a proof for the rows visible there
stays valid. Each function raises PostgreSQL's error for the first row that fails.

`without` are the primary keys of rows that another process handles: a transaction that changes the schema and
has written these rows itself completes them at its commit (`table.completion`).

Walk: the schema changer's job calls these after the backfill, before the step to public.
"""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

from tenure.base.errors import CheckViolation, ConstraintViolation, CorruptData, NotNullViolation
from tenure.expr.functions.function import Context
from tenure.kv.transaction import Transaction
from tenure.table.backfill import duplicated
from tenure.table.columns import CompiledCheck
from tenure.table.compiled_index import CompiledIndex
from tenure.table.entry_makers import key_maker
from tenure.table.read import Source, rows
from tenure.table.references import Lookups, together
from tenure.table.rows import Layout, Row

DIFFERING_ROWS_MAX = 1_000_000
"""The most keys of an index held in memory to prove that they differ: some 100 MB."""

KEYS_AT_ONCE = 2_000
"""Keys of an index that are made together."""

ROWS_AT_ONCE = 500
"""Rows whose entries are read together."""


class Offence(NamedTuple):
    row: Row
    error: ConstraintViolation


def validate_unique(
    source: Source, layout: Layout, index: int, context: Context, *, without: Collection[bytes] = ()
) -> Offence | None:
    """Each row must be the owner of the entry under its key; the index has been filled."""
    keyed = layout.indexes[index]
    if not isinstance(source, Transaction) and _all_differ(source, layout, keyed, without):
        return None
    left = _rows(source, layout, without)
    while batch := list(islice(left, ROWS_AT_ONCE)):
        entries = [
            (row, entry)
            for row in batch
            if keyed.collides(row.values) and (entry := layout.entry(keyed, row, context)) is not None
        ]
        source.read_ahead(entry.key for _, entry in entries)
        for row, entry in entries:
            stored = source.get(entry.key)
            if stored is None:
                raise CorruptData(f'index "{keyed.name}" of table "{layout.table.name}" lacks a row')
            if not layout.is_of(keyed, stored, entry, row):
                return Offence(row, duplicated(layout, keyed, row))
    return None


def _all_differ(source: Source, layout: Layout, index: CompiledIndex, without: Collection[bytes]) -> bool:
    """Whether each row has a distinct key in an index, found by two scans; False if that cannot be decided.

    A transaction would count both as read, so it checks row by row.
    """
    make = key_maker(layout, index)
    if make is None:
        return False
    entries = {key for key, _ in islice(source.scan(index.span()), DIFFERING_ROWS_MAX + 1)}
    if len(entries) > DIFFERING_ROWS_MAX:
        return False
    stored = (row for row in source.scan(layout.primary.span()) if row[0] not in without)
    while page := list(islice(stored, KEYS_AT_ONCE)):
        for entry_key, values in make(page):
            if entry_key in entries:
                entries.remove(entry_key)
            elif index.is_primary or None not in values:
                return False
    return True


def validate_check(
    source: Source, layout: Layout, check: int, context: Context, *, without: Collection[bytes] = ()
) -> Offence | None:
    compiled = next(each for each in layout.checks if each.check.id == check)
    for row in _rows(source, layout, without):
        if compiled.is_broken_by(row.values, context):
            return Offence(row, broken_check(layout, compiled))
    return None


def broken_check(layout: Layout, check: CompiledCheck) -> ConstraintViolation:
    """The error to raise if an existing row violates a new check."""
    name = layout.table.name
    if check.not_null:
        column = layout.columns[check.not_null].name
        message = f'column "{column}" of relation "{name}" contains null values'
        return NotNullViolation(message, table=layout.table, column=column)
    message = f'check constraint "{check.name}" of relation "{name}" is violated by some row'
    return CheckViolation(message, table=layout.table, constraint=check.name)


def validate_foreign_key(
    source: Source, layout: Layout, foreign_key: int, target: Layout, *, without: Collection[bytes] = ()
) -> Offence | None:
    checked = layout.foreign_key(foreign_key)
    assert checked is not None, f'table "{layout.table.name}" has no foreign key {foreign_key}'
    lookups = Lookups(layout, checked, target)
    sought = (each for row in _rows(source, layout, without) for each in lookups.of(row))
    for lookup in together(source, sought):
        error = lookup.error(source)
        if error is not None:
            return Offence(lookup.row, error)
    return None


def _rows(source: Source, layout: Layout, without: Collection[bytes]) -> Iterator[Row]:
    return (row for row in rows(source, layout) if row.key not in without)
