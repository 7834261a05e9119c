"""What SQL clients did and were told, and what the tables hold in the end: what the checker judges.

    acked     the client was told that it is done
    refused   it was told that it is not, or it lost its connection before it asked for a commit
    unknown   it asked for a commit and lost its connection, or was told 40003

Walk: `sql_load` makes operations, `sql_bank` and others the `Final`; `sql_checker` compares them.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field

ACKED, REFUSED, UNKNOWN = "acked", "refused", "unknown"
UNKNOWN_SQLSTATES = ("", "40003")
"""A connection that was cut has none."""


def state_after(sqlstate: str, *, may_be_done: bool) -> str:
    """What an error leaves of something that was asked for."""
    return UNKNOWN if may_be_done and sqlstate in UNKNOWN_SQLSTATES else REFUSED


@dataclass(frozen=True)
class Transfer:
    id: str
    source: int
    target: int
    amount: int
    state: str


@dataclass(frozen=True)
class Bump:
    """An UPDATE of one counter by one, in a transaction of its own."""

    counter: int
    state: str


@dataclass(frozen=True)
class Ticket:
    """An INSERT under a unique number; `sqlstate` says why it was refused."""

    id: str
    number: int
    state: str
    sqlstate: str = ""


@dataclass(frozen=True)
class Total:
    """What a reader saw: the sum of all balances and how many accounts there are."""

    total: int
    accounts: int
    how: str


@dataclass(frozen=True)
class Missing:
    """A row that a client was sure of and that a later statement did not see."""

    what: str


@dataclass(frozen=True)
class Trouble:
    """An error, and what the client was doing."""

    doing: str
    sqlstate: str
    message: str


_LISTS: dict[type, str] = {
    Transfer: "transfers",
    Bump: "bumps",
    Ticket: "tickets",
    Total: "totals",
    Missing: "missing",
    Trouble: "troubles",
}


@dataclass
class History:
    """Written by all clients' threads."""

    transfers: list[Transfer] = field(default_factory=list)
    bumps: list[Bump] = field(default_factory=list)
    tickets: list[Ticket] = field(default_factory=list)
    totals: list[Total] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, event: Transfer | Bump | Ticket | Total | Missing | Trouble) -> None:
        with self._lock:
            getattr(self, _LISTS[type(event)]).append(event)

    def acked(self) -> int:
        with self._lock:
            return sum(state == ACKED for state in self._states())

    def _states(self) -> list[str]:
        transfers, bumps, tickets = self.transfers, self.bumps, self.tickets
        return [*(t.state for t in transfers), *(b.state for b in bumps), *(t.state for t in tickets)]

    def counts(self) -> dict[str, object]:
        states = Counter(self._states())
        errors = Counter(each.sqlstate or "cut" for each in self.troubles)
        shown = " ".join(f"{state}:{number}" for state, number in sorted(errors.items()))
        return {**{each: states[each] for each in (ACKED, REFUSED, UNKNOWN)}, "reads": len(self.totals)} | (
            {"errors": shown} if shown else {}
        )


@dataclass(frozen=True)
class Final:
    """The tables, read when all is over."""

    balances: dict[int, int]
    ledger: dict[str, tuple[int, int, int]]
    """Source, target and amount by operation."""
    counters: dict[int, int]
    tickets: dict[str, int]
    """Numbers by operation."""
    differences: tuple[str, ...] = ()
    """Where an index said something else than the rows."""
