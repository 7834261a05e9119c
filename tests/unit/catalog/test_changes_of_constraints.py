"""Changes of constraints: checks, foreign keys, and what is validated later."""

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes.table_changes import (
    AddCheck,
    AddForeignKey,
    AddInbound,
    DropConstraint,
    DropPrimaryKey,
    RenameConstraint,
    ValidateConstraint,
    alter,
    target_key,
)
from tenure.catalog.descriptors.definitions import (
    Goal,
    Inbound,
    replace,
)
from tenure.catalog.descriptors.elements import is_finished, reverse
from tests.unit.catalog.changing import PUBLIC, WRITE_ONLY, done, refused
from tests.unit.catalog.tables import (
    ROW_ID,
    Shelf,
    declared,
    reading,
    stages,
    users,
)


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
