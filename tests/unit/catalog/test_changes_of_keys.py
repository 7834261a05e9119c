"""Changes of indexes and primary keys: what they declare, and what they refuse."""

from tenure.catalog.changes.table_changes import (
    AlterPrimaryKey,
    DropConstraint,
    DropIndex,
    DropKey,
    DropPrimaryKey,
    NamedKeyColumn,
    ReferringKey,
    RenameIndex,
    row_id,
)
from tenure.catalog.descriptors.definitions import (
    ForeignKey,
    KeyPart,
)
from tests.unit.catalog.changing import DELETE_ONLY, done, names, refused
from tests.unit.catalog.tables import (
    ROW_ID,
    declared,
    index,
    users,
)


def test_an_added_index_points_into_the_primary_index() -> None:
    table = declared(users(), index("i", "city", "age", is_unique=True))
    added = table.indexes[-1]
    assert (added.id, added.primary, added.state) == (4, 1, DELETE_ONLY)
    assert [part.column for part in added.parts] == [4, 3]


def test_index_names_and_columns_are_checked() -> None:
    assert refused(index("users_age", "age")) == ("42P07", 'relation "users_age" already exists')
    assert refused(index("i", "x")) == ("42703", 'column "x" does not exist')
    assert refused(index("i", "age", "age")) == ("42701", 'column "age" appears twice in index')
    assert refused(index("i", "x", is_constraint=True)) == ("42703", 'column "x" named in key does not exist')


def test_an_index_is_dropped_by_its_name() -> None:
    assert [each.id for each in done(DropIndex("users_age")).indexes] == [1, 2]
    assert refused(DropIndex("x")) == ("42704", 'index "x" does not exist')


def test_the_index_of_a_constraint_goes_with_the_constraint_only() -> None:
    assert refused(DropIndex("users_name")) == (
        "2BP01",
        "cannot drop index users_name because constraint users_name on table users requires it",
    )
    assert [each.id for each in done(DropConstraint("users_name")).indexes] == [1, 3]


def test_a_unique_index_that_others_refer_to_is_dropped_only_by_cascade() -> None:
    referring = (ReferringKey(300, "orders", ForeignKey(7, "fk", (2,), 200, (2,))),)
    assert refused(DropConstraint("users_name", referring=referring)) == (
        "2BP01",
        "cannot drop constraint users_name on table users because other objects depend on it",
    )
    change = DropConstraint("users_name", is_cascade=True, referring=referring)
    assert [*change.elsewhere(users())] == [(300, DropKey(7))]
    again = done(index("again", "name", is_unique=True))
    assert [*change.elsewhere(again)] == []


def test_an_index_dropped_and_made_again_is_another_one() -> None:
    after = done(DropIndex("users_age"), index("users_age", "age"))
    assert [(each.id, each.name) for each in after.indexes[2:]] == [(4, "users_age")]


def test_an_index_is_renamed() -> None:
    assert done(RenameIndex("users_age", "i")).index(3).name == "i"
    assert refused(RenameIndex("users_age", "users_name"))[0] == "42P07"


def test_a_new_primary_key_replaces_all_indexes() -> None:
    change = AlterPrimaryKey("users_pkey", (NamedKeyColumn("age"), NamedKeyColumn("id", is_descending=True)))
    after = done(change)
    assert after.primary == 4
    assert after.index(4).parts == (KeyPart(3), KeyPart(1, is_descending=True))
    assert [(each.id, each.name, each.primary) for each in after.indexes] == [
        (4, "users_pkey", 4),
        (5, "users_name", 4),
        (6, "users_age", 4),
    ]
    assert not after.column(3).is_nullable


def test_the_former_key_becomes_a_unique_index_if_asked() -> None:
    after = done(AlterPrimaryKey("users_pkey", (NamedKeyColumn("name"),), former="users_id_key"))
    assert [(each.name, each.is_unique, each.parts) for each in after.indexes][-1] == (
        "users_id_key",
        True,
        (KeyPart(1),),
    )


def test_a_table_has_one_primary_key() -> None:
    assert refused(AlterPrimaryKey("k", (NamedKeyColumn("age"),), is_added=True)) == (
        "42P16",
        'multiple primary keys for table "users" are not allowed',
    )


def test_without_a_primary_key_there_is_a_hidden_row_id() -> None:
    bare = done(DropPrimaryKey(ROW_ID))
    hidden = row_id(bare)
    assert hidden is not None and hidden.name == "rowid"
    assert not bare.index(bare.primary).is_constraint
    assert names(bare) == ["id", "name", "age", "city"]
    keyed = done(AlterPrimaryKey("k", (NamedKeyColumn("id"),), is_added=True), table=bare)
    assert row_id(keyed) is None
    assert [each.name for each in keyed.columns] == ["id", "name", "age", "city"]


def test_a_primary_key_is_replaced_by_dropping_and_adding_one() -> None:
    after = done(
        DropPrimaryKey(ROW_ID), AlterPrimaryKey("users_pkey2", (NamedKeyColumn("age"),), is_added=True)
    )
    assert after.index(after.primary).parts == (KeyPart(3),)
    assert names(after) == [each.name for each in after.columns] == ["id", "name", "age", "city"]


def test_a_key_that_others_refer_to_is_kept_as_a_unique_index_or_stays() -> None:
    referring = (ReferringKey(300, "orders", ForeignKey(7, "fk", (2,), 200, (1,))),)
    assert refused(AlterPrimaryKey("k", (NamedKeyColumn("age"),), referring=referring))[0] == "2BP01"
    declared(users(), AlterPrimaryKey("k", (NamedKeyColumn("age"),), referring=referring, former="f"))
