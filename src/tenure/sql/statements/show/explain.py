"""EXPLAIN: how a statement would run; EXPLAIN ANALYZE: how it did.

Walk: `statements.statement_table` -> `plan` -> the plan of the statement inside -> `sql.explain.plan_text`
writes it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tenure.base.errors import NotSupported, SyntaxFault
from tenure.base.timestamp import to_text
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Control, Result, Statement
from tenure.sql.explain.plan_text import analyzed, lines
from tenure.sql.session.answers import ResultColumn
from tenure.sql.statements.dml.queries import Select, run_of
from tenure.sql.statements.dml.writing import Insert, RowChange
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree

ACCEPTED = ("analyze", "verbose", "costs", "buffers", "timing", "summary", "settings", "wal", "memory")
"""Options of PostgreSQL's; all but the first change nothing here."""


@dataclass(frozen=True, slots=True)
class Explain:
    inner: Statement
    is_analyze: bool
    parameters: tuple[Type, ...]
    columns: ClassVar[tuple[ResultColumn, ...]] = (ResultColumn("QUERY PLAN", type_of(TypeRef("text"))),)
    is_short: ClassVar[bool] = False

    def run(self, execution: Execution) -> Result:
        shown = list(self._analyzed(execution) if self.is_analyze else _lines(self.inner, execution))
        return Result("EXPLAIN", iter([(line,) for line in shown]))

    def _analyzed(self, execution: Execution) -> Iterator[str]:
        monotonic = execution.session.env.monotonic
        began = monotonic()
        if isinstance(self.inner, Select) and not self.inner.locks:
            execution.block.start_finding()
            run = run_of(execution, self.inner.query)
            yield from analyzed(self.inner.query, self.inner.runner, run, monotonic)
            yield _lease(execution)
        else:
            yield from _lines(self.inner, execution)
            result = self.inner.run(execution)
            count = sum(1 for _ in result.rows or ())
            counted = f" {count}" if result.counts else ""
            yield f"Actual: {result.tag}{counted}{f', {count} rows' if result.rows is not None else ''}"
        yield f"Execution Time: {(monotonic() - began) * 1000:.3f} ms"


def _lines(statement: Statement, execution: Execution) -> Iterator[str]:
    match statement:
        case Select():
            run = run_of(execution, None if statement.is_bounded else statement.query)
            yield from lines(statement.query, run)
        case Insert():
            yield f"Insert on {statement.table.name}"
        case RowChange():
            yield f"{statement.verb.capitalize()} on {statement.table.name}"
            run = run_of(execution)
            yield from (f"  {line}" for line in lines(statement.source.query, run))
    yield _lease(execution)


def _lease(execution: Execution) -> str:
    lease = None if execution.block.past is not None else execution.block.use.lease
    at = execution.block.read_at if lease is None else lease.at
    return f"Lease: catalog as of {to_text(at)}"


def plan(planner: Planner, tree: Tree) -> Explain:
    options = {each.defname: each for each in parse.items(tree.options)}
    for name in options:
        if name == "format":
            if parse.child(options[name], "arg").sval != "text":
                raise NotSupported("EXPLAIN is written as text only")
        elif name not in ACCEPTED:
            raise SyntaxFault(f'unrecognized EXPLAIN option "{name}"')
    inner = planner.plan(parse.child(tree, "query"))
    if isinstance(inner, Control) or not isinstance(inner, Select | Insert | RowChange):
        raise NotSupported("EXPLAIN of this statement is not supported")
    return Explain(inner, _is_on(options.get("analyze")), inner.parameters)


def _is_on(option: Tree | None) -> bool:
    if option is None:
        return False
    value = parse.child(option, "arg")
    if value is None:
        return True
    text = str(value.ival.ival) if parse.kind(value) == "A_Const" else getattr(value, "sval", "") or "true"
    return str(text).lower() not in ("false", "off", "0")
