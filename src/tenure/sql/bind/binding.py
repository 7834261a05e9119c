"""The state that all levels of a statement share while it is bound: its parameters and its subqueries.

Queries hold expressions and expressions hold queries, so the functions that bind them call each other. They
do so through `Binding`, which `sql.bind.binder` puts together. It keeps levels without looking into them: `L`
is `sql.bind.scope.QueryLevel`, which has its `Binding`.

Walk: `sql.bind.binder` makes one per statement; `sql.bind.scope` gives it to each level.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from tenure.base.errors import WrongRecursion
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ContextValue, nodes
from tenure.sql.bind.parameters import Parameters
from tenure.sql.plans.constant_errors import constants
from tenure.sql.plans.plan import Plan, Query, Recursive, Subquery, Working, expressions, walk
from tenure.sql.text.parse import Tree


class Level(Protocol):
    def ancestors(self) -> Iterable["Level"]:
        """Itself and the levels outside it."""
        ...


L = TypeVar("L", bound=Level)


@dataclass(eq=False)
class Binding(Generic[L]):
    parameters: Parameters
    expression: Callable[[Tree, L], Typed]
    """Binds an expression at a level."""
    query: Callable[..., Plan]
    """Binds a SelectStmt below a level: `sql.bind.select.bind`."""
    root: Tree
    """The whole statement."""
    levels: int = 0
    """How many SELECTs the plan contains, counting each reference to one."""
    nested: list[Subquery] = field(default_factory=list)
    shared: list[Plan] = field(default_factory=list)
    origins: dict[int, tuple[L, int]] = field(default_factory=dict)
    """For each context value that is no parameter: the level, and the position in the level's row."""
    next_value_number: int = -1
    next_recursion: int = 0
    recursions: dict[int, tuple[str, int]] = field(default_factory=dict)
    """For each recursive query: its name, and the position at which its recursive term reads it."""
    keys_relied_on: set[int] = field(default_factory=set)
    """The tables whose primary key lets a query select columns that it does not group by."""
    places: list[int] = field(default_factory=list)
    """Where the columns of the query that was bound last stand in the text."""

    def new_value_number(self, owner: L, position: int) -> int:
        if self.next_value_number < 0:
            self.next_value_number = max(len(self.parameters), _highest_parameter(self.root))
        number, self.next_value_number = self.next_value_number, self.next_value_number + 1
        self.origins[number] = owner, position
        return number

    def finished(self, plan: Plan) -> Query:
        types = self.parameters.types()
        folded = constants(plan, self.nested, self.shared, len(types))
        nested, shared = tuple(self.nested), tuple(self.shared)
        return Query(plan, types, max(len(types), self.next_value_number), nested, shared, folded)

    def outer_values_in(self, plan: Plan, level: L) -> list[ContextValue]:
        """The context values in a plan that come from the rows of a level, or from levels outside of it."""
        outside: set[Level] = set(level.ancestors())
        found = {each.number: each for each in givens(plan)}
        return [
            each
            for number, each in sorted(found.items())
            if number in self.origins and self.origins[number][0] in outside
        ]


def givens(plan: Plan) -> Iterator[ContextValue]:
    for part in walk(plan):
        for tree in expressions(part):
            yield from (node for node in nodes(tree) if isinstance(node, ContextValue))


def refuse_recursion(plan: Plan, binding: Binding[L], where: str) -> None:
    """Raises WrongRecursion (42P19) if a plan reads a recursive query from inside of it."""
    nodes = list(walk(plan))
    inside = {each.number for each in nodes if isinstance(each, Recursive)}
    for each in nodes:
        if isinstance(each, Working) and each.number not in inside:
            name, location = binding.recursions[each.number]
            raise WrongRecursion(
                f'recursive reference to query "{name}" must not appear within {where}', position=location + 1
            )


def _highest_parameter(tree: Tree) -> int:
    """The highest $n of a statement. Outer values are numbered after the parameters, so it is needed
    first."""
    highest = 0
    waiting = [tree]
    while waiting:
        message = waiting.pop()
        if message.DESCRIPTOR.name == "ParamRef":
            highest = max(highest, message.number)
            continue
        for descriptor, value in message.ListFields():
            if descriptor.message_type is not None:
                waiting.extend(value if descriptor.is_repeated else (value,))
    return highest
