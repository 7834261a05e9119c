"""The shapes of pg_catalog's relations: their columns, and rows made of named values.

    CLASS = shape("pg_class")
    CLASS.row(oid=112, relname="users", relkind="r")        the other columns have their usual values

A relation that nothing fills is there and empty: clients ask it, and join it, all the same.

Walk: the modules of `sql.tables.pg_catalog` make rows by a `Shape`; `sql.tables.pg_catalog.relations`
defines what is left.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.system_types import Reg
from tenure.expr.types.type_names import type_of
from tenure.sql.names.object_numbers import SYSTEM_FROM
from tenure.sql.plans.plan import OutputColumn
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.table_columns import TABLES
from tenure.sql.tables.pg_catalog.view_columns import VIEWS
from tenure.sql.tables.virtual import NO_LOOKUPS, FindRows, Rows, VirtualDefinition

SCHEMA = "pg_catalog"
NO_PROCEDURE = Reg(0, "-")
_USUAL: Mapping[str, Datum] = {
    **{"bool": False, "name": "", "text": "", '"char"': "", "regproc": NO_PROCEDURE, "regtype": NO_PROCEDURE},
    **{"int2vector": (), "oidvector": ()},
}
"""Of columns that are never null; a number is 0, an array is empty."""
_DECLARATION = re.compile(r"^(\w+) (\d+):((?: .*)?(?:\n .*)*)", re.MULTILINE)


class Shape:
    def __init__(self, schema: str, name: str, oid: int, columns: str, *, is_view: bool) -> None:
        self.schema = schema
        self.name = name
        self.oid = oid
        self.is_view = is_view
        parts = [each.split(" ") for each in " ".join(columns.split()).split(", ")]
        self.columns = tuple(OutputColumn(column, _type(kind.removesuffix("!"))) for column, kind in parts)
        self.required = tuple(column for column, kind in parts if kind.endswith("!"))
        self._places = {column: place for place, (column, _) in enumerate(parts)}
        self._usual = [*(_usual(kind) for _, kind in parts), oid]

    def row(self, **values: Datum) -> tuple[Datum, ...]:
        """At its end, after the columns, stands the relation's own oid: `tableoid`."""
        row, places = self._usual.copy(), self._places
        for name, value in values.items():
            row[places[name]] = value
        return tuple(row)

    def defined(
        self,
        rows: Callable[[TableReader], Rows],
        lookups: Mapping[str, FindRows] = NO_LOOKUPS,
        *,
        is_restricted: bool = False,
    ) -> VirtualDefinition:
        return VirtualDefinition(
            self.schema,
            self.name,
            self.columns,
            rows,
            required=self.required,
            is_restricted=is_restricted,
            lookups=lookups,
            oid=self.oid,
        )


def _type(name: str) -> Type:
    return type_of(TypeRef(name.removesuffix("[]"), is_array=name.endswith("[]")))


def _usual(kind: str) -> Datum:
    name = kind.removesuffix("!")
    if name == kind:
        return None
    return () if name.endswith("[]") else _USUAL.get(name, 0)


@cache
def shapes() -> Mapping[str, Shape]:
    """Of all relations, by name."""
    found = (*declared(SCHEMA, TABLES, is_view=False), *declared(SCHEMA, VIEWS, is_view=True))
    return {each.name: each for each in found}


def shape(name: str) -> Shape:
    return shapes()[name]


def declared(schema: str, text: str, *, is_view: bool) -> Iterator[Shape]:
    for found in _DECLARATION.finditer(text):
        name, oid, columns = found.groups()
        yield Shape(schema, name, int(oid) + SYSTEM_FROM * is_view, columns, is_view=is_view)
