"""What a descriptor must be by itself to be used at all."""

import pytest

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Check,
    Column,
    DescriptorState,
    ElementState,
    EnumMember,
    EnumType,
    ForeignKey,
    Goal,
    Inbound,
    Index,
    KeyPart,
    NameKey,
    Table,
    replace,
)
from tenure.catalog.descriptors.validation import problems
from tests.unit.catalog.tables import INT, database, reading, schema, users


def with_column(**fields: object) -> Table:
    """The users with their last column altered."""
    table = users()
    return replace(table, columns=(*table.columns[:-1], replace(table.columns[-1], **fields)))


def with_primary(**fields: object) -> Table:
    table = users()
    return replace(table, indexes=(replace(table.indexes[0], **fields), *table.indexes[1:]))


def with_index(**fields: object) -> Table:
    table = users()
    return replace(table, indexes=(*table.indexes[:-1], replace(table.indexes[-1], **fields)))


def mood(*members: EnumMember) -> EnumType:
    return EnumType(
        300,
        1,
        ZERO_AT,
        "mood",
        "root",
        DescriptorState.PUBLIC,
        (),
        (),
        database=100,
        schema=101,
        members=members,
    )


@pytest.mark.parametrize(
    "descriptor", [users(), database(), schema(), mood(EnumMember("low", b"a"), EnumMember("high", b"b"))]
)
def test_a_good_descriptor_has_no_problems(descriptor: AnyDescriptor) -> None:
    assert problems(descriptor) == []


GONE = NameKey(100, 101, "people")

WRONG = {
    "an id that is none": (users(id=0), "its id, version or time is out of range"),
    "a version that is none": (users(version=0), "its id, version or time is out of range"),
    "no name": (users(name=""), "its name is empty or too long"),
    "a name that is too long": (users(name="é" * 32), "its name is empty or too long"),
    "a draining name twice": (users(draining=(GONE, GONE)), "a draining name stands twice"),
    "a column id twice": (with_column(id=3), "the id of a column stands twice or was never given out"),
    "a column id from nowhere": (
        users(next_column=4),
        "the id of a column stands twice or was never given out",
    ),
    "an index id from nowhere": (
        users(next_index=3),
        "the id of an index stands twice or was never given out",
    ),
    "a constraint id from nowhere": (
        users(next_constraint=1),
        "the id of a constraint stands twice or was never given out",
    ),
    "a column name twice": (with_column(name="age"), "a column name stands twice"),
    "an index name twice": (with_index(name="users_name"), "an index or constraint name stands twice"),
    "no primary index": (users(primary=9), "it has no primary index"),
    "a primary index that points elsewhere": (with_primary(primary=2), "its primary index is not one"),
    "a primary index that is not unique": (with_primary(is_unique=False), "its primary index is not one"),
    "a partial primary index": (with_primary(predicate=reading(3)), "its primary index is not one"),
    "a primary index on its way": (
        with_primary(state=ElementState.WRITE_ONLY),
        "its primary index is not public",
    ),
    "a key that may be null": (
        with_primary(parts=(KeyPart(3),)),
        "a column of its primary key may be null",
    ),
    "a key without columns": (
        with_primary(parts=()),
        "its primary key has no columns, or some that are not public",
    ),
    "an index on nothing": (
        with_index(parts=(KeyPart(9),)),
        'index "users_age" has no columns, one twice, or one that is not there',
    ),
    "an index on one column twice": (
        with_index(parts=(KeyPart(3), KeyPart(3))),
        'index "users_age" has no columns, one twice, or one that is not there',
    ),
    "a predicate on nothing": (
        with_index(predicate=reading(9)),
        'index "users_age" depends on a column that is not there',
    ),
    "an index that points nowhere": (with_index(primary=2), 'index "users_age" points into no primary index'),
    "a check on nothing": (
        users(checks=(Check(1, "c", reading(9)),)),
        'constraint "c" depends on a column that is not there',
    ),
    "a key on nothing": (
        users(foreign_keys=(ForeignKey(1, "k", (9,), 300, (1,)),), checks=()),
        'constraint "k" depends on a column that is not there',
    ),
    "a lopsided key": (
        users(foreign_keys=(ForeignKey(1, "k", (1, 2), 300, (1,)),), checks=()),
        'constraint "k" has no columns, or a different number on each side',
    ),
    "a value from nothing": (
        with_column(computed=reading(9)),
        'column "city" is computed from one that is not there',
    ),
    "a stand-in for nothing": (
        with_column(replaces=9, state=ElementState.WRITE_ONLY),
        'column "city" replaces one that is not there',
    ),
    "an index instead of nothing": (
        with_index(replaces=9, state=ElementState.WRITE_ONLY),
        'index "users_age" replaces one that is not there',
    ),
    "not null of nothing": (
        users(checks=(Check(1, "c", reading(3), not_null=9),)),
        'constraint "c" depends on a column that is not there',
    ),
    "a reference twice": (
        users(inbound=(Inbound(300, 1), Inbound(300, 1))),
        "a reference to it stands twice",
    ),
    "a label twice": (mood(EnumMember("a", b"a"), EnumMember("a", b"b")), "a label stands twice"),
    "two labels alike": (mood(EnumMember("a", b"a"), EnumMember("b", b"a")), "two labels are held alike"),
    "labels out of order": (
        mood(EnumMember("a", b"b"), EnumMember("b", b"a")),
        "its labels are not held in their order",
    ),
}


@pytest.mark.parametrize(("descriptor", "problem"), WRONG.values(), ids=WRONG.keys())
def test_a_descriptor_is_refused_for(descriptor: AnyDescriptor, problem: str) -> None:
    assert problem in problems(descriptor)


def test_names_of_what_readers_do_not_see_do_not_count() -> None:
    table = users()
    going = Column(5, "age", INT, ElementState.WRITE_ONLY, Goal.ABSENT)
    coming = Index(4, "users_age", (KeyPart(3),), state=ElementState.DELETE_ONLY, primary=1)
    table = replace(
        table,
        columns=(*table.columns, going),
        indexes=(*table.indexes, coming),
        next_column=6,
        next_index=5,
    )
    assert problems(table) == []
