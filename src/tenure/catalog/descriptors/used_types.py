"""The enums that a table uses: as the types of its columns, and in the expressions that it stores.

An expression lists the enums that its casts and constants name, so that none is dropped while a default, a
generated column, a CHECK or the predicate of an index needs its labels.

Walk: `catalog.changes.table_changes` registers a table with the types that it uses; `catalog.changes.drops`,
`catalog.changes.undrops` and `catalog.descriptors.temporary_objects` ask, too.
"""

from collections.abc import Iterator

from tenure.catalog.descriptors.definitions import Expression, Table


def enums_of(table: Table) -> Iterator[int]:
    """Also of elements that are being dropped: writers may still compute them."""
    yield from (each.type.enum for each in table.columns if each.type.enum)
    for expression in expressions_of(table):
        yield from expression.enums


def expressions_of(table: Table) -> Iterator[Expression]:
    for column in table.columns:
        yield from (each for each in (column.default, column.generated) if each is not None)
    yield from (each.expression for each in table.checks)
    yield from (each.predicate for each in table.indexes if each.predicate is not None)
