"""ALTER DATABASE a CONVERT TO SCHEMA WITH PARENT b: what was a.public.t is b.a.t from now on.

    a ── public ── t, v, s          b ── public
                                      └─ a ── t, v, s       the same ids, their former names drain

The database and its `public` go; there may be no other schema in it. What the objects are, and what
they mean to each other, stays: all of that is by id.

Walk: a statement calls `convert_to_schema`, and moves the database's zone to the schema.
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
    Grant,
    Schema,
    Sequence,
    is_dropped,
)
from tenure.catalog.descriptors.drafts import Draft


def convert_to_schema(
    draft: Draft,
    known: CatalogBelow,
    id: int,
    *,
    parent: int,
    schema: int,
    schemas: Iterable[int],
    contents: Iterable[int],
    privileges: tuple[Grant, ...] = (),
) -> Schema:
    """Makes a schema, whose id is handed in, of a database; `contents` is what the store has in it."""
    database = database_of(draft, known, id)
    if id == parent:
        raise InvalidObject(f'database "{database.name}" cannot become a schema of itself')
    inside = [descriptor_of(draft, known, each) for each in sorted({*schemas, *draft.declared})]
    own = [
        each for each in inside if isinstance(each, Schema) and each.database == id and not is_dropped(each)
    ]
    if any(each.name != PUBLIC_SCHEMA for each in own):
        raise WrongState(
            f'cannot convert database "{database.name}" into schema: it has schemas other than "public"'
        )
    made = create_schema(
        draft,
        known,
        id=schema,
        database=parent,
        name=database.name,
        owner=database.owner,
        privileges=privileges,
    )
    places = {each.id for each in own}
    for each in sorted({*contents, *draft.declared}):
        found = descriptor_of(draft, known, each)
        # A sequence that a column owns comes with its table.
        comes_along = isinstance(found, Sequence) and found.owned_by is not None
        if isinstance(found, Contained) and found.schema in places and not (is_dropped(found) or comes_along):
            set_schema(draft, known, each, schema)
    drop_database(draft, known, id, places, ())
    return made
