"""Names of types in a statement: what `x::numeric(10, 2)[]` casts to.

Walk: `sql.bind.expressions` and the statements that make tables ask for `type_at`.
"""

import re

from tenure.base.errors import NotSupported, SyntaxFault, UndefinedObject
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import Const
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import check_modifiers, parse_type_name, type_of
from tenure.sql.bind.locations import at
from tenure.sql.bind.relations import Names
from tenure.sql.bind.values import literal
from tenure.sql.text.parse import Tree, items, kind, names

_BUILT_IN = {
    *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar", "bytea"),
    *("uuid", "date", "time", "timestamp", "timestamptz", "interval", "json", "jsonb", "string", "bytes"),
    *("char", "oid", "name", "void", "regclass", "regtype", "regproc", "regprocedure", "regnamespace"),
    *("regrole", "regcollation", "regoperator", "oidvector", "int2vector", "aclitem", "xid", "pg_node_tree"),
}
_ABSENT = {
    *("bit", "varbit", "money", "timetz", "xml", "inet", "cidr", "macaddr", "macaddr8", "pg_lsn"),
    *("point", "line", "lseg", "box", "path", "polygon", "circle", "tsvector", "tsquery", "jsonpath"),
    *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange", "record", "tid"),
    *("regoper", "regconfig", "regdictionary"),
}
"""Types of PostgreSQL that do not exist here."""
_INTERVAL_FULL = 0x7FFF
"""The mask of fields of a plain INTERVAL."""
_UNITS = {
    1 << 2: "year",
    1 << 1: "month",
    1 << 3: "day",
    1 << 10: "hour",
    1 << 11: "minute",
    1 << 12: "second",
}
"""PostgreSQL's bits for the fields of an INTERVAL DAY, INTERVAL HOUR TO SECOND and so on."""


def type_at(tree: Tree, catalog_names: Names, *, has_unit: bool = False) -> Type:
    """The type that a TypeName means. Raises UndefinedObject (42704) if there is none.

    `has_unit` of INTERVAL '3' DAY, where the unit is the literal's: see `with_unit`.
    """
    with at(tree.location):
        if tree.setof:
            raise NotSupported("SETOF types are not supported")
        if tree.pct_type:
            raise NotSupported("%TYPE is not supported")
        modifiers = _modifiers(tree)
        path = names(tree.names)
        if has_unit and path[-1] == "interval" and modifiers and modifiers[0] in _UNITS:
            modifiers = modifiers[1:] and (_INTERVAL_FULL, *modifiers[1:])
        is_array = bool(tree.array_bounds)
        return _named(path, modifiers, is_array, catalog_names)


def _named(path: list[str], modifiers: tuple[int, ...], is_array: bool, catalog_names: Names) -> Type:
    is_built_in = path[:-1] in ([], ["pg_catalog"])
    name = path[-1]
    if is_built_in and name.startswith("_") and name[1:] in _BUILT_IN:
        name, is_array = name[1:], True
    if is_built_in and name in _BUILT_IN:
        ref = _ref_of(name)
        if name == "interval":
            modifiers = _interval_modifiers(modifiers)
        return type_of(TypeRef(ref.name, check_modifiers(ref.name, modifiers), is_array))
    if is_built_in and (name in _ABSENT or name.removeprefix("_") in _ABSENT):
        raise NotSupported(f'type "{name}" is not supported')
    return catalog_names.type_named(path, modifiers, is_array=is_array)


def _ref_of(name: str) -> TypeRef:
    if name == "char":
        # Written in quotes: without them the grammar says bpchar.
        return TypeRef('"char"')
    try:
        return parse_type_name(name)
    except UndefinedObject:
        raise NotSupported(f'type "{name}" is not supported') from None


def _interval_modifiers(modifiers: tuple[int, ...]) -> tuple[int, ...]:
    if not modifiers or modifiers == (_INTERVAL_FULL,):
        return ()
    if modifiers[0] != _INTERVAL_FULL:
        raise NotSupported("intervals of certain fields only are not supported")
    return modifiers[1:]


def with_unit(constant: Tree, type_name: Tree, operand: Typed) -> Typed:
    """INTERVAL '3' DAY: the literal with its unit. Raises NotSupported if it has other parts too."""
    modifiers = _modifiers(type_name)
    unit = _UNITS.get(modifiers[0]) if modifiers else None
    if unit is None or not isinstance(operand.node, Const) or operand.type.family != "unknown":
        return operand
    text = constant.sval.sval.strip()
    if constant.isnull:
        return operand
    if not re.fullmatch(r"[+-]?\d+(\.\d*)?" if unit == "second" else r"[+-]?\d+", text):
        raise NotSupported(
            f"INTERVAL ... {unit.upper()} is supported of a number only", position=constant.location + 1
        )
    return literal(f"{text} {unit}", constant.location)


def _modifiers(tree: Tree) -> tuple[int, ...]:
    found = []
    for each in items(tree.typmods):
        if kind(each) != "A_Const" or each.WhichOneof("val") != "ival":
            raise SyntaxFault("type modifiers must be simple constants or identifiers")
        found.append(each.ival.ival)
    return tuple(found)
