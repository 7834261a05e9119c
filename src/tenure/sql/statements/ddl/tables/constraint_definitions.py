"""Constraints as CREATE TABLE and ALTER TABLE describe them: each becomes a change of its table.

Walk: `statements.ddl.tables.create_table`, `statements.ddl.tables.alter_table` -> `changes_of` ->
`catalog.changes.table_changes.alter`.
"""

from collections.abc import Iterator, Sequence

from tenure.base.errors import DatatypeMismatch, InvalidTable, NotSupported, UndefinedFunction
from tenure.catalog.changes.constraint_changes import AddCheck, AddForeignKey, target_key
from tenure.catalog.changes.index_changes import AddIndex, AlterPrimaryKey, primary_of
from tenure.catalog.changes.table_changes import alter, referring_to
from tenure.catalog.changes.table_parts import NamedKeyColumn, TableChange, find_column, staying
from tenure.catalog.descriptors.definitions import Action, Column, Deferral, Expression, Schema, Table
from tenure.expr.tree.build import Typed, call
from tenure.expr.tree.expressions import ColumnRef
from tenure.sql.statements.ddl.definition import Definer, columns_of, path_of
from tenure.sql.statements.ddl.naming import constraint_name, index_name, names_in, object_name, require_free
from tenure.sql.statements.ddl.tables.column_definitions import NOT_DEFERRED, NOT_ENFORCED
from tenure.sql.text.parse import Tree, child, names, option

ACTIONS = {
    "a": Action.NO_ACTION,
    "r": Action.RESTRICT,
    "c": Action.CASCADE,
    "n": Action.SET_NULL,
    "d": Action.SET_DEFAULT,
}


def add_constraint(
    definer: Definer, schema: Schema, table: int, tree: Tree, columns: tuple[str, ...] = ()
) -> None:
    """Declares one constraint of a table that is there; `columns` is the one that it stands beside."""
    for change in changes_of(definer, schema, definer.declared(table), tree, columns):
        alter(definer.draft, definer.use, table, change)


def changes_of(
    definer: Definer, schema: Schema, table: Table, tree: Tree, columns: tuple[str, ...]
) -> Iterator[TableChange]:
    if tree.initdeferred and option(tree, "contype") != "CONSTR_FOREIGN":
        definer.notice(NOT_DEFERRED)
    if option(tree, "contype") in ("CONSTR_CHECK", "CONSTR_FOREIGN") and not tree.is_enforced:
        raise NotSupported(NOT_ENFORCED)
    if option(tree, "contype") in ("CONSTR_PRIMARY", "CONSTR_UNIQUE"):
        if tree.indexname:
            raise NotSupported("constraints USING INDEX are not supported")
        if tree.including:
            raise NotSupported("INCLUDE is not supported")
        definer.require_create(schema)
    match option(tree, "contype"):
        case "CONSTR_PRIMARY":
            yield primary_key(definer, schema, table, tree, columns or tuple(names(tree.keys)))
        case "CONSTR_NULL":
            return
        case "CONSTR_UNIQUE":
            yield _unique(definer, schema, table, tree, columns or tuple(names(tree.keys)))
        case "CONSTR_CHECK":
            yield _check(definer, table, tree)
        case "CONSTR_FOREIGN":
            yield foreign_key(definer, table, tree, columns)
        case "CONSTR_EXCLUSION":
            raise NotSupported("exclusion constraints are not supported")
        case other:
            raise NotSupported(f"{other.removeprefix('CONSTR_')} constraints are not supported")


def primary_key(
    definer: Definer,
    schema: Schema,
    table: Table,
    tree: Tree,
    columns: tuple[str, ...],
    *,
    is_added: bool = True,
) -> AlterPrimaryKey:
    """ADD PRIMARY KEY; or, where the former one goes in the same statement, another in its place."""
    name, former = tree.conname, primary_of(table).name
    if not name and former == object_name(table.name, "", "pkey"):
        name = former  # the new key takes over the name
    elif not name:
        name = index_name(definer, schema, table.name, (), "pkey", names_in(table))
    elif all(each.name != name for each in staying(table.indexes)):
        require_free(definer, schema, name)
    referring = referring_to(definer.draft, definer.use, table)
    return AlterPrimaryKey(
        name,
        tuple(map(NamedKeyColumn, columns)),
        is_added=is_added,
        referring=referring,
        is_deferrable=tree.deferrable,
    )


