"""Databases that become schemas of another one, and relations that move to another database.

    ALTER DATABASE a [, b ...] CONVERT TO SCHEMA WITH PARENT c        a.public.t is now c.a.t, the same id
    ALTER TABLE [IF EXISTS] [db1.]s1.t RENAME TO [db2.]s2.u

All of a conversion is one commit: a node answers by its lease, the former name before and the new one after,
and nobody may take a former name until no node uses it. References between the databases that are converted
together, and to those of the parent, become references between schemas; others would cross databases.

The objects keep their ttl: where the parent has another one, the new schema gets the database's own. It
has the privileges and default privileges of the former `public`; what everybody had there is for those who
could connect to the database.

Walk: `statements.ddl.ddl_statements` -> `plan_convert`, `plan_move` -> `catalog.changes.database_conversion`,
`catalog.changes.object_changes`.
"""

from collections.abc import Sequence

from tenure.base.errors import (
    DuplicateSchema,
    NotSupported,
    ObjectInUse,
    SyntaxFault,
    UndefinedTable,
    WrongState,
)
from tenure.base.settings import CROSS_DATABASE_REFERENCES
from tenure.catalog.accounts.privileges import CONNECT, for_members, initial
from tenure.catalog.changes import object_changes
from tenure.catalog.changes.cross_database import touching
from tenure.catalog.changes.database_conversion import convert_to_schema
from tenure.catalog.changes.dependencies import title
from tenure.catalog.changes.zone_changes import configure
from tenure.catalog.descriptors.definitions import PUBLIC_SCHEMA, Database, replace
from tenure.catalog.descriptors.role_records import WHOLE_OBJECT, ObjectPrivileges, key_of
from tenure.catalog.descriptors.zones import all_zones, effective_ttl
from tenure.sql.execution.planner import Planner
from tenure.sql.statements.ddl.databases import database_named, require_users_own
from tenure.sql.statements.ddl.definition import Definer, Definition
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.ddl.object_names import require_free_there
from tenure.sql.statements.ddl.schemas import require_allowed
from tenure.sql.text.parse import Tree
from tenure.sql.text.tenure_statements import TokenReader

PARTS_MAX = 3
"""Database, schema and name."""

# ── ALTER DATABASE ... CONVERT TO SCHEMA ───────────────────────────────────────────────────────


