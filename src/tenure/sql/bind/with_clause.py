"""WITH: queries that have a name for the statement below them.

A WITH query that is read several times, or is MATERIALIZED, runs once and is shared (`plan.Shared`). Any
other one is put in the place of its reference. So is one that uses outer values, since it has no single
result to share.

    WITH RECURSIVE t AS (start UNION ALL step that reads t)    Recursive(start, step), Working in step

Walk: `sql.bind.select` declares them before FROM; `sql.bind.from_clause` asks for a `reference`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tenure.base.errors import (
    DatatypeMismatch,
    DuplicateAlias,
    InvalidColumnReference,
    NotSupported,
    SyntaxFault,
    WrongRecursion,
)
from tenure.sql.bind import set_operations as bind_sets
from tenure.sql.bind.binding import Binding
from tenure.sql.bind.locations import location_of
from tenure.sql.bind.renaming import renamed
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.plans.plan import OutputColumn, Plan, Recursive, Shared, Working
from tenure.sql.text.parse import Tree, child, has, items, kind, names, option, unwrap


@dataclass
class Cte:
    name: str
    plan: Plan
    """The plan that a reference is replaced by."""
    check: Callable[[int], None] | None = None
    """Called with the place of each reference."""
    levels: int = 0
    """How many SELECTs each reference adds; none if all references share one plan."""

    def reference(self, location: int, level: QueryLevel) -> Plan:
        if self.check is not None:
            self.check(location)
        if self.levels:
            level.grow(self.levels)
        return self.plan


def declare(tree: Tree, level: QueryLevel, statement: Tree | None = None) -> None:
    """Puts the queries of a WithClause in sight of a level; `statement` is what it stands in front of."""
    queries = items(tree.ctes)
    level.later_ctes = set()
    for each in queries:
        if each.ctename in level.later_ctes:
            raise DuplicateAlias(
                f'WITH query name "{each.ctename}" specified more than once', position=each.location + 1
            )
        level.later_ctes.add(each.ctename)
    reads = _names_read(statement or level.binding.root)
    inside = {each.ctename: _names_read(each.ctequery) for each in queries} if tree.recursive else {}
    for each in _in_order(queries, inside) if tree.recursive else queries:
        is_recursive = tree.recursive and inside[each.ctename][each.ctename] > 0
        level.later_ctes.discard(each.ctename)
        is_read_often = reads[each.ctename] > 1
        level.ctes[each.ctename] = (
            _recursive(each, level) if is_recursive else _plain(each, level, is_read_often=is_read_often)
        )


def _in_order(queries: list[Tree], inside: Mapping[str, Mapping[str, int]]) -> list[Tree]:
    """Under RECURSIVE a query may read one that comes after it."""
    ordered: list[Tree] = []
    waiting = {each.ctename: each for each in queries}
    while waiting:
        ready = [
            each
            for name, each in waiting.items()
            if not any(other in waiting and other != name for other in inside[name])
        ]
        if not ready:
            first = next(iter(waiting.values()))
            raise NotSupported(
                "mutual recursion between WITH items is not implemented", position=first.location + 1
            )
        ordered += ready
        for each in ready:
            del waiting[each.ctename]
    return ordered


def _names_read(tree: Tree) -> Counter[str]:
    """How often FROM has each bare name; a query inside that has its own meaning for one counts too."""
    found: Counter[str] = Counter()
    waiting = [tree]
    while waiting:
        message = waiting.pop()
        if message.DESCRIPTOR.name == "RangeVar":
            if not message.schemaname:
                found[message.relname] += 1
            continue
        for descriptor, value in message.ListFields():
            if descriptor.message_type is not None:
                waiting.extend(value if descriptor.is_repeated else (value,))
    return found


def _checked_query(tree: Tree) -> Tree:
    query = child(tree, "ctequery")
    if kind(query) != "SelectStmt":
        raise NotSupported("data-modifying statements in WITH are not supported", position=tree.location + 1)
    for field in ("search_clause", "cycle_clause"):
        if has(tree, field):
            raise NotSupported("SEARCH and CYCLE are not supported", position=tree.location + 1)
    return query


def _plain(tree: Tree, level: QueryLevel, *, is_read_often: bool) -> Cte:
    binding = level.binding
    query = _checked_query(tree)
    before = binding.levels
    plan = _titled(binding.query(query, QueryLevel(binding, level.names, parent=level)), tree)
    how = option(tree, "ctematerialized")
    is_shared = how.endswith("Always") or (is_read_often and not how.endswith("Never"))
    if not is_shared or binding.outer_values_in(plan, level):
        return Cte(tree.ctename, plan, levels=binding.levels - before)
    binding.shared.append(plan)
    return Cte(tree.ctename, Shared(plan.outputs, len(binding.shared) - 1))


def _titled(plan: Plan, tree: Tree) -> Plan:
    columns = names(tree.aliascolnames)
    if len(columns) > len(plan.outputs):
        raise InvalidColumnReference(
            f'WITH query "{tree.ctename}" has {len(plan.outputs)} columns available '
            f"but {len(columns)} columns specified",
            position=tree.location + 1,
        )
    return renamed(plan, columns)


def _recursive(tree: Tree, level: QueryLevel) -> Cte:
    binding = level.binding
    query = _checked_query(tree)
    _check_form(tree, query)
    before = binding.levels
    number, binding.next_recursion = binding.next_recursion, binding.next_recursion + 1
    inner = QueryLevel(binding, level.names, parent=level)
    inner.ctes[tree.ctename] = Cte(tree.ctename, Working((), number), _refusing(tree.ctename))
    start = _titled(binding.query(query.larg, inner), tree)
    places = binding.places
    outputs = tuple(OutputColumn(each.name, each.type) for each in start.outputs)
    inner.ctes[tree.ctename] = Cte(
        tree.ctename, Working(outputs, number), _once(tree.ctename, number, binding)
    )
    step = binding.query(query.rarg, QueryLevel(binding, level.names, parent=inner), keeps_unknown=True)
    step = _matched(tree.ctename, outputs, step, places, binding.places)
    plan: Plan = Recursive(outputs, number, start, step, query.all)
    if binding.outer_values_in(plan, level):
        return Cte(tree.ctename, plan, levels=binding.levels - before)
    binding.shared.append(plan)
    return Cte(tree.ctename, Shared(outputs, len(binding.shared) - 1))


def _check_form(tree: Tree, query: Tree) -> None:
    if option(query, "op") != "SETOP_UNION":
        raise WrongRecursion(
            f'recursive query "{tree.ctename}" does not have the form non-recursive-term UNION [ALL] '
            "recursive-term",
            position=tree.location + 1,
        )
    for field, what in (("sort_clause", "ORDER BY"), ("locking_clause", "FOR UPDATE/SHARE")):
        if len(getattr(query, field)):
            place = unwrap(getattr(query, field)[0])
            location = location_of(place.node) if field == "sort_clause" else -1
            raise NotSupported(f"{what} in a recursive query is not implemented", position=location + 1)
    for field, what in (("limit_offset", "OFFSET"), ("limit_count", "LIMIT")):
        if has(query, field):
            location = location_of(getattr(query, field))
            raise NotSupported(f"{what} in a recursive query is not implemented", position=location + 1)
    if query.HasField("with_clause"):
        raise NotSupported("WITH inside a recursive query is not supported")


def _refusing(name: str) -> Callable[[int], None]:
    def check(location: int) -> None:
        raise WrongRecursion(
            f'recursive reference to query "{name}" must not appear within its non-recursive term',
            position=location + 1,
        )

    return check


def _once(name: str, number: int, binding: Binding[QueryLevel]) -> Callable[[int], None]:
    def check(location: int) -> None:
        if number in binding.recursions:
            raise WrongRecursion(
                f'recursive reference to query "{name}" must not appear more than once', position=location + 1
            )
        binding.recursions[number] = name, location

    return check


def _matched(
    name: str, outputs: Sequence[OutputColumn], step: Plan, places: Sequence[int], step_places: Sequence[int]
) -> Plan:
    if len(step.outputs) != len(outputs):
        raise SyntaxFault(
            "each UNION query must have the same number of columns",
            position=step_places[0] + 1 if step_places else 0,
        )
    overall = bind_sets.common_types("UNION", outputs, step.outputs, step_places)
    for at, (output, kind_overall) in enumerate(zip(outputs, overall, strict=True), 1):
        if output.type.ref != kind_overall.ref:
            raise DatatypeMismatch(
                f'recursive query "{name}" column {at} has type {output.type.sql_name} in non-recursive term '
                f"but type {kind_overall.sql_name} overall",
                hint="Cast the output of the non-recursive term to the correct type.",
                position=places[at - 1] + 1,
            )
    return bind_sets.converted(step, overall)
