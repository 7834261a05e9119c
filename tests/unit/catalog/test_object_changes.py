"""Databases, schemas, tables and types: made, renamed and moved with their names and maps."""

from collections.abc import Callable

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes.drops import drop_objects
from tenure.catalog.changes.object_changes import (
    add_enum_value,
    create_database,
    create_enum,
    create_schema,
    create_table,
    rename_enum_value,
    rename_object,
    set_owner,
    set_schema,
)
from tenure.catalog.changes.table_changes import (
    AddCheck,
    AddForeignKey,
    DropColumn,
    DropConstraint,
    NamedKeyColumn,
    alter,
    referring_to,
    row_id,
)
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    DescriptorState,
    ElementState,
    EnumType,
    Goal,
    Inbound,
    NameKey,
    SchemaEntry,
    Table,
    TypeRef,
)
from tenure.catalog.descriptors.elements import is_finished
from tenure.catalog.descriptors.validation import problems
from tests.unit.catalog.tables import ROW_ID, TEXT, Shelf, column, index, reading, schema, users


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(users(), schema(110, "app"))


def refused(action: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        action()
    return caught.value.sqlstate, str(caught.value)


def make_table(
    shelf: Shelf, name: str = "orders", *, id: int = 300, schema: int = DEFAULT_SCHEMA, **options: object
) -> Table:
    options.setdefault("columns", [column("id"), column("buyer"), column("note", type=TEXT)])
    return create_table(
        shelf.draft,
        shelf,
        id=id,
        schema=schema,
        name=name,
        owner=ROOT,
        row_id=ROW_ID,
        **options,  # type: ignore[arg-type]
    )


def make_enum(shelf: Shelf, name: str = "mood", *labels: str, id: int = 400) -> EnumType:
    return create_enum(
        shelf.draft,
        shelf,
        id=id,
        schema=DEFAULT_SCHEMA,
        name=name,
        owner=ROOT,
        labels=labels or ("low", "high"),
    )


def table(shelf: Shelf, id: int) -> Table:
    found = shelf.descriptors[id]
    assert isinstance(found, Table)
    return found


# ── creating ───────────────────────────────────────────────────────────────────────────────────


def test_a_database_has_a_schema_public_of_its_own(shelf: Shelf) -> None:
    create_database(shelf.draft, shelf, id=500, schema=501, name="shop", owner="ann")
    assert shelf.draft.names == {NameKey(0, 0, "shop"): 500, NameKey(500, 0, "public"): 501}
    assert shelf.draft.entries == {(500, "public"): SchemaEntry(500, "public", 501, DescriptorState.PUBLIC)}


def test_a_new_schema_gives_its_database_a_version(shelf: Shelf) -> None:
    create_schema(shelf.draft, shelf, id=120, database=DEFAULT_DATABASE, name="web", owner="ann")
    assert shelf.draft.made_from == {120: 0, DEFAULT_DATABASE: 1}
    assert shelf.draft.entries[DEFAULT_DATABASE, "web"] is not None


def test_a_table_without_a_key_has_a_hidden_row_id(shelf: Shelf) -> None:
    made = make_table(shelf)
    hidden = row_id(made)
    assert hidden is not None and (hidden.name, hidden.default) == ("rowid", ROW_ID)
    assert not hidden.is_nullable
    assert problems(made) == []
    assert not made.index(made.primary).is_constraint


def test_a_row_id_gives_way_to_a_column_of_that_name(shelf: Shelf) -> None:
    made = make_table(shelf, columns=[column("rowid")])
    assert [(each.name, each.is_hidden) for each in made.columns] == [("rowid", False), ("rowid_1", True)]


def test_a_table_is_finished_at_once_with_all_its_parts(shelf: Shelf) -> None:
    made = make_table(
        shelf,
        key=(NamedKeyColumn("id"), NamedKeyColumn("buyer", is_descending=True)),
        changes=[
            index("i", "note", is_unique=True),
            AddCheck("c", reading(2)),
            column("more", is_nullable=False),
        ],
    )
    assert is_finished(made) and made.state is DescriptorState.PUBLIC
    assert problems(made) == []
    assert [each.name for each in made.indexes] == ["orders_pkey", "i"]
    assert [each.is_nullable for each in made.columns] == [False, False, True, False]
    assert shelf.draft.declared[300] == made


def test_rows_of_a_new_table_need_no_filling(shelf: Shelf) -> None:
    made = make_table(shelf, columns=[column("a", is_nullable=False, default=ROW_ID, filled=b"7")])
    assert (made.columns[0].filled, made.columns[0].computed, made.columns[0].is_nullable) == (
        None,
        None,
        False,
    )


def test_a_table_relies_on_the_schema_it_is_put_into(shelf: Shelf) -> None:
    make_table(shelf, schema=110)
    assert shelf.draft.made_from[110] == 1
    assert 110 not in shelf.draft.declared


def test_a_table_that_refers_to_one_in_use_is_adding_until_its_writers_know(shelf: Shelf) -> None:
    made = make_table(shelf, changes=[AddForeignKey("fk", ("buyer",), 200, (1,))])
    assert made.state is DescriptorState.ADDING
    target = shelf.draft.declared[200]
    assert isinstance(target, Table) and target.inbound == (Inbound(300, 2),)
    own = shelf.draft.descriptors[300]
    assert own.state is DescriptorState.PUBLIC
    assert alter(shelf.draft, shelf, 300, DropConstraint("fk")).state is DescriptorState.PUBLIC
    target = shelf.draft.declared[200]
    assert isinstance(target, Table) and target.inbound == ()


def test_tables_made_together_can_refer_to_each_other_at_once(shelf: Shelf) -> None:
    make_table(shelf, "a", id=300, key=(NamedKeyColumn("id"),))
    made = make_table(shelf, "b", id=301, changes=[AddForeignKey("fk", ("buyer",), 300, (1,))])
    assert made.state is DescriptorState.PUBLIC
    other = shelf.draft.declared[300]
    assert isinstance(other, Table)
    assert [each.table_name for each in referring_to(shelf.draft, shelf, other)] == ["b"]


def test_names_are_taken_once_in_each_place(shelf: Shelf) -> None:
    make_enum(shelf)
    wrong = [
        (lambda: make_table(shelf, "users"), "42P07", 'relation "users" already exists'),
        (lambda: make_table(shelf, "mood"), "42710", 'type "mood" already exists'),
        (
            lambda: create_schema(shelf.draft, shelf, id=9, database=100, name="app", owner=ROOT),
            "42P06",
            'schema "app" already exists',
        ),
        (
            lambda: create_database(shelf.draft, shelf, id=9, schema=10, name="defaultdb", owner=ROOT),
            "42P04",
            'database "defaultdb" already exists',
        ),
        (lambda: rename_object(shelf.draft, shelf, 400, "users"), "42P07", 'relation "users" already exists'),
        (lambda: make_table(shelf, ""), "42602", 'the name "" is empty, too long or not printable'),
    ]
    for action, sqlstate, message in wrong:
        assert refused(action) == (sqlstate, message)
    make_table(shelf, "users", schema=110)


def test_a_schema_that_is_gone_takes_no_table(shelf: Shelf) -> None:
    shelf.draft.drop(shelf.descriptors[110])
    assert refused(lambda: make_table(shelf, schema=110)) == ("3F000", 'schema "app" does not exist')


def test_columns_of_a_new_table_are_checked(shelf: Shelf) -> None:
    assert refused(lambda: make_table(shelf, columns=[column("a"), column("a")]))[0] == "42701"
    assert refused(lambda: make_table(shelf, key=(NamedKeyColumn("x"),))) == (
        "42703",
        'column "x" named in key does not exist',
    )


# ── changing ───────────────────────────────────────────────────────────────────────────────────


def test_a_renamed_table_keeps_its_former_name_as_draining(shelf: Shelf) -> None:
    renamed = rename_object(shelf.draft, shelf, 200, "people")
    assert (renamed.name, renamed.draining) == ("people", (NameKey(100, 101, "users"),))
    assert rename_object(shelf.draft, shelf, 200, "people") == renamed


def test_a_draining_name_cannot_be_taken_by_anybody_else(shelf: Shelf) -> None:
    rename_object(shelf.draft, shelf, 200, "people")
    shelf.commit()
    assert refused(lambda: make_table(shelf, "users"))[0] == "55006"
    shelf.drain()
    make_table(shelf, "users")


def test_a_dropped_name_cannot_be_taken_until_it_has_drained(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [200])
    shelf.commit()
    assert refused(lambda: make_table(shelf, "users"))[0] == "55006"
    shelf.drain()
    make_table(shelf, "users")


def test_a_name_that_a_transaction_gives_up_it_may_give_out_again(shelf: Shelf) -> None:
    drop_objects(shelf.draft, shelf, [200])
    made = make_table(shelf, "users")
    assert shelf.draft.names[NameKey(100, 101, "users")] == made.id
    drop_objects(shelf.draft, shelf, [made.id])
    assert shelf.draft.names[NameKey(100, 101, "users")] is None


def test_a_name_may_go_back_to_the_object_that_had_it(shelf: Shelf) -> None:
    rename_object(shelf.draft, shelf, 200, "people")
    assert rename_object(shelf.draft, shelf, 200, "users") == users()
    assert shelf.draft.names == {}


def test_a_renamed_schema_gives_its_database_a_version(shelf: Shelf) -> None:
    rename_object(shelf.draft, shelf, 110, "web")
    assert DEFAULT_DATABASE in shelf.draft.declared
    assert shelf.draft.entries == {
        (100, "app"): None,
        (100, "web"): SchemaEntry(100, "web", 110, DescriptorState.PUBLIC),
    }


def test_a_table_moves_to_another_schema(shelf: Shelf) -> None:
    moved = set_schema(shelf.draft, shelf, 200, 110)
    assert isinstance(moved, Table)
    assert (moved.schema, moved.draining) == (110, (NameKey(100, 101, "users"),))
    assert shelf.draft.made_from[110] == 1
    assert set_schema(shelf.draft, shelf, 200, 110) == moved


def test_a_table_moves_to_another_database_under_another_name(shelf: Shelf) -> None:
    create_database(shelf.draft, shelf, id=500, schema=501, name="shop", owner="ann")
    moved = set_schema(shelf.draft, shelf, 200, 501, name="people")
    assert isinstance(moved, Table)
    assert (moved.database, moved.schema, moved.name) == (500, 501, "people")


def test_everything_has_an_owner(shelf: Shelf) -> None:
    for id in (100, 110, 200):
        assert set_owner(shelf.draft, shelf, id, "ann").owner == "ann"


# ── types ──────────────────────────────────────────────────────────────────────────────────────


def test_a_label_of_a_type_in_use_is_read_before_it_is_written(shelf: Shelf) -> None:
    make_enum(shelf)
    assert add_enum_value(shelf.draft, shelf, 400, "mid", after="low").members[1].state is ElementState.PUBLIC
    shelf.commit()
    extended = add_enum_value(shelf.draft, shelf, 400, "top")
    assert [each.label for each in extended.members] == ["low", "mid", "high", "top"]
    assert extended.members[-1].state is ElementState.WRITE_ONLY
    renamed = rename_enum_value(shelf.draft, shelf, 400, "top", "peak")
    assert renamed.members[-1].label == "peak"


def test_a_type_knows_the_tables_that_use_it(shelf: Shelf) -> None:
    make_enum(shelf)
    mood = TypeRef("mood", enum=400)
    make_table(shelf, columns=[column("id"), column("mood", type=mood)])
    alter(shelf.draft, shelf, 200, column("mood", type=mood))
    assert _referents(shelf) == (300, 200)
    alter(shelf.draft, shelf, 300, DropColumn("mood"))
    assert _referents(shelf) == (200,)
    alter(shelf.draft, shelf, 200, DropColumn("mood"))
    assert _referents(shelf) == ()


def test_a_type_knows_a_table_until_its_column_is_gone(shelf: Shelf) -> None:
    make_enum(shelf)
    alter(shelf.draft, shelf, 200, column("mood", type=TypeRef("mood", enum=400)))
    shelf.commit()
    shelf.drain()
    alter(shelf.draft, shelf, 200, DropColumn("mood"))
    assert 400 not in shelf.draft.declared


def _referents(shelf: Shelf) -> tuple[int, ...]:
    type_ = shelf.draft.declared[400]
    assert isinstance(type_, EnumType)
    return type_.referents


# ── tables that refer to each other ────────────────────────────────────────────────────────────


def test_a_foreign_key_is_known_to_its_target_until_it_is_gone(shelf: Shelf) -> None:
    make_table(shelf)
    shelf.commit()
    alter(shelf.draft, shelf, 300, AddForeignKey("fk", ("buyer",), 200, (1,)))
    shelf.commit()
    shelf.drain()
    assert table(shelf, 200).inbound == (Inbound(300, 2),)
    alter(shelf.draft, shelf, 300, DropConstraint("fk"))
    assert 200 not in shelf.draft.declared


def test_a_foreign_key_added_and_dropped_by_one_transaction_leaves_nothing_behind(shelf: Shelf) -> None:
    make_table(shelf)
    shelf.commit()
    alter(shelf.draft, shelf, 300, AddForeignKey("fk", ("buyer",), 200, (1,)))
    alter(shelf.draft, shelf, 300, DropConstraint("fk"))
    target = shelf.draft.declared[200]
    assert isinstance(target, Table) and target.inbound == ()


def test_dropping_a_column_by_cascade_drops_the_keys_that_refer_to_it(shelf: Shelf) -> None:
    make_table(shelf)
    shelf.commit()
    alter(shelf.draft, shelf, 300, AddForeignKey("fk", ("buyer",), 200, (2,)))
    shelf.commit()
    shelf.drain()
    referring = referring_to(shelf.draft, shelf, table(shelf, 200))
    assert (
        refused(lambda: alter(shelf.draft, shelf, 200, DropColumn("name", referring=referring)))[0] == "2BP01"
    )
    alter(shelf.draft, shelf, 200, DropColumn("name", is_cascade=True, referring=referring))
    shelf.commit()
    shelf.drain()
    assert table(shelf, 300).foreign_keys == ()


def test_a_consequence_that_comes_back_to_the_table_is_not_lost(shelf: Shelf) -> None:
    make_table(shelf, changes=[AddForeignKey("fk", ("buyer",), 200, (2,))])
    target = shelf.draft.declared[200]
    assert isinstance(target, Table)
    referring = referring_to(shelf.draft, shelf, target)
    changed = alter(shelf.draft, shelf, 200, DropColumn("name", is_cascade=True, referring=referring))
    assert changed.inbound == ()
    assert changed.column(2).goal is Goal.ABSENT


def test_a_key_that_a_table_refers_to_by_itself_goes_by_cascade(shelf: Shelf) -> None:
    alter(shelf.draft, shelf, 200, AddForeignKey("boss", ("city",), 200, (2,)))
    shelf.commit()
    shelf.drain()
    assert refused(lambda: alter(shelf.draft, shelf, 200, DropConstraint("users_name")))[0] == "2BP01"
    alter(shelf.draft, shelf, 200, DropConstraint("users_name", is_cascade=True))
    shelf.commit()
    shelf.drain()
    left = table(shelf, 200)
    assert (left.foreign_keys, left.inbound) == ((), ())
    assert [each.name for each in left.indexes] == ["users_pkey", "users_age"]
