"""CREATE, ALTER and DROP DATABASE.

A database is dropped with everything in it, as PostgreSQL does it, unless RESTRICT is said; not the one that
the session is in. What other databases have that refers to it goes only with CASCADE.

Walk: `statements.ddl.ddl_statements` -> these -> `catalog.changes.object_changes`, `catalog.changes.drops`.
"""

from collections.abc import Sequence

from tenure.base.errors import (
    DependentObjects,
    DuplicateDatabase,
    NotSupported,
    ObjectInUse,
    UndefinedDatabase,
)
from tenure.catalog.changes.cross_database import touching
from tenure.catalog.changes.dependencies import title
from tenure.catalog.changes.drops import drop_database as drop
from tenure.catalog.changes.object_changes import create_database as create
from tenure.catalog.descriptors.definitions import SYSTEM_DATABASE, Database, NameKey, is_dropped
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.text.parse import Tree, child, items

ACCEPTED = {
    "encoding": ("utf8", "utf-8", "default"),
    "lc_collate": ("c", "posix", "c.utf-8", "c.utf8", "default"),
    "lc_ctype": ("c", "posix", "c.utf-8", "c.utf8", "default"),
    "locale": ("c", "posix", "c.utf-8", "c.utf8", "default"),
    "locale_provider": ("libc", "builtin", "default"),
    "template": ("template0", "template1", "default"),
    "strategy": ("wal_log", "file_copy"),
}
"""Text is always UTF-8 in C order; options that ask for something else are refused."""


def create_database(definer: Definer, tree: Tree, *, if_not_exists: bool = False) -> str | None:
    owner = definer.owner
    for each in items(tree.options):
        value = child(each, "arg")
        if each.defname == "owner":
            owner = definer.role_named(value.sval)
        else:
            _check_option(each.defname, getattr(value, "sval", "") if value is not None else "default")
    if find_database(definer, tree.dbname) is not None:
        if if_not_exists:
            definer.notice(f'database "{tree.dbname}" already exists, skipping', "42P04")
            return None
        raise DuplicateDatabase(f'database "{tree.dbname}" already exists')
    id, schema = definer.fresh_id(), definer.fresh_id()
    create(definer.draft, definer.use, id=id, schema=schema, name=tree.dbname, owner=owner)
    return None


def _check_option(name: str, value: str) -> None:
    if value.lower() not in ACCEPTED.get(name, ()):
        raise NotSupported(f"{name.upper()} {value} is not supported for databases")


def drop_database(definer: Definer, tree: Tree, *, is_cascade: bool | None = None) -> str | None:
    """None: with everything in it, but nothing else."""
    found = find_database(definer, tree.dbname)
    if found is None and tree.missing_ok:
        definer.notice(f'database "{tree.dbname}" does not exist, skipping')
        return None
    database = found or database_named(definer, tree.dbname)
    definer.require_dropper(database)
    if database.id == definer.session.database:
        raise ObjectInUse("cannot drop the currently open database")
    require_users_own(database)
    entries = definer.node.catalog.schema_map(definer.use.txn, database.id)
    schemas = [each.id for each in entries]
    contents = [id for schema in schemas for id in definer.contents(database.id, schema)]
    if is_cascade is None:
        _require_unreferenced(definer, database, contents)
    drop(definer.draft, definer.use, database.id, schemas, contents, is_cascade=is_cascade is not False)
    return None


def _require_unreferenced(definer: Definer, database: Database, contents: Sequence[int]) -> None:
    """Raises DependentObjects (2BP01) if an object of another database refers to one of these."""
    inside = (each for id in contents if (each := definer.now(id)) is not None)
    found = [
        f"{title(each.user)} depends on {title(each.used)}"
        for descriptor in inside
        for each in touching(descriptor, definer.now)
        if each.used.id == descriptor.id
    ]
    if found:
        raise DependentObjects.listing(
            f"cannot drop database {database.name} because other databases depend on it", found
        )


def require_users_own(database: Database) -> None:
    if database.id == SYSTEM_DATABASE:
        raise DependentObjects(
            f"database {database.name} cannot be changed: it is required by the database system"
        )


def database_named(definer: Definer, name: str) -> Database:
    found = find_database(definer, name)
    if found is None:
        raise UndefinedDatabase(f'database "{name}" does not exist')
    return found


def find_database(definer: Definer, name: str) -> Database | None:
    """Looked up in the lease; if it is not there, the store decides."""
    place = NameKey(0, 0, name)
    id = definer.use.id_at(place)
    if id is None and place not in definer.draft.names:
        definer.names.confirm_absent(lambda catalog: catalog.id_at(place), name)
    found = None if id is None else definer.use.descriptor(id)
    return found if isinstance(found, Database) and not is_dropped(found) else None


def alter_database(definer: Definer, tree: Tree) -> str | None:
    """ALTER DATABASE ... WITH: options that mean nothing here."""
    database_named(definer, tree.dbname)
    raise NotSupported("options of databases are not supported")
