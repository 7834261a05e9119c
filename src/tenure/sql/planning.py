"""From a statement's text to something that can be run.

    text ─► own words? ─► `sql.text.tenure_statements`          SHOW TABLES, SET CLUSTER SETTING, ...
       └──► PostgreSQL's grammar ─► by the kind of its parse tree ─► the module in `sql.statements`

`AS OF SYSTEM TIME` is cut out of the text before PostgreSQL's grammar sees it; it counts for the whole
statement.

Walk: `sql.session.session` calls `split`, `sql.session.preparing` calls `plan`; `plan` asks the module that
`PLANNERS` names.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tenure.base.errors import NotSupported, SyntaxFault, TooComplex
from tenure.expr.tree.build import assign
from tenure.expr.tree.expressions import Node
from tenure.expr.types.datatype import Type
from tenure.sql.bind.binder import bind_scalar
from tenure.sql.bind.parameters import Parameters
from tenure.sql.bind.types import type_at
from tenure.sql.names.session_names import SessionNames
from tenure.sql.session.block import Block
from tenure.sql.session.plan_cache import CachedPlan
from tenure.sql.statement import Control, Statement
from tenure.sql.statements.ddl import ddl_statements
from tenure.sql.statements.dml import copy, insert_as_of, queries, writes
from tenure.sql.statements.jobs.exporting import EXPORTS
from tenure.sql.statements.jobs.import_dump import DUMPS
from tenure.sql.statements.jobs.importing import IMPORTS
from tenure.sql.statements.jobs.job_statements import JOBS
from tenure.sql.statements.session import cursors, prepared, transactions, utility, variable_statements
from tenure.sql.statements.show import explain
from tenure.sql.statements.show.cluster_settings import CLUSTER_SETTINGS
from tenure.sql.statements.show.shows import SHOWS
from tenure.sql.text import as_of, parse, tenure_statements
from tenure.sql.text.parse import Tree

if TYPE_CHECKING:
    from tenure.sql.session.session import Session

__all__ = ["Control", "Planner", "ends_transaction", "plan", "split"]


class Planner:
    """One statement being planned."""

    def __init__(
        self, session: "Session", block: Block, text: str, types: tuple[Type | None, ...], as_of: str = ""
    ) -> None:
        self.session = session
        self.block = block
        self.text = text
        self.types = types
        self._as_of = as_of
        self._takes_as_of = not as_of
        self.names = SessionNames(session, block)
        self.parameters = Parameters(types)
        self.is_upsert = False

    @property
    def as_of(self) -> str:
        """What stands after AS OF SYSTEM TIME; who asks heeds it."""
        self._takes_as_of = True
        return self._as_of

    def check_as_of(self) -> None:
        """Raises NotSupported if nobody has heeded it: nothing may be read as of another time than asked."""
        if not self._takes_as_of:
            raise NotSupported("AS OF SYSTEM TIME is not supported in this statement")

    def inside(self, block: Block) -> "Planner":
        """The same statement, to be planned in another block."""
        return Planner(self.session, block, self.text, self.types)

    def type_of(self, tree: Tree) -> Type:
        """The type that a TypeName means."""
        return type_at(tree, self.names)

    def arguments(self, nodes: Sequence[Tree], types: Sequence[Type], what: str) -> tuple[Node, ...]:
        """Expressions without columns, one for each type: what EXECUTE gives.

        As in PostgreSQL, whatever is given to a statement without parameters is not looked at.
        """
        if not types:
            return ()
        if len(nodes) != len(types):
            raise SyntaxFault(
                f"wrong number of parameters for {what}",
                detail=f"Expected {len(types)} parameters but got {len(nodes)}.",
            )
        made = []
        for node, kind in zip(nodes, types, strict=True):
            typed = bind_scalar(parse.unwrap(node), (), self.names, self.parameters, what="EXECUTE parameter")
            made.append(assign(typed, kind).node)
        return tuple(made)

    def plan(self, tree: Tree) -> Statement | Control:
        planner = PLANNERS.get(parse.kind(tree))
        if planner is None:
            raise NotSupported(f"{_words(parse.kind(tree))} is not supported")
        return planner(self, tree)

    def text_after_as(self, tree: Tree) -> str:
        return parse.after(self.text, "AS") + self._clause()

    def text_after_for(self, tree: Tree) -> str:
        return parse.after(self.text, "FOR") + self._clause()

    def _clause(self) -> str:
        """It was cut out of the text, and belongs to the statement inside."""
        return f" AS OF SYSTEM TIME {self.as_of}" if self.as_of else ""


def _plan_select(planner: Planner, tree: Tree) -> "Statement | Control":
    """SELECT ... INTO makes a table."""
    if ddl_statements.is_select_into(tree):
        return ddl_statements.plan_select_into(planner, tree)
    return queries.plan(planner, tree)


PLANNERS: dict[str, Callable[[Planner, Tree], "Statement | Control"]] = {
    **ddl_statements.PLANNERS,
    "SelectStmt": _plan_select,
    "InsertStmt": insert_as_of.plan,
    "UpdateStmt": writes.plan_update,
    "DeleteStmt": writes.plan_delete,
    "ExplainStmt": explain.plan,
    "TransactionStmt": transactions.plan,
    "VariableSetStmt": variable_statements.plan_set,
    "VariableShowStmt": variable_statements.plan_show,
    "CopyStmt": copy.plan,
    "PrepareStmt": prepared.plan_prepare,
    "ExecuteStmt": prepared.plan_execute,
    "DeallocateStmt": prepared.plan_deallocate,
    "DiscardStmt": prepared.plan_discard,
    "DeclareCursorStmt": cursors.plan_declare,
    "FetchStmt": cursors.plan_fetch,
    "ClosePortalStmt": cursors.plan_close,
    "VacuumStmt": utility.plan_vacuum,
    "ConstraintsSetStmt": utility.plan_set_constraints,
    "CheckPointStmt": utility.plan_checkpoint,
    "UnlistenStmt": utility.plan_unlisten,
}


OWN: dict[tuple[str, ...], tenure_statements.Own] = {
    ("create", "database", "if", "not"): ddl_statements.create_database_if_not_exists,
    ("create", "schema"): ddl_statements.create_schema_in_database,
    ("set", "transaction"): transactions.plan_set_as_of,
    ("upsert", "into"): tenure_statements.upsert,
    **SHOWS,
    **CLUSTER_SETTINGS,
    **JOBS,
    **EXPORTS,
    **IMPORTS,
    **DUMPS,
}


def split(text: str) -> list[str]:
    """The statements of a query string, by the semicolons between them; empty ones are left out.

    A syntax error in one of several is raised here: none of them is run then.
    """
    found = parse.tokens(text)
    data = text.encode()
    spans: list[tuple[int, int]] = []
    start = None
    for token in found:
        if token.kind == "ASCII_59":
            if start is not None:
                spans.append((start, token.start))
            start = None
        elif start is None:
            start = token.start
    if start is not None:
        spans.append((start, len(data)))
    if len(spans) > 1:
        for begin, end in spans:
            _check_syntax(data[begin:end].decode(), chars_before=len(data[:begin].decode()))
    return [data[begin:end].decode() for begin, end in spans]


def is_statement(text: str) -> bool:
    """Whether there is anything in it. Raises SyntaxFault (42601)."""
    return tenure_statements.is_own(text, OWN) or parse.one(as_of.cut(text)[0]) is not None


def _check_syntax(text: str, *, chars_before: int) -> None:
    try:
        is_statement(text)
    except SyntaxFault as error:
        if error.position:
            error.position += chars_before
        raise


def plan(session: "Session", block: Block, text: str, types: tuple[Type | None, ...]) -> CachedPlan | None:
    """None for an empty statement."""
    try:
        return _plan(session, block, text, types)
    except RecursionError as error:
        raise TooComplex("stack depth limit exceeded", hint="Simplify the statement.") from error


def _plan(session: "Session", block: Block, text: str, types: tuple[Type | None, ...]) -> CachedPlan | None:
    rest, moment = as_of.cut(text)
    for name, cut in parse.names_too_long(rest):
        session.notice(f'identifier "{name}" will be truncated to "{cut}"', "NOTICE", "42622")
    planner = Planner(session, block, rest, types, moment)
    statement = tenure_statements.plan(planner, OWN)
    if statement is None:
        parsed = parse.one(rest)
        if parsed is None:
            return None
        statement = planner.plan(parsed.tree)
    planner.check_as_of()
    is_kept = not isinstance(statement, Control) and getattr(statement, "is_kept", False) and not moment
    names = planner.names
    # Only a plan that has read the catalog may ask: SET TRANSACTION must not begin to read.
    is_of_draft = is_kept and block.past is None and bool(block.draft)
    return CachedPlan(
        statement,
        path=session.path,
        uses=names.used if is_kept else {},
        names=names.resolved if is_kept else {},
        lease=block.use.lease if is_kept and block.past is None and not is_of_draft else None,
        is_kept=is_kept,
        is_of_draft=is_of_draft,
    )


_ENDING = ("COMMIT", "ROLLBACK", "END_P", "ABORT_P")


def ends_transaction(text: str) -> bool:
    """Whether it is one of those that a failed block accepts."""
    found = parse.tokens(text)
    return bool(found) and found[0].kind in _ENDING


def _words(kind: str) -> str:
    """CreateTrigStmt: as people know it."""
    name = kind.removesuffix("Stmt")
    return "".join(f" {each}" if each.isupper() else each.upper() for each in name).strip().upper()
