"""Queries inside a query: subqueries of expressions, WITH, WITH RECURSIVE.

A subquery that does not depend on the row runs once. Any other one runs for each distinct set of outer
values, and caches the last few thousand results. A WITH query runs only as far as its readers go, so an
endless one under a LIMIT ends. Inside the recursive term of WITH RECURSIVE both run again in each round, if
they read its rows.

Walk: `sql.rows.runner` makes these and puts the subqueries into the expressions' Context;
`sql.rows.quantified` answers for IN, ANY and ALL.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tenure.base.errors import CardinalityViolation
from tenure.base.memory import Holding
from tenure.base.sizes import size_of
from tenure.expr.types.arrays import check_shape
from tenure.sql.plans.plan import NestedKind, Query, Recursive, Shared, Subquery, Working
from tenure.sql.plans.plan_facts import is_volatile_plan
from tenure.sql.rows.ordering import exactly, row_key
from tenure.sql.rows.quantified import quantified
from tenure.sql.rows.run import Compiler, QueryRun, RowNode, Rows, Tuple

ANSWERS_MAX = 4_096
"""Answers of a subquery that are remembered; then all are forgotten, and it starts anew."""

VALUE_BYTES = 16
"""A value's place in a list, and in a set or an array."""

Ask = Callable[..., Any]


class CompiledSubquery:
    def __init__(self, subquery: Subquery, query: Query, compiler: Compiler) -> None:
        self._subquery = subquery
        self._node = compiler.node(subquery.plan)
        self._free = sorted(compiler.free.givens(subquery.plan))
        self._workings = sorted(compiler.free.workings(subquery.plan))
        self._remembers = not self._free or not is_volatile_plan(subquery.plan, query)
        self._answer = _ANSWERS.get(subquery.kind) or quantified(subquery)

    def bound_to(self, run: QueryRun) -> Ask:
        """The function for the run's Context: called with the operands, if any, then the outer values."""
        if self._free or self._workings:
            run = replace(run, instead=None)
        subquery, node, free, context_values = self._subquery, self._node, self._free, run.context_values
        workings, rounds = self._workings, run.rounds
        operands = len(subquery.functions)
        answers: dict[Any, Any] = {}
        holding = Holding(run.memory, "answers of a subquery")

        def ask(context: object, *values: Any) -> Any:
            for number, value in zip(subquery.takes, values[operands:], strict=True):
                context_values[number] = value
            key = exactly([context_values[number] for number in free]) if free else ()
            if workings:
                key = (*key, *[rounds[number] for number in workings])
            if key in answers:
                found = answers[key]
            else:
                if len(answers) >= ANSWERS_MAX or not self._remembers:
                    answers.clear()
                    holding.give_back()
                found = self._answer(run, node, holding)
                if self._remembers:
                    answers[key] = found
            return found(*values[:operands]) if operands else found

        return ask


def _scalar(run: QueryRun, node: RowNode, holding: Holding) -> Any:
    rows = node.start(run, 2)
    first = next(rows, None)
    if first is not None and next(rows, None) is not None:
        raise CardinalityViolation("more than one row returned by a subquery used as an expression")
    if first is None:
        return None
    holding.add(first)
    return first[0]


def _exists(run: QueryRun, node: RowNode, holding: Holding) -> bool:
    return next(node.start(run, 1), None) is not None


def _array(run: QueryRun, node: RowNode, holding: Holding) -> Tuple:
    result = tuple(_charged_values(holding, node.start(run)))
    check_shape(result)
    return result


def _charged_values(holding: Holding, rows: Rows) -> Iterator[Any]:
    """The first column, charged."""
    for row in rows:
        holding.add_bytes(VALUE_BYTES + size_of(row[0]))
        yield row[0]


_ANSWERS: dict[NestedKind, Callable[[QueryRun, RowNode, Holding], Any]] = {
    NestedKind.SCALAR: _scalar,
    NestedKind.EXISTS: _exists,
    NestedKind.ARRAY: _array,
}


# ── WITH ───────────────────────────────────────────────────────────────────────────────────────


class KeptRows:
    """The rows of a WITH query that have been read, and the source of the next ones."""

    def __init__(self, run: QueryRun, rows: Rows, rounds: tuple[int, ...]) -> None:
        self.rounds = rounds
        """The rounds of the recursive queries that these rows were computed from."""
        self._rows = rows
        self._kept: list[Tuple] = []
        self._holding = Holding(run.memory, "a WITH query")

    def __iter__(self) -> Iterator[Tuple]:
        kept, place = self._kept, 0
        while True:
            while place < len(kept):
                yield kept[place]
                place += 1
            row = next(self._rows, None)
            if row is None:
                return
            kept.append(row)
            self._holding.add(row)

    def let_go(self) -> None:
        """Drops the rows: the run is over, or a later round begins."""
        self._holding.give_back()


class SharedRows(RowNode):
    def __init__(self, plan: Shared, query: Query, compiler: Compiler) -> None:
        self.plan: Shared = plan
        self._of = query.shared[plan.number]
        self._node = compiler.node(self._of)
        self._free = sorted(compiler.free.givens(self._of))
        self._workings = sorted(compiler.free.workings(self._of))

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        key = (self.plan.number, *exactly([run.context_values[number] for number in self._free]))
        rounds = tuple(run.rounds[number] for number in self._workings)
        kept = run.shared.get(key)
        if kept is None or kept.rounds != rounds:
            if kept is not None:
                kept.let_go()
            kept = run.shared[key] = KeptRows(run, self._node.start(run), rounds)
        return iter(kept)


class RecursiveRows(RowNode):
    def __init__(self, plan: Recursive, compiler: Compiler) -> None:
        self.plan: Recursive = plan
        self._start, self._step = compiler.node(plan.start), compiler.node(plan.step)
        self._key = None if plan.is_all else row_key([output.type for output in plan.outputs])

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        seen: set[Any] = set()
        with run.memory.holding("a recursion") as holding:
            rows = self._start.start(run)
            while True:
                found: list[Tuple] = []
                for row in rows:
                    if self._is_new(row, seen):
                        found.append(row)
                        holding.add(row)
                        yield row
                if not found:
                    return
                run.check()
                run.working[self.plan.number] = found
                run.rounds[self.plan.number] += 1
                rows = self._step.start(run)

    def _is_new(self, row: Tuple, seen: set[Any]) -> bool:
        if self._key is None:
            return True
        key = self._key(row)
        if key in seen:
            return False
        seen.add(key)
        return True


class WorkingRows(RowNode):
    def __init__(self, plan: Working, compiler: Compiler) -> None:
        self.plan: Working = plan

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        return iter(run.working[self.plan.number])
