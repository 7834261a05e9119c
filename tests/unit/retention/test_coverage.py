"""What an object target covers: each sentence of it is a row of a table."""

from collections.abc import Sequence

import pytest

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import (
    DescriptorState,
    ElementState,
    Index,
    KeyPart,
    Table,
    replace,
)
from tenure.kv.keys import Keyspace
from tenure.retention.protections.coverage import covered
from tenure.retention.protections.protection_records import Mode, Protection
from tests.unit.catalog.tables import users

KEYSPACE = Keyspace(1)
DATABASE, OTHER_DATABASE, SCHEMA, OTHER_SCHEMA, TABLE = 100, 110, 101, 111, 200
PUBLIC, DROPPED, ADDING, OFFLINE = (
    DescriptorState.PUBLIC,
    DescriptorState.DROPPED,
    DescriptorState.ADDING,
    DescriptorState.OFFLINE,
)
SHOWN, WRITTEN = ElementState.PUBLIC, ElementState.WRITE_ONLY


def version(at: Timestamp, **fields: object) -> Table:
    """A version of a table with one public index, in the schema and database of the targets."""
    table = replace(users(id=TABLE), modified_at=at, indexes=(index(1),))
    return replace(table, **fields)


def index(id: int, state: ElementState = SHOWN, **fields: object) -> Index:
    return replace(Index(id, f"i{id}", (KeyPart(1),), state=state, primary=1), **fields)


def protection(
    at: Timestamp, mode: Mode, *objects: int, spans: Sequence[tuple[bytes, bytes]] = ()
) -> Protection:
    return Protection(b"p" * 16, at, mode, "job", b"", objects, tuple(spans))


def by_index(found: dict[bytes, Timestamp]) -> dict[int, Timestamp]:
    return {KEYSPACE.table_and_index(head)[1]: at for head, at in found.items()}


MOVED = [version(10), version(40, schema=OTHER_SCHEMA)]
CONVERTED = [version(10), version(40, database=OTHER_DATABASE, schema=OTHER_SCHEMA)]
DROPPED_LATER = [version(10), version(40, state=DROPPED)]
CAME_LATER = [
    version(10, schema=OTHER_SCHEMA, database=OTHER_DATABASE),
    version(40),
    version(50, state=DROPPED),
]
MOVED_BEFORE = [version(10), version(20, schema=OTHER_SCHEMA, database=OTHER_DATABASE)]
CREATED_LATER = [version(40)]
RETURNED = [
    version(10),
    version(20, schema=OTHER_SCHEMA, database=OTHER_DATABASE),
    version(40),
    version(50, schema=OTHER_SCHEMA, database=OTHER_DATABASE),
]
NEW_INDEX = [
    version(10),
    version(35, indexes=(index(1), index(2, WRITTEN))),
    version(40, indexes=(index(1), index(2))),
]
DROPPED_INDEX = [
    version(10, indexes=(index(1), index(2))),
    version(40, indexes=(index(1), index(2, WRITTEN))),
    version(41),
]
UNREAD_INDEX = [version(10, indexes=(index(1), index(2, is_unread=True)))]
IMPORTED = [version(10, state=OFFLINE), version(40)]
ADDED = [version(10, state=ADDING), version(40)]
UNDROPPED = [version(10), version(20, state=DROPPED), version(40)]

