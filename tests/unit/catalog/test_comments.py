"""Comments on all that can have one."""

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes.object_changes import create_enum, set_comment
from tenure.catalog.changes.sequence_changes import create_sequence
from tenure.catalog.changes.table_changes import (
    AddForeignKey,
    AlterType,
    SetColumnComment,
    SetComment,
    SetConstraintComment,
    SetIndexComment,
    TableChange,
    alter,
)
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, DEFAULT_SCHEMA, ROOT, Table
from tests.unit.catalog.tables import TEXT, Shelf, declared, reading, users


def commented(*changes: TableChange) -> Table:
    return declared(users(), *changes)


def test_whole_objects_have_one() -> None:
    shelf = Shelf(users())
    create_enum(shelf.draft, shelf, id=300, schema=DEFAULT_SCHEMA, name="e", owner=ROOT, labels=[])
    create_sequence(shelf.draft, shelf, id=301, schema=DEFAULT_SCHEMA, name="s", owner=ROOT)
    for id in (DEFAULT_DATABASE, DEFAULT_SCHEMA, 200, 300, 301):
        assert set_comment(shelf.draft, shelf, id, "said").comment == "said"
        assert set_comment(shelf.draft, shelf, id, None).comment == ""
    alter(shelf.draft, shelf, 200, SetComment("said"))
    table = shelf.draft.declared[200]
    assert isinstance(table, Table) and table.comment == "said"


def test_parts_of_a_table_have_one() -> None:
    table = commented(
        SetColumnComment("age", "in years"),
        SetIndexComment("users_age", "for reports"),
        SetConstraintComment("users_age_check", "nobody is unborn"),
        SetConstraintComment("users_name", "one each"),
        AddForeignKey("fk", ("age",), 200, (1,)),
        SetConstraintComment("fk", "odd"),
    )
    assert table.column(3).comment == "in years"
    assert [each.comment for each in table.indexes] == ["", "one each", "for reports"]
    assert (table.checks[0].comment, table.foreign_keys[0].comment) == ("nobody is unborn", "odd")
    assert declared(table, SetColumnComment("age", "")).column(3).comment == ""


@pytest.mark.parametrize(
    ("change", "sqlstate"),
    [
        (SetColumnComment("nope", "x"), "42703"),
        (SetIndexComment("nope", "x"), "42704"),
        (SetConstraintComment("nope", "x"), "42704"),
    ],
)
def test_what_is_not_there_has_none(change: TableChange, sqlstate: str) -> None:
    with pytest.raises(UserError) as caught:
        commented(change)
    assert caught.value.sqlstate == sqlstate


def test_a_rewritten_column_keeps_it_and_so_does_its_check() -> None:
    said = commented(SetColumnComment("age", "in years"), SetConstraintComment("users_age_check", "born"))
    table = declared(said, AlterType("age", TEXT, computed=reading(3), checks=((1, reading(5)),)))
    assert table.column(5).comment == "in years"
    assert [each.comment for each in table.checks if each.name == "users_age_check"] == ["born", "born"]
