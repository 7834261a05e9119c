"""The binder: from parse trees to plans, every name and overload resolved by PostgreSQL's rules.

    Binder(names, parameters, tree)     one per statement
      .query(tree)                      a SelectStmt: its plan
      .scalar(tree, columns)            an expression over given columns
      .level(...), .finished(plan)      what binders of other statements need

Positions of errors are counted in characters from 1, if the statement's text is given.

Invariant (bind-no-crash): every statement that parses is bound or refused with a SQLSTATE.

Walk: `sql.statements.dml.queries` calls `bind_query`; statements that write use `Binder`, and DEFAULT, CHECK
and predicates `bind_scalar`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tenure.base.errors import TooComplex, UserError
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef
from tenure.sql.bind import expressions as bind_expressions
from tenure.sql.bind import select as bind_select
from tenure.sql.bind.binding import Binding
from tenure.sql.bind.parameters import Parameters
from tenure.sql.bind.records import refuse_rows
from tenure.sql.bind.relations import Names
from tenure.sql.bind.scope import Item, Named, QueryLevel
from tenure.sql.plans.plan import OutputColumn, Plan, Query
from tenure.sql.text.parse import Tree


class Binder:
    """Binds the parts of one statement; their parameters, subqueries and WITH queries are numbered as one."""

    def __init__(self, names: Names, parameters: Parameters, root: Tree) -> None:
        self.names = names
        self.binding = Binding[QueryLevel](parameters, bind_expressions.bind, bind_select.bind, root)

    def level(self, parent: QueryLevel | None = None) -> QueryLevel:
        """A level without visible columns; `sql.bind.from_clause` and `add_columns` fill it."""
        return QueryLevel(self.binding, self.names, parent=parent)

    def query(self, tree: Tree, parent: QueryLevel | None = None, *, keeps_unknown: bool = False) -> Plan:
        """`keeps_unknown`: literals of the select list stay untyped, as for INSERT ... SELECT."""
        plan = bind_select.bind(tree, parent or self.level(), keeps_unknown=keeps_unknown)
        refuse_rows(each.name for each in plan.outputs)
        return plan

    def scalar(self, tree: Tree, columns: Sequence[OutputColumn] = (), what: str = "SELECT") -> Typed:
        """An expression whose ColumnRefs are positions among the columns given."""
        level = self.level()
        add_columns(level, "", columns)
        return level.bind(tree, what)

    def finished(self, plan: Plan) -> Query:
        """The query of a bound plan. Raises IndeterminateDatatype (42P18) if a parameter has no type."""
        return self.binding.finished(plan)


def add_columns(
    level: QueryLevel, name: str, columns: Sequence[OutputColumn], *, is_hidden: bool = False
) -> Item:
    """Puts columns in sight, at the end of the level's row, under a table's name; "" is no name."""
    start = len(level.row)
    named = [
        Named(each.name, Typed(ColumnRef(start + at), each.type), each, is_hidden)
        for at, each in enumerate(columns)
    ]
    item = Item(name, named, start=start, has_name=bool(name))
    level.items.append(item)
    level.all_items.append(item)
    level.row += [each.type for each in columns]
    level.outputs += columns
    return item


def bind_query(tree: Tree, names: Names, parameters: Parameters, *, text: str = "") -> Query:
    """Binds a SELECT or VALUES. `text` is what was parsed: positions in errors are counted in it."""
    with guarded(text):
        binder = Binder(names, parameters, tree)
        return binder.finished(binder.query(tree))


def bind_scalar(
    tree: Tree,
    columns: Sequence[OutputColumn],
    names: Names,
    parameters: Parameters | None = None,
    what: str = "CHECK",
    *,
    text: str = "",
) -> Typed:
    """Binds one expression over given columns: DEFAULT, CHECK, a predicate. Subqueries are refused."""
    with guarded(text):
        binder = Binder(names, Parameters() if parameters is None else parameters, tree)
        return binder.scalar(tree, columns, what)


@contextmanager
def guarded(text: str = "") -> Iterator[None]:
    """Wraps every entry point of the binder: refuses too deep trees, and counts positions of errors in
    characters."""
    try:
        yield
    except RecursionError:
        raise TooComplex("stack depth limit exceeded", hint="Simplify the statement.") from None
    except UserError as error:
        if error.position and text and not text.isascii():
            error.position = len(text.encode()[: error.position - 1].decode(errors="ignore")) + 1
        raise
