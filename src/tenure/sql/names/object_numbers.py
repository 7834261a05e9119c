"""Oids: the numbers by which catalogs and clients refer to objects.

    database, schema, table, view, sequence    its descriptor's id
    role                                       its id
    built-in type                              PostgreSQL's own; of an enum: `expr.types.system_types`
    index, constraint, default                 1_000_000_000 + 512 * the table's id + its number there
    table of pg_catalog                        PostgreSQL's own, which no descriptor gets as its id
    view of pg_catalog, information_schema     2_000_000_000 + PostgreSQL's own

An index or constraint is a part of its table and has no id of its own, so its number is computed and can be
read back. A table has fewer than 512 of each kind in its life, and a cluster fewer than 1,900,000 objects, or
else the number is a hash: still stable, but found by a search and unique only by chance.

Numbers are unique within one catalog, as in PostgreSQL, and below 2^31 unless hashed: some clients read them
as signed.

Walk: `sql.names.regs` and the relations of `sql.tables.pg_catalog` number their objects by these.
"""

from typing import NamedTuple
from zlib import crc32

from tenure.catalog.descriptors.definitions import Table, TypeRef, visible
from tenure.expr.types.system_types import ENUM_ARRAY_OIDS_FROM, ENUM_OIDS_FROM, TYPE_OIDS

PARTS_FROM, SYSTEM_FROM, HASHED_FROM = 1_000_000_000, 2_000_000_000, 2**31
PARTS_MAX = 512
"""Numbers that are set aside for each table."""
CATALOG_SCHEMA, INFORMATION_SCHEMA = 11, 13
"""pg_catalog has PostgreSQL's number; those below 90 are no descriptor's."""
DATABASE_CATALOG, TABLESPACE_CATALOG, ROLE_CATALOG = 1262, 1213, 1260
CLASS_CATALOG, TYPE_CATALOG, CONSTRAINT_CATALOG = 1259, 1247, 2606
NAMESPACE_CATALOG, DEFAULT_CATALOG, REWRITE_CATALOG = 2615, 2604, 2618


class Part(NamedTuple):
    """A part of a table by its number: an index, a constraint, a default."""

    table: int
    number: int


def part_oid(table: int, number: int) -> int:
    oid = PARTS_FROM + table * PARTS_MAX + number
    if number < PARTS_MAX and oid < SYSTEM_FROM:
        return oid
    return HASHED_FROM + crc32(f"{table}/{number}".encode()) // 2


def part_of(oid: int) -> Part | None:
    """None if the number is no part's, or a hash."""
    if not PARTS_FROM <= oid < SYSTEM_FROM:
        return None
    return Part(*divmod(oid - PARTS_FROM, PARTS_MAX))


# Indexes, constraints and columns are numbered apart; in pg_constraint they are together.


def index_constraint_oid(table: int, index: int) -> int:
    """Of PRIMARY KEY and UNIQUE."""
    return part_oid(table, index * 3)


def constraint_oid(table: int, constraint: int) -> int:
    """Of CHECK and FOREIGN KEY."""
    return part_oid(table, constraint * 3 + 1)


def not_null_oid(table: int, column: int) -> int:
    return part_oid(table, column * 3 + 2)


def type_oid(ref: TypeRef) -> int:
    if ref.enum:
        return (ENUM_ARRAY_OIDS_FROM if ref.is_array else ENUM_OIDS_FROM) + ref.enum
    return TYPE_OIDS[ref.name][int(ref.is_array)]


def enum_of(oid: int) -> int:
    """The descriptor's id of an enum, by its oid or its array's; 0 if the oid is below those."""
    if oid > ENUM_ARRAY_OIDS_FROM:
        return oid - ENUM_ARRAY_OIDS_FROM
    return max(0, oid - ENUM_OIDS_FROM)


def attribute_numbers(table: Table) -> dict[int, int]:
    """The columns' numbers by their ids: the ids themselves, unless a column took another's place."""
    ids = [each.id for each in visible(table.columns)]
    if ids == sorted(ids):
        return {id: id for id in ids}
    return {id: place for place, id in enumerate(ids, 1)}
