"""The checker of transactions and imports: histories that were serial pass, and each wrong one is caught."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.faults.serial_checker import Attempt, Facts, Life, Revision, Step, check
from tests.faults.serial_model import (
    TABLES,
    Between,
    ById,
    Delete,
    Duplicate,
    Import,
    InGroup,
    Insert,
    Read,
    Row,
    State,
    Statement,
    Sum,
    Unique,
    Update,
)
from tests.faults.sql_history import ACKED, REFUSED, UNKNOWN

ONE = Row(1, 0, 5, 7, 1)
TWO, THREE = Row(2, 0, 6, None, 2), Row(3, 1, 7, 8, 2)
TWO_AGAIN = Row(2, 1, 16, None, 3)
FOUR, FIVE = Row(4, 0, 0, None, 10), Row(5, 0, 0, None, 12)
ALL = Between(0, 9)

History = dict[int, Attempt]
"""By number."""

Case = tuple[History, Facts]


def _attempt(number: int, at: int, steps: list[tuple[Statement, Any]], **more: Any) -> Attempt:
    """One around a time: what is ten apart does not overlap."""
    given = {"state": ACKED, "began": at - 3, "ended": at + 3, **more}
    return Attempt(number, tuple(Step(*each) for each in steps), **given)


def _reader(number: int, at: int, steps: list[tuple[Statement, Any]], **more: Any) -> Attempt:
    return _attempt(number, at, steps, read_at=at, is_writer=False, **more)


def _good() -> Case:
    attempts = [
        _attempt(1, 10, [(Insert("a", ONE), 1), (Read("a", ALL), (ONE,))]),
        _attempt(2, 20, [(Import("a", (TWO, THREE)), 2)]),
        _attempt(
            3,
            30,
            [(Read("a", ALL), (ONE, TWO, THREE)), (Update("a", ById(2), 1, 10, 3), 1)],
            read_at=25,
        ),
        _reader(4, 25, [(Sum("a", ALL), ((3, 18, 3, 2),)), (Sum("b", ALL), ((0, None, None, 0),))]),
        _attempt(
            5, 36, [(Import("a", (Row(9, 0, 0, None, 5), THREE)), None)], state=REFUSED, sqlstate="23505"
        ),
        _attempt(6, 40, [(Delete("a", ById(1)), 1)]),
        _reader(7, 15, [(Read("a", ALL), (ONE,))], is_past=True, began=45, ended=46),
        _attempt(
            8, 44, [(Read("a", InGroup(1)), (TWO_AGAIN, THREE))], state=REFUSED, sqlstate="40001", read_at=44
        ),
        _attempt(9, 47, [(Import("b", (Row(1, 1, 1, 1, 9),)), None)], state=UNKNOWN),
        _attempt(10, 50, [(Insert("b", FOUR), 1), (Read("a", Unique(7)), ())], state=UNKNOWN),
        _attempt(12, 53, [(Import("b", (FIVE,)), None)], state=UNKNOWN),
        _reader(11, 55, [(Read("a", ALL, 1, True), (THREE,)), (Read("b", ById(4)), (FOUR,))]),
    ]
    facts = Facts(
        landed={1: 10, 3: 30, 6: 40, 10: 50},
        revisions=[
            Revision("a", 1, 10, ONE),
            Revision("a", 2, 20, TWO),
            Revision("a", 3, 20, THREE),
            Revision("a", 2, 30, TWO_AGAIN),
            Revision("a", 1, 40, None),
            Revision("b", 4, 50, FOUR),
            Revision("b", 5, 53, FIVE),
        ],
        lives=[
            Life(("a",), 0, 15, (("a", 1, 10, True),), has_moved=True),
            Life(("a",), 20, 60, (("a", 2, 30, True), ("a", 1, 40, False)), has_moved=False),
            Life(("a", "b"), 35, 52, (("a", 1, 40, False), ("b", 4, 50, True)), has_moved=True),
            Life(("b",), 0, 52, None, has_moved=True),
        ],
    )
    return {each.number: each for each in attempts}, facts


def _violations(case: Case) -> list[str]:
    history, facts = case
    return check(list(history.values()), facts)


def test_a_good_history_passes() -> None:
    assert _violations(_good()) == []


# ── wrong ones ───────────────────────────────────────────────────────────────────────────────────


def _answering(history: History, number: int, *answers: Any) -> None:
    """An attempt whose statements answered something else."""
    attempt = history[number]
    asked = [step.statement for step in attempt.steps]
    steps = tuple(Step(*each) for each in zip(asked, answers, strict=True))
    history[number] = replace(attempt, steps=steps)


def _half_of_an_import_seen(history: History, facts: Facts) -> None:
    _answering(history, 3, (ONE, TWO), 1)


def _half_of_an_import_added_up(history: History, facts: Facts) -> None:
    _answering(history, 4, ((2, 11, 2, 1),), ((0, None, None, 0),))


def _import_after_the_read_and_before_the_commit(history: History, facts: Facts) -> None:
    history[3] = replace(history[3], began=17, read_at=15)
    _answering(history, 3, (ONE,), 1)


def _row_that_is_there_not_found(history: History, facts: Facts) -> None:
    _answering(history, 11, (THREE,), ())


def _row_that_was_deleted_found_by_an_index(history: History, facts: Facts) -> None:
    _answering(history, 10, 1, (ONE,))


def _phantom_in_a_range(history: History, facts: Facts) -> None:
    _answering(history, 11, (FOUR,), (FOUR,))


def _own_write_not_seen(history: History, facts: Facts) -> None:
    _answering(history, 1, 1, ())


def _update_found_fewer_rows(history: History, facts: Facts) -> None:
    _answering(history, 3, (ONE, TWO, THREE), 0)


def _past_sees_what_came_later(history: History, facts: Facts) -> None:
    _answering(history, 7, (ONE, TWO, THREE))


def _one_that_failed_saw_half(history: History, facts: Facts) -> None:
    _answering(history, 8, (THREE,))


def _write_skew(history: History, facts: Facts) -> None:
    """Both saw that the other's row was not there."""
    for number, at, table, other in ((20, 70, "a", "b"), (21, 71, "b", "a")):
        row = Row(8, 0, 0, None, number)
        seen = (Read(other, ById(8)), ())
        history[number] = _attempt(
            number, at, [seen, (Insert(table, row), 1)], read_at=65, began=62, ended=75
        )
        facts.landed[number] = at
        facts.revisions.append(Revision(table, 8, at, row))


