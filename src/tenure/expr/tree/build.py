"""Trees made by hand: overloads resolved, casts written out, untyped literals read.

    price = column(3, type_of(TypeRef("numeric")))
    call(">", price, literal("0")).node

A part is a `Typed`: a node and its type. The binder of SQL makes its trees with the same functions,
so a test and a statement get the same tree for the same words.

Walk: `sql.bind.binder` and tests call these; these call `expr.tree.overload_resolution` and
`expr.types.casts`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tenure.base.errors import CannotCast, DatatypeMismatch, UndefinedFunction, UserError, WrongObjectType
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.function_table import functions_named
from tenure.expr.tree.expressions import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Const,
    ContextValue,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    MakeArray,
    Node,
    Not,
    NullIf,
    Or,
    Quantified,
)
from tenure.expr.tree.overload_resolution import BOOL, Signature, array_of, common_type, resolve, result_type
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.casts import (
    ASSIGNMENT,
    EXPLICIT,
    IMPLICIT,
    asks_catalog,
    bare,
    can_cast,
    cast_function,
    is_fixed,
    zoned_cast,
)
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.strings import UnknownType
from tenure.expr.types.type_names import is_type_name, type_of

UNKNOWN = type_of(TypeRef("unknown"))


class Typed(NamedTuple):
    node: Node
    type: Type


@dataclass(frozen=True, eq=False)
class Undecided(UnknownType):
    """An operand whose type follows from its context: a parameter, or a literal that knows its position."""

    decide: Callable[[Type, str], Typed]
    """Called with the type and the context of the cast."""

    __eq__, __hash__ = object.__eq__, object.__hash__


def undecided(node: Node, decide: Callable[[Type, str], Typed]) -> Typed:
    return Typed(node, Undecided(UNKNOWN.ref, decide))


def column(id: int, type: Type) -> Typed:
    return Typed(ColumnRef(id), type)


def const(value: Datum, type: Type) -> Typed:
    return Typed(Const(type.ref, type.pack(value)), type)


def literal(text: str | None) -> Typed:
    """A literal in quotes, or NULL: its type follows from where it stands."""
    return Typed(Const(UNKNOWN.ref, text), UNKNOWN)


def call(name: str, *arguments: Typed) -> Typed:
    """A function or operator by name; a type's name with one argument is a cast, as in int4('7').

    Raises UndefinedFunction (42883), AmbiguousFunction (42725).
    """
    if len(arguments) == 1 and is_type_name(name) and not functions_named(name):
        return cast(arguments[0], type_of(TypeRef(name)))
    function, targets = resolve(name, [each.type for each in arguments])
    if function.id in JOINS_OF_ANY:
        arguments = tuple(_as_fixed_text(each) for each in arguments)
        function, targets = resolve(name, [each.type for each in arguments])
    cast_arguments = with_casts(function, arguments, targets)
    kind = result_type(function, [each.type for each in cast_arguments])
    return Typed(Call(function.id, tuple(each.node for each in cast_arguments)), kind)


JOINS_OF_ANY = ("||(text,anynonarray)", "||(anynonarray,text)")
FIXED_TEXT = ("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "uuid")
"""Types whose text does not depend on the session's settings."""


def _as_fixed_text(operand: Typed) -> Typed:
    """The text of an operand of ||. With the cast written out, `n || ' sec'` depends on the row alone, as the
    expressions of generated columns must."""
    is_fixed = operand.type.family in FIXED_TEXT and not operand.type.ref.is_array
    return cast(operand, type_of(TypeRef("text"))) if is_fixed else operand


def with_casts(function: Signature, arguments: Sequence[Typed], targets: Sequence[Type]) -> list[Typed]:
    """The arguments cast to the function's types. A parameter of type "any" does not give its argument a
    type."""
    operands = []
    for at, (each, target) in enumerate(zip(arguments, targets, strict=True)):
        takes_any = function.arguments[min(at, len(function.arguments) - 1)] in ("any", "anynonarray")
        is_open = takes_any and isinstance(each.type, Undecided) and isinstance(each.node, ContextValue)
        operands.append(each.type.decide(UNKNOWN, IMPLICIT) if is_open else coerce(each, target))  # type: ignore[attr-defined]
    return operands


