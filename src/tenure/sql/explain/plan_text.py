"""Plans as text, in PostgreSQL's look: EXPLAIN and EXPLAIN ANALYZE.

    Sort
      Sort Key: name DESC
      ->  Hash Join
            Hash Cond: (id = person)
            ->  Index Scan using people_city on people
                  Index Cond: city = 'x'
                  Filter: (age > 5)
            ->  Seq Scan on orders

    lines(query, run)                       how it would run
    analyzed(query, runner, run, clock)     runs it, and says how many rows passed and how long it took
    described, measured                     the same as trees, for other formats

The time of a node includes that of the nodes below it, as in PostgreSQL. What DuckDB takes over is one
node here, and says so.

Walk: `sql.statements.show.explain` calls these; `sql.explain.node_text` writes a node,
`sql.explain.plan_json` writes trees as JSON.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tenure.expr.functions.function import Context
from tenure.sql.explain.node_text import NodeWriter
from tenure.sql.plans.free_values import nested_in
from tenure.sql.plans.plan import Plan, Query, inputs
from tenure.sql.plans.plan_facts import everything
from tenure.sql.rows.run import QueryRun, Rows
from tenure.sql.rows.runner import CompiledQuery

Clock = Callable[[], float]
"""Seconds, that only go forward."""


@dataclass(slots=True)
class NodeStatistics:
    """The measured runs and rows of a node."""

    loops: int = 0
    rows: int = 0
    seconds: float = 0.0
    is_offloaded: bool = False
    """DuckDB runs it."""
    notes: tuple[str, ...] = ()
    """Where it finds its rows."""

    def __str__(self) -> str:
        if self.is_offloaded and not self.loops:
            return " in DuckDB"
        each = self.rows / self.loops if self.loops else 0
        where = " in DuckDB" if self.is_offloaded else ""
        return f" (actual time={self.seconds * 1000:.3f} rows={each:.2f} loops={self.loops}){where}"


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A node in words, with what was measured of it."""

    title: str
    details: tuple[str, ...]
    statistics: NodeStatistics | None
    is_never_executed: bool
    """Others of its plan were."""
    inputs: tuple["PlanNode", ...]


@dataclass(frozen=True, slots=True)
class PlanTree:
    root: PlanNode
    parts: tuple[tuple[str, PlanNode], ...]
    """Plans beside it, by what they are called: CTE 1, InitPlan 2."""
    executor: str


def lines(query: Query, run: QueryRun | None = None) -> Iterator[str]:
    """How it would run now; what DuckDB would take over is marked."""
    tree = described(query, run)
    yield from _written(tree)
    if run is not None:
        yield f"Executor: {tree.executor}"


def analyzed(query: Query, runner: CompiledQuery, run: QueryRun, clock: Clock) -> Iterator[str]:
    """Runs it to the end; its rows are counted and forgotten."""
    tree = measured(query, runner, run, clock)
    yield from _written(tree)
    yield f"Executor: {tree.executor}"


def described(query: Query, run: QueryRun | None) -> PlanTree:
    """How it would run now."""
    return _tree(query, {} if run is None else _offloaded(query, run))


def measured(query: Query, runner: CompiledQuery, run: QueryRun, clock: Clock) -> PlanTree:
    """How it ran."""
    watching = _Watching(run, clock)
    for _ in runner.rows(replace(run, instead=watching.instead, watch=watching.watch)):
        pass
    return _tree(query, watching.statistics)


def _offloaded(query: Query, run: QueryRun) -> dict[int, NodeStatistics]:
    """The nodes that DuckDB would take over, by identity: the topmost of each part."""
    rendered = getattr(run.instead, "rendered", None)
    if rendered is None:
        return {}
    run = replace(run, query=query, context=_without_answers(run.context, query))
    found: dict[int, NodeStatistics] = {}
    waiting = [query.plan, *query.shared, *(each.plan for each in query.nested if not each.takes)]
    while waiting:
        plan = waiting.pop()
        if rendered(plan, run) is not None:
            found[id(plan)] = NodeStatistics(is_offloaded=True, notes=_noted(plan, run))
        else:
            waiting += inputs(plan)
    return found


