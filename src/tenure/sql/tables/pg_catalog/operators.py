"""pg_operator, pg_cast and pg_amop: operators, casts, and how an index of btree uses operators.

The rows are PostgreSQL's own, of what exists here.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`; `sql.tables.pg_catalog.answers` calls
`operator_with_types` for regoperator.
"""

from collections.abc import Iterator
from functools import cache

from tenure.catalog.accounts.users import ROOT_ID
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import Reg
from tenure.sql.names.object_numbers import CATALOG_SCHEMA
from tenure.sql.names.regs import TYPE_NAMES
from tenure.sql.tables.pg_catalog.declared_rows import declared_rows, fixed_definition
from tenure.sql.tables.pg_catalog.functions import TypeOid, split_signature
from tenure.sql.tables.pg_catalog.object_rows import Row
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import VirtualDefinition

OPERATOR, CAST, STRATEGY = shape("pg_operator"), shape("pg_cast"), shape("pg_amop")


def definitions() -> Iterator[VirtualDefinition]:
    yield fixed_definition(OPERATOR, _operators, "oid", "oprname")
    yield fixed_definition(CAST, lambda: [CAST.row(**each) for each, _ in declared_rows(CAST)], "castsource")
    yield fixed_definition(STRATEGY, lambda: [STRATEGY.row(**each) for each, _ in declared_rows(STRATEGY)])


def _operators() -> list[Row]:
    common = {"oprnamespace": CATALOG_SCHEMA, "oprowner": ROOT_ID}
    return [OPERATOR.row(**values, **common) for values, _ in declared_rows(OPERATOR)]


Operator = tuple[str, int, int]
"""Its name, and the types of its left and right side; 0 of a side that it has not."""


@cache
def _by_oid() -> dict[int, Operator]:
    return {
        each["oid"]: (each["oprname"], each["oprleft"], each["oprright"])
        for each, _ in declared_rows(OPERATOR)
    }


def operator_with_types(sought: Datum, type_oid: TypeOid) -> Reg | None:
    """regoperator: +(integer,integer)"""
    if isinstance(sought, int):
        found = _by_oid().get(sought)
        return Reg(sought, str(sought) if found is None else _shown(found))
    if sought == "0":
        return Reg(0, "0")
    name, types = split_signature(str(sought), type_oid)
    wanted = (name.strip().removeprefix("pg_catalog."), *types)
    return next((Reg(oid, _shown(each)) for oid, each in _by_oid().items() if each == wanted), None)


def _shown(operator: Operator) -> str:
    name, left, right = operator
    sides = (TYPE_NAMES[each] if each else "NONE" for each in (left, right))
    return f"{name}({','.join(sides)})"
