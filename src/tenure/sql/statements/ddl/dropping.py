"""DROP TABLE, VIEW, SEQUENCE, TYPE, INDEX and SCHEMA: several at once, with IF EXISTS and CASCADE.

All that one statement names goes together: what depends on another of them is not in the way. With
CASCADE, the client is told what else went.

Walk: `statements.ddl.ddl_statements` -> `drop` -> `catalog.changes.drops`, or `catalog.changes.index_changes`
for indexes.
"""

from collections.abc import Sequence

from tenure.base.errors import (
    InsufficientPrivilege,
    NotSupported,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from tenure.catalog.changes.dependencies import CatalogObject, Contents, closure, name_of
from tenure.catalog.changes.drops import drop_objects, inside
from tenure.catalog.changes.drops import drop_schemas as drop_from_catalog
from tenure.catalog.changes.index_changes import DropIndex
from tenure.catalog.changes.table_changes import alter, referring_to
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, Schema, Table, View
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.name_resolution import schemas_of
from tenure.sql.statements.ddl.databases import find_database, require_users_own
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.naming import find_index
from tenure.sql.statements.ddl.schemas import find_schema
from tenure.sql.text.parse import Tree, items, kind, names, option, string

KINDS: dict[str, tuple[str, type[AnyDescriptor]]] = {
    "OBJECT_TABLE": ("table", Table),
    "OBJECT_VIEW": ("view", View),
    "OBJECT_SEQUENCE": ("sequence", SequenceDescriptor),
    "OBJECT_TYPE": ("type", EnumType),
}
SPOKEN = {Table: "a table", View: "a view", SequenceDescriptor: "a sequence", EnumType: "a type"}


def tag_of(tree: Tree) -> str:
    return f"DROP {option(tree, 'remove_type').removeprefix('OBJECT_').replace('_', ' ')}"


def drop(definer: Definer, tree: Tree) -> str | None:
    what = option(tree, "remove_type")
    is_cascade = option(tree, "behavior") == "DROP_CASCADE"
    if what == "OBJECT_SCHEMA":
        drop_schemas(definer, [[string(each)] for each in tree.objects], tree.missing_ok, is_cascade)
    elif what == "OBJECT_INDEX":
        _drop_indexes(definer, [_path(each) for each in items(tree.objects)], tree.missing_ok, is_cascade)
    elif what in KINDS:
        paths = [_path(each) for each in items(tree.objects)]
        _drop_objects(definer, what, paths, tree.missing_ok, is_cascade)
    else:
        raise NotSupported(f"{tag_of(tree)} is not supported")
    return None


def _path(tree: Tree) -> list[str]:
    return names(tree.names) if kind(tree) == "TypeName" else names(tree.items)


def _drop_objects(
    definer: Definer, what: str, paths: Sequence[list[str]], missing_ok: bool, is_cascade: bool
) -> None:
    ids = []
    for path in paths:
        found = _found(definer, what, path, missing_ok)
        if found is not None:
            definer.require_dropper(found)
            ids.append(found.id)
    if is_cascade:
        tell_cascade(definer, [CatalogObject(id) for id in dict.fromkeys(ids)])
    drop_objects(definer.draft, definer.use, ids, is_cascade=is_cascade, qualifies=definer.qualifies)


def _found(definer: Definer, what: str, path: list[str], missing_ok: bool) -> AnyDescriptor | None:
    word, wanted = KINDS[what]
    found = definer.object(path)
    if isinstance(found, wanted):
        return found
    if found is not None and wanted is not EnumType and not isinstance(found, EnumType):
        is_now = SPOKEN[type(found)]
        raise WrongObjectType(
            f'"{path[-1]}" is not {SPOKEN[wanted]}',
            hint=f"Use DROP {is_now.split()[1].upper()} to remove {is_now}.",
        )
    if definer.session.system_tables.table(path, definer.names.path) is not None:
        raise InsufficientPrivilege(f'permission denied: "{path[-1]}" is a system catalog')
    if wanted is not EnumType and _is_index(definer, path):
        raise WrongObjectType(
            f'"{path[-1]}" is not {SPOKEN[wanted]}', hint="Use DROP INDEX to remove an index."
        )
    _missing(definer, word, path, missing_ok)
    return None


def _is_index(definer: Definer, path: list[str]) -> bool:
    try:
        return find_index(definer, path) is not None
    except UndefinedSchema:
        return False


def _missing(definer: Definer, word: str, path: list[str], missing_ok: bool) -> None:
    qualifier = path[:-1]
    if qualifier and not schemas_of(definer.names, qualifier, definer.names.path):
        if not missing_ok:
            raise UndefinedSchema(f'schema "{".".join(qualifier)}" does not exist')
        definer.notice(f'schema "{".".join(qualifier)}" does not exist, skipping')
        return
    name = ".".join(path) if word == "type" else path[-1]
    if missing_ok:
        definer.notice(f'{word} "{name}" does not exist, skipping')
        return
    error = UndefinedObject if word in ("type", "index") else UndefinedTable
    raise error(f'{word} "{name}" does not exist')


def _drop_indexes(definer: Definer, paths: Sequence[list[str]], missing_ok: bool, is_cascade: bool) -> None:
    for path in paths:
        other = definer.object(path)
        if other is not None and not isinstance(other, EnumType):
            is_now = SPOKEN[type(other)]
            raise WrongObjectType(
                f'"{path[-1]}" is not an index',
                hint=f"Use DROP {is_now.split()[1].upper()} to remove {is_now}.",
            )
        try:
            found = find_index(definer, path)
        except UndefinedSchema:
            found = None
        if found is None:
            _missing(definer, "index", path, missing_ok)
            continue
        table, index = found
        definer.require_dropper(table)
        referring = referring_to(definer.draft, definer.use, table)
        alter(definer.draft, definer.use, table.id, DropIndex(index.name, is_cascade, referring))


def drop_schemas(
    definer: Definer, paths: Sequence[Sequence[str]], missing_ok: bool, is_cascade: bool
) -> None:
    """Each path is a schema of the current database, or a database and a schema of it."""
    schemas = [each for path in paths if (each := _found_schema(definer, path, missing_ok)) is not None]
    for each in schemas:
        definer.require_dropper(each)
    ids = list(dict.fromkeys(each.id for each in schemas))
    contents = [id for each in schemas for id in definer.contents(each.database, each.id)]
    if is_cascade:
        tell_cascade(
            definer, [CatalogObject(id) for id in ids], inside(definer.draft, definer.use, ids, contents)
        )
    drop_from_catalog(
        definer.draft, definer.use, ids, contents, is_cascade=is_cascade, qualifies=definer.qualifies
    )


def _found_schema(definer: Definer, path: Sequence[str], missing_ok: bool) -> Schema | None:
    *database, name = path
    if definer.is_system_schema(name):
        raise InsufficientPrivilege(
            f"cannot drop schema {name} because it is required by the database system"
        )
    parent = find_database(definer, database[0]) if database else None
    if parent is not None:
        require_users_own(parent)
    if database and parent is None and not missing_ok:
        raise UndefinedDatabase(f'database "{database[0]}" does not exist')
    if database and parent is None:
        definer.notice(f'database "{database[0]}" does not exist, skipping')
        return None
    found = find_schema(definer, definer.names.path.database if parent is None else parent.id, name)
    if found is None and not missing_ok:
        raise UndefinedSchema(f'schema "{".".join(path)}" does not exist')
    if found is None:
        definer.notice(f'schema "{".".join(path)}" does not exist, skipping')
    return found


# ── objects that CASCADE drops ───────────────────────────────────────────────────────────────────

TOLD_MAX = 100
"""The most objects that a notice names, as in PostgreSQL."""


def tell_cascade(definer: Definer, roots: Sequence[CatalogObject], contents: Contents | None = None) -> None:
    """Adds a notice about the other objects that are dropped."""
    going = closure(definer.draft, definer.use, roots, contents)
    told = [
        name_of(definer.draft, definer.use, each.target, qualifies=definer.qualifies)
        for each in reversed(going)
        if not each.is_owned
    ]
    if len(told) == 1:
        definer.notice(f"drop cascades to {told[0]}")
    elif told:
        lines = [f"drop cascades to {each}" for each in told[:TOLD_MAX]]
        if len(told) > TOLD_MAX:
            lines.append(f"and {len(told) - TOLD_MAX} other objects (see server log for list)")
        definer.notice(f"drop cascades to {len(told)} other objects", detail="\n".join(lines))
