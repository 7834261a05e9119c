"""How a query reads its tables: conditions moved down, indexes chosen, joins arranged, columns left out.

    with_access(query)      the same query, faster; what it answers is the same

Each step is a function from plan to plan, and correct by itself:

    exists_joined     EXISTS (...) that asks for outer values in its conditions only: a join
    pushed            conditions down to the scans and joins
    arranged          an index for each scan; joins in a good order, small ones by lookups
    ordered           sorts that an index makes needless; scans backwards
    whole             only the columns that are needed

Everything is decided from the query and the descriptors alone, without figures about the data: so a
plan can be kept as long as the lease it was made under.

Invariant (access-same): `with_access(query)` gives the rows that `query` gives.

Walk: the session plans with this after `sql.bind`, and then compiles with `sql.rows`.
"""

from dataclasses import replace
from itertools import count

from tenure.sql.access_columns import whole
from tenure.sql.access_filters import pushed
from tenure.sql.access_joins import NewGiven, arranged, exists_joined
from tenure.sql.access_order import ordered
from tenure.sql.plan import Plan, Query
from tenure.sql.plan_facts import is_bounded, is_point_query

__all__ = ["is_bounded", "is_point_query", "with_access"]


def with_access(query: Query) -> Query:
    numbers = count(max(query.givens, len(query.parameters)))
    nested = tuple(replace(each, plan=_planned(each.plan, query, numbers.__next__)) for each in query.nested)
    shared = tuple(_planned(each, query, numbers.__next__) for each in query.shared)
    plan = _planned(query.plan, query, numbers.__next__)
    return replace(query, plan=plan, nested=nested, shared=shared, givens=next(numbers))


def _planned(plan: Plan, query: Query, new_given: NewGiven) -> Plan:
    plan = pushed(exists_joined(plan, query))
    return whole(ordered(arranged(plan, new_given)))
