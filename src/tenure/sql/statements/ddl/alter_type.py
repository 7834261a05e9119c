"""ALTER COLUMN ... TYPE: in place where rows hold both types alike, else by a new column that takes over.

    in place    varchar(10) ─► varchar(20) ─► text, int4 ─► int8, numeric(5,2) ─► numeric(9,2)
    rewritten   everything else: its value in each row is the cast of the former one, or USING's

Checks and predicates of partial indexes that read the column are bound again to the new type, by their texts,
as in PostgreSQL. The default is cast.

Walk: `statements.ddl.tables.alter_table` -> `alter_type` -> `catalog.changes.column_changes.AlterType`.
"""

from collections.abc import Iterator

from tenure.base.errors import CannotCast, DatatypeMismatch
from tenure.catalog.changes.column_changes import AlterType
from tenure.catalog.changes.table_changes import alter
from tenure.catalog.changes.table_parts import settled_column_of, staying
from tenure.catalog.descriptors.definitions import Check, Column, Expression, Index, Table, TypeRef
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef, decode
from tenure.sql.statements.ddl.definition import Definer, columns_of
from tenure.sql.statements.ddl.tables.column_definitions import check_collation
from tenure.sql.text.parse import Tree, child, expression, names

WIDER = {"int2": ("int4", "int8"), "int4": ("int8",), "varchar": ("text",), "text": ("varchar",)}
"""Types without modifiers that hold all values of another, in the same form."""


def alter_type(definer: Definer, table: Table, action: Tree) -> None:
    column = settled_column_of(table, action.name)
    tree = child(action, "def")
    ref = definer.type_ref(tree.type_name)
    if tree.HasField("coll_clause"):
        check_collation(names(tree.coll_clause.collname))
    using = child(tree, "raw_default")
    computed = _computed(definer, table, column, ref, using)
    default = _default(definer, column, ref)
    is_read = any(True for _ in _reading(table, column))
    if using is None and is_held_alike(column.type, ref) and not (is_read and column.type.name != ref.name):
        change = AlterType(column.name, ref, default=default)
    else:
        change = _rewrite(definer, table, column, ref, computed, default, has_using=using is not None)
    alter(definer.draft, definer.use, table.id, change)


def is_held_alike(old: TypeRef, new: TypeRef) -> bool:
    """Whether every value of the one is one of the other, and rows and keys hold it in the same bytes."""
    if old.is_array != new.is_array or old.enum != new.enum:
        return False
    if old.name != new.name:
        return new.name in WIDER.get(old.name, ()) and not new.modifiers
    if old.modifiers == new.modifiers or not new.modifiers:
        return True
    if not old.modifiers or old.name not in ("varchar", "numeric", "time", "timestamp", "timestamptz"):
        return False
    (first, *rest), (to_first, *to_rest) = old.modifiers, new.modifiers
    return first <= to_first and rest == to_rest


def _default(definer: Definer, column: Column, ref: TypeRef) -> Expression | None:
    if column.default is None:
        return None
    typed = Typed(decode(column.default.tree), definer.type_of(column.type))
    target = definer.type_of(ref)
    try:
        return definer.stored(build.assign(typed, target).node, {})
    except (CannotCast, DatatypeMismatch) as error:
        raise DatatypeMismatch(
            f'default for column "{column.name}" cannot be cast automatically to type {target.sql_name}'
        ) from error


def _rewrite(
    definer: Definer,
    table: Table,
    column: Column,
    ref: TypeRef,
    computed: Typed,
    default: Expression | None,
    *,
    has_using: bool,
) -> AlterType:
    columns = columns_of(table)
    titles = {id: name for id, name, _ in columns}
    new = [
        (table.next_column, name, ref) if id == column.id else (id, name, kind) for id, name, kind in columns
    ]
    checks, predicates = [], []
    for each in _reading(table, column):
        if isinstance(each, Check):
            tree = expression(definer.text_of(each.expression, table))
            checks.append((each.id, definer.condition(tree, new, "CHECK")))
        elif each.predicate is not None:
            tree = expression(definer.text_of(each.predicate, table))
            predicates.append((each.id, definer.condition(tree, new, "WHERE")))
    return AlterType(
        column.name,
        ref,
        computed=definer.stored(computed.node, titles),
        reverse=None if has_using else _reverse(definer, table, column, ref),
        default=default,
        checks=tuple(checks),
        predicates=tuple(predicates),
    )


def _computed(definer: Definer, table: Table, column: Column, ref: TypeRef, using: Tree | None) -> Typed:
    target = definer.type_of(ref)
    if using is None:
        typed = Typed(ColumnRef(column.id), definer.type_of(column.type))
    else:
        typed = definer.over_table(using, columns_of(table), "USING")
    try:
        return build.assign(typed, target)
    except (CannotCast, DatatypeMismatch) as error:
        what = (
            f'column "{column.name}"'
            if using is None
            else "result of USING clause for " + (f'column "{column.name}"')
        )
        hint = f'You might need to specify "USING {column.name}::{target.sql_name}".'
        if using is not None:
            hint = "You might need to add an explicit cast."
        raise DatatypeMismatch(
            f"{what} cannot be cast automatically to type {target.sql_name}", hint=hint
        ) from error


def _reverse(definer: Definer, table: Table, column: Column, ref: TypeRef) -> Expression | None:
    """The cast back to the former type, if there is one: by it, nodes on the former version read new rows."""
    try:
        back = build.cast(
            Typed(ColumnRef(table.next_column), definer.type_of(ref)), definer.type_of(column.type)
        )
    except (CannotCast, DatatypeMismatch):
        return None
    return definer.stored(back.node, {table.next_column: column.name})


def _reading(table: Table, column: Column) -> Iterator[Check | Index]:
    for check in staying(table.checks):
        if not check.not_null and column.id in check.expression.columns:
            yield check
    for index in staying(table.indexes):
        if index.predicate is not None and column.id in index.predicate.columns:
            yield index