def _unique(definer: Definer, schema: Schema, table: Table, tree: Tree, columns: tuple[str, ...]) -> AddIndex:
    if tree.nulls_not_distinct:
        raise NotSupported("NULLS NOT DISTINCT is not supported")
    if tree.conname:
        require_free(definer, schema, tree.conname)
    name = tree.conname or index_name(definer, schema, table.name, columns, "key", names_in(table))
    return AddIndex(
        *(name, tuple(map(NamedKeyColumn, columns))),
        is_unique=True,
        is_constraint=True,
        is_deferrable=tree.deferrable,
    )


def _check(definer: Definer, table: Table, tree: Tree) -> AddCheck:
    expression = definer.condition(child(tree, "raw_expr"), columns_of(table), "CHECK")
    name = tree.conname or constraint_name(table, _named_by(table, expression), "check")
    return AddCheck(name, expression, is_validated=not tree.skip_validation)


def _named_by(table: Table, expression: Expression) -> tuple[str, ...]:
    """A CHECK over one column is named by it."""
    read = [each.name for each in table.columns if each.id in expression.columns]
    return tuple(read) if len(read) == 1 else ()


def foreign_key(definer: Definer, table: Table, tree: Tree, columns: tuple[str, ...]) -> AddForeignKey:
    keys = columns or tuple(names(tree.fk_attrs))
    path = path_of(tree.pktable)
    target = definer.declared(table.id) if path == [table.name] else definer.table(path)
    _require_alike(definer, table, target)
    if tree.fk_matchtype == "f":
        raise NotSupported("MATCH FULL is not supported")
    if tree.fk_del_set_cols:
        raise NotSupported("ON DELETE SET of some columns is not supported")
    name = tree.conname or constraint_name(table, keys, "fkey")
    referred = target_key(target, tuple(names(tree.pk_attrs)))
    if len(referred) == len(keys):
        _check_comparable(definer, table, name, keys, [target.column(id) for id in referred])
    return AddForeignKey(
        name,
        keys,
        target.id,
        referred,
        ACTIONS[tree.fk_del_action or "a"],
        ACTIONS[tree.fk_upd_action or "a"],
        is_validated=not tree.skip_validation,
        deferral=_deferral(tree),
    )


def _deferral(tree: Tree) -> Deferral:
    if tree.initdeferred:
        return Deferral.AT_FIRST
    return Deferral.ON_REQUEST if tree.deferrable else Deferral.NEVER


def _require_alike(definer: Definer, table: Table, target: Table) -> None:
    temporary = definer.session.temporary.schema_id
    if (table.schema == temporary) is not (target.schema == temporary):
        kind = "temporary" if table.schema == temporary else "permanent"
        raise InvalidTable(f"constraints on {kind} tables may reference only {kind} tables")


def _check_comparable(
    definer: Definer, table: Table, name: str, keys: Sequence[str], referred: Sequence[Column]
) -> None:
    for key, target in zip(keys, referred, strict=True):
        column = find_column(table, key)
        if column is None:
            continue  # the change itself raises the error, in PostgreSQL's words
        left, right = definer.type_of(column.type), definer.type_of(target.type)
        try:
            call("=", Typed(ColumnRef(0), left), Typed(ColumnRef(1), right))
        except UndefinedFunction as error:
            raise DatatypeMismatch(
                f'foreign key constraint "{name}" cannot be implemented',
                detail=f'Key columns "{key}" of the referencing table and "{target.name}" of the referenced '
                f"table are of incompatible types: {left.sql_name} and {right.sql_name}.",
            ) from error
        if _kept_alike(left.ref.name) != _kept_alike(right.ref.name):
            raise NotSupported(
                f'foreign key constraint "{name}" needs columns of the same type',
                detail=f'Column "{key}" is {left.sql_name}, column "{target.name}" is {right.sql_name}.',
            )


def _kept_alike(type: str) -> str:
    """Types whose values stand in keys in the same way."""
    groups = {"int2": "int", "int4": "int", "int8": "int", "varchar": "text", "float4": "float8"}
    return groups.get(type, type)
