"""Each change of a table: what it declares, what it refuses, and in whose words."""

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes import (
    AddCheck,
    AddForeignKey,
    AddInbound,
    AlterPrimaryKey,
    AlterType,
    Change,
    DropColumn,
    DropConstraint,
    DropDefault,
    DropIndex,
    DropKey,
    DropNotNull,
    DropPrimaryKey,
    Part,
    Referring,
    RenameColumn,
    RenameConstraint,
    RenameIndex,
    SetComment,
    SetDefault,
    SetLocked,
    SetNotNull,
    SetOwner,
    ValidateConstraint,
    alter,
    free_name,
    row_id,
    target_key,
)
from tenure.catalog.descriptors import (
    ElementState,
    ForeignKey,
    Goal,
    Inbound,
    KeyPart,
    Table,
    TypeRef,
    replace,
    visible,
)
from tenure.catalog.elements import finished, is_finished, reverse
from tests.unit.catalog.tables import (
    INT,
    ROW_ID,
    TEXT,
    Shelf,
    column,
    declared,
    index,
    reading,
    stages,
    users,
)

DELETE_ONLY, WRITE_ONLY, PUBLIC = ElementState


def done(*changes: Change, table: Table | None = None) -> Table:
    """The users after some changes, which are walked through."""
    before = users() if table is None else table
    after = [*stages(before, declared(before, *changes))][-1]
    assert is_finished(after)
    return after


def refused(change: Change, table: Table | None = None) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        change.apply(users() if table is None else table)
    return caught.value.sqlstate, str(caught.value)


def names(table: Table) -> list[str]:
    return [each.name for each in visible(table.columns) if not each.is_hidden]


# ── columns ────────────────────────────────────────────────────────────────────────────────────


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
def test_a_column_that_is_not_there_is_named(change: Change) -> None:
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
    referring = (Referring(300, "orders", key),)
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


# ── types ──────────────────────────────────────────────────────────────────────────────────────


def rewrite(name: str = "age", **fields: object) -> AlterType:
    new = reading(5)
    old = {"id": 1, "name": 2, "age": 3, "city": 4}[name]
    return AlterType(
        name,
        TEXT,
        computed=reading(old),
        reverse=new,
        checks=((1, new),),
        predicates=((3, new),),
        **fields,  # type: ignore[arg-type]
    )


def test_a_type_that_rows_hold_alike_changes_in_place() -> None:
    table = declared(users(), AlterType("age", TypeRef("int8")))
    assert table.column(3).type == TypeRef("int8")
    assert is_finished(table)


def test_a_rewritten_column_takes_over_with_its_indexes_and_checks() -> None:
    after = done(rewrite())
    assert names(after) == ["id", "name", "age", "city"]
    assert [each.id for each in after.columns] == [1, 2, 5, 4]
    assert after.columns[2].type == TEXT
    assert [(each.name, each.parts[0].column) for each in after.indexes if each.id == 4] == [("users_age", 5)]
    assert [(each.name, each.expression.columns) for each in after.checks] == [("users_age_check", (5,))]


def test_a_column_that_is_taken_over_follows_the_new_one_until_it_is_gone() -> None:
    walked = [*stages(users(), declared(users(), rewrite()))]
    followed = [[each.computed for each in table.columns if each.id == 3] for table in walked]
    assert followed == [[None], [None], [reading(5)], [reading(5)], []]


def test_a_rewritten_key_brings_a_new_primary_index_and_all_that_point_into_it() -> None:
    after = done(rewrite("id"))
    assert after.index(after.primary).parts == (KeyPart(5),)
    assert {each.primary for each in after.indexes} == {after.primary}
    assert {each.name for each in after.indexes} == {"users_pkey", "users_name", "users_age"}
    assert not after.column(5).is_nullable


def test_a_rewritten_column_is_not_null_if_it_was() -> None:
    assert not done(rewrite("name")).column(5).is_nullable
    assert done(rewrite("age")).column(5).is_nullable


def test_a_rewrite_that_fails_leaves_no_trace() -> None:
    for table in stages(users(), declared(users(), rewrite("id"))):
        if table.primary == 1:
            back = finished(reverse(table))
            assert back == users(next_column=6, next_index=7, next_constraint=3)


