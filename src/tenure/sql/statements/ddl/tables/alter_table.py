"""ALTER TABLE: several actions in one statement, in PostgreSQL's order of passes.

    drop ─► alter type ─► add column ─► set and drop of columns ─► add constraints ─► the rest

So `DROP COLUMN a, ADD COLUMN a int` means what it says, in either order.

Walk: `statements.ddl.ddl_statements` -> `alter_table` -> the action's function ->
`catalog.changes.table_changes.alter`.
"""

from collections.abc import Callable

from tenure.base.errors import (
    DependentObjects,
    InvalidParameter,
    NotSupported,
    UndefinedObject,
    WrongObjectType,
    WrongState,
)
from tenure.base.settings import VERSION
from tenure.catalog.changes.constraint_changes import DropConstraint, ValidateConstraint
from tenure.catalog.changes.drops import drop_objects
from tenure.catalog.changes.index_changes import needing, primary_of
from tenure.catalog.changes.object_changes import set_owner
from tenure.catalog.changes.table_changes import (
    DropPrimaryKey,
    SetLocked,
    alter,
    referring_to,
    users_of,
)
from tenure.catalog.changes.table_parts import constraint_named
from tenure.catalog.changes.view_changes import view_of
from tenure.catalog.descriptors.definitions import Index, Schema, Table
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.cluster.sessions.versions import PROGRAM
from tenure.sql.statements.ddl import alter_type
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.statements.ddl.naming import find_index
from tenure.sql.statements.ddl.tables import alter_columns
from tenure.sql.statements.ddl.tables.constraint_definitions import add_constraint, primary_key
from tenure.sql.statements.ddl.tables.create_table import row_id_default
from tenure.sql.statements.ddl.views import relies_on_key
from tenure.sql.text.parse import Tree, child, items, kind, names, option

DROP, TYPE, ADD_COLUMN, COLUMN, ADD_CONSTRAINT, OTHER = range(6)

BOOLEANS = dict.fromkeys(("true", "on", "yes", "1"), True) | dict.fromkeys(("false", "off", "no", "0"), False)

Action = Callable[[Definer, Table, Tree], None]


def alter_tag(tree: Tree) -> str:
    return f"ALTER {option(tree, 'objtype').removeprefix('OBJECT_')}"


def alter_table(definer: Definer, tree: Tree) -> str | None:
    path = path_of(tree.relation)
    if option(tree, "objtype") == "OBJECT_INDEX" or _is_index(definer, path):
        raise NotSupported("storage parameters of indexes are not supported")
    if tree.missing_ok and definer.object(path) is None:
        definer.notice(f'relation "{path[-1]}" does not exist, skipping')
        return None
    relation = definer.relation(path, tree.relation.location + 1)
    definer.require_owner(relation)
    actions = items(tree.cmds)
    if not isinstance(relation, Table):
        _alter_other(definer, relation.id, relation, actions)
        return None
    replaced = _replaced_key(definer, relation, actions)
    for action in sorted(actions, key=_pass):
        if action in replaced:
            continue
        _act(definer, definer.declared(relation.id), action, is_replacing=bool(replaced))
    return None


def _is_index(definer: Definer, path: list[str]) -> bool:
    return definer.object(path) is None and find_index(definer, path) is not None


def _pass(action: Tree) -> int:
    subtype = option(action, "subtype")
    if subtype == "AT_ColumnDefault" and not action.HasField("def"):
        return DROP
    return ACTIONS[subtype][0] if subtype in ACTIONS else OTHER


def _act(definer: Definer, table: Table, action: Tree, *, is_replacing: bool) -> None:
    subtype = option(action, "subtype")
    if subtype == "AT_AddConstraint":
        _add_constraint(definer, table, action, is_replacing=is_replacing)
    elif subtype in ACTIONS:
        ACTIONS[subtype][1](definer, table, action)
    else:
        raise NotSupported(f"ALTER TABLE ... {_words(subtype)} is not supported")


def _words(subtype: str) -> str:
    """The action in words that users search for: AT_EnableTrig becomes ENABLE TRIG."""
    name = subtype.removeprefix("AT_")
    return "".join(f" {each}" if each.isupper() else each.upper() for each in name).strip()