def _lost_update(history: History, facts: Facts) -> None:
    for number, at in ((20, 70), (21, 71)):
        row = THREE._replace(val=8, tag=number, grp=1)
        steps: list[tuple[Statement, Any]] = [
            (Read("a", ById(3)), (THREE,)),
            (Update("a", ById(3), 1, 1, number), 1),
        ]
        history[number] = _attempt(number, at, steps, read_at=65, began=62, ended=75)
        facts.landed[number] = at
        facts.revisions.append(Revision("a", 3, at, row))


def _acknowledged_import_lost(history: History, facts: Facts) -> None:
    facts.revisions = [each for each in facts.revisions if each.row is None or each.row.tag != 2]


def _acknowledged_transaction_lost(history: History, facts: Facts) -> None:
    del facts.landed[6]
    del facts.revisions[4]


def _refused_import_there(history: History, facts: Facts) -> None:
    facts.revisions.append(Revision("a", 9, 36, Row(9, 0, 0, None, 5)))


def _refused_transaction_there(history: History, facts: Facts) -> None:
    facts.landed[8] = 44


def _nobody_wrote_it(history: History, facts: Facts) -> None:
    facts.revisions.append(Revision("a", 9, 48, Row(9, 0, 0, None, 99)))


def _nobody_asked_for_it(history: History, facts: Facts) -> None:
    facts.landed[99] = 48