def call_named(name: str, positional: Sequence[Typed], named: Mapping[str, Typed]) -> Typed:
    """A call with some arguments given by name; those left out have the function's default."""
    for function in functions_named(name):
        rest = function.names[len(positional) :]
        if function.default is not None and set(named) <= set(rest):
            rest_values = [named.get(each) or literal(function.default) for each in rest]
            return call(name, *positional, *rest_values)
    raise UndefinedFunction(f"function {name} does not exist with the arguments {', '.join(named)}")


def coerce(operand: Typed, target: Type, context: str = IMPLICIT) -> Typed:
    """Casts unless it is of the type already; a constant without a type is read at once."""
    if operand.type.ref == target.ref:
        return operand
    if isinstance(operand.type, Undecided):
        return operand.type.decide(target, context)
    if isinstance(operand.node, Const) and operand.type.family == "unknown":
        return read(operand.node, target, context)
    if operand.type.family == target.family and not target.ref.modifiers:
        return Typed(operand.node, operand.type if context == IMPLICIT else target)
    if not can_cast(operand.type, target, context):
        raise _refusal(operand.type, target, context)
    if isinstance(operand.node, Const) and context == IMPLICIT:
        return _folded(operand, operand.node, target)
    return Typed(Cast(operand.node, target.ref, context), target)


def read(node: Const, target: Type, context: str = IMPLICIT) -> Typed:
    """The value of an untyped constant, read as this type."""
    if node.packed is None:
        return const(None, target)
    if not is_fixed(node.packed, target):
        return Typed(Cast(node, target.ref, context), target)
    convert = cast_function(UNKNOWN, target, context)
    return const(node.packed if convert is None else convert(node.packed), target)


def _folded(operand: Typed, node: Const, target: Type) -> Typed:
    """Casts a constant at once. One that cannot be cast keeps its cast, and fails only if it is evaluated."""
    if asks_catalog(operand.type, target) or zoned_cast(operand.type, target, IMPLICIT) is not None:
        return Typed(Cast(node, target.ref, IMPLICIT), target)
    convert = cast_function(operand.type, target, IMPLICIT)
    value = operand.type.unpack(node.packed)
    try:
        return const(value if value is None or convert is None else convert(value), target)
    except UserError:
        return Typed(Cast(node, target.ref, IMPLICIT), target)


def _refusal(source: Type, target: Type, context: str) -> Exception:
    if context == ASSIGNMENT:
        return DatatypeMismatch(
            f"a value of type {source.sql_name} cannot be assigned to type {target.sql_name}",
            hint="You will need to rewrite or cast the expression.",
        )
    return CannotCast(f"cannot cast type {bare(source).sql_name} to {bare(target).sql_name}")


def cast(operand: Typed, target: Type) -> Typed:
    return coerce(operand, target, EXPLICIT)


def assign(operand: Typed, target: Type) -> Typed:
    """As the value of a column of this type."""
    return coerce(operand, target, ASSIGNMENT)


def condition(operand: Typed, what: str = "argument of AND") -> Node:
    if operand.type.family not in ("bool", "unknown"):
        raise DatatypeMismatch(f"{what} must be type boolean, not type {operand.type.sql_name}")
    return coerce(operand, BOOL).node


def conjunction(*operands: Typed) -> Typed:
    return Typed(And(tuple(condition(each, "argument of AND") for each in operands)), BOOL)


def disjunction(*operands: Typed) -> Typed:
    return Typed(Or(tuple(condition(each, "argument of OR") for each in operands)), BOOL)


def negation(operand: Typed) -> Typed:
    return Typed(Not(condition(operand, "argument of NOT")), BOOL)


def is_null(operand: Typed, *, is_negated: bool = False) -> Typed:
    return Typed(IsNull(operand.node, is_negated), BOOL)


def is_truth(operand: Typed, truth: bool | None, *, is_negated: bool = False) -> Typed:
    return Typed(IsTruth(condition(operand, "argument of IS"), truth, is_negated), BOOL)


