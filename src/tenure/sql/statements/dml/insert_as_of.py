"""INSERT ... SELECT ... AS OF SYSTEM TIME: rows of the past, written now. It is how a DELETE is undone.

    INSERT INTO t SELECT * FROM t AS OF SYSTEM TIME '-10m' ON CONFLICT DO NOTHING

The query is read as of the moment; the table that is written, ON CONFLICT and RETURNING are of the present.
Both are planned when the statement runs: the moment moves, and either catalog may have changed since the
statement was prepared.

Walk: `statements.statement_table` -> `plan`; `InsertAsOf.run` -> `statements.dml.writes.plan_insert` with a
block of the past.
"""

from dataclasses import dataclass

from tenure.base.errors import PlanChanged, SyntaxFault
from tenure.expr.types.datatype import Type
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Result
from tenure.sql.session.answers import ResultColumn
from tenure.sql.statements.dml import past_blocks
from tenure.sql.statements.dml.writes import plan_insert
from tenure.sql.statements.dml.writing import Insert
from tenure.sql.text import as_of, parse
from tenure.sql.text.parse import Tree
from tenure.sql.text.tenure_statements import TokenReader


@dataclass(frozen=True, slots=True)
class InsertAsOf:
    text: str
    tree: Tree
    operand: str
    columns: tuple[ResultColumn, ...] | None
    parameters: tuple[Type, ...]
    is_upsert: bool = False
    is_short: bool = False
    is_kept: bool = False

    def run(self, execution: Execution) -> Result:
        execution.block.txn("INSERT")
        with past_blocks.reading_block(execution, self.operand) as block:
            planner = Planner(execution.session, execution.block, self.text, self.parameters)
            planner.is_upsert = self.is_upsert
            insert = plan_insert(planner, self.tree, reading=planner.inside(block))
            planner.names.needs.require(execution.session, execution.block)
            if insert.columns != self.columns:
                raise PlanChanged("cached plan must not change result type")
            return insert.run(execution)


def plan(planner: Planner, tree: Tree) -> Insert | InsertAsOf:
    operand = planner.as_of
    if not operand:
        return plan_insert(planner, tree)
    if operand.startswith("$"):
        planner.parameters.expect(int(operand[1:]), as_of.TEXT)
    with past_blocks.planning_block(planner.session, operand) as block:
        reading = planner.inside(block)
        reading.parameters = planner.parameters
        insert = plan_insert(planner, tree, reading=reading)
    return InsertAsOf(planner.text, tree, operand, insert.columns, insert.parameters, planner.is_upsert)


def plan_upsert(planner: Planner, reader: TokenReader) -> Insert | InsertAsOf:
    """UPSERT INTO t ...: INSERT that overwrites the row with the same primary key."""
    text = planner.text
    start = len(text) - len(text.lstrip())
    planner.text = text[:start] + "INSERT" + text[start + len("UPSERT") :]
    parsed = parse.one(planner.text)
    assert parsed is not None
    if parse.kind(parsed.tree) != "InsertStmt" or parse.has(parsed.tree, "on_conflict_clause"):
        raise SyntaxFault("UPSERT takes no ON CONFLICT")
    planner.is_upsert = True
    return plan(planner, parsed.tree)
