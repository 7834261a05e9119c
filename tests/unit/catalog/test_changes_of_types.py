"""Changes of a column's type: in place, or by a new column that takes over."""

import pytest

from tenure.catalog.changes.table_changes import (
    AddCheck,
    AddForeignKey,
    AlterPrimaryKey,
    AlterType,
    DropColumn,
    NamedKeyColumn,
    SetDefault,
    SetNotNull,
    TableChange,
)
from tenure.catalog.descriptors.definitions import (
    KeyPart,
    Table,
    TypeRef,
)
from tenure.catalog.descriptors.elements import finished, is_finished, reverse
from tests.unit.catalog.changing import done, names, refused
from tests.unit.catalog.tables import (
    TEXT,
    declared,
    index,
    reading,
    stages,
    users,
)


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
        index("i", "age"),
        index("i", "city", predicate=reading(3)),
        AddCheck("c", reading(3)),
        AddForeignKey("fk", ("age",), 300, (1,)),
        AlterPrimaryKey("k", (NamedKeyColumn("age"),)),
    ],
)
def test_a_column_that_is_being_rewritten_is_left_alone_till_then(change: TableChange) -> None:
    assert refused(change, declared(users(), rewrite()))[0] == "0A000"


def test_a_column_that_is_being_rewritten_hands_its_default_and_not_null_on() -> None:
    declaration = declared(users(), rewrite())
    for change in (SetNotNull("age"), SetDefault("age", reading(1))):
        declaration = declared(declaration, change)
    after = finished(declaration)
    assert isinstance(after, Table)
    assert not after.column(5).is_nullable
    assert after.column(5).default == reading(1)


def test_columns_of_foreign_keys_are_not_rewritten() -> None:
    table = done(AddForeignKey("friend", ("age",), 200, (1,)))
    assert refused(rewrite("age"), table)[0] == "0A000"
    assert refused(rewrite("id"), table)[0] == "0A000"