@pytest.mark.parametrize(
    "change",
    [
        DropColumn("age"),
        rewrite(),
        SetNotNull("age"),
        index("i", "age"),
        index("i", "city", predicate=reading(3)),
        AddCheck("c", reading(3)),
        AddForeignKey("fk", ("age",), 300, (1,)),
        AlterPrimaryKey("k", (Part("age"),)),
    ],
)
def test_a_column_that_is_being_rewritten_is_left_alone_till_then(change: Change) -> None:
    assert refused(change, declared(users(), rewrite()))[0] == "0A000"


def test_columns_of_foreign_keys_are_not_rewritten() -> None:
    table = done(AddForeignKey("friend", ("age",), 200, (1,)))
    assert refused(rewrite("age"), table)[0] == "0A000"
    assert refused(rewrite("id"), table)[0] == "0A000"


# ── indexes and keys ───────────────────────────────────────────────────────────────────────────


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
    referring = (Referring(300, "orders", ForeignKey(7, "fk", (2,), 200, (2,))),)
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
    change = AlterPrimaryKey("users_pkey", (Part("age"), Part("id", is_descending=True)))
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
    after = done(AlterPrimaryKey("users_pkey", (Part("name"),), former="users_id_key"))
    assert [(each.name, each.is_unique, each.parts) for each in after.indexes][-1] == (
        "users_id_key",
        True,
        (KeyPart(1),),
    )


def test_a_table_has_one_primary_key() -> None:
    assert refused(AlterPrimaryKey("k", (Part("age"),), is_added=True)) == (
        "42P16",
        'multiple primary keys for table "users" are not allowed',
    )


def test_without_a_primary_key_there_is_a_hidden_row_id() -> None:
    bare = done(DropPrimaryKey(ROW_ID))
    hidden = row_id(bare)
    assert hidden is not None and hidden.name == "rowid"
    assert not bare.index(bare.primary).is_constraint
    assert names(bare) == ["id", "name", "age", "city"]
    keyed = done(AlterPrimaryKey("k", (Part("id"),), is_added=True), table=bare)
    assert row_id(keyed) is None
    assert [each.name for each in keyed.columns] == ["id", "name", "age", "city"]


def test_a_primary_key_is_replaced_by_dropping_and_adding_one() -> None:
    after = done(DropPrimaryKey(ROW_ID), AlterPrimaryKey("users_pkey2", (Part("age"),), is_added=True))
    assert after.index(after.primary).parts == (KeyPart(3),)
    assert names(after) == [each.name for each in after.columns] == ["id", "name", "age", "city"]


def test_a_key_that_others_refer_to_is_kept_as_a_unique_index_or_stays() -> None:
    referring = (Referring(300, "orders", ForeignKey(7, "fk", (2,), 200, (1,))),)
    assert refused(AlterPrimaryKey("k", (Part("age"),), referring=referring))[0] == "2BP01"
    declared(users(), AlterPrimaryKey("k", (Part("age"),), referring=referring, former="f"))


# ── constraints ────────────────────────────────────────────────────────────────────────────────


def test_a_check_is_enforced_before_it_is_relied_on() -> None:
    assert declared(users(), AddCheck("c", reading(3))).checks[-1].state is WRITE_ONLY
    assert done(AddCheck("c", reading(3))).checks[-1].state is PUBLIC


def test_a_constraint_name_is_taken_once() -> None:
    message = 'constraint "users_age_check" for relation "users" already exists'
    assert refused(AddCheck("users_age_check", reading(3))) == ("42710", message)
    assert refused(AddForeignKey("users_age_check", ("age",), 300, (1,))) == ("42710", message)
    assert refused(RenameConstraint("users_name", "users_age_check")) == ("42710", message)


def test_a_constraint_that_is_not_there_is_named() -> None:
    message = 'constraint "x" of relation "users" does not exist'
    for change in (DropConstraint("x"), ValidateConstraint("x"), RenameConstraint("x", "y")):
        assert refused(change) == ("42704", message)


def test_a_constraint_that_is_not_valid_is_there_at_once_and_validated_later() -> None:
    loose = declared(users(), AddCheck("c", reading(3), is_validated=False))
    assert is_finished(loose)
    walked = [*stages(loose, declared(loose, ValidateConstraint("c")))]
    assert [(table.checks[-1].state, table.checks[-1].is_validated) for table in walked] == [
        (WRITE_ONLY, False),
        (PUBLIC, True),
    ]
    assert reverse(walked[0]) == loose
    assert declared(users(), ValidateConstraint("users_age_check")) == users()


