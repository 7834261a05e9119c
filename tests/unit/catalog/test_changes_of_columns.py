"""Changes of a table's columns: what they declare, what they refuse, and in whose words."""

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes.table_changes import (
    AddForeignKey,
    AlterType,
    DropColumn,
    DropDefault,
    DropKey,
    DropNotNull,
    ReferringKey,
    RenameColumn,
    SetDefault,
    SetNotNull,
    TableChange,
)
from tenure.catalog.descriptors.definitions import (
    ForeignKey,
)
from tests.unit.catalog.changing import DELETE_ONLY, WRITE_ONLY, done, names, refused
from tests.unit.catalog.tables import (
    ROW_ID,
    TEXT,
    column,
    declared,
    index,
    reading,
    stages,
    users,
)


def test_an_added_column_starts_at_delete_only_with_a_fresh_id() -> None:
    table = declared(users(), column("a"))
    assert (table.columns[-1].id, table.columns[-1].state, table.next_column) == (5, DELETE_ONLY, 6)
    assert names(done(column("a"))) == ["id", "name", "age", "city", "a"]


def test_rows_that_exist_have_the_constant_a_column_was_added_with() -> None:
    table = declared(users(), column("a", is_nullable=False, default=ROW_ID, filled=b"7"))
    added = table.columns[-1]
    assert (added.filled, added.computed, added.is_nullable) == (b"7", None, False)
    assert table.checks == users().checks


def test_a_default_that_is_not_constant_is_computed_for_rows_that_exist() -> None:
    added = declared(users(), column("a", default=ROW_ID)).columns[-1]
    assert (added.filled, added.computed, added.default) == (None, ROW_ID, ROW_ID)


def test_not_null_without_a_value_is_proved_before_it_holds() -> None:
    table = declared(users(), column("a", is_nullable=False))
    assert (table.checks[-1].not_null, table.checks[-1].state) == (5, DELETE_ONLY)
    after = done(column("a", is_nullable=False))
    assert not after.columns[-1].is_nullable
    assert after.checks == users().checks


def test_a_column_name_is_taken_once() -> None:
    message = 'column "age" of relation "users" already exists'
    assert refused(column("age")) == ("42701", message)
    assert refused(RenameColumn("city", "age")) == ("42701", message)


@pytest.mark.parametrize(
    "change",
    [
        DropColumn("x"),
        RenameColumn("x", "y"),
        SetDefault("x", ROW_ID),
        DropDefault("x"),
        SetNotNull("x"),
        DropNotNull("x"),
        AlterType("x", TEXT),
    ],
)
def test_a_column_that_is_not_there_is_named(change: TableChange) -> None:
    assert refused(change) == ("42703", 'column "x" of relation "users" does not exist')


def test_a_dropped_column_takes_what_uses_it_along() -> None:
    after = done(DropColumn("age"))
    assert names(after) == ["id", "name", "city"]
    assert [each.name for each in after.indexes] == ["users_pkey", "users_name"]
    assert after.checks == ()


def test_a_column_that_a_predicate_reads_takes_the_index_along() -> None:
    assert [each.name for each in done(DropColumn("city")).indexes] == ["users_pkey", "users_name"]


def test_a_dropped_column_takes_its_own_foreign_keys_along() -> None:
    table = done(AddForeignKey("friend", ("age",), 200, (1,)))
    after = done(DropColumn("age"), table=table)
    assert (after.foreign_keys, after.inbound) == ((), ())


def test_a_column_of_the_primary_key_cannot_be_dropped() -> None:
    assert refused(DropColumn("id")) == ("42P16", 'column "id" is in a primary key')


def test_a_column_that_others_refer_to_is_dropped_only_by_cascade() -> None:
    key = ForeignKey(7, "orders_name_fkey", (2,), 200, (2,))
    referring = (ReferringKey(300, "orders", key),)
    with pytest.raises(UserError) as caught:
        DropColumn("name", referring=referring).apply(users())
    assert caught.value.sqlstate == "2BP01"
    assert str(caught.value) == "cannot drop column name of table users because other objects depend on it"
    assert (
        getattr(caught.value, "detail", "")
        == "constraint orders_name_fkey on table orders depends on column name of table users"
    )
    change = DropColumn("name", is_cascade=True, referring=referring)
    assert [*change.elsewhere(users())] == [(300, DropKey(7))]
    assert names(done(change)) == ["id", "age", "city"]


def test_a_column_added_and_dropped_by_one_transaction_was_never_there() -> None:
    table = declared(users(), column("a", is_nullable=False), index("i", "a"), DropColumn("a"))
    assert table == users(next_column=6, next_index=5, next_constraint=3)


def test_a_renamed_column_keeps_its_id() -> None:
    assert done(RenameColumn("age", "years")).column(3).name == "years"
    assert refused(RenameColumn("age", "age"))[0] == "42701"


def test_a_default_does_not_change_what_older_rows_have() -> None:
    table = done(column("a", default=ROW_ID, filled=b"7"))
    other = reading()
    assert done(SetDefault("a", other), table=table).columns[-1].filled == b"7"
    assert done(SetDefault("a", other), table=table).columns[-1].default == other
    assert done(DropDefault("a"), table=table).columns[-1].filled == b"7"
    assert done(DropDefault("a"), table=table).columns[-1].default is None


def test_not_null_holds_once_it_is_proved() -> None:
    walked = [*stages(users(), declared(users(), SetNotNull("age")))]
    assert [table.column(3).is_nullable for table in walked] == [True, False]
    assert [len(table.checks) for table in walked] == [2, 1]
    assert declared(users(), SetNotNull("id")) == users()


def test_not_null_is_enforced_one_version_longer_than_it_is_relied_on() -> None:
    walked = [*stages(users(), declared(users(), DropNotNull("name")))]
    assert [table.column(2).is_nullable for table in walked] == [True, True]
    assert [[each.state for each in table.checks if each.not_null] for table in walked] == [[WRITE_ONLY], []]


def test_not_null_set_and_dropped_by_one_transaction_changes_nothing() -> None:
    assert declared(users(), SetNotNull("age"), DropNotNull("age")) == users(next_constraint=3)
    assert declared(users(), DropNotNull("name"), SetNotNull("name")) == users(next_constraint=3)


def test_a_column_of_the_primary_key_stays_not_null() -> None:
    assert refused(DropNotNull("id")) == ("42P16", 'column "id" is in a primary key')
