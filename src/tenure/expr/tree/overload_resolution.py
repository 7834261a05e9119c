"""Which overload is meant: PostgreSQL's rules for functions, operators and common types.

    1  the one whose argument types are those given; an untyped literal beside an operator is first
       taken to have the other side's type
    2  of those that implicit casts reach: the most exact arguments
    3  then the most arguments that are exact or of a preferred type (float8, text, timestamptz)
    4  then, for untyped literals: strings if any overload takes one, else the one category all share
    5  then, if all typed arguments are of one type: the overload that takes it for the literals too

None is an error (42883), several are another (42725).

Aggregates, window functions and set-returning functions are chosen by the same rules:
everything with a `Signature` can be.

Walk: `expr.tree.build` calls `resolve` and `common_type`; `expr.aggregates.aggregate_table`,
`expr.aggregates.window_functions` and `expr.set_function_table` call `choose`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

from tenure.base.errors import (
    AmbiguousFunction,
    CannotMatch,
    DatatypeMismatch,
    NotSupported,
    UndefinedFunction,
    UndefinedObject,
    UntypedLiteral,
)
from tenure.catalog.descriptors.definitions import TypeRef, replace
from tenure.expr.function_table import functions_named
from tenure.expr.functions.function import Function
from tenure.expr.types.absent_types import CATEGORIES, Foreign, foreign_overloads
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.casts import IMPLICIT, bare, can_cast
from tenure.expr.types.datatype import Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.type_names import type_of

BOOL, TEXT = type_of(TypeRef("bool")), type_of(TypeRef("text"))
UNKNOWN = "unknown"
_STRICT, _LENIENT = ("anyarray", "anyelement", "anyenum"), ("anycompatiblearray", "anycompatible")
"""All arguments of the strict ones are of one type; those of the lenient ones become so."""
_ARRAYS = ("anyarray", "anycompatiblearray")
_POLYMORPHIC = (*_STRICT, *_LENIENT, "any", "anynonarray")


class Signature(Protocol):
    """The properties of an overload that resolution reads."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> tuple[str, ...]: ...
    @property
    def is_variadic(self) -> bool: ...


S = TypeVar("S", bound=Signature)


def resolve(name: str, argument_types: Sequence[Type]) -> tuple[Function, tuple[Type, ...]]:
    """Returns the overload and the types that the arguments have to be cast to."""
    if any(each.ref.enum for each in argument_types):
        # An enum's type belongs to one version of its descriptor, so the choice is not cached.
        return choose(name, functions_named(name), argument_types)
    return _resolved(name, tuple(each.ref for each in argument_types))


@lru_cache(maxsize=4096)
def _resolved(name: str, argument_types: tuple[TypeRef, ...]) -> tuple[Function, tuple[Type, ...]]:
    return choose(name, functions_named(name), [type_of(each) for each in argument_types])


def choose(name: str, overloads: Sequence[S], argument_types: Sequence[Type]) -> tuple[S, tuple[Type, ...]]:
    candidates = [each for each in overloads if _arity_fits(each, len(argument_types))]
    rivals: list[S | Foreign] = [*candidates, *_foreign(name, argument_types)]
    chosen = _exact(candidates, argument_types) or _select(name, rivals, argument_types)
    if isinstance(chosen, Foreign):
        kind = next(each for each in chosen.arguments if each in CATEGORIES)
        raise NotSupported(f"type {kind} is not supported")
    return chosen, _targets(chosen, argument_types)


def _foreign(name: str, argument_types: Sequence[Type]) -> list[Foreign]:
    """Overloads for types that do not exist here: a literal, or a time of day, could be meant for them."""
    if not any(each.family in (UNKNOWN, "time") for each in argument_types):
        return []
    return [each for each in foreign_overloads(name) if _arity_fits(each, len(argument_types))]


def result_type(function: Function, argument_types: Sequence[Type]) -> Type:
    """The type of a call whose arguments have these types, which are the function's own."""
    return type_named(function.result, function, argument_types)


def type_named(result: str, function: Signature, argument_types: Sequence[Type]) -> Type:
    """The type that a word of the signature stands for, given the arguments' types."""
    if result in _ARRAYS or result in ("anyelement", "anycompatible", "anyenum"):
        element = _element(function, argument_types)
        assert element is not None
        return array_of(element) if result in _ARRAYS else element
    return _family_type(result)


def common_type(types: Sequence[Type], what: str) -> Type:
    """The type that all of these become, in CASE, COALESCE, GREATEST, IN and ARRAY."""
    known_types = [each for each in types if each.family != UNKNOWN]
    if not known_types:
        return TEXT
    if len(known_types) == len(types) and all(each == known_types[0] for each in known_types):
        return known_types[0]
    chosen = bare(known_types[0])
    for each in map(bare, known_types[1:]):
        if each.family == chosen.family:
            continue
        if each.category != chosen.category:
            raise DatatypeMismatch(f"{what} types {chosen.sql_name} and {each.sql_name} cannot be matched")
        if not chosen.is_preferred and _reaches(chosen, each) and not _reaches(each, chosen):
            chosen = each
    for each in known_types:
        if not _reaches(each, chosen):
            raise CannotMatch(f"{what} could not convert type {each.sql_name} to {chosen.sql_name}")
    return chosen


