"""CREATE TABLE AS and SELECT INTO: a table made of a query's columns, and filled with its rows.

The table and its rows come in one transaction; a result that is too large for one commit is refused
(54000).

Walk: `sql.planning` -> these -> `statements.create_table.make_table`, then `table.write.Writer`.
"""

from collections import deque
from collections.abc import Sequence

from tenure.base.interruptible import interruptible
from tenure.catalog.descriptors import Table
from tenure.catalog.errors import WrongSyntax
from tenure.expr.errors import NotSupported
from tenure.sql.access import planner as access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import NoParameters
from tenure.sql.locking import settled
from tenure.sql.parse import Tree, child, kind, names, option
from tenure.sql.plans.plan import Query
from tenure.sql.rows import runner as rows
from tenure.sql.statements.column_definitions import NewColumn
from tenure.sql.statements.create_table import make_table, skips
from tenure.sql.statements.definitions import Definer, path_of
from tenure.sql.statements.queries import run_of
from tenure.sql.statements.writing import writer_of


def create_table_as(definer: Definer, tree: Tree) -> str | None:
    if option(tree, "objtype") == "OBJECT_MATVIEW":
        raise NotSupported("materialized views are not supported", hint="Use CREATE TABLE AS.")
    query = child(tree, "query")
    if kind(query) != "SelectStmt":
        raise NotSupported("CREATE TABLE AS EXECUTE is not supported")
    return _make(definer, tree.into, query, if_not_exists=tree.if_not_exists)


def select_into(definer: Definer, tree: Tree) -> str | None:
    query = type(tree)()
    query.CopyFrom(tree)
    query.ClearField("into_clause")
    return _make(definer, tree.into_clause, query, if_not_exists=False)


def _make(definer: Definer, into: Tree, tree: Tree, *, if_not_exists: bool) -> str | None:
    relation = into.rel
    if relation.relpersistence == "t":
        raise NotSupported("temporary tables are not supported")
    schema = definer.schema_for(path_of(relation)[:-1])
    if skips(definer, schema, relation.relname, if_not_exists=if_not_exists):
        return None
    query = access.with_access(bind_query(tree, definer.names, NoParameters()))
    table = make_table(definer, schema, relation.relname, _columns(query, names(into.col_names)), ())
    return None if into.skip_data else f"SELECT {_fill(definer, table.id, query)}"


def _columns(query: Query, given: Sequence[str]) -> list[NewColumn]:
    if len(given) > len(query.outputs):
        raise WrongSyntax("too many column names were specified")
    titles = [*given, *(each.name for each in query.outputs[len(given) :])]
    return [NewColumn(title, each.type.ref) for title, each in zip(titles, query.outputs, strict=True)]


def _fill(definer: Definer, id: int, query: Query) -> int:
    execution, txn = definer.execution, definer.use.txn
    table = execution.block.descriptor(id)
    assert isinstance(table, Table), "the table was made a moment ago"
    writer = writer_of(execution, table)
    columns = [each.id for each in table.columns if not each.is_hidden]
    runner = rows.compile(query, definer.names.enum)
    find = lambda passing: list(runner.rows(run_of(execution, query, passing)))  # noqa: E731
    found = settled(execution, query, find)
    values = (dict(zip(columns, row, strict=True)) for row in found)
    deque(interruptible(writer.insert_all(txn, values), execution.check), maxlen=0)
    writer.finish(txn, execution.check)
    return len(found)
