"""Judges a history of SQL clients by what the tables hold in the end.

Each rule is a function of its own and yields what contradicts it; `check` asks all of them.

Walk: the scenarios `sql_*` call `check`; `test_sql_checker` shows that each rule catches its mutants.
"""

from collections import Counter
from collections.abc import Collection, Iterator

from tests.faults.sql_history import ACKED, REFUSED, UNKNOWN, Final, History

UNIQUE_VIOLATION = "23505"
ORDINARY = frozenset({"", "40001", "40P01", "40003", "57P01", "08006"})
"""What a client has to expect when nodes and stores go away; "" is a connection that was cut."""

SHOWN_MAX = 20


def check(
    history: History,
    final: Final,
    *,
    start: int,
    accounts: int,
    allowed: Collection[str] = ORDINARY,
) -> list[str]:
    """What is wrong; `start` is what each account began with.

    `allowed` are errors that clients have to expect: "40001" for everybody, "bump:42703" for those who bump.
    """
    found = [
        *_sums(history, final, start * accounts, accounts),
        *_transfers(history, final),
        *_balances(final, start),
        *_bumps(history, final),
        *_tickets(history, final),
        *(f"index: {each}" for each in final.differences),
        *(f"missing: {each.what}" for each in history.missing),
        *_errors(history, allowed),
    ]
    return found[:SHOWN_MAX] + ([f"... and {len(found) - SHOWN_MAX} more"] if len(found) > SHOWN_MAX else [])


def _sums(history: History, final: Final, total: int, accounts: int) -> Iterator[str]:
    for seen in history.totals:
        if (seen.total, seen.accounts) != (total, accounts):
            yield f"sum: a reader ({seen.how}) saw {seen.total} in {seen.accounts} accounts, not {total}"
    if sum(final.balances.values()) != total:
        yield f"sum: in the end it is {sum(final.balances.values())}, not {total}"


def _transfers(history: History, final: Final) -> Iterator[str]:
    known = {each.id: each for each in history.transfers}
    for each in history.transfers:
        there = final.ledger.get(each.id)
        if each.state == ACKED and there is None:
            yield f"lost: transfer {each.id} was acknowledged and is not there"
        if each.state == REFUSED and there is not None:
            yield f"refused: transfer {each.id} was refused and is there"
        if there is not None and there != (each.source, each.target, each.amount):
            yield f"altered: transfer {each.id} is there as {there}"
    for id in final.ledger.keys() - known.keys():
        yield f"unasked: transfer {id} is there and nobody made it"


def _balances(final: Final, start: int) -> Iterator[str]:
    """All or nothing, once: balances are what the ledger's transfers make of the start."""
    expected = dict.fromkeys(final.balances, start)
    for source, target, amount in final.ledger.values():
        expected[source] -= amount
        expected[target] += amount
    for id, balance in final.balances.items():
        if balance != expected[id]:
            yield f"torn: account {id} has {balance}; its transfers make {expected[id]}"


def _bumps(history: History, final: Final) -> Iterator[str]:
    states = Counter((each.counter, each.state) for each in history.bumps)
    for counter, value in final.counters.items():
        least = states[counter, ACKED]
        most = least + states[counter, UNKNOWN]
        if not least <= value <= most:
            yield f"counter: {counter} is {value}; {least} to {most} updates can have happened"


def _tickets(history: History, final: Final) -> Iterator[str]:
    known = {each.id: each for each in history.tickets}
    for number, count in Counter(final.tickets.values()).items():
        if count > 1:
            yield f"unique: number {number} is there {count} times"
    for each in history.tickets:
        there = final.tickets.get(each.id)
        if each.state == ACKED and there != each.number:
            yield f"lost: ticket {each.id} ({each.number}) was acknowledged and is {there}"
        if each.state == REFUSED and there is not None:
            yield f"refused: ticket {each.id} was refused and is there"
    takers = Counter(each.number for each in history.tickets if each.state in (ACKED, UNKNOWN))
    for each in history.tickets:
        if each.sqlstate == UNIQUE_VIOLATION and not takers[each.number]:
            yield f"unique: ticket {each.id} was refused for {each.number}, which nobody has taken"
    for id in final.tickets.keys() - known.keys():
        yield f"unasked: ticket {id} is there and nobody made it"


def _errors(history: History, allowed: Collection[str]) -> Iterator[str]:
    for each in history.troubles:
        if each.sqlstate not in allowed and f"{each.doing}:{each.sqlstate}" not in allowed:
            yield f"error: {each.doing}: {each.sqlstate} {each.message}"