def _alter_other(definer: Definer, id: int, relation: object, actions: list[Tree]) -> None:
    """A view or sequence: only its owner can be set this way."""
    for action in actions:
        subtype = option(action, "subtype")
        if subtype == "AT_ChangeOwner":
            set_owner(definer.draft, definer.use, id, definer.role(action.newowner))
            continue
        is_sequence = isinstance(relation, SequenceDescriptor)
        raise WrongObjectType(
            f"ALTER action {_spoken(subtype)} cannot be performed on relation "
            f'"{getattr(relation, "name", "")}"',
            detail=f"This operation is not supported for {'sequences' if is_sequence else 'views'}.",
        )


def _spoken(subtype: str) -> str:
    return SPOKEN.get(subtype, _words(subtype))


SPOKEN = {
    "AT_AddColumn": "ADD COLUMN",
    "AT_DropColumn": "DROP COLUMN",
    "AT_ColumnDefault": "ALTER COLUMN ... SET DEFAULT",
    "AT_SetNotNull": "ALTER COLUMN ... SET NOT NULL",
    "AT_DropNotNull": "ALTER COLUMN ... DROP NOT NULL",
    "AT_AlterColumnType": "ALTER COLUMN ... SET DATA TYPE",
    "AT_AddConstraint": "ADD CONSTRAINT",
    "AT_DropConstraint": "DROP CONSTRAINT",
    "AT_ValidateConstraint": "VALIDATE CONSTRAINT",
}


# ── constraints ────────────────────────────────────────────────────────────────────────────────


def _replaced_key(definer: Definer, table: Table, actions: list[Tree]) -> list[Tree]:
    """DROP CONSTRAINT of the primary key beside ADD PRIMARY KEY: one key takes over from the other."""
    adds = [each for each in actions if _adds_primary_key(each)]
    drops = [
        each
        for each in actions
        if option(each, "subtype") == "AT_DropConstraint" and each.name == primary_of(table).name
    ]
    return drops if adds and drops and primary_of(table).is_constraint else []


def _adds_primary_key(action: Tree) -> bool:
    if option(action, "subtype") != "AT_AddConstraint":
        return False
    return option(child(action, "def"), "contype") == "CONSTR_PRIMARY"


def _add_constraint(definer: Definer, table: Table, action: Tree, *, is_replacing: bool) -> None:
    schema = _schema_of(definer, table)
    tree = child(action, "def")
    if is_replacing and _adds_primary_key(action):
        change = primary_key(definer, schema, table, tree, tuple(names(tree.keys)), is_added=False)
        alter(definer.draft, definer.use, table.id, change)
    elif option(tree, "contype") == "CONSTR_NOTNULL":
        alter_columns.set_not_null_of(definer, table, names(tree.keys)[0])
    else:
        add_constraint(definer, schema, table.id, tree)


def _schema_of(definer: Definer, table: Table) -> Schema:
    schema = definer.use.descriptor(table.schema)
    assert isinstance(schema, Schema), "a table is in a schema"
    return schema


def _drop_constraint(definer: Definer, table: Table, action: Tree) -> None:
    constraint = constraint_named(table, action.name)
    if constraint is None:
        message = f'constraint "{action.name}" of relation "{table.name}" does not exist'
        if not action.missing_ok:
            raise UndefinedObject(message)
        definer.notice(f"{message}, skipping")
        return
    is_cascade = option(action, "behavior") == "DROP_CASCADE"
    referring = referring_to(definer.draft, definer.use, table)
    if isinstance(constraint, Index) and is_cascade:
        for each in needing(table, constraint, referring):
            definer.notice(f"drop cascades to {each}")
    if isinstance(constraint, Index) and constraint.primary == constraint.id:
        _let_views_go(definer, table, constraint, is_cascade=is_cascade)
        if is_cascade and needing(table, constraint, referring):
            raise NotSupported("a primary key that foreign keys refer to cannot be dropped with CASCADE")
        alter(definer.draft, definer.use, table.id, DropPrimaryKey(row_id_default(definer), referring))
    else:
        change = DropConstraint(action.name, is_cascade, referring)
        alter(definer.draft, definer.use, table.id, change)


def _let_views_go(definer: Definer, table: Table, key: Index, *, is_cascade: bool) -> None:
    """Views that group by a primary key and select more than it need it: they keep it, or go with it."""
    users = users_of(definer.draft, definer.use, table.id)
    views = [each for each in users if relies_on_key(definer, each, table)]
    names_of_views = [view_of(definer.draft, definer.use, each).name for each in views]
    if views and not is_cascade:
        what = f"constraint {key.name} on table {table.name}"
        raise DependentObjects.of(what, [f"view {each}" for each in names_of_views])
    if views:
        for each in names_of_views:
            definer.notice(f"drop cascades to view {each}")
        drop_objects(definer.draft, definer.use, views, is_cascade=True, qualifies=definer.qualifies)


