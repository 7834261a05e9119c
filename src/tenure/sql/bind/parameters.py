"""The parameters $1, $2 ... of a statement: declared, or given a type by where they stand.

A parameter whose type the client leaves open has the type `unknown`, until the first place that needs
one decides: in `id = $1` it is id's type. From then on it has that type everywhere.

Walk: `sql.execution.planner` makes `Parameters` once per statement; the binder asks it for each `$n`.
"""

from collections.abc import Sequence

from tenure.base.errors import InconsistentParameter, IndeterminateDatatype, UndefinedParameter
from tenure.expr.tree.build import UNKNOWN, Typed, cast, coerce, undecided
from tenure.expr.tree.expressions import ContextValue
from tenure.expr.tree.overload_resolution import TEXT
from tenure.expr.types.casts import bare
from tenure.expr.types.datatype import Type
from tenure.expr.types.system_types import RegType

PARAMETERS_MAX = 65535
"""The most that the protocol can count."""


class Parameters:
    def __init__(self, declared: Sequence[Type | None] = ()) -> None:
        self._types: list[Type | None] = list(declared)
        self._open: set[int] = set()
        """The numbers of parameters used only where any type is accepted, which does not decide their
        type."""

    def reference(self, number: int, position: int = 0) -> Typed:
        """The value of $number, counted from 1."""
        if not 1 <= number <= PARAMETERS_MAX:
            raise UndefinedParameter(f"there is no parameter ${number}", position=position)
        self._types += [None] * (number - len(self._types))
        type_so_far = self._types[number - 1]
        if type_so_far is not None:
            return Typed(ContextValue(number - 1, type_so_far.ref), type_so_far)
        return undecided(
            ContextValue(number - 1, UNKNOWN.ref),
            lambda target, context: self._decide(number, target, context, position),
        )

    def expect(self, number: int, kind: Type) -> None:
        """It is used outside of expressions, as this type unless the client says otherwise."""
        self.reference(number)
        self._types[number - 1] = self._types[number - 1] or kind

    def types(self) -> tuple[Type, ...]:
        """After binding. Raises IndeterminateDatatype (42P18) if something was left open."""
        for number, kind in enumerate(self._types, 1):
            if kind is None:
                raise IndeterminateDatatype(f"could not determine data type of parameter ${number}")
            if number in self._open:
                raise InconsistentParameter(f"could not determine data type of parameter ${number}")
        return tuple(kind for kind in self._types if kind is not None)

    def __len__(self) -> int:
        return len(self._types)

    def _decide(self, number: int, target: Type, context: str, position: int) -> Typed:
        if target.family == UNKNOWN.family:
            self._open.add(number)
            return Typed(ContextValue(number - 1, UNKNOWN.ref), UNKNOWN)
        # A name is looked up when the statement runs, not when the parameter is read.
        decided = TEXT if isinstance(target, RegType) else bare(target)
        type_so_far = self._types[number - 1]
        if type_so_far is None:
            self._types[number - 1] = decided
        elif type_so_far.ref != decided.ref:
            raise InconsistentParameter(
                f"inconsistent types deduced for parameter ${number}",
                detail=f"{type_so_far.sql_name} versus {decided.sql_name}",
                position=position,
            )
        parameter = Typed(ContextValue(number - 1, decided.ref), decided)
        return cast(parameter, target) if isinstance(target, RegType) else coerce(parameter, target, context)


class NoParameters(Parameters):
    """For stored expressions, which have no parameters: DEFAULT, CHECK, a view's query."""

    def reference(self, number: int, position: int = 0) -> Typed:
        raise UndefinedParameter(f"there is no parameter ${number}", position=position)
