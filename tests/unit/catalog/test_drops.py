"""Dropping whole objects: what is in the way, and what goes along."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import DependentObjects
from tenure.catalog.changes.drops import drop_database, drop_objects, drop_schemas
from tenure.catalog.changes.object_changes import create_enum, create_table
from tenure.catalog.changes.table_changes import AddForeignKey, NamedKeyColumn, alter
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    ROOT,
    DescriptorState,
    Inbound,
    Table,
    TypeRef,
    is_dropped,
)
from tests.unit.catalog.tables import ROW_ID, Shelf, column, schema

APP, WEB = 110, 111
A, B, MOOD = 300, 301, 400


@pytest.fixture
def shelf() -> Shelf:
    """app.a with a column of type app.mood, and web.b, which refers to app.a."""
    shelf = Shelf(schema(APP, "app"), schema(WEB, "web"))
    create_enum(shelf.draft, shelf, id=MOOD, schema=APP, name="mood", owner=ROOT, labels=["low"])
    make(shelf, A, "a", APP)
    make(shelf, B, "b", WEB)
    alter(shelf.draft, shelf, A, column("mood", type=TypeRef("mood", enum=MOOD)))
    alter(shelf.draft, shelf, B, AddForeignKey("b_fk", ("v",), A, (1,)))
    shelf.commit()
    shelf.drain()
    return shelf


def make(shelf: Shelf, id: int, name: str, parent: int) -> None:
    create_table(
        shelf.draft,
        shelf,
        id=id,
        schema=parent,
        name=name,
        owner=ROOT,
        columns=[column("id"), column("v")],
        key=(NamedKeyColumn("id"),),
        row_id=ROW_ID,
    )


def refused(action: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(DependentObjects) as caught:
        action()
    assert caught.value.sqlstate == "2BP01"
    return str(caught.value), caught.value.detail


def dropped(shelf: Shelf) -> set[int]:
    return {id for id, each in shelf.draft.declared.items() if is_dropped(each)}


def table(shelf: Shelf, id: int) -> Table:
    found = shelf.descriptors[id]
    assert isinstance(found, Table)
    return found


def test_a_table_that_others_refer_to_is_in_use(shelf: Shelf) -> None:
    assert refused(lambda: drop_objects(shelf.draft, shelf, [A])) == (
        "cannot drop table a because other objects depend on it",
        "constraint b_fk on table b depends on table a",
    )
    assert not shelf.draft


def test_cascade_drops_the_foreign_keys_of_others_not_the_others(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [A], is_cascade=True)
    assert dropped(shelf) == {A}
    shelf.commit()
    shelf.drain()
    assert table(shelf, B).foreign_keys == ()


def test_tables_dropped_together_are_not_in_each_others_way(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [A, B])
    assert dropped(shelf) == {A, B}


def test_the_target_forgets_a_table_that_is_dropped(shelf: Shelf) -> None:
    assert table(shelf, A).inbound == (Inbound(B, 2),)
    drop_objects(shelf.draft, shelf, [B])
    shelf.commit()
    assert table(shelf, A).inbound == ()
    drop_objects(shelf.draft, shelf, [A])


def test_a_type_in_use_is_not_dropped(shelf: Shelf) -> None:
    assert refused(lambda: drop_objects(shelf.draft, shelf, [MOOD])) == (
        "cannot drop type mood because other objects depend on it",
        "column mood of table a depends on type mood",
    )


def test_cascade_drops_the_columns_of_a_type(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [MOOD], is_cascade=True)
    shelf.commit()
    shelf.drain()
    assert [each.name for each in table(shelf, A).columns] == ["id", "v"]


def test_a_type_is_free_once_its_tables_are_dropped(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [A, B])
    drop_objects(shelf.draft, shelf, [MOOD])
    assert dropped(shelf) == {A, B, MOOD}


def test_a_schema_that_is_not_empty_says_what_is_in_it(shelf: Shelf) -> None:
    assert refused(lambda: drop_schemas(shelf.draft, shelf, [APP], [A, MOOD])) == (
        "cannot drop schema app because other objects depend on it",
        "table app.a depends on schema app\n"
        "constraint b_fk on table web.b depends on table app.a\n"
        "type app.mood depends on schema app",
    )


def test_a_schema_goes_by_cascade_with_what_is_in_it(shelf: Shelf) -> None:
    drop_schemas(shelf.draft, shelf, [APP], [A, MOOD], is_cascade=True)
    assert dropped(shelf) == {A, MOOD, APP}
    entry = shelf.draft.entries[DEFAULT_DATABASE, "app"]
    assert entry is not None and entry.state is DescriptorState.DROPPED
    assert DEFAULT_DATABASE in shelf.draft.declared
    shelf.commit()
    shelf.drain()
    assert table(shelf, B).foreign_keys == ()


def test_what_the_transaction_itself_did_counts(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [B])
    drop_schemas(shelf.draft, shelf, [WEB], [B])
    shelf.draft = type(shelf.draft)()
    make(shelf, 500, "new", WEB)
    drop_objects(shelf.draft, shelf, [B])
    _, detail = refused(lambda: drop_schemas(shelf.draft, shelf, [WEB], [B]))
    assert detail == "table web.new depends on schema web"


def test_a_database_that_is_not_empty_says_what_is_in_it(shelf: Shelf) -> None:
    contents = [A, B, MOOD]
    _, detail = refused(lambda: drop_database(shelf.draft, shelf, 100, [101, APP, WEB], contents))
    assert detail.splitlines() == [
        "schema app depends on database defaultdb",
        "table app.a depends on schema app",
        "type app.mood depends on schema app",
        "schema web depends on database defaultdb",
        "table web.b depends on schema web",
    ]
    drop_database(shelf.draft, shelf, 100, [101, APP, WEB], contents, is_cascade=True)
    assert dropped(shelf) == {100, 101, APP, WEB, *contents}


def test_an_empty_database_goes_with_its_schema_public() -> None:
    shelf = Shelf()
    drop_database(shelf.draft, shelf, 100, [101], [])
    assert dropped(shelf) == {100, 101}


@pytest.mark.invariant("drop-closure")
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12, unique=True),
    st.sets(st.integers(0, 5), min_size=1),
)
def test_restrict_fails_iff_something_outside_refers_and_cascade_drops_exactly_that(
    references: list[tuple[int, int]], going: set[int]
) -> None:
    shelf = Shelf()
    for number in range(6):
        make(shelf, 300 + number, f"t{number}", 101)
    for number, (child, parent) in enumerate(references):
        alter(shelf.draft, shelf, 300 + child, AddForeignKey(f"k{number}", ("v",), 300 + parent, (1,)))
    shelf.commit()
    shelf.drain()
    ids = [300 + number for number in sorted(going)]
    if any(child not in going and parent in going for child, parent in references):
        refused(lambda: drop_objects(shelf.draft, shelf, ids))
        assert not shelf.draft
    else:
        drop_objects(shelf.draft, shelf, ids)
        shelf.draft = type(shelf.draft)()
    drop_objects(shelf.draft, shelf, ids, is_cascade=True)
    shelf.commit()
    shelf.drain()
    for number in range(6):
        left = table(shelf, 300 + number)
        assert is_dropped(left) == (number in going)
        if number not in going:
            kept = [each for each in references if each[0] == number and each[1] not in going]
            assert len(left.foreign_keys) == len(kept)
            assert len(left.inbound) == len(
                [each for each in references if each[1] == number and each[0] not in going]
            )
