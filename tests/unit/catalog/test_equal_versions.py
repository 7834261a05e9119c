"""Which changes keep a descriptor's `logical` and `row`, and how drafts are carried over equal versions."""

import msgspec
import pytest

from tenure.base.errors import RetryError
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.changes.publisher import check_made_from
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    Column,
    DescriptorState,
    EnumMember,
    EnumType,
    Inbound,
    Table,
    TypeRef,
    next_version,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.equal_versions import logical_of, numbered, row_of
from tenure.kv.keys import Keyspace
from tenure.kv.records import pack
from tests.unit.catalog.tables import users

FORMER = replace(users(), version=7, logical=5, row=4)


def numbers(changed: Table, former: Table = FORMER) -> tuple[int, int]:
    following = numbered(former, next_version(changed))
    return logical_of(following), row_of(following)


@pytest.mark.parametrize(
    "fields",
    [
        {"owner": "ann"},
        {"comment": "people"},
        {"is_locked": True},
        {"is_lock_kept": True},
        {"watchers": (900,)},
        {"job": 901},
    ],
    ids=str,
)
def test_lock_mark_owner_and_comment_keep_both_numbers(fields: dict[str, object]) -> None:
    assert numbers(replace(FORMER, **fields)) == (5, 4)


@pytest.mark.parametrize(
    "fields",
    [
        {"inbound": (Inbound(200, 1),)},
        {"dependents": (201,)},
        {"columns": (replace(FORMER.columns[0], comment="the key"), *FORMER.columns[1:])},
    ],
    ids=["foreign key to it", "view on it", "comment of a column"],
)
def test_users_of_a_table_and_comments_of_its_parts_keep_row_alone(fields: dict[str, object]) -> None:
    assert numbers(replace(FORMER, **fields)) == (8, 4)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "people"},
        {"columns": (*FORMER.columns, Column(9, "extra", TypeRef("text")))},
        {"indexes": (replace(FORMER.indexes[0], name="other"), *FORMER.indexes[1:])},
        {"is_closed": True},
    ],
    ids=["name", "column", "index", "closed"],
)
def test_everything_else_changes_both_numbers(fields: dict[str, object]) -> None:
    assert numbers(replace(FORMER, **fields)) == (8, 8)


def test_a_user_of_a_type_keeps_its_row_and_a_label_does_not() -> None:
    members = (EnumMember("sad", b"\x10"),)
    type_ = EnumType(30, 3, ZERO_AT, "mood", "root", DescriptorState.PUBLIC, (), (), 100, 101, members)
    used = numbered(type_, next_version(replace(type_, referents=(50,))))
    longer = (*type_.members, EnumMember("ok", b"\x20"))
    labelled = numbered(type_, next_version(replace(type_, members=longer)))
    assert (row_of(used), logical_of(used)) == (3, 4)
    assert (row_of(labelled), logical_of(labelled)) == (4, 4)


def test_a_version_from_before_the_numbers_stands_for_itself() -> None:
    old = replace(FORMER, logical=0, row=0)
    assert (logical_of(old), row_of(old)) == (7, 7)
    assert numbers(replace(old, comment="people"), old) == (7, 7)


def test_a_new_descriptor_is_equal_to_nothing() -> None:
    made = numbered(None, next_version(replace(FORMER, version=0)))
    assert (made.logical, made.row) == (1, 1)


def test_a_carried_draft_takes_what_it_does_not_change_from_the_stored_version() -> None:
    draft = Draft()
    draft.declare(replace(FORMER, name="people", comment="of the draft"), made_from=7)
    stored = replace(FORMER, version=9, owner="ann", comment="of another", is_locked=True)
    draft.carry(stored, FORMER)
    carried = draft.declared[FORMER.id]
    assert isinstance(carried, Table)
    assert (carried.name, carried.comment) == ("people", "of the draft")
    assert (carried.owner, carried.is_locked, carried.version) == ("ann", True, 9)
    assert draft.made_from[FORMER.id] == 9


def test_a_new_descriptor_is_not_carried_to_one_that_is_there_already() -> None:
    draft = Draft()
    draft.create(replace(FORMER, version=1, logical=0, row=0))
    with pytest.raises(RetryError):
        check_made_from(draft, replace(FORMER, version=1, logical=1, row=1))


def test_a_table_of_an_older_store_has_none_of_the_new_fields() -> None:
    new_fields = ("logical", "row", "is_lock_kept", "watchers")
    assert Table.__struct_fields__[-len(new_fields) :] == new_fields
    stored = msgspec.msgpack.decode(pack(FORMER))[: -len(new_fields)]
    catalog = Catalog(Keyspace(1))
    table = catalog.decode(b"\x01" + msgspec.msgpack.encode(stored))
    assert table == replace(FORMER, logical=0, row=0)
    assert (logical_of(table), row_of(table)) == (7, 7)