def _validate_constraint(definer: Definer, table: Table, action: Tree) -> None:
    constraint = constraint_named(table, action.name)
    if constraint is None:
        raise UndefinedObject(f'constraint "{action.name}" of relation "{table.name}" does not exist')
    if isinstance(constraint, Index):
        raise WrongObjectType(
            f'cannot validate constraint "{action.name}" of relation "{table.name}"',
            detail="This operation is not supported for this type of constraint.",
        )
    alter(definer.draft, definer.use, table.id, ValidateConstraint(action.name))


# ── the table itself ───────────────────────────────────────────────────────────────────────────


def _change_owner(definer: Definer, table: Table, action: Tree) -> None:
    set_owner(definer.draft, definer.use, table.id, definer.role(action.newowner))


def _set_options(definer: Definer, table: Table, action: Tree) -> None:
    """SET and RESET of storage parameters; `schema_locked` is the one that has an effect."""
    has_others = False
    for each in items(child(action, "def").items):
        if each.defname == "schema_locked":
            is_reset = option(action, "subtype") == "AT_ResetRelOptions"
            _lock_schema(definer, table, is_kept=not is_reset and _is_on(each))
        else:
            has_others = True
    if has_others:
        definer.notice("storage parameters have no effect")


def _lock_schema(definer: Definer, table: Table, *, is_kept: bool) -> None:
    if is_kept and definer.node.settings.current()[VERSION] < PROGRAM:
        raise WrongState(
            "schema_locked cannot be set before the cluster is finalized",
            hint="Upgrade all nodes, then SET CLUSTER SETTING version.",
        )
    if is_kept and definer.names.is_temporary(table):
        raise NotSupported("temporary tables cannot be locked")
    alter(definer.draft, definer.use, table.id, SetLocked(is_kept))


def _is_on(option: Tree) -> bool:
    value = child(option, "arg")
    if value is None:
        return True
    match kind(value):
        case "String":
            text = value.sval
        case "Integer":
            text = str(value.ival)
        case _:
            text = names(value.names)[-1]
    if text.lower() not in BOOLEANS:
        raise InvalidParameter(f'invalid value for boolean option "{option.defname}": {text}')
    return BOOLEANS[text.lower()]


def _nothing(definer: Definer, table: Table, action: Tree) -> None:
    definer.notice(f"{_words(option(action, 'subtype'))} has no effect")


ACTIONS: dict[str, tuple[int, Action]] = {
    "AT_DropColumn": (DROP, alter_columns.drop),
    "AT_DropConstraint": (DROP, _drop_constraint),
    "AT_AlterColumnType": (TYPE, alter_type.alter_type),
    "AT_AddColumn": (ADD_COLUMN, alter_columns.add),
    "AT_ColumnDefault": (COLUMN, alter_columns.set_default),
    "AT_SetNotNull": (COLUMN, alter_columns.set_not_null),
    "AT_DropNotNull": (DROP, alter_columns.drop_not_null),
    "AT_AddIdentity": (COLUMN, alter_columns.add_identity),
    "AT_SetIdentity": (COLUMN, alter_columns.set_identity),
    "AT_DropIdentity": (DROP, alter_columns.drop_identity),
    "AT_DropExpression": (DROP, alter_columns.drop_expression),
    "AT_AddConstraint": (ADD_CONSTRAINT, _nothing),
    "AT_ValidateConstraint": (OTHER, _validate_constraint),
    "AT_ChangeOwner": (OTHER, _change_owner),
    "AT_SetRelOptions": (OTHER, _set_options),
    "AT_ResetRelOptions": (OTHER, _set_options),
    "AT_SetStatistics": (OTHER, _nothing),
    "AT_SetStorage": (OTHER, _nothing),
    "AT_SetCompression": (OTHER, _nothing),
    "AT_SetTableSpace": (OTHER, _nothing),
    "AT_SetLogged": (OTHER, _nothing),
    "AT_ClusterOn": (OTHER, _nothing),
    "AT_DropCluster": (OTHER, _nothing),
    "AT_ReplicaIdentity": (OTHER, _nothing),
}
