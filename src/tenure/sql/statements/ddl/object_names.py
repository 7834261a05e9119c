"""ALTER ... RENAME, SET SCHEMA and OWNER TO, of every kind of object.

Walk: `statements.ddl.ddl_statements` -> `rename`, `set_schema`, `set_owner` ->
`catalog.changes.object_changes`.
"""

from collections.abc import Callable

from tenure.base.errors import (
    DuplicateObject,
    DuplicateRelation,
    NotSupported,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from tenure.catalog.changes import object_changes
from tenure.catalog.changes.column_changes import RenameColumn
from tenure.catalog.changes.constraint_changes import RenameConstraint
from tenure.catalog.changes.free_names import database_of
from tenure.catalog.changes.index_changes import RenameIndex
from tenure.catalog.changes.table_changes import alter
from tenure.catalog.changes.table_parts import constraint_named, find_column, staying
from tenure.catalog.changes.view_changes import rename_view_column
from tenure.catalog.descriptors.definitions import AnyDescriptor, Contained, Index, Schema, Table, View
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.name_resolution import PG_TEMP
from tenure.sql.statements.ddl.databases import database_named, require_users_own
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.statements.ddl.naming import find_index, index, require_free
from tenure.sql.statements.ddl.privileges.role_names import rename_role
from tenure.sql.statements.ddl.schemas import require_allowed, schema_named
from tenure.sql.text.parse import Tree, child, has, kind, names, option

RELATIONS: dict[str, tuple[str, type | None]] = {
    "OBJECT_TABLE": ("a table", None),
    "OBJECT_INDEX": ("an index", None),
    "OBJECT_VIEW": ("a view", View),
    "OBJECT_SEQUENCE": ("a sequence", SequenceDescriptor),
}
"""ALTER TABLE and ALTER INDEX are accepted for other kinds of objects, too."""


def rename_tag(tree: Tree) -> str:
    what = option(tree, "rename_type")
    if what == "OBJECT_COLUMN":
        what = option(tree, "relation_type")
    return f"ALTER {'TABLE' if what == 'OBJECT_TABCONSTRAINT' else _word(what)}"


def object_tag(tree: Tree) -> str:
    return f"ALTER {_word(option(tree, 'object_type'))}"


def _word(what: str) -> str:
    return what.removeprefix("OBJECT_").replace("_", " ")


# ── RENAME ─────────────────────────────────────────────────────────────────────────────────────


def rename(definer: Definer, tree: Tree) -> str | None:
    what = option(tree, "rename_type")
    renaming = RENAMINGS.get(what)
    if renaming is None:
        raise NotSupported(f"ALTER {_word(what)} ... RENAME is not supported")
    if has(tree, "relation") and _is_missing(definer, tree, is_index=what == "OBJECT_INDEX"):
        return None
    renaming(definer, tree)
    return None


def _is_missing(definer: Definer, tree: Tree, *, is_index: bool = False) -> bool:
    """Whether IF EXISTS leaves nothing to do."""
    path = path_of(tree.relation)
    if not tree.missing_ok or definer.object(path) is not None:
        return False
    if is_index and find_index(definer, path) is not None:
        return False
    definer.notice(f'relation "{path[-1]}" does not exist, skipping')
    return True


def _rename_relation(definer: Definer, tree: Tree) -> None:
    path = path_of(tree.relation)
    spoken, wanted = RELATIONS[option(tree, "rename_type")]
    if definer.object(path) is None and find_index(definer, path) is not None:
        if wanted is not None:
            raise WrongObjectType(f'"{path[-1]}" is not {spoken}')
        _rename_index(definer, tree)
        return
    relation = definer.relation(path, tree.relation.location + 1)
    if wanted is not None and not isinstance(relation, wanted):
        raise WrongObjectType(f'"{path[-1]}" is not {spoken}')
    definer.require_owner(relation)
    _take_name(definer, _schema_of(definer, relation), tree.newname)
    object_changes.rename_object(definer.draft, definer.use, relation.id, tree.newname)


def _schema_of(definer: Definer, descriptor: Contained) -> Schema:
    schema = definer.use.descriptor(descriptor.schema)
    assert isinstance(schema, Schema), "an object is in a schema"
    return schema


def _rename_index(definer: Definer, tree: Tree) -> None:
    if definer.object(path_of(tree.relation)) is not None:
        _rename_relation(definer, tree)  # as in PostgreSQL, it renames tables, too
        return
    table, found = index(definer, path_of(tree.relation))
    definer.require_owner(table)
    _take_name(definer, _schema_of(definer, table), tree.newname)
    alter(definer.draft, definer.use, table.id, RenameIndex(found.name, tree.newname))


def _take_name(definer: Definer, schema: Schema, name: str) -> None:
    definer.require_create(schema)
    require_free(definer, schema, name)


def _rename_column(definer: Definer, tree: Tree) -> None:
    relation = definer.relation(path_of(tree.relation), tree.relation.location + 1)
    definer.require_owner(relation)
    match relation:
        case Table():
            if find_column(relation, tree.subname) is None:
                raise UndefinedColumn(f'column "{tree.subname}" does not exist')
            alter(definer.draft, definer.use, relation.id, RenameColumn(tree.subname, tree.newname))
        case View():
            if all(each.name != tree.subname for each in relation.columns):
                raise UndefinedColumn(f'column "{tree.subname}" does not exist')
            rename_view_column(definer.draft, definer.use, relation.id, tree.subname, tree.newname)
        case _:
            raise WrongObjectType(f'cannot rename columns of relation "{relation.name}"')


def _rename_constraint(definer: Definer, tree: Tree) -> None:
    table = definer.table(path_of(tree.relation), tree.relation.location + 1)
    definer.require_owner(table)
    constraint = constraint_named(table, tree.subname)
    if constraint is None:
        raise UndefinedObject(f'constraint "{tree.subname}" for table "{table.name}" does not exist')
    if isinstance(constraint, Index):
        require_free(definer, _schema_of(definer, table), tree.newname)
    alter(definer.draft, definer.use, table.id, RenameConstraint(tree.subname, tree.newname))


def _rename_database(definer: Definer, tree: Tree) -> None:
    database = database_named(definer, tree.subname)
    definer.require_owner(database)
    if database.id == definer.session.database:
        raise NotSupported("current database cannot be renamed")
    require_users_own(database)
    object_changes.rename_object(definer.draft, definer.use, database.id, tree.newname)


def _rename_schema(definer: Definer, tree: Tree) -> None:
    schema = schema_named(definer, tree.subname)
    definer.require_owner(schema)
    require_users_own(database_of(definer.draft, definer.use, schema.database))
    require_allowed(tree.newname)
    object_changes.rename_object(definer.draft, definer.use, schema.id, tree.newname)


def _rename_type(definer: Definer, tree: Tree) -> None:
    enum = definer.enum(names(child(tree, "object").items))
    definer.require_owner(enum)
    if definer.is_taken(_schema_of(definer, enum), tree.newname):
        raise DuplicateObject(f'type "{tree.newname}" already exists')
    object_changes.rename_object(definer.draft, definer.use, enum.id, tree.newname)


RENAMINGS: dict[str, Callable[[Definer, Tree], None]] = {
    "OBJECT_TABLE": _rename_relation,
    "OBJECT_VIEW": _rename_relation,
    "OBJECT_SEQUENCE": _rename_relation,
    "OBJECT_INDEX": _rename_index,
    "OBJECT_COLUMN": _rename_column,
    "OBJECT_TABCONSTRAINT": _rename_constraint,
    "OBJECT_DATABASE": _rename_database,
    "OBJECT_ROLE": rename_role,
    "OBJECT_SCHEMA": _rename_schema,
    "OBJECT_TYPE": _rename_type,
}


# ── SET SCHEMA and OWNER TO ────────────────────────────────────────────────────────────────────


def set_schema(definer: Definer, tree: Tree) -> str | None:
    what = option(tree, "object_type")
    found: Contained
    if what in RELATIONS:
        if _is_missing(definer, tree):
            return None
        path = path_of(tree.relation)
        found = definer.relation(path, tree.relation.location + 1)
        spoken, wanted = RELATIONS[what]
        if wanted is not None and not isinstance(found, wanted):
            raise WrongObjectType(f'"{path[-1]}" is not {spoken}')
    elif what == "OBJECT_TYPE":
        found = definer.enum(names(child(tree, "object").items))
    else:
        raise NotSupported(f"ALTER {_word(what)} ... SET SCHEMA is not supported")
    if tree.newschema == PG_TEMP or found.schema == definer.session.temporary.schema_id:
        raise NotSupported("cannot move objects into or out of temporary schemas")
    definer.require_owner(found)
    schema = schema_named(definer, tree.newschema)
    if schema.id == found.schema:
        return None
    require_free_there(definer, schema, found, found.name)
    object_changes.set_schema(definer.draft, definer.use, found.id, schema.id)
    return None


def require_free_there(definer: Definer, schema: Schema, found: Contained, name: str) -> None:
    """Raises if a schema has the name already that an object is to get in it, or an index of it has."""
    if definer.is_taken(schema, name):
        there = f'"{name}" already exists in schema "{schema.name}"'
        if isinstance(found, Table | View | SequenceDescriptor):
            raise DuplicateRelation(f"relation {there}")
        raise DuplicateObject(f"type {there}")
    if not isinstance(found, Table) or found.schema == schema.id:
        return
    for each in staying(found.indexes):
        require_free(definer, schema, each.name)


def set_owner(definer: Definer, tree: Tree) -> str | None:
    owner = definer.role(tree.newowner)
    target = child(tree, "object")
    found: AnyDescriptor
    match option(tree, "object_type"):
        case "OBJECT_DATABASE":
            found = database_named(definer, target.sval)
        case "OBJECT_SCHEMA":
            found = schema_named(definer, target.sval)
        case "OBJECT_TYPE":
            found = definer.enum(names(target.names if kind(target) == "TypeName" else target.items))
        case other:
            raise NotSupported(f"ALTER {_word(other)} ... OWNER TO is not supported")
    if found.owner != owner:  # as in PostgreSQL, anybody may say what is so already
        definer.require_owner(found)
        object_changes.set_owner(definer.draft, definer.use, found.id, owner)
    return None