def plan_convert(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Definition:
    reader.expect("alter", "database")
    names = [reader.name()]
    while reader.take(","):
        names.append(reader.name())
    reader.expect("convert", "to", "schema", "with", "parent")
    parent = reader.name()
    reader.end()
    _refuse_as_of(planner)

    def apply(definer: Definer, tree: Tree) -> str | None:
        _convert(definer, list(dict.fromkeys(names)), parent)
        return None

    return Definition(node, "ALTER DATABASE", None, apply, planner.text)


def _convert(definer: Definer, names: Sequence[str], parent_name: str) -> None:
    parent = database_named(definer, parent_name)
    databases = [database_named(definer, name) for name in names]
    for each in (parent, *databases):
        _require_owner(definer, each)
    moved = [id for each in databases for id in _convert_one(definer, each, parent)]
    _check_references(definer, databases, moved)


def _require_owner(definer: Definer, database: Database) -> None:
    require_users_own(database)
    definer.rights.require_owner(database)


def _convert_one(definer: Definer, database: Database, parent: Database) -> list[int]:
    """Returns the ids of its objects."""
    if database.id == definer.session.database:
        raise ObjectInUse("cannot convert the currently open database", hint="Connect to the parent.")
    require_allowed(database.name)
    if definer.is_system_schema(database.name):
        raise DuplicateSchema(f'schema "{database.name}" already exists')
    entries = list(definer.node.catalog.schema_map(definer.use.txn, database.id))
    schemas = [each.id for each in entries]
    contents = [id for schema in schemas for id in definer.contents(database.id, schema)]
    schema = definer.fresh_id()
    public = [each.id for each in entries if each.name == PUBLIC_SCHEMA]
    _keep_ttl(definer, parent, schema, former_place=(database.id, *public))
    convert_to_schema(
        definer.draft,
        definer.use,
        database.id,
        parent=parent.id,
        schema=schema,
        schemas=schemas,
        contents=contents,
    )
    for each in public:
        _keep_privileges(definer, database, each, schema)
        _keep_defaults(definer, each, schema)
    return contents


def _keep_privileges(definer: Definer, database: Database, former: int, schema: int) -> None:
    """Gives the new schema the privileges of the former `public`; everybody are those who could connect to
    the database, so that nobody gets in by a conversion."""
    record = definer.record(("privileges", former, WHOLE_OBJECT))
    if isinstance(record, ObjectPrivileges):
        entries = for_members(record.entries, _connecting(definer, database), database.owner)
        kept = ObjectPrivileges(schema, WHOLE_OBJECT, entries)
        definer.set_record(key_of(kept), kept)


def _connecting(definer: Definer, database: Database) -> list[str]:
    """The roles with the right to connect, among them PUBLIC."""
    record = definer.record(("privileges", database.id, WHOLE_OBJECT))
    entries = record.entries if isinstance(record, ObjectPrivileges) else initial("database")
    return [each.grantee for each in entries if each.privileges & CONNECT]


def _keep_defaults(definer: Definer, former: int, schema: int) -> None:
    """What new objects of the former `public` were to be granted is for those of the schema."""
    records, txn = definer.node.catalog.roles, definer.use.txn
    for each in list(records.all_defaults(txn)):
        if each.schema == former:
            records.delete_defaults(txn, each)
            records.put_defaults(txn, replace(each, schema=schema))


def _keep_ttl(definer: Definer, parent: Database, schema: int, *, former_place: Sequence[int]) -> None:
    """Gives the new schema the ttl of the former place, unless it inherits the same."""
    txn, keyspace = definer.use.txn, definer.node.store.keyspace
    zones = all_zones(txn, keyspace)
    former = effective_ttl(zones, *former_place)
    if former.seconds != effective_ttl(zones, parent.id).seconds:
        configure(txn, keyspace, (schema, 0), gc_ttl_seconds=former.seconds)


def _check_references(definer: Definer, databases: Sequence[Database], moved: Sequence[int]) -> None:
    """Refuses a conversion that leaves references to other databases, unless these are allowed."""
    if definer.may_cross_databases:
        return
    objects = (definer.now(id) for id in moved)
    for found in (each for object in objects if object is not None for each in touching(object, definer.now)):
        names = ", ".join(f'"{each.name}"' for each in databases)
        raise WrongState(
            f"cannot convert {names} into schema: {title(found.user)} refers to {title(found.used)} "
            "of another database",
            hint=f"Convert both databases together, or set {CROSS_DATABASE_REFERENCES.name}.",
        )


# ── ALTER TABLE ... RENAME TO database.schema.table ────────────────────────────────────────────


def plan_move(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Definition:
    reader.expect("alter", "table")
    is_missing_ok = reader.take("if", "exists")
    path = reader.names()
    reader.expect("rename", "to")
    target = reader.names()
    if len(path) > PARTS_MAX or len(target) > PARTS_MAX:
        raise SyntaxFault("improper qualified name (too many dotted names)")
    reader.end()
    _refuse_as_of(planner)

    def apply(definer: Definer, tree: Tree) -> str | None:
        _move(definer, path, target, is_missing_ok)
        return None

    return Definition(node, "ALTER TABLE", None, apply, planner.text)


def _move(definer: Definer, path: Sequence[str], target: Sequence[str], is_missing_ok: bool) -> None:
    try:
        relation = definer.relation(path)
    except UndefinedTable:
        if not is_missing_ok:
            raise
        definer.notice(f'relation "{path[-1]}" does not exist, skipping')
        return
    schema = definer.schema_for(target[:-1])
    if (schema.id, target[-1]) == (relation.schema, relation.name):
        return
    require_free_there(definer, schema, relation, target[-1])
    object_changes.set_schema(definer.draft, definer.use, relation.id, schema.id, name=target[-1])


def _refuse_as_of(planner: Planner) -> None:
    if planner.as_of:
        raise NotSupported("AS OF SYSTEM TIME is not supported in statements that define")
