"""The column actions of ALTER TABLE: add, drop, default, NOT NULL, identity.

A column that is added with a default has its value in the rows that are there already: one that is the
same for all of them is kept once, any other is computed for each.

Walk: `statements.ddl.tables.alter_table` -> these -> `catalog.changes.column_changes`,
`catalog.changes.drops`.
"""

from tenure.base.errors import UndefinedColumn
from tenure.catalog.changes import drops
from tenure.catalog.changes.column_changes import (
    AddIdentity,
    DropDefault,
    DropExpression,
    DropNotNull,
    SetDefault,
    SetIdentity,
    SetNotNull,
    require_free_column,
)
from tenure.catalog.changes.dependencies import COLUMN, CatalogObject
from tenure.catalog.changes.sequence_changes import set_owned_by
from tenure.catalog.changes.table_changes import alter, owned_sequences
from tenure.catalog.changes.table_parts import column_of as named_column
from tenure.catalog.changes.table_parts import find_column, successor_of
from tenure.catalog.descriptors.definitions import Expression, OwnedBy, Schema, Table
from tenure.expr.functions.function import Volatility
from tenure.expr.tree.compiled import compile, volatility
from tenure.expr.tree.expressions import decode
from tenure.expr.tree.sequence_needs import sequence_needs
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.dropping import tell_cascade
from tenure.sql.statements.ddl.sequences import alter_options
from tenure.sql.statements.ddl.tables.column_definitions import (
    NewColumn,
    addition,
    column_of,
    identity_of,
    identity_options,
    is_null,
    make_sequence,
    next_of,
)
from tenure.sql.statements.ddl.tables.constraint_definitions import add_constraint
from tenure.sql.text.parse import Tree, child, items, option
from tenure.table.columns import filled_with


def add(definer: Definer, table: Table, action: Tree) -> None:
    tree = child(action, "def")
    name = tree.colname
    if action.missing_ok and find_column(table, name) is not None:
        definer.notice(f'column "{name}" of relation "{table.name}" already exists, skipping', "42701")
        return
    require_free_column(table, name)
    column = column_of(definer, table.name, tree)
    if column.default is not None:
        _require_sequences(definer, column.default)
    schema = _schema_of(definer, table)
    sequence = None
    if column.sequence is not None:
        sequence = make_sequence(definer, schema, table.name, column.name, column.sequence, table.owner)
    columns = [(each.id, each.name, each.type) for each in table.columns if each.generated is None]
    change = addition(definer, column, columns, sequence, _filled(definer, column))
    altered = alter(definer.draft, definer.use, table.id, change)
    if sequence is not None:
        owner = OwnedBy(table.id, named_column(altered, column.name).id)
        set_owned_by(definer.draft, definer.use, sequence, owner)
    for constraint in column.constraints:
        add_constraint(definer, schema, table.id, constraint, (column.name,))


def _require_sequences(definer: Definer, default: Expression) -> None:
    """The rights to what the default of the rows that are there calls."""
    for id, privilege in sequence_needs(decode(default.tree)):
        sequence = definer.now(id)
        if sequence is not None and not definer.names.is_temporary(sequence):
            definer.rights.require(sequence, privilege)


def _schema_of(definer: Definer, table: Table) -> Schema:
    schema = definer.use.descriptor(table.schema)
    assert isinstance(schema, Schema), "a table is in a schema"
    return schema


def _filled(definer: Definer, column: NewColumn) -> bytes | None:
    """The value for existing rows, if it is the same for all of them."""
    if column.default is None or column.generated is not None:
        return None
    node = decode(column.default.tree)
    if volatility(node) is Volatility.VOLATILE:
        return None
    value = compile(node, {}, definer.names.enum)((), definer.execution.context)
    return None if value is None else filled_with(definer.type_of(column.type), value)


def drop(definer: Definer, table: Table, action: Tree) -> None:
    column = find_column(table, action.name)
    if column is None or column.is_hidden:
        message = f'column "{action.name}" of relation "{table.name}" does not exist'
        if not action.missing_ok:
            raise UndefinedColumn(message)
        definer.notice(f"{message}, skipping")
        return
    is_cascade = option(action, "behavior") == "DROP_CASCADE"
    if is_cascade:
        tell_cascade(definer, [CatalogObject(table.id, COLUMN, column.id)])
    drops.drop_column(
        definer.draft,
        definer.use,
        table.id,
        action.name,
        is_cascade=is_cascade,
        qualifies=definer.qualifies,
    )


def set_default(definer: Definer, table: Table, action: Tree) -> None:
    column = named_column(table, action.name)
    tree = child(action, "def")
    kind = successor_of(table, column).type
    default = None if tree is None else definer.default(tree, column.name, kind)
    change = (
        DropDefault(action.name) if default is None or is_null(default) else SetDefault(action.name, default)
    )
    alter(definer.draft, definer.use, table.id, change)


def set_not_null(definer: Definer, table: Table, action: Tree) -> None:
    set_not_null_of(definer, table, action.name)


def set_not_null_of(definer: Definer, table: Table, name: str) -> None:
    alter(definer.draft, definer.use, table.id, SetNotNull(name))


def drop_not_null(definer: Definer, table: Table, action: Tree) -> None:
    alter(definer.draft, definer.use, table.id, DropNotNull(action.name))


def drop_expression(definer: Definer, table: Table, action: Tree) -> None:
    column = named_column(table, action.name)
    if column.generated is None and action.missing_ok:
        definer.notice(
            f'column "{action.name}" of relation "{table.name}" is not a generated column, skipping'
        )
        return
    alter(definer.draft, definer.use, table.id, DropExpression(action.name))


# ── identity ───────────────────────────────────────────────────────────────────────────────────


def add_identity(definer: Definer, table: Table, action: Tree) -> None:
    column = named_column(table, action.name)
    tree = child(action, "def")
    options = identity_options(definer, column.name, column.type, tree.options)
    schema = _schema_of(definer, table)
    sequence = make_sequence(definer, schema, table.name, column.name, options, table.owner)
    default: Expression = next_of(definer, sequence, column.type)
    change = AddIdentity(column.name, identity_of(tree.generated_when), default)
    alter(definer.draft, definer.use, table.id, change)
    set_owned_by(definer.draft, definer.use, sequence, OwnedBy(table.id, column.id))


def set_identity(definer: Definer, table: Table, action: Tree) -> None:
    column = named_column(table, action.name)
    options = child(action, "def").items
    kind = [chr(child(each, "arg").ival) for each in items(options) if each.defname == "generated"]
    identity = identity_of(kind[0]) if kind else column.identity
    alter(definer.draft, definer.use, table.id, SetIdentity(action.name, identity))
    for sequence in owned_sequences(definer.draft, definer.use, definer.declared(table.id), column.id):
        if len(options) > len(kind):
            alter_options(definer, sequence, options)


def drop_identity(definer: Definer, table: Table, action: Tree) -> None:
    column = named_column(table, action.name)
    if not column.identity and action.missing_ok:
        definer.notice(
            f'column "{action.name}" of relation "{table.name}" is not an identity column, skipping'
        )
        return
    drops.drop_identity(definer.draft, definer.use, table.id, action.name)
