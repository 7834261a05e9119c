"""The query of a changefeed: SELECT columns and expressions FROM one table WHERE a condition on its row.

Walk: `statements.jobs.changefeeds` -> `read_selection` -> `bind_scalar` for each expression, then by the ids
of columns.
"""

from collections.abc import Sequence

from tenure.base.errors import NotSupported, SyntaxFault
from tenure.catalog.descriptors.definitions import Expression, Table
from tenure.changefeed.records import FeedSelection, SelectedColumn
from tenure.changefeed.table_events import shown_columns
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.compiled import require_immutable
from tenure.expr.tree.expressions import ColumnRef, Node, to_stored
from tenure.expr.tree.rewrite import rewrite
from tenure.expr.tree.sql_text import render
from tenure.expr.tree.zoned_constants import fix_constants
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.binder import bind_scalar
from tenure.sql.bind.parameters import NoParameters
from tenure.sql.execution.planner import Planner
from tenure.sql.plans.plan import OutputColumn
from tenure.sql.statements.jobs.feed_targets import read_table
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree, child, items, kind
from tenure.sql.text.quoting import quoted

LISTS = ("distinct_clause", "group_clause", "window_clause", "sort_clause", "locking_clause", "values_lists")
CLAUSES = ("having_clause", "limit_count", "limit_offset", "with_clause", "into_clause", "larg")


def read_selection(planner: Planner, text: str) -> tuple[Table, FeedSelection]:
    """The table, and what is selected from it."""
    statement = parse.one(text)
    tree = None if statement is None else statement.tree
    if tree is None or kind(tree) != "SelectStmt":
        raise SyntaxFault("the query of a changefeed is a SELECT")
    _check_simple(tree)
    (source,) = items(tree.from_clause)
    path = [each for each in (source.catalogname, source.schemaname, source.relname) if each]
    table = read_table(planner, path)
    binding = _Binding(planner, table)
    where = child(tree, "where_clause")
    condition = None if where is None else binding.condition(where)
    columns = [column for each in items(tree.target_list) for column in binding.columns(each)]
    names = [each.name for each in columns]
    if len(set(names)) < len(names):
        raise SyntaxFault("a changefeed selects two columns of one name", hint="Name them by AS.")
    return table, FeedSelection(tuple(columns), condition, text.strip())


def _check_simple(tree: Tree) -> None:
    sources = items(tree.from_clause)
    is_simple = len(sources) == 1 and kind(sources[0]) == "RangeVar"
    has_more = any(getattr(tree, each) for each in LISTS) or any(parse.has(tree, each) for each in CLAUSES)
    if not is_simple or has_more:
        raise NotSupported("the query of a changefeed is SELECT ... FROM one table [WHERE ...]")


class _Binding:
    def __init__(self, planner: Planner, table: Table) -> None:
        self._names = planner.names
        self._zone = planner.session.zone
        self._shown = shown_columns(table)
        self._outputs = [
            OutputColumn(each.name, type_of(each.type, planner.names.enum)) for each in self._shown
        ]

    def columns(self, target: Tree) -> Sequence[SelectedColumn]:
        value = child(target, "val")
        if kind(value) == "ColumnRef" and kind(items(value.fields)[-1]) == "A_Star":
            every = zip(self._shown, self._outputs, strict=True)
            return [
                SelectedColumn(each.name, self._stored(ColumnRef(each.id)), output.type.ref)
                for each, output in every
            ]
        typed = self._bound(value)
        require_immutable(typed.node, "changefeed")
        if typed.type.family == "unknown":
            raise SyntaxFault("a constant of a changefeed needs a type", hint="Write 'x'::text, say.")
        return [SelectedColumn(_name(target, value), self._stored(typed.node), typed.type.ref)]

    def condition(self, tree: Tree) -> Expression:
        node = build.condition(self._bound(tree), "argument of WHERE")
        require_immutable(node, "changefeed")
        return self._stored(node)

    def _bound(self, tree: Tree) -> Typed:
        typed = bind_scalar(tree, self._outputs, self._names, NoParameters(), "CHANGEFEED")
        ids = [each.id for each in self._shown]

        def by_id(node: Node) -> Node | None:
            return ColumnRef(ids[node.column]) if isinstance(node, ColumnRef) else None

        return Typed(fix_constants(rewrite(typed.node, by_id), self._zone, self._names.enum), typed.type)

    def _stored(self, node: Node) -> Expression:
        names = {each.id: each.name for each in self._shown}
        return to_stored(node, render(node, lambda id: quoted(names[id]), self._names.enum))


def _name(target: Tree, value: Tree) -> str:
    if target.name:
        return str(target.name)
    if kind(value) == "ColumnRef":
        return parse.names(value.fields)[-1]
    raise SyntaxFault("an expression of a changefeed needs a name", hint="Write AS name behind it.")
