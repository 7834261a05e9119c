"""CREATE INDEX, over columns of a table, unique and partial ones too.

An index is always built while others go on writing: CONCURRENTLY says nothing new, and, as in PostgreSQL,
is refused inside a transaction block.

Walk: `statements.ddl.ddl_statements` -> `create_index` -> `catalog.changes.index_changes.AddIndex`.
"""

from tenure.base.errors import DatatypeMismatch, NotSupported, UndefinedObject
from tenure.catalog.changes.index_changes import AddIndex
from tenure.catalog.changes.table_changes import alter
from tenure.catalog.changes.table_parts import NamedKeyColumn
from tenure.catalog.descriptors.definitions import Schema, Table
from tenure.sql.statements.ddl.definition import Definer, columns_of, path_of
from tenure.sql.statements.ddl.naming import holders, index_name, names_in, require_free
from tenure.sql.statements.ddl.tables.column_definitions import check_collation
from tenure.sql.tables.pg_catalog.built_in_types import OPERATOR_CLASSES, operator_classes
from tenure.sql.text.parse import Tree, child, items, names, option


def create_index(definer: Definer, tree: Tree) -> str | None:
    relation = definer.relation(path_of(tree.relation), tree.relation.location + 1)
    _refuse(tree)
    table = definer.table(path_of(tree.relation))
    schema = definer.use.descriptor(table.schema)
    assert isinstance(schema, Schema), "a table is in a schema"
    definer.require_owner(table)
    definer.require_create(schema)
    if tree.if_not_exists and (
        definer.is_taken(schema, tree.idxname) or holders(definer, schema, tree.idxname)
    ):
        definer.notice(f'relation "{tree.idxname}" already exists, skipping', "42P07")
        return None
    if tree.idxname:
        require_free(definer, schema, tree.idxname)
    if tree.options or tree.table_space:
        definer.notice("storage parameters have no effect")
    key_columns = tuple(_part(each) for each in items(tree.index_params))
    for each in items(tree.index_params):
        if each.opclass:
            _check_operators(definer, table, each)
    where = child(tree, "where_clause")
    predicate = None if where is None else definer.condition(where, columns_of(table), "WHERE")
    columns = [each.column for each in key_columns]
    name = tree.idxname or index_name(definer, schema, table.name, columns, "idx", names_in(table))
    alter(definer.draft, definer.use, relation.id, AddIndex(name, key_columns, tree.unique, predicate))
    return None


def _refuse(tree: Tree) -> None:
    if tree.access_method not in ("", "btree"):
        raise NotSupported(
            f'index method "{tree.access_method}" is not supported', hint="An ordered index serves: btree."
        )
    if tree.index_including_params:
        raise NotSupported("INCLUDE is not supported", hint="Add the columns to the key of the index.")
    if tree.nulls_not_distinct:
        raise NotSupported("NULLS NOT DISTINCT is not supported")


def _check_operators(definer: Definer, table: Table, tree: Tree) -> None:
    """Takes an operator class that orders as the type does, which is no change: the usual one, and those of
    patterns, since texts are in the order of their bytes here."""
    name = names(tree.opclass)[-1]
    column = table.column_named(tree.name)
    if column is None:
        return  # the index's own change says so
    if name not in OPERATOR_CLASSES:
        raise UndefinedObject(f'operator class "{name}" does not exist for access method "btree"')
    if name not in operator_classes(column.type):
        kind = definer.type_of(column.type).sql_name
        raise DatatypeMismatch(f'operator class "{name}" does not accept data type {kind}')


def _part(tree: Tree) -> NamedKeyColumn:
    if not tree.name:
        raise NotSupported(
            "indexes on expressions are not supported",
            hint="Index a column that is GENERATED ALWAYS AS (...) STORED.",
        )
    if tree.collation:
        check_collation(names(tree.collation))
    is_descending = option(tree, "ordering") == "SORTBY_DESC"
    nulls = option(tree, "nulls_ordering")
    if nulls == ("SORTBY_NULLS_LAST" if is_descending else "SORTBY_NULLS_FIRST"):
        raise NotSupported(
            "NULLS FIRST and NULLS LAST against the order of the index are not supported",
            hint="NULLs come last in ascending order, and first in descending order.",
        )
    return NamedKeyColumn(tree.name, is_descending)