def test_a_constraint_that_is_being_validated_can_be_dropped() -> None:
    loose = done(AddForeignKey("friend", ("age",), 200, (1,), is_validated=False))
    dropped = declared(loose, ValidateConstraint("friend"), DropConstraint("friend"))
    assert [(each.state, each.goal) for each in dropped.foreign_keys] == [(PUBLIC, Goal.ABSENT)]


def test_a_constraint_that_only_its_draft_knows_is_gone_without_a_step() -> None:
    shelf = Shelf(users())
    alter(shelf.draft, shelf, 200, AddCheck("c", reading(2), is_validated=False))
    alter(shelf.draft, shelf, 200, AddForeignKey("friend", ("age",), 200, (1,), is_validated=False))
    alter(shelf.draft, shelf, 200, DropConstraint("c"))
    alter(shelf.draft, shelf, 200, DropConstraint("friend"))
    table = shelf.draft.declared[200]
    assert replace(table, next_constraint=users().next_constraint) == users()


def test_a_constraint_that_only_its_draft_knows_is_added_when_it_is_validated() -> None:
    shelf = Shelf(users())
    alter(shelf.draft, shelf, 200, AddCheck("c", reading(3), is_validated=False))
    assert alter(shelf.draft, shelf, 200, ValidateConstraint("c")) == declared(
        users(), AddCheck("c", reading(3))
    )


def test_a_foreign_key_stands_in_both_tables() -> None:
    change = AddForeignKey("fk", ("age", "city"), 300, (1, 2))
    key = declared(users(), change).foreign_keys[-1]
    assert (key.columns, key.target, key.state) == ((3, 4), 300, WRITE_ONLY)
    assert [*change.elsewhere(users())] == [(300, AddInbound(200, key.id))]
    itself = declared(users(), AddForeignKey("fk", ("age",), 200, (1,)))
    assert itself.inbound == (Inbound(200, 2),)


def test_a_foreign_key_refers_to_something_unique() -> None:
    assert target_key(users(), ()) == (1,)
    assert target_key(users(), ("name",)) == (2,)
    for names in (("age",), ("name", "age"), ("name", "name")):
        with pytest.raises(UserError, match="no unique constraint matching given keys") as caught:
            target_key(users(), names)
        assert caught.value.sqlstate == "42830"
    with pytest.raises(UserError, match="there is no primary key for referenced table") as caught:
        target_key(done(DropPrimaryKey(ROW_ID)), ())
    assert caught.value.sqlstate == "42704"


def test_both_sides_of_a_foreign_key_have_as_many_columns() -> None:
    assert refused(AddForeignKey("fk", ("age",), 300, (1, 2)))[0] == "42830"
    assert refused(AddForeignKey("fk", ("x",), 300, (1,))) == (
        "42703",
        'column "x" referenced in foreign key constraint does not exist',
    )


def test_the_primary_key_is_not_dropped_like_other_constraints() -> None:
    assert refused(DropConstraint("users_pkey"))[0] == "0A000"


def test_constraints_are_renamed() -> None:
    table = done(AddForeignKey("friend", ("age",), 200, (1,)))
    assert done(RenameConstraint("users_age_check", "c")).checks[0].name == "c"
    assert done(RenameConstraint("friend", "f"), table=table).foreign_keys[0].name == "f"
    assert done(RenameConstraint("users_pkey", "p")).index(1).name == "p"


# ── the rest ───────────────────────────────────────────────────────────────────────────────────


def test_owner_lock_and_comment_change_at_once() -> None:
    table = declared(users(), SetOwner("ann"), SetLocked(True), SetComment("people"))
    assert table == users(owner="ann", is_locked=True, comment="people")


def test_names_are_made_as_postgresql_makes_them() -> None:
    assert free_name([], "users", "age", "idx") == "users_age_idx"
    assert free_name(["users_age_idx"], "users", "age", "idx") == "users_age_idx1"
    assert len(free_name([], "u" * 80, "idx")) == 63


def test_changes_are_plain_data() -> None:
    assert column("a") == column("a")
    assert hash(DropColumn("a")) == hash(DropColumn("a"))
    assert column("a", type=INT) != column("a", type=TEXT)
