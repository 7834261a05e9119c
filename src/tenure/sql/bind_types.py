"""Names of types in a statement: what `x::numeric(10, 2)[]` casts to.

Walk: `sql.bind_expressions` and those who make tables ask for `type_at`.
"""

from tenure.catalog.descriptors import TypeRef
from tenure.expr.datatype import Type
from tenure.expr.errors import NotSupported, UndefinedObject
from tenure.expr.types import check_modifiers, parse_type_name, type_of
from tenure.sql.locations import at
from tenure.sql.parse import SyntaxFault, Tree, items, kind, names
from tenure.sql.relations import Names

_BUILT_IN = {
    "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar", "bytea",
    "uuid", "date", "time", "timestamp", "timestamptz", "interval", "json", "jsonb", "string", "bytes", "oid", "name",
    "regclass", "regtype", "regproc", "regnamespace", "regrole",
}  # fmt: skip
_INTERVAL_FULL = 0x7FFF
"""The mask of fields of a plain INTERVAL."""


def type_at(tree: Tree, known: Names) -> Type:
    """The type that a TypeName means. Raises UndefinedObject (42704) if there is none."""
    with at(tree.location):
        if tree.setof:
            raise NotSupported("SETOF types are not supported")
        if tree.pct_type:
            raise NotSupported("%TYPE is not supported")
        modifiers = _modifiers(tree)
        path = names(tree.names)
        is_array = bool(tree.array_bounds)
        return _named(path, modifiers, is_array, known)


def _named(path: list[str], modifiers: tuple[int, ...], is_array: bool, known: Names) -> Type:
    is_built_in = path[:-1] in ([], ["pg_catalog"])
    name = path[-1]
    if is_built_in and name.startswith("_") and name[1:] in _BUILT_IN:
        name, is_array = name[1:], True
    if is_built_in and name in _BUILT_IN:
        ref = parse_type_name(name)
        if name == "interval":
            modifiers = _interval_modifiers(modifiers)
        return type_of(TypeRef(ref.name, check_modifiers(ref.name, modifiers), is_array))
    if path == ["pg_catalog", "char"]:
        raise NotSupported('type "char" is not supported')
    return known.type_named(path, modifiers, is_array=is_array)


def _interval_modifiers(modifiers: tuple[int, ...]) -> tuple[int, ...]:
    if not modifiers or modifiers == (_INTERVAL_FULL,):
        return ()
    if modifiers[0] != _INTERVAL_FULL:
        raise NotSupported("intervals of some fields only are not supported")
    return modifiers[1:]


def _modifiers(tree: Tree) -> tuple[int, ...]:
    found = []
    for each in items(tree.typmods):
        if kind(each) != "A_Const" or each.WhichOneof("val") != "ival":
            raise SyntaxFault("type modifiers must be simple constants or identifiers")
        found.append(each.ival.ival)
    return tuple(found)


def missing_type(path: list[str]) -> UndefinedObject:
    return UndefinedObject(f'type "{".".join(path)}" does not exist')