def _import_in_two_parts(history: History, facts: Facts) -> None:
    facts.revisions[2] = facts.revisions[2]._replace(at=21)


def _row_of_an_import_missing(history: History, facts: Facts) -> None:
    del facts.revisions[2]


def _import_took_an_older_row_along(history: History, facts: Facts) -> None:
    facts.revisions.append(Revision("a", 1, 20, None))


def _update_overwritten(history: History, facts: Facts) -> None:
    facts.revisions[3] = facts.revisions[3]._replace(row=TWO)


def _two_at_one_time(history: History, facts: Facts) -> None:
    facts.landed[6] = 30


def _duplicate_imported(history: History, facts: Facts) -> None:
    history[2] = replace(history[2], steps=(Step(Import("a", (TWO, THREE, ONE)), 3),))


def _unit_given_twice(history: History, facts: Facts) -> None:
    row = Row(5, 0, 0, 8, 20)
    history[20] = _attempt(20, 70, [(Insert("a", row), 1)])
    facts.landed[20] = 70
    facts.revisions.append(Revision("a", 5, 70, row))


def _refused_for_nothing(history: History, facts: Facts) -> None:
    asked = Import("a", (Row(9, 0, 0, None, 5), ONE))
    history[5] = replace(history[5], began=44, ended=45, steps=(Step(asked, None),))


def _read_below_what_was_acknowledged(history: History, facts: Facts) -> None:
    history[4] = replace(history[4], began=34, ended=35)


def _took_effect_before_what_was_acknowledged(history: History, facts: Facts) -> None:
    history[3] = replace(history[3], began=44, ended=45)


def _watch_past_an_import_whose_client_is_gone(history: History, facts: Facts) -> None:
    facts.lives[3] = replace(facts.lives[3], resolved_at=60)


def _watch_past_an_import(history: History, facts: Facts) -> None:
    facts.lives[0] = replace(facts.lives[0], resolved_at=25)


def _watch_of_an_index_past_an_import(history: History, facts: Facts) -> None:
    facts.lives.append(Life(("a",), 5, 40, None, has_moved=False))


def _watch_of_both_past_an_import(history: History, facts: Facts) -> None:
    facts.lives[2] = replace(facts.lives[2], since_at=19)


def _watch_lacks_a_revision(history: History, facts: Facts) -> None:
    facts.lives[1] = replace(facts.lives[1], told=(("a", 1, 40, False),))


def _watch_tells_twice(history: History, facts: Facts) -> None:
    facts.lives[0] = replace(facts.lives[0], told=(("a", 1, 10, True),) * 2)


def _watch_tells_what_never_was(history: History, facts: Facts) -> None:
    facts.lives[0] = replace(facts.lives[0], told=(("a", 1, 10, True), ("a", 5, 12, True)))


def _strange_error(history: History, facts: Facts) -> None:
    history[8] = replace(history[8], sqlstate="XX001")


WRONG: tuple[tuple[Callable[[History, Facts], None], str], ...] = (
    (_half_of_an_import_seen, "answer"),
    (_half_of_an_import_added_up, "answer"),
    (_import_after_the_read_and_before_the_commit, "answer"),
    (_row_that_is_there_not_found, "answer"),
    (_row_that_was_deleted_found_by_an_index, "answer"),
    (_phantom_in_a_range, "answer"),
    (_own_write_not_seen, "answer"),
    (_update_found_fewer_rows, "answer"),
    (_past_sees_what_came_later, "answer"),
    (_one_that_failed_saw_half, "answer"),
    (_write_skew, "answer"),
    (_lost_update, "answer"),
    (_acknowledged_import_lost, "lost"),
    (_acknowledged_transaction_lost, "lost"),
    (_refused_import_there, "phantom"),
    (_refused_transaction_there, "phantom"),
    (_nobody_wrote_it, "phantom"),
    (_nobody_asked_for_it, "phantom"),
    (_import_in_two_parts, "half"),
    (_row_of_an_import_missing, "half"),
    (_import_took_an_older_row_along, "half"),
    (_update_overwritten, "half"),
    (_two_at_one_time, "half"),
    (_duplicate_imported, "duplicate"),
    (_unit_given_twice, "duplicate"),
    (_refused_for_nothing, "duplicate"),
    (_read_below_what_was_acknowledged, "order"),
    (_took_effect_before_what_was_acknowledged, "order"),
    (_watch_past_an_import, "watch"),
    (_watch_past_an_import_whose_client_is_gone, "watch"),
    (_watch_of_an_index_past_an_import, "watch"),
    (_watch_of_both_past_an_import, "watch"),
    (_watch_lacks_a_revision, "watch"),
    (_watch_tells_twice, "watch"),
    (_watch_tells_what_never_was, "watch"),
    (_strange_error, "error"),
)


