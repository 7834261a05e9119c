"""The definition of an aggregate: its initial state, its step for a row, its final function.

    steps = aggregate.steps(types, context)
    state = steps.start()
    for each row:  state = steps.step(state, *values)
    result = steps.finish(state)

The executor has already left out the rows that FILTER, DISTINCT and, of a strict aggregate, NULLs exclude,
and sorts the rest where the call has an ORDER BY. An ordered-set aggregate (percentile_cont) has
direct arguments first, which go to `finish` instead; its rows come sorted.

Walk: the modules of each family list theirs; `expr.aggregates.aggregate_table` gathers them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tenure.expr.functions.function import Context
from tenure.expr.types.datatype import Datum, Type


class Steps(NamedTuple):
    start: Callable[[], Any]
    step: Callable[..., Any]
    """step(state, *values) returns the state; it may be the same one, changed."""
    finish: Callable[..., Datum]
    """finish(state, *direct arguments); may be called again after more steps, as windows do."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    name: str
    arguments: tuple[str, ...]
    """As of a Function; the direct ones first."""
    result: str
    make: Callable[..., Steps]
    """make(*types), or make(context, *types) if it wants the context."""
    is_strict: bool = True
    """Rows with a NULL among the arguments that are not direct are left out."""
    is_variadic: bool = False
    direct_count: int = 0
    wants_context: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}({','.join(self.arguments)})"

    @property
    def is_ordered_set(self) -> bool:
        """Written with WITHIN GROUP (ORDER BY ...)."""
        return self.direct_count > 0 or self.name == "mode"

    def steps(self, types: Sequence[Type], context: Context) -> Steps:
        """For arguments of these types, which are those that `resolve_aggregate` asked for."""
        return self.make(context, *types) if self.wants_context else self.make(*types)


def same(value: Datum) -> Datum:
    return value


def folding(combine: Callable[[Any, Any], Any], finish: Callable[[Any], Datum] = same) -> Steps:
    """The first value, then combined with each further one; NULL without rows."""

    def step(state: Any, value: Datum) -> Any:
        return value if state is None else combine(state, value)

    return Steps(lambda: None, step, finish)