def _reaches(source: Type, target: Type) -> bool:
    return can_cast(source, target, IMPLICIT)


def _arity_fits(function: Signature, count: int) -> bool:
    return count == len(function.arguments) or (function.is_variadic and count >= len(function.arguments))


def _parameter(function: Signature, position: int) -> str:
    return function.arguments[min(position, len(function.arguments) - 1)]


def _exact(candidates: list[S], argument_types: Sequence[Type]) -> S | None:
    types = list(argument_types)
    unknown = [each.family == UNKNOWN for each in types]
    if candidates and not candidates[0].name[0].isalpha() and unknown in ([True, False], [False, True]):
        types = [types[unknown.index(False)]] * 2
    return next((each for each in candidates if _takes_exactly(each, types)), None)


def _takes_exactly(function: Signature, types: Sequence[Type]) -> bool:
    is_alike = len({each.family for each in types}) == 1
    return all(
        parameter == kind.family
        or (is_alike and parameter == "anyarray" and isinstance(kind, ArrayOf))
        or (is_alike and parameter == "anyenum" and isinstance(kind, EnumOf))
        for parameter, kind in ((_parameter(function, at), kind) for at, kind in enumerate(types))
    )


def _select(name: str, candidates: list[S], argument_types: Sequence[Type]) -> S:
    reachable = [each for each in candidates if _is_reachable(each, argument_types)]
    if not reachable:
        raise _missing(name, argument_types)
    plain = [each for each in reachable if not set(each.arguments) & set(_POLYMORPHIC)]
    reachable = _most(reachable, lambda each: _exact_count(each, argument_types))
    reachable = _most(reachable, lambda each: _preferred_count(each, argument_types))
    if len(reachable) > 1 and any(each.family == UNKNOWN for each in argument_types):
        reachable = _by_category(reachable, argument_types)
        reachable = _by_typed_arguments(reachable, argument_types)
    if len(reachable) > 1 and plain:
        reachable = [each for each in reachable if each in plain] or reachable
    if len(reachable) > 1:
        raise _ambiguous(name, argument_types)
    return reachable[0]


def _most(candidates: list[S], count: Callable[[S], int]) -> list[S]:
    best = max(count(each) for each in candidates)
    return [each for each in candidates if count(each) == best]


def _is_reachable(function: Signature, argument_types: Sequence[Type]) -> bool:
    for position, kind in enumerate(argument_types):
        parameter = _parameter(function, position)
        if parameter in CATEGORIES:
            if kind.family not in (UNKNOWN, "time" if parameter == "timetz" else UNKNOWN):
                return False
        elif kind.family == UNKNOWN or parameter in ("any", "anyelement", "anycompatible"):
            continue
        elif parameter in _ARRAYS:
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
    return _unifies(function, argument_types)


def _unifies(function: Signature, argument_types: Sequence[Type]) -> bool:
    try:
        _element(function, argument_types)
    except UntypedLiteral:
        return True
    except DatatypeMismatch:
        return False
    return True


def _family_type(family: str) -> Type:
    is_array = family.endswith("[]")
    return type_of(TypeRef(family.removesuffix("[]"), is_array=is_array))


def _exact_count(function: Signature, argument_types: Sequence[Type]) -> int:
    return sum(_parameter(function, at) == kind.family for at, kind in enumerate(argument_types))


def _preferred_count(function: Signature, argument_types: Sequence[Type]) -> int:
    count = 0
    for at, kind in enumerate(argument_types):
        parameter = _parameter(function, at)
        if parameter == kind.family:
            count += 1
        elif kind.family != UNKNOWN and parameter not in _POLYMORPHIC and parameter not in CATEGORIES:
            target = _family_type(parameter)
            count += target.is_preferred and target.category == kind.category
    return count


def _by_category(candidates: list[S], argument_types: Sequence[Type]) -> list[S]:
    """Gives each untyped literal a category; keeps the overloads that have it there, and prefer it."""
    slots: dict[int, tuple[str, bool]] = {}
    for at, kind in enumerate(argument_types):
        if kind.family == UNKNOWN:
            slot = _slot([_traits(_parameter(each, at)) for each in candidates])
            if slot is None:
                return candidates
            slots[at] = slot
    return [each for each in candidates if _suits(each, slots)] or candidates