@pytest.mark.parametrize(("spoil", "rule"), WRONG, ids=[each[0].__name__ for each in WRONG])
def test_a_wrong_history_is_caught_by_its_rule(spoil: Callable[[History, Facts], None], rule: str) -> None:
    history, facts = _good()
    spoil(history, facts)
    assert any(each.startswith(f"{rule}:") for each in _violations((history, facts)))


# ── random ones ──────────────────────────────────────────────────────────────────────────────────


def _random_case(rng: random.Random) -> Case:
    """Transactions that did run one after the other."""
    state: State = {table: {} for table in TABLES}
    history: History = {}
    facts = Facts({}, [])
    for number in range(1, 40):
        at = 10 * number
        after: State = dict(state)
        steps: list[tuple[Statement, Any]] = []
        try:
            for statement in _random_statements(rng, number):
                steps.append((statement, statement.run(after)))
        except Duplicate:
            steps.append((statement, None))
            history[number] = _attempt(number, at, steps, state=REFUSED, sqlstate="23505")
            continue
        history[number] = _attempt(number, at, steps)
        is_import = isinstance(statement, Import)
        facts.landed |= {} if is_import else {number: at}
        for table in TABLES:
            for id in sorted(state[table].keys() | after[table].keys()):
                if state[table].get(id) != after[table].get(id):
                    facts.revisions.append(Revision(table, id, at, after[table].get(id)))
        state = after
    return history, facts


def _random_statements(rng: random.Random, number: int) -> list[Statement]:
    table, id = rng.choice(TABLES), rng.randrange(12)
    if rng.random() < 0.2:
        ids = rng.sample(range(12), 3)
        return [Import(table, tuple(Row(id, id % 3, number, None, number) for id in ids))]
    where = rng.choice((ById(id), Between(id, id + 4), InGroup(id % 3)))
    return [
        Read(table, where),
        Sum(rng.choice(TABLES), where),
        rng.choice(
            (
                Insert(table, Row(id, id % 3, number, None, number)),
                Update(table, where, id % 3, 1, number),
                Delete(table, where),
            )
        ),
        Read(table, Between(0, 20), rng.choice((None, 2))),
    ]


@pytest.mark.parametrize("seed", range(10))
def test_what_did_run_one_after_the_other_passes(seed: int) -> None:
    assert _violations(_random_case(random.Random(seed))) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_row_kept_back_from_any_read_is_caught(seed: int) -> None:
    rng = random.Random(seed)
    history, facts = _random_case(rng)
    number, place = rng.choice(
        [
            (number, place)
            for number, attempt in history.items()
            for place, (statement, answer) in enumerate(attempt.steps)
            if attempt.state == ACKED and isinstance(statement, Read) and answer
        ]
    )
    steps = list(history[number].steps)
    answer = steps[place].answer
    assert isinstance(answer, tuple)
    steps[place] = steps[place]._replace(answer=answer[1:])
    history[number] = replace(history[number], steps=tuple(steps))
    assert any(each.startswith("answer:") for each in _violations((history, facts)))
