"""One statement being planned: its text, its parameters, and what the names in it mean.

A statement's module reads its parse tree, or the words that follow its first ones, with the help of a
`Planner`. Which module that is a `StatementTable` says; it is filled in `sql.statements.statement_table`,
above all of them.

Walk: `sql.execution.planning` makes one per statement; the modules of `sql.statements` plan with it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tenure.base.errors import NotSupported, SyntaxFault
from tenure.expr.tree.build import assign
from tenure.expr.tree.expressions import Node
from tenure.expr.types.datatype import Type
from tenure.sql.bind.binder import bind_scalar
from tenure.sql.bind.parameters import Parameters
from tenure.sql.bind.types import type_at
from tenure.sql.execution.statement import Control, Statement
from tenure.sql.names.session_names import SessionNames
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree
from tenure.sql.text.tenure_statements import TokenReader


class StatementTable(NamedTuple):
    """How statements are planned: by the kind of their parse tree, or by their first words."""

    by_kind: Mapping[str, "TreePlanner"]
    by_words: Mapping[tuple[str, ...], "WordsPlanner"]


NO_STATEMENTS = StatementTable({}, {})


class Planner:
    """One statement being planned."""

    def __init__(
        self,
        session: SessionState,
        block: Block,
        text: str,
        types: tuple[Type | None, ...],
        *,
        statements: "StatementTable" = NO_STATEMENTS,
        as_of: str = "",
    ) -> None:
        """`statements` is needed where the statement may have any kind, or has another one inside it."""
        self.session = session
        self.statements = statements
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
        """The expression after AS OF SYSTEM TIME; a caller that reads it has to apply it."""
        self._takes_as_of = True
        return self._as_of

    def check_as_of(self) -> None:
        """Raises NotSupported if the clause was not applied: no statement may read as of another time than
        asked."""
        if not self._takes_as_of:
            raise NotSupported("AS OF SYSTEM TIME is not supported in this statement")

    def inside(self, block: Block) -> "Planner":
        """The same statement, to be planned in another block."""
        inner = Planner(self.session, block, self.text, self.types, statements=self.statements)
        inner.names.needs = self.names.needs
        return inner

    def type_of(self, tree: Tree) -> Type:
        """The type that a TypeName means."""
        return type_at(tree, self.names)

    def arguments(self, nodes: Sequence[Tree], types: Sequence[Type], what: str) -> tuple[Node, ...]:
        """Expressions without columns, one for each type: what EXECUTE gives.

        As in PostgreSQL, values for a statement without parameters are ignored.
        """
        if not types:
            return ()
        if len(nodes) != len(types):
            raise SyntaxFault(
                f"wrong number of parameters for {what}",
                detail=f"Expected {len(types)} parameters but got {len(nodes)}.",
            )
        assigned = []
        for node, kind in zip(nodes, types, strict=True):
            typed = bind_scalar(parse.unwrap(node), (), self.names, self.parameters, what="EXECUTE parameter")
            assigned.append(assign(typed, kind).node)
        return tuple(assigned)

    def plan(self, tree: Tree) -> Statement | Control:
        planner = self.statements.by_kind.get(parse.kind(tree))
        if planner is None:
            raise NotSupported(f"{_words(parse.kind(tree))} is not supported")
        return planner(self, tree)

    def text_after_as(self, tree: Tree) -> str:
        return parse.after(self.text, "AS") + self._clause()

    def text_after_for(self, tree: Tree) -> str:
        return parse.after(self.text, "FOR") + self._clause()

    def _clause(self) -> str:
        """AS OF SYSTEM TIME was cut out of the text, and belongs to the inner statement."""
        return f" AS OF SYSTEM TIME {self.as_of}" if self.as_of else ""


TreePlanner = Callable[[Planner, Tree], Statement | Control]

WordsPlanner = Callable[[Planner, TokenReader], Statement | Control | None]
"""Returns None if PostgreSQL's grammar should read the statement after all."""


def _words(kind: str) -> str:
    """CreateTrigStmt: as people know it."""
    name = kind.removesuffix("Stmt")
    return "".join(f" {each}" if each.isupper() else each.upper() for each in name).strip().upper()