def _slot(traits: list[tuple[str, bool]]) -> tuple[str, bool] | None:
    """The category, and whether one of it is preferred: strings win, else all must agree."""
    categories = {category for category, _ in traits}
    if "S" not in categories and len(categories) > 1:
        return None
    chosen = "S" if "S" in categories else traits[0][0]
    return chosen, any(is_preferred for category, is_preferred in traits if category == chosen)


def _traits(parameter: str) -> tuple[str, bool]:
    if parameter in _POLYMORPHIC:
        return "P", False
    if parameter in CATEGORIES:
        return CATEGORIES[parameter], False
    kind = _family_type(parameter)
    return kind.category, kind.is_preferred


def _suits(function: Signature, slots: dict[int, tuple[str, bool]]) -> bool:
    for at, (category, has_preferred) in slots.items():
        own_category, is_preferred = _traits(_parameter(function, at))
        if own_category != category or (has_preferred and not is_preferred):
            return False
    return True


def _by_typed_arguments(candidates: list[S], argument_types: Sequence[Type]) -> list[S]:
    """If all typed arguments are of one type, takes the literals to be of it too."""
    known_types = {each.family: each for each in argument_types if each.family != UNKNOWN}
    if len(candidates) < 2 or len(known_types) != 1:
        return candidates
    (kind,) = known_types.values()
    kept = [each for each in candidates if _is_reachable(each, [kind] * len(argument_types))]
    return kept if len(kept) == 1 else candidates


def _targets(function: Signature, argument_types: Sequence[Type]) -> tuple[Type, ...]:
    try:
        element = _element(function, argument_types)
    except UntypedLiteral:
        # A literal without a type is taken for an element or an array, but never for an enum.
        if "anyenum" in function.arguments:
            raise _missing(function.name, argument_types) from None
        raise
    is_array_needed = {*function.arguments, getattr(function, "result", "")} & set(_ARRAYS)
    if is_array_needed and isinstance(element, ArrayOf):
        raise UndefinedObject(f"could not find array type for data type {element.sql_name}")
    targets: list[Type] = []
    for at, kind in enumerate(argument_types):
        parameter = _parameter(function, at)
        if parameter in ("any", "anynonarray"):
            is_read = kind.family == UNKNOWN and function.name != "pg_typeof"
            targets.append(TEXT if is_read else kind)
        elif parameter in _ARRAYS:
            assert element is not None
            targets.append(array_of(element))
        elif parameter in ("anyelement", "anycompatible", "anyenum"):
            assert element is not None
            targets.append(element)
        else:
            targets.append(bare(kind) if kind.family == parameter else _family_type(parameter))
    return tuple(targets)


def _element(function: Signature, argument_types: Sequence[Type]) -> Type | None:
    """The type of anyelement in this call, and of the elements of anyarray."""
    found: list[Type] = []
    is_needed = False
    for at, kind in enumerate(argument_types):
        parameter = _parameter(function, at)
        if parameter not in (*_STRICT, *_LENIENT):
            continue
        is_needed = True
        if kind.family != UNKNOWN:
            found.append(kind.element if parameter in _ARRAYS and isinstance(kind, ArrayOf) else kind)
    if not is_needed:
        return None
    if not found and not set(function.arguments) & set(_STRICT):
        return TEXT
    if not found:
        raise UntypedLiteral("could not determine polymorphic type because input has type unknown")
    if set(function.arguments) & set(_STRICT) and len({each.family for each in found}) > 1:
        raise DatatypeMismatch("arguments declared of one type are of different types")
    return common_type([bare(each) for each in found], "function")


def array_of(element: Type) -> Type:
    return ArrayOf(replace(element.ref, is_array=True), element)


def _missing(name: str, argument_types: Sequence[Type]) -> UndefinedFunction:
    what, described = _described(name, argument_types)
    return UndefinedFunction(
        f"function {described} does not exist"
        if what == "function"
        else f"operator does not exist: {described}",
        hint=_cast_hint(what, argument_types),
    )


def _cast_hint(what: str, argument_types: Sequence[Type]) -> str:
    is_one = what == "operator" and len(argument_types) == 1
    types, casts = ("type", "an explicit type cast") if is_one else ("types", "explicit type casts")
    return f"No {what} matches the given name and argument {types}. You might need to add {casts}."


def _ambiguous(name: str, argument_types: Sequence[Type]) -> AmbiguousFunction:
    what, described = _described(name, argument_types)
    return AmbiguousFunction(
        f"function {described} is not unique"
        if what == "function"
        else f"operator is not unique: {described}",
        hint=f"Could not choose a best candidate {what}. You might need to add explicit type casts.",
    )


def _described(name: str, argument_types: Sequence[Type]) -> tuple[str, str]:
    types = [bare(each).sql_name for each in argument_types]
    if name[0].isalpha() or name[0] == "_":
        return "function", f"{name}({', '.join(types)})"
    return "operator", " ".join([*types[:-1], name, *types[-1:]])