CASES = {
    # name: (versions, what protect_at 30 covers, what protect_after 30 covers), for each kind of target
    "a table that stays": ([version(10)], {1: 30}, {1: 30}),
    "a version of exactly that time": ([version(30)], {1: 30}, {1: 30}),
    "a version that ends at exactly that time": ([version(10), version(30, state=DROPPED)], {}, {}),
    "a table that is moved away later": (MOVED, {1: 30}, {1: 30}),
    "a table of a database that is converted later": (CONVERTED, {1: 30}, {1: 30}),
    "a table that is dropped later": (DROPPED_LATER, {1: 30}, {1: 30}),
    "a table that is created later": (CREATED_LATER, {}, {1: 40}),
    "an index that becomes public later": (NEW_INDEX, {1: 30}, {1: 30, 2: 40}),
    "an index that is dropped later": (DROPPED_INDEX, {1: 30, 2: 30}, {1: 30, 2: 30}),
    "an index that is about to be dropped": (UNREAD_INDEX, {1: 30, 2: 30}, {1: 30, 2: 30}),
    "a table that is imported later": (IMPORTED, {}, {1: 40}),
    "a table that is added later": (ADDED, {}, {1: 40}),
    "a table that was dropped and comes back": (UNDROPPED, {}, {1: 40}),
    "a table without versions": ([], {}, {}),
}


@pytest.mark.invariant("coverage")
@pytest.mark.parametrize("target", [TABLE, SCHEMA, DATABASE])
@pytest.mark.parametrize("name", CASES)
def test_an_object_covers(name: str, target: int) -> None:
    versions, at, after = CASES[name]
    assert by_index(covered(KEYSPACE, protection(30, Mode.AT, target), versions)) == at
    assert by_index(covered(KEYSPACE, protection(30, Mode.AFTER, target), versions)) == after


Cases = dict[str, tuple[list[Table], dict[int, Timestamp], dict[int, Timestamp]]]

PLACES: Cases = {
    "a table that comes from elsewhere, later": (CAME_LATER, {}, {1: 40}),
    "a table that left before": (MOVED_BEFORE, {}, {}),
    "a table that left before and comes back": (RETURNED, {}, {1: 40}),
}


@pytest.mark.invariant("coverage")
@pytest.mark.parametrize("target", [SCHEMA, DATABASE])
@pytest.mark.parametrize("name", PLACES)
def test_what_contains_a_table_covers_it_by_its_place_at_the_time(name: str, target: int) -> None:
    versions, at, after = PLACES[name]
    assert by_index(covered(KEYSPACE, protection(30, Mode.AT, target), versions)) == at
    assert by_index(covered(KEYSPACE, protection(30, Mode.AFTER, target), versions)) == after


@pytest.mark.parametrize("mode", Mode)
def test_other_objects_are_not_covered(mode: Mode) -> None:
    assert covered(KEYSPACE, protection(30, mode, OTHER_SCHEMA, OTHER_DATABASE, 201), [version(10)]) == {}


def test_of_several_targets_the_earliest_counts() -> None:
    both = protection(30, Mode.AFTER, SCHEMA, OTHER_SCHEMA)
    assert by_index(covered(KEYSPACE, both, RETURNED)) == {1: 30}


@pytest.mark.parametrize("mode", Mode)
def test_a_span_of_part_of_an_index_covers_all_of_it(mode: Mode) -> None:
    head = KEYSPACE.head(TABLE, 2)
    part = protection(30, mode, spans=[(head + b"k", head + b"m")])
    assert by_index(covered(KEYSPACE, part, NEW_INDEX)) == {2: 30}


@pytest.mark.parametrize("mode", Mode)
def test_a_span_covers_every_index_that_it_touches(mode: Mode) -> None:
    first, last = KEYSPACE.head(TABLE, 2), KEYSPACE.head(TABLE, 3)
    versions = [version(10, indexes=tuple(map(index, (1, 2, 3, 4))))]
    assert by_index(
        covered(KEYSPACE, protection(30, mode, spans=[(first + b"k", last + b"a")]), versions)
    ) == {
        2: 30,
        3: 30,
    }
    assert by_index(covered(KEYSPACE, protection(30, mode, spans=[(first, last)]), versions)) == {2: 30}
    whole = KEYSPACE.table_span(TABLE)
    assert by_index(covered(KEYSPACE, protection(30, mode, spans=[whole]), versions)) == dict.fromkeys(
        (1, 2, 3, 4), 30
    )
