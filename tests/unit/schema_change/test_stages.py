"""What has to be done between two versions, from the descriptor alone."""

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import (
    Check,
    Column,
    DescriptorState,
    ElementState,
    ForeignKey,
    Goal,
    Inbound,
    Index,
    KeyPart,
    Schema,
    Table,
    replace,
)
from tenure.schema_change.stages import (
    Work,
    WorkKind,
    arriving_again,
    as_it_will_be,
    can_be_undone,
    can_fail,
    prepared,
    with_job,
    with_preparations,
    without_strays,
    work_before,
)
from tests.unit.schema_change.declared import INT, A, B, new_table
from tests.unit.table.trees import above, constant

DELETE_ONLY, WRITE_ONLY, PUBLIC = ElementState
T = replace(new_table(200, "t"), version=1, next_constraint=9, next_index=9, next_column=9)


def index(id: int, state: ElementState, *, goal: Goal = Goal.PUBLIC, unique: bool = False) -> Index:
    return Index(id, f"i{id}", (KeyPart(A),), unique, state, goal, primary=1)


def check(state: ElementState, goal: Goal = Goal.PUBLIC) -> Check:
    return Check(1, "c", above(A, 0), state, goal)


def key(state: ElementState, goal: Goal = Goal.PUBLIC) -> ForeignKey:
    return ForeignKey(2, "f", (A,), 300, (1,), state=state, goal=goal)


def with_index(*indexes: Index) -> Table:
    return replace(T, indexes=(*T.indexes, *indexes))


def test_nothing_is_filled_before_every_writer_keeps_it_up() -> None:
    assert work_before(with_index(index(2, DELETE_ONLY))) == []
    assert work_before(with_index(index(2, WRITE_ONLY), index(3, DELETE_ONLY))) == []
    assert work_before(with_index(index(2, WRITE_ONLY))) == [Work(WorkKind.FILL_INDEX, 200, 2)]


def test_columns_come_before_indexes_and_proofs_last() -> None:
    computed = Column(4, "c", INT, WRITE_ONLY, computed=constant(1))
    table = replace(
        with_index(index(2, WRITE_ONLY, unique=True)),
        columns=(*T.columns, computed),
        checks=(check(WRITE_ONLY),),
        foreign_keys=(key(WRITE_ONLY),),
    )
    assert [work.kind for work in work_before(table)] == [
        WorkKind.FILL_COLUMN,
        WorkKind.FILL_INDEX,
        WorkKind.PROVE_UNIQUE,
        WorkKind.PROVE_CHECK,
        WorkKind.PROVE_FOREIGN_KEY,
    ]


def test_a_column_with_a_fixed_value_needs_no_filling() -> None:
    filled = Column(4, "c", INT, WRITE_ONLY, filled=b"\x01")
    assert work_before(replace(T, columns=(*T.columns, filled))) == []


def test_an_index_on_its_way_out_is_emptied_when_nobody_adds_to_it() -> None:
    assert work_before(with_index(index(2, WRITE_ONLY, goal=Goal.ABSENT))) == []
    assert work_before(with_index(index(2, DELETE_ONLY, goal=Goal.ABSENT))) == [
        Work(WorkKind.EMPTY_INDEX, 200, 2)
    ]


def test_a_key_that_was_not_valid_is_proved_like_a_new_one() -> None:
    validating = replace(key(WRITE_ONLY), is_validated=False)
    table = replace(T, foreign_keys=(validating,))
    assert work_before(table) == [Work(WorkKind.PROVE_FOREIGN_KEY, 200, 2)]


def test_for_a_table_that_is_gone_nothing_is_done() -> None:
    assert work_before(replace(with_index(index(2, WRITE_ONLY)), state=DescriptorState.DROPPED)) == []
    assert work_before(Schema(1, 1, ZERO_AT, "s", "root", DescriptorState.PUBLIC, (), (), 100)) == []


def test_a_table_names_its_job_until_it_is_finished() -> None:
    on_its_way = with_job(with_index(index(2, DELETE_ONLY)), 7)
    assert isinstance(on_its_way, Table) and on_its_way.job == 7
    there = with_job(replace(T, job=7), 7)
    assert isinstance(there, Table) and there.job == 0


def test_what_others_must_know_beforehand_shows_nothing() -> None:
    declared = replace(
        with_index(index(2, DELETE_ONLY)),
        name="u",
        comment="new",
        columns=tuple(replace(each, goal=Goal.ABSENT) if each.id == B else each for each in T.columns),
        inbound=(Inbound(300, 1),),
        next_index=3,
    )
    stage = with_preparations(T, declared)
    assert stage == replace(with_index(index(2, DELETE_ONLY)), inbound=(Inbound(300, 1),), next_index=3)
    assert can_fail(declared)
    assert not can_be_undone(T, declared)
    assert can_be_undone(T, with_index(index(2, DELETE_ONLY)))
    assert not can_be_undone(None, declared)


def test_a_mark_stays_as_long_as_its_key_is_there() -> None:
    stored = replace(T, inbound=(Inbound(300, 1),))
    assert with_preparations(stored, T).inbound == stored.inbound  # type: ignore[union-attr]


def test_a_constraint_that_goes_is_prepared_and_not_asked_of_the_rows_that_come_with_its_end() -> None:
    stored = replace(T, checks=(check(PUBLIC),))
    declared = replace(T, checks=(check(PUBLIC, Goal.ABSENT),))
    stage = with_preparations(stored, declared)
    assert isinstance(stage, Table) and stage.checks == declared.checks
    assert prepared(declared).checks == (check(WRITE_ONLY, Goal.ABSENT),)
    assert as_it_will_be(declared).checks == ()


def test_a_constraint_that_goes_keeps_its_name_until_it_is_gone() -> None:
    stored = replace(T, checks=(check(PUBLIC),))
    declared = replace(T, checks=(replace(check(PUBLIC, Goal.ABSENT), name="renamed"),))
    stage = with_preparations(stored, declared)
    assert isinstance(stage, Table) and stage.checks == (check(PUBLIC, Goal.ABSENT),)


def test_a_new_table_is_looked_through_for_all_it_has() -> None:
    table = replace(with_index(index(2, PUBLIC)), checks=(check(PUBLIC),), foreign_keys=(key(PUBLIC),))
    kinds = [work.kind for work in work_before(arriving_again(table))]
    assert kinds == [WorkKind.FILL_INDEX, WorkKind.PROVE_CHECK, WorkKind.PROVE_FOREIGN_KEY]
    loose = replace(T, foreign_keys=(replace(key(PUBLIC), is_validated=False),))
    assert work_before(arriving_again(loose)) == []


def test_marks_of_keys_that_are_not_there_are_strays() -> None:
    referring = replace(new_table(300, "r"), version=1, foreign_keys=(key(WRITE_ONLY),))
    marked = replace(T, inbound=(Inbound(300, 2), Inbound(300, 5), Inbound(400, 2)))
    found = without_strays(marked, {300: referring}.get)
    assert found == replace(T, inbound=(Inbound(300, 2),))
