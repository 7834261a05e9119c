"""Nodes that pass rows on one by one: Filter, Project, Lock.

A Project of plain columns is one `itemgetter`; one that changes nothing is not there at all.

Walk: `sql.rows.runner` makes these.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from tenure.expr.functions.function import Context
from tenure.expr.tree.expressions import ColumnRef, Node
from tenure.expr.types.datatype import Type
from tenure.sql.plans.plan import Filter, Lock, Project
from tenure.sql.rows.run import Compiler, QueryRun, RowNode, Rows, Tuple, types_of

Make: TypeAlias = Callable[[Tuple, Context], Tuple]


class FilterRows(RowNode):
    def __init__(self, plan: Filter, compiler: Compiler) -> None:
        self.plan: Filter = plan
        self._input = compiler.node(plan.input)
        self._condition = compiler.evaluate(plan.condition, types_of(plan.input.outputs))

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        condition, context = self._condition, run.context
        return (row for row in self._input.start(run, wanted) if condition(row, context) is True)


class ProjectRows(RowNode):
    def __init__(self, plan: Project, compiler: Compiler) -> None:
        self.plan: Project = plan
        self._input = compiler.node(plan.input)
        types = types_of(plan.input.outputs)
        self._columns = plain_columns(plan.expressions)
        self._is_same = self._columns == tuple(range(len(plan.input.outputs)))
        self._make = make_tuple(plan.expressions, types, compiler)

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        rows = self._input.start(run, wanted)
        if self._is_same:
            return rows
        if self._columns is not None and len(self._columns) > 1:
            return map(itemgetter(*self._columns), rows)
        make, context = self._make, run.context
        return (make(row, context) for row in rows)


def plain_columns(nodes: Sequence[Node]) -> tuple[int, ...] | None:
    """The positions, if these are nothing but columns."""
    positions = tuple(node.column for node in nodes if isinstance(node, ColumnRef))
    return positions if len(positions) == len(nodes) else None


def make_tuple(nodes: Sequence[Node], types: Mapping[int, Type], compiler: Compiler) -> Make:
    evaluates = [compiler.evaluate(node, types) for node in nodes]
    if len(evaluates) == 1:
        (only,) = evaluates
        return lambda row, context: (only(row, context),)
    if len(evaluates) == 2:
        first, second = evaluates
        return lambda row, context: (first(row, context), second(row, context))
    if len(evaluates) == 3:
        one, two, three = evaluates
        return lambda row, context: (one(row, context), two(row, context), three(row, context))
    return lambda row, context: tuple([each(row, context) for each in evaluates])


class LockRows(RowNode):
    def __init__(self, plan: Lock, compiler: Compiler) -> None:
        self.plan: Lock = plan
        self._input = compiler.node(plan.input)

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        lock, plan = run.lock, self.plan
        assert lock is not None, "a run without locks"
        for row in self._input.start(run, wanted):
            if lock(plan, row):
                yield row
