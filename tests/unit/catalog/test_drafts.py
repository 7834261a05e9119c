"""A transaction's own copy of the catalog: what it gives out, gives up and remembers."""

import pytest

from tenure.catalog.changes.table_changes import DropColumn, alter
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    DescriptorState,
    NameKey,
    SchemaEntry,
    Table,
    place_of,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft
from tests.unit.catalog.tables import Shelf, column, database, schema, users


def named(table: Table, name: str) -> Table:
    return replace(table, name=name)


def at(name: str) -> NameKey:
    return NameKey(DEFAULT_DATABASE, DEFAULT_SCHEMA, name)


def test_an_empty_draft_is_false() -> None:
    draft = Draft()
    assert not draft
    draft.declare(users(), made_from=1)
    assert draft


def test_a_new_descriptor_comes_with_its_name() -> None:
    draft = Draft()
    draft.create(users())
    assert draft.names == {at("users"): 200}
    assert draft.is_new(200)
    assert draft.made_from == {200: 0}


def test_a_new_schema_comes_with_its_entry_in_the_map() -> None:
    draft = Draft()
    draft.create(schema(110, "app"))
    assert draft.entries == {
        (DEFAULT_DATABASE, "app"): SchemaEntry(DEFAULT_DATABASE, "app", 110, DescriptorState.PUBLIC)
    }


def test_the_version_a_draft_was_made_from_is_the_first_one_seen() -> None:
    draft = Draft()
    draft.declare(users(version=3), made_from=3)
    draft.declare(users(version=3, comment="more"), made_from=9)
    assert draft.made_from == {200: 3}
    assert not draft.is_new(200)


def test_what_a_draft_relies_on_is_proved_though_it_does_not_change() -> None:
    draft = Draft()
    draft.rely_on(schema())
    assert draft.made_from == {DEFAULT_SCHEMA: 1}
    assert not draft


def test_the_transaction_sees_its_own_columns_before_anybody_else() -> None:
    shelf = Shelf(users())
    alter(shelf.draft, shelf, 200, column("a"))
    alter(shelf.draft, shelf, 200, DropColumn("age"))
    own = shelf.draft.descriptors[200]
    assert isinstance(own, Table)
    assert [each.name for each in own.columns] == ["id", "name", "city", "a"]
    stored = shelf.draft.declared[200]
    assert isinstance(stored, Table)
    assert [each.name for each in stored.columns] == ["id", "name", "age", "city", "a"]


def test_a_former_name_drains() -> None:
    draft = Draft()
    moved = draft.move(users(), named(users(), "people"))
    assert moved.draining == (at("users"),)
    assert draft.names == {at("users"): None, at("people"): 200}


def test_a_name_that_only_the_draft_gave_out_does_not_drain() -> None:
    draft = Draft()
    moved = draft.move(users(), named(users(), "people"))
    assert isinstance(moved, Table)
    again = draft.move(moved, named(moved, "folk"))
    assert again.draining == (at("users"),)
    assert draft.names == {at("users"): None, at("folk"): 200}


def test_a_name_that_is_taken_back_does_not_drain() -> None:
    draft = Draft()
    moved = draft.move(users(), named(users(), "people"))
    assert isinstance(moved, Table)
    back = draft.move(moved, named(moved, "users"))
    assert back == users()
    assert draft.names == {}


def test_a_dropped_descriptor_stays_with_its_name_draining() -> None:
    draft = Draft()
    dropped = draft.drop(users())
    assert (dropped.state, dropped.draining) == (DescriptorState.DROPPED, (at("users"),))
    assert draft.declared == {200: dropped}
    assert draft.names == {at("users"): None}


def test_dropping_after_a_rename_drains_the_name_that_others_know() -> None:
    draft = Draft()
    dropped = draft.drop(draft.move(users(), named(users(), "people")))
    assert dropped.draining == (at("users"),)
    assert draft.names == {at("users"): None}


def test_what_a_draft_made_and_dropped_was_never_there() -> None:
    draft = Draft()
    draft.create(users())
    draft.drop(draft.move(users(), named(users(), "people")))
    assert (draft.declared, draft.descriptors, draft.names, draft.made_from) == ({}, {}, {}, {})


def test_a_dropped_schema_stays_in_the_map_as_dropped() -> None:
    draft = Draft()
    draft.drop(schema(110, "app"))
    entry = draft.entries[DEFAULT_DATABASE, "app"]
    assert entry == SchemaEntry(DEFAULT_DATABASE, "app", 110, DescriptorState.DROPPED)


def test_a_renamed_schema_leaves_the_map_under_its_former_name() -> None:
    draft = Draft()
    moved = draft.move(schema(110, "app"), schema(110, "web"))
    assert draft.entries[DEFAULT_DATABASE, "app"] is None
    draft.drop(moved)
    assert draft.entries == {(DEFAULT_DATABASE, "app"): None}


def test_a_touched_database_gets_a_version_and_keeps_what_was_declared() -> None:
    draft = Draft()
    changed = replace(database(), owner="ann")
    draft.declare(changed, made_from=1)
    draft.touch(database())
    assert draft.declared[DEFAULT_DATABASE] == changed


@pytest.mark.parametrize("name", Draft.__slots__)
def test_a_copy_for_a_savepoint_shares_nothing(name: str) -> None:
    draft = Draft()
    draft.create(schema(110, "app"))
    copy = draft.copy()
    assert getattr(copy, name) == getattr(draft, name)
    assert getattr(copy, name) is not getattr(draft, name)
    draft.move(users(), named(users(), "people"))
    assert place_of(users()) not in copy.names
    assert 200 not in copy.declared
