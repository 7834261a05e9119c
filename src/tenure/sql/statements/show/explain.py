"""EXPLAIN: how a statement would run; EXPLAIN ANALYZE: how it did.

Walk: `statements.statement_table` -> `plan` -> the plan of the statement inside -> `sql.explain.plan_text`
writes it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tenure.base.errors import InvalidParameter, NotSupported, SyntaxFault
from tenure.base.timestamp import to_text
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Type
from tenure.expr.types.json_values import Json
from tenure.expr.types.type_names import type_of
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Control, Result, Statement
from tenure.sql.explain.plan_json import plan_json
from tenure.sql.explain.plan_text import PlanTree, analyzed, described, lines, measured
from tenure.sql.session.answers import ResultColumn
from tenure.sql.statements.dml.queries import Select, run_of
from tenure.sql.statements.dml.writing import Insert, RowChange
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree

TEXT_PLAN = ResultColumn("QUERY PLAN", type_of(TypeRef("text")))
JSON_PLAN = ResultColumn("QUERY PLAN", type_of(TypeRef("json")))
FLAGS = (
    "analyze",
    "verbose",
    "costs",
    "buffers",
    "timing",
    "summary",
    "settings",
    "wal",
    "memory",
    "generic_plan",
)
"""Options of PostgreSQL's; all but analyze and summary change nothing here."""
FORMATS = ("text", "json")
OTHER_FORMATS = ("xml", "yaml")
OF_ANALYZE = ("timing", "wal", "serialize")
"""Options that need ANALYZE, if they are on."""


@dataclass(frozen=True, slots=True)
class Explain:
    inner: Statement
    is_analyze: bool
    is_json: bool
    has_summary: bool
    parameters: tuple[Type, ...]
    is_short: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return (JSON_PLAN if self.is_json else TEXT_PLAN,)

    def run(self, execution: Execution) -> Result:
        if self.is_json:
            return Result("EXPLAIN", iter([(Json(json.dumps([self._json(execution)], indent=2)),)]))
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
        if self.has_summary:
            yield f"Execution Time: {(monotonic() - began) * 1000:.3f} ms"

    def _json(self, execution: Execution) -> dict[str, Any]:
        monotonic = execution.session.env.monotonic
        began = monotonic()
        tree = self._tree(execution)
        found: dict[str, Any] = {}
        if isinstance(self.inner, Select):
            assert tree is not None
            found["Plan"] = plan_json(tree)
        else:
            found["Plan"] = self._change(execution, tree)
        found["Executor"] = "rows" if tree is None else tree.executor
        key, _, value = _lease(execution).partition(": ")
        found[key] = value
        if self.is_analyze and self.has_summary:
            found["Execution Time"] = round((monotonic() - began) * 1000, 3)
        return found

    def _tree(self, execution: Execution) -> PlanTree | None:
        """The plan of the rows that it reads."""
        inner = self.inner
        if isinstance(inner, Select) and self.is_analyze and not inner.locks:
            run = run_of(execution, inner.query)
            return measured(inner.query, inner.runner, run, execution.session.env.monotonic)
        if isinstance(inner, Select):
            run = run_of(execution, None if inner.is_bounded else inner.query)
            return described(inner.query, run)
        return described(inner.source.query, run_of(execution)) if isinstance(inner, RowChange) else None

    def _change(self, execution: Execution, tree: PlanTree | None) -> dict[str, Any]:
        assert isinstance(self.inner, Insert | RowChange)
        verb = "Insert" if isinstance(self.inner, Insert) else self.inner.verb.capitalize()
        node: dict[str, Any] = {
            "Node Type": "ModifyTable",
            "Operation": verb,
            "Relation Name": self.inner.table.name,
        }
        if self.is_analyze:
            node["Actual Rows"] = float(sum(1 for _ in self.inner.run(execution).rows or ()))
            node["Actual Loops"] = 1
        return node if tree is None else node | {"Plans": [plan_json(tree)]}


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
        if name not in (*FLAGS, "format", "serialize"):
            raise SyntaxFault(f'unrecognized EXPLAIN option "{name}"')
    on = {name: _is_on(name, each) for name, each in options.items() if name in FLAGS}
    if "serialize" in options:
        on["serialize"] = _word(options["serialize"]) != "none"
    is_analyze = on.get("analyze", False)
    for name in OF_ANALYZE:
        if on.get(name) and not is_analyze:
            raise InvalidParameter(f"EXPLAIN option {name.upper()} requires ANALYZE")
    format = _format(options.get("format"))
    inner = planner.plan(parse.child(tree, "query"))
    if isinstance(inner, Control) or not isinstance(inner, Select | Insert | RowChange):
        raise NotSupported("EXPLAIN of this statement is not supported")
    return Explain(inner, is_analyze, format == "json", on.get("summary", True), inner.parameters)


def _format(option: Tree | None) -> str:
    name = "text" if option is None else _word(option)
    if name in OTHER_FORMATS:
        raise NotSupported("EXPLAIN is written as text or JSON only")
    if name not in FORMATS:
        raise InvalidParameter(f'unrecognized value for EXPLAIN option "format": "{name}"')
    return name


def _word(option: Tree) -> str:
    value = parse.child(option, "arg")
    return "" if value is None else str(value.sval)


_BOOLEANS = {"": True, "true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def _is_on(name: str, option: Tree) -> bool:
    value = parse.child(option, "arg")
    if value is None:
        return True
    text = str(value.ival) if parse.kind(value) == "Integer" else str(getattr(value, "sval", "?")).lower()
    if text not in _BOOLEANS:
        raise SyntaxFault(f"{name} requires a Boolean value")
    return _BOOLEANS[text]
