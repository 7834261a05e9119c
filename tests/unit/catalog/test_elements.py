"""Declared changes walk to their ends by legal steps, and back without a trace."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tenure.base.errors import UserError
from tenure.catalog.changes.table_changes import (
    AddCheck,
    AddColumn,
    AddForeignKey,
    AlterPrimaryKey,
    AlterType,
    DropColumn,
    DropConstraint,
    DropDefault,
    DropIndex,
    DropNotNull,
    DropPrimaryKey,
    NamedKeyColumn,
    RenameColumn,
    RenameConstraint,
    RenameIndex,
    SetDefault,
    SetLocked,
    SetNotNull,
    SetOwner,
    TableChange,
    ValidateConstraint,
)
from tenure.catalog.changes.table_parts import find_column, since_committed, staying
from tenure.catalog.descriptors.definitions import (
    Check,
    Column,
    DescriptorState,
    ElementState,
    EnumMember,
    EnumType,
    ForeignKey,
    Goal,
    Index,
    Table,
    TypeRef,
    place_of,
    replace,
    visible,
)
from tenure.catalog.descriptors.draft_view import own_copy
from tenure.catalog.descriptors.elements import (
    STEPS_MAX,
    advance,
    finished,
    first_stage,
    has_additions,
    is_finished,
    is_shown,
    reverse,
    shown,
)
from tenure.catalog.descriptors.validation import problems
from tenure.schema_change.stages import with_preparations
from tests.unit.catalog.tables import INT, ROW_ID, TEXT, column, declared, index, reading, stages, users

DELETE_ONLY, WRITE_ONLY, PUBLIC = ElementState

LEGAL_STORED = {
    (None, DELETE_ONLY),
    (DELETE_ONLY, WRITE_ONLY),
    (WRITE_ONLY, PUBLIC),
    (PUBLIC, WRITE_ONLY),
    (WRITE_ONLY, DELETE_ONLY),
    (DELETE_ONLY, None),
}
LEGAL_CONSTRAINT = {
    (None, DELETE_ONLY),
    (None, WRITE_ONLY),
    (DELETE_ONLY, WRITE_ONLY),
    (WRITE_ONLY, PUBLIC),
    (PUBLIC, WRITE_ONLY),
    (WRITE_ONLY, None),
    (DELETE_ONLY, None),
}

NAMES = st.sampled_from(["id", "name", "age", "city", "a", "b"])
INDEXES = st.sampled_from(["users_pkey", "users_name", "users_age", "i", "j"])
CONSTRAINTS = st.sampled_from(["users_age_check", "users_name", "c", "d", "loose", "friend"])
PARTS = st.lists(NAMES, min_size=1, max_size=3, unique=True).map(
    lambda names: tuple(map(NamedKeyColumn, names))
)

CHANGES = st.one_of(
    st.builds(
        AddColumn,
        NAMES,
        st.sampled_from([INT, TEXT]),
        is_nullable=st.booleans(),
        default=st.sampled_from([None, ROW_ID]),
        filled=st.sampled_from([None, b"1"]),
    ),
    st.builds(DropColumn, NAMES),
    st.builds(RenameColumn, NAMES, NAMES),
    st.builds(SetDefault, NAMES, st.just(ROW_ID)),
    st.builds(DropDefault, NAMES),
    st.builds(SetNotNull, NAMES),
    st.builds(DropNotNull, NAMES),
    st.builds(AlterType, NAMES, st.just(TypeRef("int8"))),
    st.builds(index, INDEXES, NAMES, is_unique=st.booleans(), is_constraint=st.booleans()),
    st.builds(DropIndex, INDEXES),
    st.builds(RenameIndex, INDEXES, INDEXES),
    st.builds(AlterPrimaryKey, INDEXES, PARTS, former=st.sampled_from(["", "j"])),
    st.just(DropPrimaryKey(ROW_ID)),
    st.builds(DropConstraint, CONSTRAINTS),
    st.builds(ValidateConstraint, CONSTRAINTS),
    st.builds(RenameConstraint, CONSTRAINTS, CONSTRAINTS),
    st.builds(SetOwner, st.just("ann")),
    st.builds(SetLocked, st.booleans()),
)
"""Those that name everything by itself; checks, keys and rewrites depend on the table."""


def base(*, refers_to_itself: bool) -> Table:
    """The users with constraints of every kind, as they stand after their changes."""
    table = declared(users(), AddCheck("loose", reading(4), is_validated=False))
    if refers_to_itself:
        table = AddForeignKey("friend", ("age",), 200, (1,)).apply(table)
    done = finished(table)
    assert isinstance(done, Table)
    return done


@st.composite
def changed_tables(draw: st.DrawFn) -> tuple[Table, Table]:
    """A table, and the same with some changes declared on it."""
    before = base(refers_to_itself=draw(st.booleans()))
    table = before
    for _ in range(draw(st.integers(1, 6))):
        change = draw(st.one_of(CHANGES, CHANGES, st.sampled_from(["check", "key", "rewrite", "rewrite"])))
        try:
            table = since_committed(before, _made(draw, table, change).apply(table))
            note(f"{change}")
        except UserError:
            continue
    return before, table


def _made(draw: st.DrawFn, table: Table, change: TableChange | str) -> TableChange:
    if isinstance(change, TableChange):
        return change
    found = find_column(table, draw(NAMES)) or table.columns[0]
    if change == "check":
        return AddCheck(draw(CONSTRAINTS), reading(found.id), is_validated=draw(st.booleans()))
    if change == "key":
        return AddForeignKey(
            draw(CONSTRAINTS),
            (found.name,),
            draw(st.sampled_from([200, 300])),
            (1,),
            is_validated=draw(st.booleans()),
        )
    new = reading(table.next_column)
    return AlterType(
        found.name,
        TypeRef("numeric"),
        computed=reading(found.id),
        reverse=draw(st.sampled_from([None, new])),
        checks=tuple((each.id, new) for each in table.checks),
        predicates=tuple((each.id, new) for each in table.indexes),
    )


# ── the walk ───────────────────────────────────────────────────────────────────────────────────


@given(changed_tables())
def test_every_version_on_the_way_is_valid_and_the_walk_ends(tables: tuple[Table, Table]) -> None:
    walked = list(stages(*tables))
    assert [problem for table in walked for problem in problems(table)] == []
    assert len(walked) <= STEPS_MAX
    assert is_finished(walked[-1])
    assert walked[-1] == finished(tables[1])


@pytest.mark.invariant("element-steps")
@given(changed_tables())
def test_adjacent_versions_differ_by_legal_steps_only(tables: tuple[Table, Table]) -> None:
    walked = [tables[0], *stages(*tables)]
    for older, newer in pairwise(walked):
        assert [*_illegal(older, newer)] == []


@pytest.mark.invariant("add-before-drop")
@given(changed_tables())
def test_nothing_that_readers_see_goes_while_something_is_added(tables: tuple[Table, Table]) -> None:
    before, target = tables
    for table in stages(before, target):
        if has_additions(table):
            assert _ids(visible(table.columns)) >= _ids(before.columns)
            assert _ids(visible(table.indexes)) >= _ids(before.indexes)


@given(changed_tables())
def test_readers_see_all_of_a_change_in_one_version(tables: tuple[Table, Table]) -> None:
    before, target = tables
    for table in stages(before, target):
        assert _seen(table) == _seen(shown(target) if is_shown(table) else before)


@pytest.mark.invariant("way-back")
@given(changed_tables())
def test_a_change_that_is_not_shown_goes_back_without_a_trace(tables: tuple[Table, Table]) -> None:
    before, target = tables
    for table in stages(before, target):
        if is_shown(table):
            break
        walked: list[Table] = [table]
        back = reverse(table)
        assert reverse(back) == back
        while True:
            assert isinstance(back, Table)
            assert problems(back) == []
            assert [*_illegal(walked[-1], back)] == []
            walked.append(back)
            if is_finished(back):
                break
            back = advance(back)
        assert len(walked) <= STEPS_MAX
        assert _without_counters(walked[-1]) == _without_counters(before)


@given(changed_tables())
def test_counters_only_grow(tables: tuple[Table, Table]) -> None:
    before, target = tables
    for table in (*stages(before, target), finished(reverse(with_preparations(before, target)))):
        assert isinstance(table, Table)
        assert table.next_column >= before.next_column
        assert table.next_index >= before.next_index
        assert table.next_constraint >= before.next_constraint
        assert table.next_column == target.next_column


@given(changed_tables())
def test_a_shown_change_has_no_way_back(tables: tuple[Table, Table]) -> None:
    for table in stages(*tables):
        if is_shown(table):
            assert reverse(table) == table


@given(changed_tables())
def test_the_transactions_own_copy_can_be_used(tables: tuple[Table, Table]) -> None:
    _, target = tables
    own = own_copy(target)
    assert isinstance(own, Table)
    ids = {each.id for each in own.columns}
    assert all(part.column in ids for each in own.indexes for part in each.parts)
    assert all(ids.issuperset(check.expression.columns) for check in own.checks)
    assert own.index(own.primary).state is PUBLIC
    rewritten = {each.replaces for each in target.columns}
    names = [each.name for each in own.columns if not each.is_hidden]
    assert names == [each.name for each in staying(target.columns) if not each.is_hidden] or rewritten != {0}


def _ids(group: Iterable[Column] | Iterable[Index]) -> set[int]:
    return {each.id for each in group}


def _seen(table: object) -> object:
    """What a reader or a writer of plain statements can tell a version by."""
    assert isinstance(table, Table)
    return (
        [(each.name, each.type, each.default) for each in visible(table.columns)],
        [(each.name, each.parts, each.is_unique) for each in visible(table.indexes)],
        (table.name, table.owner, table.is_lock_kept, table.primary),
    )


def _without_counters(table: Table) -> Table:
    return replace(table, next_column=0, next_index=0, next_constraint=0)


def _illegal(older: Table, newer: Table) -> Iterator[str]:
    for kind, legal in (
        ("columns", LEGAL_STORED),
        ("indexes", LEGAL_STORED),
        ("checks", LEGAL_CONSTRAINT),
        ("foreign_keys", LEGAL_CONSTRAINT),
    ):
        before, after = _states(getattr(older, kind)), _states(getattr(newer, kind))
        for id in before.keys() | after.keys():
            step = before.get(id), after.get(id)
            if step[0] is not step[1] and step not in legal:
                yield f"{kind} {id}: {step}"
    before, after = _not_null(older), _not_null(newer)
    for id in before.keys() & after.keys():
        step = before[id], after[id]
        if step[0] is not step[1] and step not in LEGAL_CONSTRAINT:
            yield f"not null of {id}: {step}"


def _states(group: tuple[object, ...]) -> dict[int, ElementState | None]:
    return {
        each.id: WRITE_ONLY if _is_like_write_only(each) else each.state  # type: ignore[attr-defined]
        for each in group
        if not (isinstance(each, Check) and each.not_null)
    }


def _is_like_write_only(element: object) -> bool:
    """Enforced and kept up, and relied upon by nobody: NOT VALID, or an index that is about to go."""
    if isinstance(element, Index):
        return element.is_unread and element.state is PUBLIC
    return isinstance(element, Check | ForeignKey) and not element.is_validated


def _not_null(table: Table) -> dict[int, ElementState | None]:
    """NOT NULL as if it were a constraint, of columns that readers see."""
    enforced = {check.not_null for check in table.checks if check.state is WRITE_ONLY}
    return {
        each.id: PUBLIC if not each.is_nullable else WRITE_ONLY if each.id in enforced else None
        for each in visible(table.columns)
    }


# ── single steps ───────────────────────────────────────────────────────────────────────────────


def _walked(*changes: TableChange) -> list[Table]:
    return [*stages(users(), declared(users(), *changes))]


def test_a_column_is_added_in_three_versions() -> None:
    assert [table.columns[-1].state for table in _walked(column("a"))] == [DELETE_ONLY, WRITE_ONLY, PUBLIC]


def test_a_column_with_an_index_is_dropped_once_nobody_reads_the_index() -> None:
    walked = _walked(DropColumn("city"))
    assert [[each.state for each in table.columns if each.id == 4] for table in walked] == [
        [PUBLIC],
        [WRITE_ONLY],
        [DELETE_ONLY],
        [],
    ]


def test_a_check_is_added_in_two_versions_and_waits_for_the_column_it_reads() -> None:
    assert [table.checks[-1].state for table in _walked(AddCheck("c", reading(3)))] == [WRITE_ONLY, PUBLIC]
    walked = _walked(column("a"), AddCheck("c", reading(5)))
    assert [table.checks[-1].state for table in walked] == [DELETE_ONLY, WRITE_ONLY, PUBLIC]


@given(changed_tables())
def test_no_constraint_is_enforced_on_a_column_that_is_not_written(tables: tuple[Table, Table]) -> None:
    for table in stages(*tables):
        written = {each.id for each in table.columns if each.state is not DELETE_ONLY}
        enforced = [each for each in table.checks if each.state is not DELETE_ONLY]
        assert all(written.issuperset(each.expression.columns) for each in enforced)
        keys = [each for each in table.foreign_keys if each.state is not DELETE_ONLY]
        assert all(written.issuperset(each.columns) for each in keys)


def test_a_column_without_a_default_stops_being_not_null_before_it_goes() -> None:
    walked = _walked(DropConstraint("users_name"), DropColumn("name"))
    assert [
        [(each.state, each.is_nullable) for each in table.columns if each.id == 2] for table in walked
    ] == [[(PUBLIC, True)], [(WRITE_ONLY, True)], [(DELETE_ONLY, True)], []]


def test_a_dropped_column_and_its_namesake_change_places_in_one_version() -> None:
    walked = _walked(DropColumn("age"), column("age", type=TEXT))
    assert [[each.type for each in visible(table.columns) if each.name == "age"] for table in walked] == [
        [INT],
        [INT],
        [TEXT],
        [TEXT],
        [TEXT],
    ]


def test_a_rename_is_shown_together_with_what_takes_time() -> None:
    walked = _walked(RenameColumn("age", "years"), index("i", "city"))
    names = [table.column(3).name for table in walked]
    assert names == ["age", "age", "years"]


def test_a_column_that_is_public_is_no_longer_computed() -> None:
    walked = _walked(column("a", default=ROW_ID))
    assert [table.columns[-1].computed for table in walked] == [ROW_ID, ROW_ID, None]
    assert walked[-1].columns[-1].default == ROW_ID


def test_a_former_name_goes_with_the_next_step() -> None:
    place = place_of(users())
    renamed = users(name="people", draining=(place,))
    assert first_stage(renamed) == renamed
    assert advance(renamed) == users(name="people")
    assert not is_finished(renamed)


def test_a_table_that_others_must_know_first_becomes_public_with_the_next_step() -> None:
    table = users(state=DescriptorState.ADDING)
    assert not is_finished(table)
    assert advance(table) == shown(table) == users()


def test_taking_back_a_table_that_nobody_could_use_drops_it() -> None:
    back = reverse(users(state=DescriptorState.ADDING))
    assert (back.state, back.draining) == (DescriptorState.DROPPED, (place_of(users()),))


def test_elements_of_a_dropped_table_need_no_steps() -> None:
    table = declared(users(state=DescriptorState.DROPPED), index("i", "city"))
    assert is_finished(table)
    assert first_stage(table) == advance(table) == table


def _enum(*members: EnumMember) -> EnumType:
    plain = users()
    return EnumType(
        300,
        1,
        plain.modified_at,
        "mood",
        "root",
        DescriptorState.PUBLIC,
        (),
        (),
        database=100,
        schema=101,
        members=members,
    )


def test_a_label_may_be_read_one_version_before_it_may_be_written() -> None:
    low = EnumMember("low", b"\x55")
    coming = EnumMember("high", b"\xaa", WRITE_ONLY)
    assert not is_finished(_enum(low, coming))
    assert (
        advance(_enum(low, coming)) == shown(_enum(low, coming)) == _enum(low, replace(coming, state=PUBLIC))
    )
    assert reverse(_enum(low, coming)) == _enum(low)


def test_goals_of_what_is_turned_round_are_absent() -> None:
    back = reverse(declared(users(), column("a")))
    assert isinstance(back, Table)
    assert back.columns[-1].goal is Goal.ABSENT
