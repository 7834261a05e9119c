"""ALTER DATABASE a CONVERT TO SCHEMA WITH PARENT b: a.public.t becomes b.a.t.

    a ── public ── t, v, s          b ── public
                                      └─ a ── t, v, s       the same ids, their former names drain

The database and its `public` are dropped; the database may have no other schema. The objects and their
references to each other stay: they are by id.

Walk: `sql.statements.ddl.conversion` calls `convert_to_schema` for each database, and keeps ttl and rights.
"""

from collections.abc import Iterable

from tenure.base.errors import InvalidObject, WrongState
from tenure.catalog.changes.drops import drop_database
from tenure.catalog.changes.free_names import database_of
from tenure.catalog.changes.object_changes import create_schema, set_schema
from tenure.catalog.changes.table_changes import CatalogBelow, descriptor_of
from tenure.catalog.descriptors.definitions import (
    PUBLIC_SCHEMA,
    Contained,
    Schema,
    Sequence,
    is_dropped,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft


def convert_to_schema(
    draft: Draft,
    catalog: CatalogBelow,
    id: int,
    *,
    parent: int,
    schema: int,
    schemas: Iterable[int],
    contents: Iterable[int],
) -> Schema:
    """Makes a schema, with the given id, of a database; `contents` are the objects in it according to the
    store.
    """
    database = database_of(draft, catalog, id)
    if id == parent:
        raise InvalidObject(f'database "{database.name}" cannot become a schema of itself')
    inside = [descriptor_of(draft, catalog, each) for each in sorted({*schemas, *draft.declared})]
    own = [
        each for each in inside if isinstance(each, Schema) and each.database == id and not is_dropped(each)
    ]
    if any(each.name != PUBLIC_SCHEMA for each in own):
        raise WrongState(
            f'cannot convert database "{database.name}" into schema: it has schemas other than "public"',
            hint="Drop them, or move their objects to public with ALTER ... SET SCHEMA.",
        )
    created = create_schema(
        draft, catalog, id=schema, database=parent, name=database.name, owner=database.owner
    )
    places = {each.id for each in own}
    for each in sorted({*contents, *draft.declared}):
        found = descriptor_of(draft, catalog, each)
        # A sequence that a column owns comes with its table.
        comes_along = isinstance(found, Sequence) and found.owned_by is not None
        if isinstance(found, Contained) and found.schema in places and not (is_dropped(found) or comes_along):
            set_schema(draft, catalog, each, schema)
    drop_database(draft, catalog, id, places, ())
    if id in draft.declared:
        dropped = draft.declared[id]
        draft.declare(replace(dropped, converted_to=schema), made_from=dropped.version)
    return created
