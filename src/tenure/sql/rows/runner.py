"""Plans run by Python, row by row: the reference for what a plan means.

    runner = compile(query)         once: every node an object, every expression a closure
    for row in runner.rows(run):    as often as wanted, each time with a `QueryRun` of its own

DuckDB may run a part of a plan faster (`QueryRun.instead`). Its rows must be those of this executor, value
for value, with PostgreSQL's types, NULLs, order and errors.

Invariant (rows-lazy): a row is computed when it is asked for: rows that a LIMIT or EXISTS does not need raise
no error and have no effect. Constants are evaluated before: `expr.tree.folding`.

Walk: statements call `compile` for a planned query, keep the result with the prepared statement, and run it
-> `sql.rows.scan`, `steps`, `joins`, `groups`, `windows`, `order` and `nested` make the rows.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tenure.expr.tree import compiled
from tenure.expr.tree.closures import Evaluate
from tenure.expr.tree.expressions import ColumnRef, Node
from tenure.expr.tree.folding import Fold, folds
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import EnumLookup
from tenure.sql.plans import plan as plans
from tenure.sql.plans.free_values import FreeValues
from tenure.sql.plans.plan import Plan, Query
from tenure.sql.rows.groups import AggregateRows, DistinctRows, SetOperationRows
from tenure.sql.rows.joins import JoinRows
from tenure.sql.rows.nested import CompiledSubquery, RecursiveRows, SharedRows, WorkingRows
from tenure.sql.rows.order import LimitRows, SortRows
from tenure.sql.rows.run import QueryRun, RowNode, Rows
from tenure.sql.rows.scan import FunctionScanRows, ProjectSetRows, ScanRows, ValuesRows, VirtualRows
from tenure.sql.rows.steps import FilterRows, LockRows, ProjectRows
from tenure.sql.rows.windows import WindowRows

_NODES: dict[type[Plan], Callable[[Any, "_Compiler"], RowNode]] = {
    plans.Scan: ScanRows,
    plans.Virtual: VirtualRows,
    plans.Values: ValuesRows,
    plans.FunctionScan: FunctionScanRows,
    plans.Filter: FilterRows,
    plans.Project: ProjectRows,
    plans.ProjectSet: ProjectSetRows,
    plans.Join: JoinRows,
    plans.Aggregate: AggregateRows,
    plans.Window: WindowRows,
    plans.Sort: SortRows,
    plans.Limit: LimitRows,
    plans.Distinct: DistinctRows,
    plans.SetOperation: SetOperationRows,
    plans.Recursive: RecursiveRows,
    plans.Working: WorkingRows,
    plans.Lock: LockRows,
}


def compile(query: Query, enum: EnumLookup | None = None) -> "CompiledQuery":
    """Raises as expr.check does for trees that are wrong; `enum` gives an enum's descriptor by its id."""
    constants = folds(query.constants, len(query.parameters), enum)
    return CompiledQuery(query, _Compiler(query, enum), constants)


class CompiledQuery:
    """A query, compiled. It keeps nothing of a run."""

    def __init__(self, query: Query, compiler: "_Compiler", constants: tuple[Fold, ...]) -> None:
        self.query = query
        self._constants = constants
        self._node = compiler.node(query.plan)
        self._nested = [CompiledSubquery(each, query, compiler) for each in query.nested]

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        """The run's context has the statement's parameters as its `context_values`."""
        query = self.query
        for fold in self._constants:
            fold(run.context)
        run.memory.settle()  # the intermediate values of folding are gone
        context_values = list(run.context.context_values)
        assert len(context_values) >= len(query.parameters), "a value for each parameter"
        context_values += [None] * (query.givens - len(context_values))
        nested: list[Any] = []
        run = run.of_query(query, run.context.of_query(context_values, nested), context_values)
        nested += [each.bound_to(run) for each in self._nested]
        rows = self._node.start(run, wanted)
        return _forgetting(rows, run, nested) if nested or query.shared else rows


def _forgetting(rows: Rows, run: QueryRun, nested: list[Any]) -> Rows:
    """Breaks the reference cycle between the run and its subqueries and WITH queries when the rows end."""
    try:
        yield from rows
    finally:
        nested.clear()
        for kept in run.shared.values():
            kept.let_go()
        run.shared.clear()


class _Compiler:
    def __init__(self, query: Query, enum: EnumLookup | None) -> None:
        self._query = query
        self._enum = enum
        self.free = FreeValues(query)
        self._shared: dict[int, SharedRows] = {}

    def node(self, plan: Plan) -> RowNode:
        if isinstance(plan, plans.Shared):
            if plan.number not in self._shared:
                self._shared[plan.number] = SharedRows(plan, self._query, self)
            return self._shared[plan.number]
        return _NODES[type(plan)](plan, self)

    def evaluate(self, tree: Node, types: Mapping[int, Type]) -> Evaluate:
        return compiled.compile(tree, types, self._enum)

    def type_of(self, tree: Node, types: Mapping[int, Type]) -> Type:
        if isinstance(tree, ColumnRef):
            return types[tree.column]
        return compiled.check(tree, types, self._enum)
