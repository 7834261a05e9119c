"""Functions about types and names that clients call: format_type, to_regclass, enum_range.

Walk: `expr.function_table` lists these; the Context's find_object looks up what only the catalog has.
"""

from collections.abc import Callable, Iterator
from functools import partial

from tenure.base.errors import UserError
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.functions.function import Context, Function, Volatility
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.system_types import TYPE_OIDS, Reg
from tenure.expr.types.type_names import type_of

_HEADER = 4
"""PostgreSQL counts a length word into the modifiers of strings and numeric."""
_BY_OID = {
    oid: TypeRef(name, is_array=bool(is_array))
    for name, oids in TYPE_OIDS.items()
    for is_array, oid in enumerate(oids)
    if oid
}

SYNTAX_ERROR = "42601"


def functions() -> Iterator[Function]:
    stable = partial(Function, volatility=Volatility.STABLE, wants_context=True)
    yield stable("format_type", ("oid", "int4"), "text", format_type, is_strict=False)
    for kind in ("regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole"):
        yield stable(f"to_{kind}", ("text",), kind, _finder(kind))
    of_enum = partial(Function, is_strict=False, wants_types=True)
    yield of_enum("enum_first", ("anyenum",), "anyenum", _at(0))
    yield of_enum("enum_last", ("anyenum",), "anyenum", _at(-1))
    yield of_enum("enum_range", ("anyenum",), "anyarray", _range)
    yield of_enum("enum_range", ("anyenum", "anyenum"), "anyarray", _range)


def format_type(context: Context, oid: int | None, modifier: int | None) -> str | None:
    """A type's name as SQL writes it; NULL as the modifier leaves it out."""
    if oid is None:
        return None
    ref = _BY_OID.get(oid)
    if ref is None:
        return _name_of(context, oid)
    if modifier is None and ref.name == "char":
        return "character[]" if ref.is_array else "character"
    modifiers = _modifiers(ref.name, modifier) if modifier is not None and modifier >= 0 else ()
    return type_of(TypeRef(ref.name, modifiers, is_array=ref.is_array)).sql_name


def _name_of(context: Context, oid: int) -> str:
    try:
        found = context.object("regtype", oid)
    except UserError:
        return "???" if oid else "-"
    return found.name if isinstance(found, Reg) and found.name != str(oid) else "???"


def _modifiers(name: str, modifier: int) -> tuple[int, ...]:
    match name:
        case "varchar" | "char":
            return (modifier - _HEADER,)
        case "numeric":
            scale = modifier - _HEADER & 0x7FF
            return modifier - _HEADER >> 16, scale - 0x800 if scale > 0x3FF else scale
        case "time" | "timestamp" | "timestamptz":
            return (modifier,)
        case "interval":
            return (modifier & 0xFFFF,) if modifier & 0xFFFF <= 6 else ()
    return ()


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