def _without_answers(context: Context, query: Query) -> Context:
    """A context in which outer values and subqueries are NULL: the rendered plan does not depend on them."""
    values = [*context.context_values, *[None] * (query.givens - len(context.context_values))]
    return replace(context, context_values=values, nested=[lambda *_: None for _ in query.nested])


def _noted(plan: Plan, run: QueryRun) -> tuple[str, ...]:
    noted: Callable[[Plan, QueryRun], tuple[str, ...]] | None = getattr(run.instead, "noted", None)
    return () if noted is None else noted(plan, run)


class _Watching:
    def __init__(self, run: QueryRun, clock: Clock) -> None:
        self._run = run
        self._clock = clock
        self.statistics: dict[int, NodeStatistics] = {}
        """By the identity of the node."""
        self.instead = None if run.instead is None else self._instead

    def _instead(self, plan: Plan, run: QueryRun) -> Rows | None:
        assert self._run.instead is not None
        began = self._clock()
        rows = self._run.instead(plan, run)
        if rows is not None:
            # DuckDB does most of its work before it gives the first row.
            self._of(plan).seconds += self._clock() - began
            self._of(plan).is_offloaded = True
            self._of(plan).notes = _noted(plan, replace(run, instead=self._run.instead))
        return rows

    def watch(self, plan: Plan, rows: Rows) -> Rows:
        statistics, clock = self._of(plan), self._clock
        statistics.loops += 1
        while True:
            began = clock()
            row = next(rows, None)
            statistics.seconds += clock() - began
            if row is None:
                return
            statistics.rows += 1
            yield row

    def _of(self, plan: Plan) -> NodeStatistics:
        return self.statistics.setdefault(id(plan), NodeStatistics())


def _tree(query: Query, statistics: dict[int, NodeStatistics]) -> PlanTree:
    writer = NodeWriter(query)
    parts = [
        (f"CTE {number}", _node(plan, writer, statistics)) for number, plan in enumerate(query.shared, 1)
    ]
    used = {number for node in everything(query.plan, query) for number in nested_in(node)}
    for number, nested in enumerate(query.nested):
        if number in used:  # otherwise it has become a join
            kind = "SubPlan" if nested.takes else "InitPlan"
            parts.append((f"{kind} {number + 1}", _node(nested.plan, writer, statistics)))
    is_offloaded = any(each.is_offloaded for each in statistics.values())
    executor = "rows and DuckDB" if is_offloaded else "rows"
    return PlanTree(_node(query.plan, writer, statistics), tuple(parts), executor)


def _node(plan: Plan, writer: NodeWriter, statistics: dict[int, NodeStatistics]) -> PlanNode:
    noted = statistics.get(id(plan))
    is_analyzed = any(each.loops for each in statistics.values())
    details = (*writer.details(plan), *(noted.notes if noted else ()))
    below = {} if noted is not None and noted.is_offloaded else statistics  # DuckDB runs the nodes below
    children = tuple(_node(each, writer, below) for each in inputs(plan))
    return PlanNode(writer.title(plan), details, noted, is_analyzed and noted is None, children)


def _written(tree: PlanTree) -> Iterator[str]:
    yield from _node_lines(tree.root)
    for name, node in tree.parts:
        yield f"  {name}"
        yield from _indented(_node_lines(node), "    ->  ")


def _node_lines(node: PlanNode) -> Iterator[str]:
    never = " (never executed)" if node.is_never_executed else ""
    yield f"{node.title}{node.statistics or never}"
    yield from (f"  {line}" for line in node.details)
    for each in node.inputs:
        yield from _indented(_node_lines(each), "  ->  ")


def _indented(lines: Iterator[str], arrow: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield (arrow if number == 0 else " " * len(arrow)) + line
