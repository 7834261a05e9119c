"""A database that becomes a schema of another."""

from collections.abc import Callable

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes.database_conversion import convert_to_schema
from tenure.catalog.changes.object_changes import create_database, create_schema, create_table
from tenure.catalog.changes.sequence_changes import create_sequence, set_owned_by
from tenure.catalog.changes.table_changes import NamedKeyColumn
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    ROOT,
    NameKey,
    OwnedBy,
    Table,
    is_dropped,
    place_of,
)
from tests.unit.catalog.tables import ROW_ID, Shelf, column

SHOP, PUBLIC, T, S, MADE = 300, 301, 302, 303, 400


@pytest.fixture
def shelf() -> Shelf:
    """Database shop with a table t, whose column owns sequence s."""
    shelf = Shelf()
    create_database(shelf.draft, shelf, id=SHOP, schema=PUBLIC, name="shop", owner=ROOT)
    create_sequence(shelf.draft, shelf, id=S, schema=PUBLIC, name="s", owner=ROOT)
    create_table(
        shelf.draft,
        shelf,
        id=T,
        schema=PUBLIC,
        name="t",
        owner=ROOT,
        columns=[column("id")],
        key=(NamedKeyColumn("id"),),
        row_id=ROW_ID,
    )
    set_owned_by(shelf.draft, shelf, S, OwnedBy(T, 1))
    shelf.commit()
    shelf.drain()
    return shelf


def convert(shelf: Shelf, *, parent: int = DEFAULT_DATABASE, schemas: tuple[int, ...] = (PUBLIC,)) -> object:
    return convert_to_schema(
        shelf.draft, shelf, SHOP, parent=parent, schema=MADE, schemas=schemas, contents=[T, S]
    )


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        action()
    return caught.value.sqlstate


def test_its_objects_move_with_their_ids_and_the_database_goes(shelf: Shelf) -> None:
    convert(shelf)
    shelf.commit()
    table = shelf.descriptors[T]
    assert isinstance(table, Table) and (table.database, table.schema) == (DEFAULT_DATABASE, MADE)
    assert table.draining == (NameKey(SHOP, PUBLIC, "t"),)
    assert place_of(shelf.descriptors[S]) == NameKey(DEFAULT_DATABASE, MADE, "s")
    assert shelf.entries[DEFAULT_DATABASE, "shop"].id == MADE
    assert is_dropped(shelf.descriptors[SHOP]) and is_dropped(shelf.descriptors[PUBLIC])


def test_it_has_no_schema_but_public(shelf: Shelf) -> None:
    create_schema(shelf.draft, shelf, id=500, database=SHOP, name="more", owner=ROOT)
    assert refused(lambda: convert(shelf)) == "55000"


def test_its_name_is_free_among_the_parents_schemas(shelf: Shelf) -> None:
    create_schema(shelf.draft, shelf, id=500, database=DEFAULT_DATABASE, name="shop", owner=ROOT)
    assert refused(lambda: convert(shelf)) == "42P06"
    assert refused(lambda: convert(shelf, parent=SHOP)) == "42P17"
