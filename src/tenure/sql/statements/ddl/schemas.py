"""CREATE SCHEMA, alone or with its first objects.

    CREATE SCHEMA app AUTHORIZATION ann CREATE TABLE t (...) CREATE VIEW v AS SELECT * FROM t

The elements are made in the new schema, in PostgreSQL's order: sequences, tables, views, indexes.

Walk: `statements.ddl.ddl_statements` -> `create_schema` -> `catalog.changes.object_changes`; the elements ->
their own modules.
"""

from collections.abc import Callable

from tenure.base.errors import (
    DuplicateSchema,
    InvalidSchema,
    NotSupported,
    ReservedName,
    SyntaxFault,
    UndefinedSchema,
)
from tenure.catalog.accounts.privileges import CREATE
from tenure.catalog.changes.object_changes import create_schema as create
from tenure.catalog.descriptors.definitions import DescriptorState, Schema
from tenure.sql.statements.ddl.databases import database_named
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.indexes import create_index
from tenure.sql.statements.ddl.sequences import create_sequence
from tenure.sql.statements.ddl.tables.create_table import create_table
from tenure.sql.statements.ddl.views import create_view
from tenure.sql.text.parse import Tree, has, items, kind

RESERVED_PREFIX = "pg_"

ELEMENTS: dict[str, tuple[str, Callable[[Definer, Tree], str | None]]] = {
    "CreateSeqStmt": ("sequence", create_sequence),
    "CreateStmt": ("relation", create_table),
    "ViewStmt": ("view", create_view),
    "IndexStmt": ("relation", create_index),
}
"""By kind, the field with the object's name; in the order in which the objects are made."""


def create_schema(definer: Definer, tree: Tree, *, database: str = "") -> str | None:
    owner = definer.role(tree.authrole) if has(tree, "authrole") else definer.owner
    name = tree.schemaname or owner
    require_allowed(name)
    parent = definer.names.path.database if not database else database_named(definer, database).id
    holder = definer.use.descriptor(parent)
    if holder is not None:
        definer.rights.require(holder, CREATE)
    if definer.is_system_schema(name) or find_schema(definer, parent, name) is not None:
        if tree.if_not_exists:
            definer.notice(f'schema "{name}" already exists, skipping', "42P06")
            return None
        raise DuplicateSchema(f'schema "{name}" already exists')
    if tree.if_not_exists and tree.schema_elts:
        raise NotSupported("CREATE SCHEMA IF NOT EXISTS cannot include schema elements")
    schema = create(
        definer.draft, definer.use, id=definer.fresh_id(), database=parent, name=name, owner=owner
    )
    _make_elements(definer.looking_first_in(schema), schema, items(tree.schema_elts))
    return None


def _make_elements(definer: Definer, schema: Schema, elements: list[Tree]) -> None:
    for each in elements:
        if kind(each) not in ELEMENTS:
            raise NotSupported(f"{kind(each).removesuffix('Stmt')} in CREATE SCHEMA is not supported")
    for wanted, (field, make) in ELEMENTS.items():
        for each in elements:
            if kind(each) != wanted:
                continue
            relation = getattr(each, field)
            if relation.schemaname and relation.schemaname != schema.name:
                raise InvalidSchema(
                    f"CREATE specifies a schema ({relation.schemaname}) "
                    f"different from the one being created ({schema.name})"
                )
            element = type(each)()
            element.CopyFrom(each)
            getattr(element, field).schemaname = schema.name
            make(definer, element)


def require_allowed(name: str) -> None:
    if not name:
        raise SyntaxFault("a schema needs a name")
    if name.startswith(RESERVED_PREFIX):
        raise ReservedName(
            f'unacceptable schema name "{name}"',
            detail=f'The prefix "{RESERVED_PREFIX}" is reserved for system schemas.',
        )


def find_schema(definer: Definer, database: int, name: str) -> Schema | None:
    entry = definer.use.schema_entry(database, name)
    if entry is None and (database, name) not in definer.draft.entries:
        definer.names.confirm_absent(lambda catalog: catalog.schema_entry(database, name), name)
    if entry is None or entry.state is not DescriptorState.PUBLIC:
        return None
    found = definer.use.descriptor(entry.id)
    return found if isinstance(found, Schema) else None


def schema_named(definer: Definer, name: str) -> Schema:
    found = find_schema(definer, definer.names.path.database, name)
    if found is None:
        raise UndefinedSchema(f'schema "{name}" does not exist')
    return found
