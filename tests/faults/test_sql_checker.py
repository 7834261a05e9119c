"""The checker of SQL histories: a good one passes, and each mutant of it is caught."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.sql_checker import check
from tests.faults.sql_history import (
    ACKED,
    REFUSED,
    UNKNOWN,
    Bump,
    Final,
    History,
    Missing,
    Ticket,
    Total,
    Transfer,
    Trouble,
)

Case = tuple[History, Final]


def _good() -> Case:
    history = History()
    history.transfers += [
        Transfer("t1", 1, 2, 10, ACKED),
        Transfer("t2", 2, 3, 5, REFUSED),
        Transfer("t3", 3, 1, 7, UNKNOWN),
        Transfer("t4", 1, 3, 9, UNKNOWN),
    ]
    history.bumps += [Bump(1, ACKED), Bump(1, UNKNOWN), Bump(1, REFUSED)]
    history.tickets += [
        Ticket("k1", 7, ACKED),
        Ticket("k2", 7, REFUSED, "23505"),
        Ticket("k3", 8, UNKNOWN),
        Ticket("k4", 9, REFUSED, "40001"),
    ]
    history.totals += [Total(300, 3, "rows"), Total(300, 3, "duckdb")]
    history.troubles += [Trouble("locked", "40001", "again"), Trouble("bump", "", "cut")]
    final = Final(
        balances={1: 97, 2: 110, 3: 93},
        ledger={"t1": (1, 2, 10), "t3": (3, 1, 7)},
        counters={1: 2},
        tickets={"k1": 7},
    )
    return history, final


def _violations(case: Case) -> list[str]:
    history, final = case
    return check(history, final, start=100, accounts=3)


def test_a_good_history_passes() -> None:
    assert _violations(_good()) == []


def _lost(history: History, final: Final) -> Case:
    balances = {1: 107, 2: 100, 3: 93}
    return history, replace(final, balances=balances, ledger={"t3": (3, 1, 7)})


def _refused_but_there(history: History, final: Final) -> Case:
    balances = {1: 97, 2: 105, 3: 98}
    return history, replace(final, balances=balances, ledger=final.ledger | {"t2": (2, 3, 5)})


def _half_of_an_unknown(history: History, final: Final) -> Case:
    return history, replace(final, balances={1: 88, 2: 110, 3: 102})


def _twice(history: History, final: Final) -> Case:
    return history, replace(final, balances={1: 87, 2: 120, 3: 93})


def _altered(history: History, final: Final) -> Case:
    return history, replace(final, balances={1: 96, 2: 111, 3: 93}, ledger=final.ledger | {"t1": (1, 2, 11)})


def _nobody_made_it(history: History, final: Final) -> Case:
    balances = {1: 96, 2: 111, 3: 93}
    return history, replace(final, balances=balances, ledger=final.ledger | {"t9": (1, 2, 1)})


def _money_made(history: History, final: Final) -> Case:
    return history, replace(final, balances=final.balances | {1: 98})


def _wrong_sum(history: History, final: Final) -> Case:
    history.totals.append(Total(290, 3, "rows"))
    return history, final


def _account_not_seen(history: History, final: Final) -> Case:
    history.totals.append(Total(300, 2, "duckdb"))
    return history, final


def _update_lost(history: History, final: Final) -> Case:
    return history, replace(final, counters={1: 0})


def _update_twice(history: History, final: Final) -> Case:
    return history, replace(final, counters={1: 3})


def _number_twice(history: History, final: Final) -> Case:
    history.tickets.append(Ticket("k5", 7, ACKED))
    return history, replace(final, tickets=final.tickets | {"k5": 7})


def _ticket_lost(history: History, final: Final) -> Case:
    return history, replace(final, tickets={})


def _ticket_refused_but_there(history: History, final: Final) -> Case:
    return history, replace(final, tickets=final.tickets | {"k4": 9})


def _ticket_refused_for_nothing(history: History, final: Final) -> Case:
    history.tickets.append(Ticket("k5", 11, REFUSED, "23505"))
    return history, final


def _ticket_nobody_made(history: History, final: Final) -> Case:
    return history, replace(final, tickets=final.tickets | {"k9": 12})


def _index_differs(history: History, final: Final) -> Case:
    return history, replace(final, differences=("by_branch gives 1, the rows say 2",))


def _acknowledged_not_seen(history: History, final: Final) -> Case:
    history.missing.append(Missing("transfer t1"))
    return history, final


def _strange_error(history: History, final: Final) -> Case:
    history.troubles.append(Trouble("locked", "XX000", "oh"))
    return history, final


def _name_error_of_others(history: History, final: Final) -> Case:
    history.troubles.append(Trouble("locked", "42703", 'column "balance" does not exist'))
    return history, final


MUTANTS: tuple[tuple[Callable[[History, Final], Case], str], ...] = (
    (_lost, "lost"),
    (_refused_but_there, "refused"),
    (_half_of_an_unknown, "torn"),
    (_twice, "torn"),
    (_altered, "altered"),
    (_nobody_made_it, "unasked"),
    (_money_made, "sum"),
    (_wrong_sum, "sum"),
    (_account_not_seen, "sum"),
    (_update_lost, "counter"),
    (_update_twice, "counter"),
    (_number_twice, "unique"),
    (_ticket_lost, "lost"),
    (_ticket_refused_but_there, "refused"),
    (_ticket_refused_for_nothing, "unique"),
    (_ticket_nobody_made, "unasked"),
    (_index_differs, "index"),
    (_acknowledged_not_seen, "missing"),
    (_strange_error, "error"),
    (_name_error_of_others, "error"),
)


@pytest.mark.parametrize(("mutate", "rule"), MUTANTS, ids=[each[0].__name__ for each in MUTANTS])
def test_a_mutant_is_caught_by_its_rule(mutate: Callable[[History, Final], Case], rule: str) -> None:
    assert any(each.startswith(f"{rule}:") for each in _violations(mutate(*_good())))


def test_an_error_can_be_allowed_for_one_kind_of_work() -> None:
    history, final = _good()
    history.troubles.append(Trouble("bump", "42703", 'column "n" does not exist'))
    allowed = {"40001", "", "bump:42703"}
    assert check(history, final, start=100, accounts=3, allowed=allowed) == []
    assert check(history, final, start=100, accounts=3, allowed=allowed - {"bump:42703"}) != []
