"""JSON_OBJECT, JSON_ARRAY and IS JSON of the SQL standard, as calls of functions.

    JSON_OBJECT('a': 1)                    json_build_object('a', 1)
    JSON_ARRAY(1, NULL RETURNING jsonb)    tenure_jsonb_array_absent(1, NULL), which leaves out NULL
    x IS JSON OBJECT                       tenure_is_json(x, 'object')

Walk: `sql.bind.expressions` binds nodes of these kinds here.
"""

from collections.abc import Sequence

from tenure.base.errors import DatatypeMismatch, NotSupported
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.bind.types import type_at
from tenure.sql.bind.values import TEXT
from tenure.sql.text.parse import Tree, child, items, option, unwrap

READABLE = ("text", "varchar", "char", "unknown", "json", "jsonb")
"""Families of types that IS JSON looks into."""


def json_object(tree: Tree, level: QueryLevel) -> Typed:
    if tree.unique:
        raise NotSupported("JSON_OBJECT() WITH UNIQUE KEYS is not supported", position=tree.location + 1)
    operands: list[Typed] = []
    for pair in items(tree.exprs):
        operands += (level.expression(pair.key), _value(unwrap(pair.value), level))
    return _built("object", operands, tree, level)


def json_array(tree: Tree, level: QueryLevel) -> Typed:
    operands = [_value(each, level) for each in items(tree.exprs)]
    return _built("array", operands, tree, level)


def _value(tree: Tree, level: QueryLevel) -> Typed:
    if option(tree.format, "format_type") == "JS_FORMAT_JSON":
        raise NotSupported("FORMAT JSON is not supported")
    return level.expression(tree.raw_expr)


def _built(what: str, operands: Sequence[Typed], tree: Tree, level: QueryLevel) -> Typed:
    output = child(tree, "output")
    type_name = None if output is None else child(output, "type_name")
    returned = None if type_name is None else type_at(type_name, level.names)
    kind = "jsonb" if returned is not None and returned.family == "jsonb" else "json"
    # The grammar has ABSENT ON NULL in the tree wherever it counts, the default of JSON_ARRAY included.
    name = f"tenure_{kind}_{what}_absent" if tree.absent_on_null and operands else f"{kind}_build_{what}"
    found = build.call(name, *operands)
    return found if returned is None or returned.family == kind else build.cast(found, returned)


def is_json(tree: Tree, level: QueryLevel) -> Typed:
    if tree.unique_keys:
        raise NotSupported("IS JSON WITH UNIQUE KEYS is not supported", position=tree.location + 1)
    operand = level.expression(tree.expr)
    if operand.type.family not in READABLE or operand.type.ref.is_array:
        raise DatatypeMismatch(
            f"cannot use type {operand.type.sql_name} in IS JSON predicate", position=tree.location + 1
        )
    what = option(tree, "item_type").removeprefix("JS_TYPE_").lower()
    return build.call("tenure_is_json", build.cast(operand, TEXT), build.const(what, TEXT))