def is_distinct(left: Typed, right: Typed, *, is_negated: bool = False) -> Typed:
    equal = _comparison("=", left, right)
    first, second = equal.arguments
    return Typed(IsDistinct(equal.function, first, second, is_negated), BOOL)


def case(branches: Sequence[tuple[Typed, Typed]], otherwise: Typed | None = None) -> Typed:
    # The order decides which types a mismatch names: ELSE counts first, as in PostgreSQL.
    results = [*([otherwise] if otherwise else []), *(then for _, then in branches)]
    kind = common_type([each.type for each in results], "CASE")
    pairs = tuple((condition(when, "argument of WHEN"), coerce(then, kind).node) for when, then in branches)
    return Typed(Case(pairs, coerce(otherwise, kind).node if otherwise else None), kind)


def coalesce(*operands: Typed) -> Typed:
    kind = common_type([each.type for each in operands], "COALESCE")
    return Typed(Coalesce(tuple(coerce(each, kind).node for each in operands)), kind)


def nullif(left: Typed, right: Typed) -> Typed:
    """The first operand, cast as the comparison needs it: a varchar to text, an int2 beside a numeric to
    numeric."""
    equal = _comparison("=", left, right)
    first, second = equal.arguments
    compared_type = resolve("=", [left.type, right.type])[1][0]
    if compared_type.family == left.type.family:
        return Typed(NullIf(equal.function, first, second, left.node), left.type)
    return Typed(NullIf(equal.function, first, second, first), compared_type)


def greatest(*operands: Typed) -> Typed:
    return _extreme(operands, is_greatest=True)


def least(*operands: Typed) -> Typed:
    return _extreme(operands, is_greatest=False)


def _extreme(operands: Sequence[Typed], *, is_greatest: bool) -> Typed:
    kind = common_type([each.type for each in operands], "GREATEST" if is_greatest else "LEAST")
    if not kind.has_order:
        raise UndefinedFunction(f"could not identify a comparison function for type {kind.sql_name}")
    return Typed(Extreme(tuple(coerce(each, kind).node for each in operands), is_greatest), kind)


def in_list(operand: Typed, *items: Typed, is_negated: bool = False) -> Typed:
    """operand IN (items): all sides get one type. Raises DatatypeMismatch if there is none."""
    kind = common_type([operand.type, *(each.type for each in items)], "IN")
    left, first = coerce(operand, kind), coerce(items[0], kind)
    equal = _comparison("=", left, first)
    # Lists can be very long: items of the first item's type share its overload.
    is_as_it_is = equal.arguments[1] is first.node
    converted_items = [
        each.node if is_as_it_is and each.type == first.type else _comparison("=", left, each).arguments[1]
        for each in (coerce(item, kind) for item in items)
    ]
    return Typed(InList(equal.function, equal.arguments[0], tuple(converted_items), is_negated), BOOL)


def quantified(name: str, operand: Typed, array: Typed, *, is_all: bool = False) -> Typed:
    """operand op ANY (array), or ALL."""
    if array.type.family == "unknown":
        element: Type = UNKNOWN
    elif isinstance(array.type, ArrayOf):
        element = array.type.element
    else:
        raise WrongObjectType("op ANY/ALL (array) requires array on right side")
    function, (left, right) = resolve(name, [operand.type, element])
    cast_array = coerce(array, array_of(right))
    return Typed(Quantified(function.id, coerce(operand, left).node, cast_array.node, is_all), BOOL)


def make_array(*elements: Typed) -> Typed:
    """ARRAY[...]; of arrays, one more dimension."""
    kind = common_type([each.type for each in elements], "ARRAY")
    nodes = tuple(coerce(each, kind).node for each in elements)
    array = kind if isinstance(kind, ArrayOf) else array_of(kind)
    return Typed(MakeArray(array.ref, nodes), array)


def _comparison(name: str, left: Typed, right: Typed) -> Call:
    node = call(name, left, right).node
    assert isinstance(node, Call)
    return node
