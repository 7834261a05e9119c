"""Functions about types and names that clients call: format_type, to_regclass, pg_get_viewdef, enum_range.

Walk: `expr.function_table` and `expr.set_function_table` list these; the Context looks up what only the
catalog has.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tenure.base.errors import UserError
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.functions.callback_functions import asking
from tenure.expr.functions.function import Context, Function, Volatility
from tenure.expr.functions.set_function import SetFunction, one_column
from tenure.expr.types.catalog_types import NodeText
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.system_types import REGS, TYPE_OIDS, Reg, modifiers_in
from tenure.expr.types.type_names import type_of

_BY_OID = {
    oid: TypeRef(name, is_array=bool(is_array))
    for name, oids in TYPE_OIDS.items()
    for is_array, oid in enumerate(oids)
    if oid
}

SYNTAX_ERROR = "42601"
SEQUENCE_DATA = "pg_get_sequence_data"


def functions() -> Iterator[Function]:
    stable = partial(Function, volatility=Volatility.STABLE, wants_context=True)
    yield stable("format_type", ("oid", "int4"), "text", format_type, is_strict=False)
    for kind in REGS:
        yield stable(f"to_{kind}", ("text",), kind, _finder(kind))
    yield from _answered(stable)
    of_enum = partial(Function, is_strict=False, wants_types=True)
    yield of_enum("enum_first", ("anyenum",), "anyenum", _at(0))
    yield of_enum("enum_last", ("anyenum",), "anyenum", _at(-1))
    yield of_enum("enum_range", ("anyenum",), "anyarray", _range)
    yield of_enum("enum_range", ("anyenum", "anyenum"), "anyarray", _range)


_SIGNATURES = """
pg_get_userbyid oid: name
obj_description oid: text
obj_description oid name: text
shobj_description oid name: text
col_description oid int4: text
pg_get_viewdef oid: text
pg_get_viewdef oid bool: text
pg_get_viewdef oid int4: text
pg_get_viewdef text: text
pg_get_viewdef text bool: text
pg_get_constraintdef oid: text
pg_get_constraintdef oid bool: text
pg_get_indexdef oid: text
pg_get_indexdef oid int4 bool: text
pg_get_serial_sequence text text: text
pg_get_function_result oid: text
pg_get_function_arguments oid: text
pg_get_function_identity_arguments oid: text
pg_get_functiondef oid: text
acldefault "char" oid: aclitem[]
pg_relation_is_publishable regclass: bool
pg_my_temp_schema: oid
"""
_VISIBLE = ("table", "type", "function", "operator", "opclass", "opfamily", "collation", "conversion")
_OF_ABSENT = """
pg_get_statisticsobjdef oid: text
pg_get_statisticsobjdef_columns oid: text
pg_get_function_sqlbody oid: text
pg_get_triggerdef oid: text
pg_get_triggerdef oid bool: text
pg_get_ruledef oid: text
pg_get_ruledef oid bool: text
pg_get_partkeydef oid: text
pg_get_partition_constraintdef oid: text
pg_tablespace_location oid: text
pg_relation_size regclass: int8
pg_relation_size regclass text: int8
pg_table_size regclass: int8
pg_indexes_size regclass: int8
pg_total_relation_size regclass: int8
pg_database_size oid: int8
pg_database_size name: int8
pg_tablespace_size oid: int8
pg_tablespace_size name: int8
"""
"""About what no database here has, or nobody measures: NULL, as PostgreSQL answers for what is not there."""


def _answered(stable: Callable[..., Function]) -> Iterator[Function]:
    """Functions that the catalog answers, through the Context."""
    for name, arguments, result in _signatures(_SIGNATURES):
        yield stable(name, arguments, result, asking(name))
    visible = [f"pg_{kind}_is_visible" for kind in _VISIBLE]
    visible += [f"pg_ts_{kind}_is_visible" for kind in ("config", "dict", "parser", "template")]
    for name in (*visible, "pg_statistics_obj_is_visible"):
        yield stable(name, ("oid",), "bool", asking(name))
    for name, arguments, result in _signatures(_OF_ABSENT):
        yield Function(name, arguments, result, lambda *values: None, Volatility.STABLE)
    for more in ((), ("bool",)):
        arguments = ("pg_node_tree", "oid", *more)
        yield Function("pg_get_expr", arguments, "text", _expression_text, Volatility.STABLE)


def _expression_text(tree: str, relation: int, is_pretty: bool = False) -> str:
    return tree.pretty if is_pretty and isinstance(tree, NodeText) else str(tree)


def _signatures(text: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    for line in text.strip().splitlines():
        left, _, result = line.partition(": ")
        name, *arguments = left.split()
        yield name, tuple(arguments), result


def format_type(context: Context, oid: int | None, modifier: int | None) -> str | None:
    """A type's name as SQL writes it; NULL as the modifier leaves it out."""
    if oid is None:
        return None
    ref = _BY_OID.get(oid)
    if ref is None:
        return _name_of(context, oid)
    if modifier is None and ref.name == "char":
        return "character[]" if ref.is_array else "character"
    modifiers = modifiers_in(ref.name, modifier) if modifier is not None and modifier >= 0 else ()
    return type_of(TypeRef(ref.name, modifiers, is_array=ref.is_array)).sql_name


