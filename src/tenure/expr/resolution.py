"""Which overload is meant: PostgreSQL's rules for functions, operators and common types.

    1  the one whose argument types are those given; an untyped literal beside an operator is first
       taken to have the other side's type
    2  of those that implicit casts reach: the most exact arguments
    3  then the most arguments that are exact or of a preferred type (float8, text, timestamptz)
    4  then, for untyped literals: strings if any overload takes one, else the one category all share
    5  then, if all typed arguments are of one type: the overload that takes it for the literals too

None is an error (42883), several are another (42725).

Walk: `expr.build` calls `resolve` and `common_type`.
"""

from collections.abc import Callable, Sequence

from tenure.catalog.descriptors import TypeRef, replace
from tenure.expr.arrays import ArrayOf
from tenure.expr.casts import IMPLICIT, bare, can_cast
from tenure.expr.datatype import Type
from tenure.expr.enums import EnumOf
from tenure.expr.errors import AmbiguousFunction, DatatypeMismatch, IndeterminateType, UndefinedFunction
from tenure.expr.function import Function
from tenure.expr.functions import functions_named
from tenure.expr.types import type_of

BOOL, TEXT = type_of(TypeRef("bool")), type_of(TypeRef("text"))
UNKNOWN = "unknown"
_POLYMORPHIC = ("any", "anyelement", "anynonarray", "anyarray", "anyenum")


def resolve(name: str, given: Sequence[Type]) -> tuple[Function, tuple[Type, ...]]:
    """Returns the overload and the types that the arguments have to be cast to."""
    candidates = [each for each in functions_named(name) if _arity_fits(each, len(given))]
    function = _exact(candidates, given) or _select(name, candidates, given)
    return function, _targets(function, given)


def result_type(function: Function, given: Sequence[Type]) -> Type:
    """The type of a call whose arguments have these types, which are the function's own."""
    if function.result == "anyelement":
        first = given[0]
        return first.element if isinstance(first, ArrayOf) and function.arguments[0] == "anyarray" else first
    if function.result == "anyarray":
        at = function.arguments.index("anyarray")
        return given[at]
    if function.result.endswith("[]"):
        return type_of(TypeRef(function.result[:-2], is_array=True))
    return type_of(TypeRef(function.result))


def common_type(types: Sequence[Type], what: str) -> Type:
    """The type that all of these become, in CASE, COALESCE, GREATEST, IN and ARRAY."""
    known = [each for each in types if each.family != UNKNOWN]
    if not known:
        return TEXT
    if len(known) == len(types) and all(each == known[0] for each in known):
        return known[0]
    chosen = bare(known[0])
    for each in map(bare, known[1:]):
        if each.family == chosen.family:
            continue
        if each.category != chosen.category:
            raise DatatypeMismatch(f"{what} types {chosen.sql_name} and {each.sql_name} cannot be matched")
        if not chosen.is_preferred and _reaches(chosen, each) and not _reaches(each, chosen):
            chosen = each
    for each in known:
        if not _reaches(each, chosen):
            raise CannotMatch(f"{what} could not convert type {each.sql_name} to {chosen.sql_name}")
    return chosen


class CannotMatch(DatatypeMismatch):
    sqlstate = "42846"


def _reaches(source: Type, target: Type) -> bool:
    return can_cast(source, target, IMPLICIT)


def _arity_fits(function: Function, count: int) -> bool:
    return count == len(function.arguments) or (function.is_variadic and count >= len(function.arguments))


def _parameter(function: Function, position: int) -> str:
    return function.arguments[min(position, len(function.arguments) - 1)]


def _exact(candidates: list[Function], given: Sequence[Type]) -> Function | None:
    types = list(given)
    unknown = [each.family == UNKNOWN for each in types]
    if candidates and candidates[0].is_operator and unknown in ([True, False], [False, True]):
        types = [types[unknown.index(False)]] * 2
    return next((each for each in candidates if _takes_exactly(each, types)), None)


def _takes_exactly(function: Function, types: Sequence[Type]) -> bool:
    is_alike = len({each.family for each in types}) == 1
    return all(
        parameter == kind.family
        or (is_alike and parameter == "anyarray" and isinstance(kind, ArrayOf))
        or (is_alike and parameter == "anyenum" and isinstance(kind, EnumOf))
        for parameter, kind in zip(function.arguments, types, strict=False)
    )


def _select(name: str, candidates: list[Function], given: Sequence[Type]) -> Function:
    reachable = [each for each in candidates if _is_reachable(each, given)]
    if not reachable:
        raise UndefinedFunction(f"{_described(name, given)} does not exist")
    plain = [each for each in reachable if not set(each.arguments) & set(_POLYMORPHIC)]
    reachable = _most(reachable, lambda each: _exact_count(each, given))
    reachable = _most(reachable, lambda each: _preferred_count(each, given))
    if len(reachable) > 1 and any(each.family == UNKNOWN for each in given):
        reachable = _by_category(reachable, given)
        reachable = _by_known_type(reachable, given)
    if len(reachable) > 1 and plain:
        reachable = [each for each in reachable if each in plain] or reachable
    if len(reachable) > 1:
        raise AmbiguousFunction(f"{_described(name, given)} is not unique")
    return reachable[0]


