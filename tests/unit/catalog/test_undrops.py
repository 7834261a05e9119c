"""UNDROP: what comes back, and what it finds again."""

from collections.abc import Callable

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes.drops import drop_database, drop_objects, drop_schemas
from tenure.catalog.changes.object_changes import create_enum, create_table
from tenure.catalog.changes.sequence_changes import create_sequence, set_owned_by
from tenure.catalog.changes.table_changes import AddForeignKey, NamedKeyColumn, alter
from tenure.catalog.changes.undrops import undrop
from tenure.catalog.changes.view_changes import create_view
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    AnyDescriptor,
    Depends,
    DescriptorState,
    EnumType,
    Expression,
    OwnedBy,
    SearchPath,
    Sequence,
    Table,
    TypeRef,
    View,
    ViewColumn,
    is_dropped,
    replace,
)
from tenure.catalog.descriptors.validation import problems
from tests.unit.catalog.tables import INT, ROW_ID, Shelf, column, schema

APP = 110
MOOD, S, T, U, V = 299, 300, 301, 302, 303
NEXT = Expression(b"nextval", "", (), (S,))


@pytest.fixture
def shelf() -> Shelf:
    """In schema app: t(id serial, m mood), u(id) that refers to t, view v over t."""
    shelf = Shelf(schema(APP, "app"))
    create_enum(shelf.draft, shelf, id=MOOD, schema=APP, name="mood", owner=ROOT, labels=["x"])
    create_sequence(shelf.draft, shelf, id=S, schema=APP, name="s", owner=ROOT)
    mood = TypeRef("mood", enum=MOOD)
    make(shelf, T, "t", column("id", default=NEXT), column("m", type=mood))
    set_owned_by(shelf.draft, shelf, S, OwnedBy(T, 1))
    make(shelf, U, "u", column("id"))
    alter(shelf.draft, shelf, U, AddForeignKey("fk", ("id",), T, (1,)))
    create_view(
        shelf.draft,
        shelf,
        id=V,
        schema=APP,
        name="v",
        owner=ROOT,
        query="",
        columns=[ViewColumn("id", INT)],
        path=SearchPath(DEFAULT_DATABASE, ("app",)),
        depends=[Depends(T, (1,))],
    )
    shelf.commit()
    shelf.drain()
    return shelf


def make(shelf: Shelf, id: int, name: str, *columns: object) -> None:
    create_table(
        shelf.draft,
        shelf,
        id=id,
        schema=APP,
        name=name,
        owner=ROOT,
        columns=columns,  # type: ignore[arg-type]
        key=(NamedKeyColumn("id"),),
        row_id=ROW_ID,
    )


def commit(shelf: Shelf) -> None:
    shelf.commit()
    shelf.drain()
    assert [problems(each) for each in shelf.descriptors.values() if problems(each)] == []


def found(shelf: Shelf, id: int) -> AnyDescriptor:
    each = shelf.descriptors[id]
    assert not is_dropped(each)
    return each


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        action()
    return caught.value.sqlstate


def test_a_table_is_back_with_its_sequence_but_without_foreign_keys(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [T], is_cascade=True)
    commit(shelf)
    undrop(shelf.draft, shelf, [T])
    commit(shelf)
    table, sequence, mood = found(shelf, T), found(shelf, S), found(shelf, MOOD)
    assert isinstance(table, Table) and isinstance(sequence, Sequence) and isinstance(mood, EnumType)
    assert (table.sequences, table.inbound, table.dependents) == ((S,), (), ())
    assert (sequence.owned_by, sequence.dependents, mood.referents) == (OwnedBy(T, 1), (T,), (T,))
    assert table.columns[0].default == NEXT
    assert is_dropped(shelf.descriptors[V])


def test_a_view_comes_back_after_what_it_reads(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [T], is_cascade=True)
    commit(shelf)
    assert refused(lambda: undrop(shelf.draft, shelf, [V])) == "42704"
    undrop(shelf.draft, shelf, [V, T])
    commit(shelf)
    table = found(shelf, T)
    assert isinstance(found(shelf, V), View)
    assert isinstance(table, Table) and table.dependents == (V,)


def test_a_schema_and_a_database_come_back_with_what_was_in_them(shelf: Shelf) -> None:
    contents = [MOOD, S, T, U, V]
    drop_schemas(shelf.draft, shelf, [APP], contents, is_cascade=True)
    commit(shelf)
    assert refused(lambda: undrop(shelf.draft, shelf, [T])) == "3F000"
    shelf.draft = type(shelf.draft)()
    undrop(shelf.draft, shelf, [*contents, APP])
    commit(shelf)
    assert shelf.entries[DEFAULT_DATABASE, "app"].id == APP
    drop_database(shelf.draft, shelf, 100, [101, APP], contents, is_cascade=True)
    commit(shelf)
    undrop(shelf.draft, shelf, [*contents, APP, DEFAULT_SCHEMA, DEFAULT_DATABASE])
    commit(shelf)
    assert all(found(shelf, id) for id in (*contents, APP, 100, 101))


def test_a_type_that_is_gone_keeps_its_table_away(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [V, U, T])
    commit(shelf)
    drop_objects(shelf.draft, shelf, [MOOD])
    commit(shelf)
    assert refused(lambda: undrop(shelf.draft, shelf, [T])) == "42704"


def test_a_name_that_another_has_is_taken(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [V])
    commit(shelf)
    make(shelf, 500, "v", column("id"))
    commit(shelf)
    assert refused(lambda: undrop(shelf.draft, shelf, [V])) == "42P07"


def test_only_what_is_dropped_comes_back_and_not_before_its_name_is_free(shelf: Shelf) -> None:
    assert refused(lambda: undrop(shelf.draft, shelf, [V])) == "42704"
    drop_objects(shelf.draft, shelf, [V])
    assert refused(lambda: undrop(shelf.draft, shelf, [V])) == "55006"


def test_what_is_being_collected_does_not_come_back(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [V, U, T])
    commit(shelf)
    shelf.descriptors[T] = replace(shelf.descriptors[T], state=DescriptorState.COLLECTED)
    assert is_dropped(shelf.descriptors[T])
    assert refused(lambda: undrop(shelf.draft, shelf, [T])) == "42704"
    undrop(shelf.draft, shelf, [U])
