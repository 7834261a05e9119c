"""CREATE TABLE AS and SELECT INTO: a table made of a query's columns, and filled with its rows.

The table and its rows come in one transaction; a result that is too large for one commit is refused
(54000). With AS OF SYSTEM TIME the query is bound to the catalog of then and read as of that moment; the
table is made, and its rows are written, now.

Walk: `statements.ddl.ddl_statements` -> these -> `statements.ddl.tables.create_table.make_table`, then
`statements.dml.writing.writer_of`.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tenure.base.errors import NotSupported, SyntaxFault, UndefinedObject
from tenure.base.interruptible import interruptible
from tenure.catalog.descriptors.definitions import DescriptorState, Table
from tenure.expr.types.catalog_types import require_storable
from tenure.sql.access import planner as access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import NoParameters
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.row_locking import settled
from tenure.sql.names.session_names import SessionNames
from tenure.sql.plans.plan import Query
from tenure.sql.rows import runner as rows
from tenure.sql.rows.run import Tuple
from tenure.sql.rows.runner import CompiledQuery
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.statements.ddl.tables.column_definitions import NewColumn
from tenure.sql.statements.ddl.tables.create_table import make_table, on_commit_of, skips
from tenure.sql.statements.dml.past_blocks import reading_block, refuse_locks
from tenure.sql.statements.dml.queries import run_of
from tenure.sql.statements.dml.writing import writer_of
from tenure.sql.text.parse import Tree, child, kind, names, option


def create_table_as(definer: Definer, tree: Tree, *, as_of: str = "") -> str | None:
    if option(tree, "objtype") == "OBJECT_MATVIEW":
        raise NotSupported("materialized views are not supported", hint="Use CREATE TABLE AS.")
    query = child(tree, "query")
    if kind(query) != "SelectStmt":
        raise NotSupported("CREATE TABLE AS EXECUTE is not supported")
    return _make(definer, tree.into, query, as_of=as_of, if_not_exists=tree.if_not_exists)


def select_into(definer: Definer, tree: Tree, *, as_of: str = "") -> str | None:
    query = type(tree)()
    query.CopyFrom(tree)
    query.ClearField("into_clause")
    return _make(definer, tree.into_clause, query, as_of=as_of, if_not_exists=False)


def _make(definer: Definer, into: Tree, tree: Tree, *, as_of: str, if_not_exists: bool) -> str | None:
    relation = into.rel
    schema = definer.schema_for(path_of(relation)[:-1], is_temporary=relation.relpersistence == "t")
    on_commit = on_commit_of(definer, schema, option(into, "on_commit"))
    if skips(definer, schema, relation.relname, if_not_exists=if_not_exists):
        return None
    with _reading(definer.execution, as_of) as reading:
        session_names = SessionNames(reading.session, reading.block) if as_of else definer.names
        query = access.with_access(bind_query(tree, session_names, NoParameters()))
        session_names.needs.require(reading.session, definer.execution.block)
        if as_of:
            refuse_locks(query)
            _check_types(definer, query)
        table = make_table(definer, schema, relation.relname, _columns(query, names(into.col_names)), ())
        if on_commit is not None:
            definer.draft.on_commit[table.id] = on_commit
        return None if into.skip_data else f"SELECT {_fill(definer, table.id, query, reading)}"


@contextmanager
def _reading(execution: Execution, as_of: str) -> Iterator[Execution]:
    """Where the query is read: in the statement's own block, or in one of the past."""
    if not as_of:
        yield execution
        return
    if as_of.startswith("$"):
        raise NotSupported("CREATE TABLE AS takes no parameters")
    with reading_block(execution, as_of) as block:
        yield Execution(execution.session, block, execution.values, account=execution.account)


def _check_types(definer: Definer, query: Query) -> None:
    """A type that has been dropped since then cannot be that of a new column."""
    for each in query.outputs:
        id = each.type.ref.enum
        found = definer.names.descriptor(id) if id else None
        if id and (found is None or found.state is DescriptorState.DROPPED):
            raise UndefinedObject(
                f'column "{each.name}" has the type "{each.type.sql_name}", which does not exist any more',
                hint="Cast it to text.",
            )


def _columns(query: Query, column_names: Sequence[str]) -> list[NewColumn]:
    if len(column_names) > len(query.outputs):
        raise SyntaxFault("too many column names were specified")
    titles = [*column_names, *(each.name for each in query.outputs[len(column_names) :])]
    kinds = [require_storable(each.type.ref) for each in query.outputs]
    return [NewColumn(title, kind) for title, kind in zip(titles, kinds, strict=True)]


def _fill(definer: Definer, id: int, query: Query, reading: Execution) -> int:
    execution, txn = definer.execution, definer.use.txn
    table = execution.block.descriptor(id)
    assert isinstance(table, Table), "the table was made a moment ago"
    writer = writer_of(execution, table)
    columns = [each.id for each in table.columns if not each.is_hidden]
    runner = rows.compile(query, reading.block.enum)
    found = _found(runner, query, reading)
    values = (dict(zip(columns, row, strict=True)) for row in found)
    deque(interruptible(writer.insert_all(txn, values), execution.check), maxlen=0)
    writer.finish(txn, execution.check)
    return len(found)


def _found(runner: CompiledQuery, query: Query, reading: Execution) -> list[Tuple]:
    if reading.block.past is not None:
        return list(runner.rows(run_of(reading, query)))
    find = lambda passing: list(runner.rows(run_of(reading, query, passing)))  # noqa: E731
    return settled(reading, query, find)