def _name_of(context: Context, oid: int) -> str:
    try:
        found = context.object("regtype", oid)
    except UserError:
        return "???" if oid else "-"
    return found.name if isinstance(found, Reg) and found.name != str(oid) else "???"


def _finder(kind: str) -> Callable[[Context, str], Datum]:
    """As the cast, but NULL if there is no such object. A text that is not a name is still an error."""

    def find(context: Context, name: str) -> Datum:
        try:
            return context.object(kind, name)
        except UserError as error:
            if error.sqlstate == SYNTAX_ERROR:
                raise
            return None

    return find


# Enums: the argument's type says which enum is meant, so its value may be NULL.


def _labels(kind: Type) -> tuple[str, ...]:
    assert isinstance(kind, EnumOf)
    return kind.labels


def _at(place: int) -> Callable[[Type], Callable[[Datum], Datum]]:
    return lambda kind: lambda value: _labels(kind)[place]


def _range(kind: Type, *more: Type) -> Callable[..., Datum]:
    labels = _labels(kind)

    def between(first: str | None, last: str | None = None) -> Datum:
        start = 0 if first is None else labels.index(first)
        end = len(labels) - 1 if last is None else labels.index(last)
        return labels[start : end + 1]

    return (lambda value: labels) if not more else between


# Functions that give rows


def set_functions() -> Iterator[SetFunction]:
    extension = (("name", "name"), ("default_version", "text"), ("comment", "text"))
    yield SetFunction("pg_available_extensions", (), extension, lambda: ())
    option = (("option_name", "text"), ("option_value", "text"))
    yield SetFunction("pg_options_to_table", ("text[]",), option, _options)
    state = (("last_value", "int8"), ("is_called", "bool"), ("page_lsn", "text"))
    yield SetFunction(SEQUENCE_DATA, ("regclass",), state, _sequence_data, wants_context=True)
    # No table is a partition here.
    yield one_column("pg_partition_ancestors", "regclass -> regclass", lambda table: ())
    member = (("relid", "regclass"), ("parentrelid", "regclass"), ("isleaf", "bool"), ("level", "int4"))
    yield SetFunction("pg_partition_tree", ("regclass",), member, lambda table: ())


def _options(options: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    for each in options:
        name, equals, value = each.partition("=")
        yield name, value if equals else None


def _sequence_data(context: Context, relation: Reg) -> Iterator[Datum]:
    yield asking(SEQUENCE_DATA)(context, relation)