def _most(candidates: list[Function], count: Callable[[Function], int]) -> list[Function]:
    best = max(count(each) for each in candidates)
    return [each for each in candidates if count(each) == best]


def _is_reachable(function: Function, given: Sequence[Type]) -> bool:
    for position, kind in enumerate(given):
        parameter = _parameter(function, position)
        if kind.family == UNKNOWN or parameter in ("any", "anyelement"):
            continue
        if parameter == "anyarray":
            if not isinstance(kind, ArrayOf):
                return False
        elif parameter == "anyenum":
            if not isinstance(kind, EnumOf):
                return False
        elif parameter == "anynonarray":
            if isinstance(kind, ArrayOf):
                return False
        elif not _reaches(kind, _family_type(parameter)):
            return False
    return _unifies(function, given)


def _unifies(function: Function, given: Sequence[Type]) -> bool:
    try:
        _element(function, given)
    except (DatatypeMismatch, IndeterminateType):
        return False
    return True


def _family_type(family: str) -> Type:
    is_array = family.endswith("[]")
    return type_of(TypeRef(family.removesuffix("[]"), is_array=is_array))


def _exact_count(function: Function, given: Sequence[Type]) -> int:
    return sum(_parameter(function, at) == kind.family for at, kind in enumerate(given))


def _preferred_count(function: Function, given: Sequence[Type]) -> int:
    count = 0
    for at, kind in enumerate(given):
        parameter = _parameter(function, at)
        if parameter == kind.family:
            count += 1
        elif kind.family != UNKNOWN and parameter not in _POLYMORPHIC:
            target = _family_type(parameter)
            count += target.is_preferred and target.category == kind.category
    return count


def _by_category(candidates: list[Function], given: Sequence[Type]) -> list[Function]:
    """Gives each untyped literal a category, and keeps the overloads that have it there."""
    for at, kind in enumerate(given):
        if kind.family != UNKNOWN:
            continue
        parameters = [_parameter(each, at) for each in candidates]
        if any(each in _POLYMORPHIC for each in parameters):
            continue
        types = [_family_type(each) for each in parameters]
        categories = {each.category for each in types}
        if "S" in categories:
            category = "S"
        elif len(categories) == 1:
            category = categories.pop()
        else:
            continue
        kept = [one for one, each in zip(candidates, types, strict=True) if each.category == category]
        preferred = [one for one in kept if _family_type(_parameter(one, at)).is_preferred]
        candidates = preferred or kept
    return candidates


def _by_known_type(candidates: list[Function], given: Sequence[Type]) -> list[Function]:
    known = {each.family for each in given if each.family != UNKNOWN}
    if len(candidates) < 2 or len(known) != 1:
        return candidates
    family = known.pop()
    kept = [
        each
        for each in candidates
        if all(_parameter(each, at) == family for at, kind in enumerate(given) if kind.family == UNKNOWN)
    ]
    return kept if len(kept) == 1 else candidates


def _targets(function: Function, given: Sequence[Type]) -> tuple[Type, ...]:
    element = _element(function, given)
    targets: list[Type] = []
    for at, kind in enumerate(given):
        parameter = _parameter(function, at)
        if parameter in ("any", "anynonarray"):
            targets.append(TEXT if kind.family == UNKNOWN else kind)
        elif parameter == "anyarray":
            assert element is not None
            targets.append(array_of(element))
        elif parameter in ("anyelement", "anyenum"):
            assert element is not None
            targets.append(element)
        else:
            targets.append(bare(kind) if kind.family == parameter else _family_type(parameter))
    return tuple(targets)


def _element(function: Function, given: Sequence[Type]) -> Type | None:
    """What anyelement stands for in this call, and the elements of anyarray."""
    found: list[Type] = []
    is_needed = False
    for at, kind in enumerate(given):
        parameter = _parameter(function, at)
        if parameter not in ("anyelement", "anyarray", "anyenum"):
            continue
        is_needed = True
        if kind.family != UNKNOWN:
            found.append(kind.element if parameter == "anyarray" and isinstance(kind, ArrayOf) else kind)
    if not is_needed:
        return None
    if not found:
        raise IndeterminateType("could not determine polymorphic type because input has type unknown")
    chosen = common_type([bare(each) for each in found], "function")
    if {"anyenum"} & set(function.arguments) and len({each.family for each in found}) > 1:
        raise DatatypeMismatch("arguments of different enum types cannot be compared")
    return chosen


def array_of(element: Type) -> Type:
    return ArrayOf(replace(element.ref, is_array=True), element)


def _described(name: str, given: Sequence[Type]) -> str:
    types = [each.sql_name for each in map(_shown, given)]
    if name[0].isalpha():
        return f"function {name}({', '.join(types)})"
    return f"operator {' '.join([*types[:-1], name, types[-1]])}" if types else f"operator {name}"


def _shown(kind: Type) -> Type:
    return bare(kind)
