"""How a query reads its tables: conditions moved down, indexes chosen, joins arranged, columns left out.

    with_access(query)      the same query, faster; what it answers is the same

Each step is a function from plan to plan, and correct by itself:

    aggregates_joined aggregates that are asked for by outer values: a join with groups
    exists_joined     EXISTS, IN, ANY, ALL that ask for outer values in their conditions only: joins
    pushed            conditions down to the scans and joins
    arranged          an index for each scan; joins in a good order, small ones by lookups
    ordered           sorts that an index makes needless; scans backwards
    whole             only the columns that are needed

Planning reads only the query and the descriptors, no statistics: so a plan stays valid as long as the lease
it was made under.

Invariant (access-same): `with_access(query)` gives the rows that `query` gives.

Walk: statements call `with_access` after they have bound a query, and then compile what it gives.
"""

from dataclasses import replace
from itertools import count

from tenure.expr.function_table import function_with_id
from tenure.expr.tree.expressions import Nested
from tenure.expr.tree.overload_resolution import array_of
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.datatype import Type
from tenure.sql.access.aggregate_joins import aggregates_joined
from tenure.sql.access.columns import whole
from tenure.sql.access.filters import pushed
from tenure.sql.access.joins import arranged, is_small
from tenure.sql.access.order import ordered
from tenure.sql.access.semi_joins import exists_joined
from tenure.sql.plans.free_values import FreeValues
from tenure.sql.plans.plan import Lock, NestedKind, Plan, Query, Subquery
from tenure.sql.plans.plan_facts import everything, is_bounded, is_point_query, is_volatile_plan
from tenure.sql.plans.trees import compares_as_is

__all__ = ["is_bounded", "is_point_query", "with_access"]


def with_access(query: Query) -> Query:
    return _Planning(query).planned()


class _Planning:
    """The planning of one query: its subqueries, each planned once, and numbers for new ones."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._numbers = count(max(query.givens, len(query.parameters)))
        self._nested: dict[int, Subquery] = {}
        self._arrays: dict[int, Nested] = {}

    def planned(self) -> Query:
        query = self._query
        shared = tuple(map(self._planned, query.shared))
        plan = self._planned(query.plan)
        nested = [self._subquery(number) for number in range(len(query.nested))]
        nested += [_as_array(nested[number]) for number in self._arrays]
        return replace(query, plan=plan, nested=tuple(nested), shared=shared, givens=next(self._numbers))

    def _planned(self, plan: Plan) -> Plan:
        plan = aggregates_joined(plan, self._query, self._is_few)
        plan = pushed(exists_joined(plan, self._query))
        return whole(ordered(arranged(plan, self)))

    def _is_few(self, plan: Plan) -> bool:
        return is_small(arranged(pushed(plan), self))

    def _subquery(self, number: int) -> Subquery:
        if number not in self._nested:
            inner = self._query.nested[number]
            self._nested[number] = replace(inner, plan=self._planned(inner.plan))
        return self._nested[number]

    def new_value_number(self) -> int:
        return next(self._numbers)

    def array(self, tree: Nested) -> Nested | None:
        """ARRAY(SELECT ...) for x IN (SELECT ...), if that is the same for all rows, and short."""
        number = tree.number
        if number not in self._arrays:
            inner = self._query.nested[number]
            if not _is_list(inner) or not _is_steady(inner.plan, self._query):
                return None
            if not is_small(self._subquery(number).plan):
                return None
            place = len(self._query.nested) + len(self._arrays)
            self._arrays[number] = Nested(place, (), _array_type(inner).ref)
        return self._arrays[number]


def _is_list(inner: Subquery) -> bool:
    """Whether an index can be asked for its values: x = ANY (SELECT ...), by the index's own equality."""
    if inner.kind is not NestedKind.IN or inner.takes or isinstance(inner.plan.outputs[0].type, ArrayOf):
        return False
    if len(inner.functions) > 1:
        return False
    function = function_with_id(inner.functions[0])
    return function.name == "=" and compares_as_is((function.arguments[0], function.arguments[-1]))


def _is_steady(plan: Plan, query: Query) -> bool:
    """Whether it gives the same however often it is run, and does nothing else."""
    has_lock = any(isinstance(node, Lock) for node in everything(plan, query))
    return not (has_lock or FreeValues(query).givens(plan) or is_volatile_plan(plan, query))


def _array_type(inner: Subquery) -> Type:
    return array_of(inner.plan.outputs[0].type)


def _as_array(inner: Subquery) -> Subquery:
    return Subquery(NestedKind.ARRAY, inner.plan, type=_array_type(inner))
