"""Calls that are not functions of one row: aggregates, window functions, functions that give sets.

While the expressions of a SELECT are bound, each such call is collected, and a placeholder column far beyond
any row replaces it. When all is bound, the number of calls is known, and `sql.bind.select` moves the
placeholders to the columns that the rows of Aggregate, Window and ProjectSet have for them.

    count(*) + rank() OVER (...)   ──►   +( ColumnRef(AGGREGATE + 0), ColumnRef(WINDOW + 0) )

Walk: `sql.bind.aggregates` and `sql.bind.windows` add, `sql.bind.select` places.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef, Node, nodes
from tenure.expr.types.datatype import Type
from tenure.sql.plans.plan import AggregateCall, SetCall, WindowCall

AGGREGATE, GROUPING, WINDOW, SET = (number << 24 for number in (1, 2, 3, 4))
"""Where the placeholders of each kind begin: beyond the widest row."""


class SetUse(NamedTuple):
    call: SetCall
    type: Type
    depth: int
    """How many other such calls stand inside its arguments, one in the other."""
    location: int
    column: int = 0
    """Which column of the call it is, for a function with several. The columns of one call are adjacent."""


@dataclass
class Calls:
    aggregates: list[AggregateCall] = field(default_factory=list)
    groupings: list[tuple[tuple[Node, ...], tuple[int, ...]]] = field(default_factory=list)
    """The arguments of each GROUPING, and where they stand."""
    windows: list[WindowCall] = field(default_factory=list)
    sets: list[SetUse] = field(default_factory=list)
    locations: dict[int, int] = field(default_factory=dict)
    """The position of the call that a placeholder replaces."""

    def aggregate(self, call: AggregateCall, location: int) -> Typed:
        if call not in self.aggregates:
            self.aggregates.append(call)
        return self._standing_at(AGGREGATE + self.aggregates.index(call), call.type, location)

    def window(self, call: WindowCall, location: int) -> Typed:
        self.windows.append(call)
        return self._standing_at(WINDOW + len(self.windows) - 1, call.type, location)

    def _standing_at(self, column: int, type: Type, location: int) -> Typed:
        self.locations[column] = location
        return Typed(ColumnRef(column), type)

    def set(self, call: SetCall, types: Sequence[Type], location: int) -> list[Typed]:
        """Stand-ins for the columns of a call."""
        depth = 1 + max((self.sets[each].depth for each in standing_for(SET, *call.arguments)), default=-1)
        result = []
        for column, type in enumerate(types):
            self.sets.append(SetUse(call, type, depth, location, column))
            result.append(self._standing_at(SET + len(self.sets) - 1, type, location))
        return result

    def grouping(self, keys: tuple[Node, ...], locations: tuple[int, ...]) -> int:
        self.groupings.append((keys, locations))
        return GROUPING + len(self.groupings) - 1

    def type_at(self, position: int) -> Type:
        kind, number = position >> 24 << 24, position & 0xFFFFFF
        if kind == AGGREGATE:
            return self.aggregates[number].type
        if kind == WINDOW:
            return self.windows[number].type
        return self.sets[number].type


def found_at(kind: int, calls: Calls, *trees: Node) -> int | None:
    """Where the first call of this kind in some expressions stands; None if there is none."""
    found = standing_for(kind, *trees)
    return calls.locations.get(kind + found[0], -1) if found else None


def standing_for(kind: int, *trees: Node) -> list[int]:
    """The numbers of the calls of this kind in some expressions."""
    return [
        each.column - kind
        for tree in trees
        for each in nodes(tree)
        if isinstance(each, ColumnRef) and kind <= each.column < kind + (1 << 24)
    ]
