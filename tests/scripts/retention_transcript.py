"""Plays transcripts of what is kept: writes, protections and sweeps of one table `t`.

    == a case begins with its name
    clock: minutes, ttl 60           the unit of all times of the case, and how long history is kept
    clock: 59                        the time moves on to minute 59
    k: put foo                       a key is written, or deleted
    k: kept -> foo@0 bar@58          the revisions in the store, a dash for a deletion
    k: read 30 -> foo                the value at a time
    p: protect_at 30 -> 72000        a protection with a name; an error by its SQLSTATE
    p: protect_at 30 of k..m         of part of the index; `of schema`: of the one that `t` is made in
    t: move elsewhere                the table goes to another schema; back: it returns
    p: read k 30 -> foo              the same read in the name of the protection
    p: release
    gc: sweep -> 2 removed           how many revisions of `t` have gone

A time is that of its last commit; `now` is the time of the command.
"""

import re
from collections.abc import Callable

from tenure.base.errors import TenureError
from tenure.base.timestamp import Timestamp, add_seconds, micros_of
from tenure.catalog.descriptors.definitions import DEFAULT_SCHEMA
from tenure.kv.keys import Span
from tenure.retention.protections.protection_records import Mode, Protection, Targets
from tests.scripts.transcript import Case, played
from tests.unit.retention.protecting import OWNER
from tests.unit.retention.sweeping import SweptStore

TABLE = 200
SECONDS = {"seconds": 1, "minutes": 60}


def play_retention(case: Case) -> list[str]:
    """Runs a case; returns its lines with what came of each command."""
    player = _Player()
    try:
        return [played(player.run, line) for line in case.lines]
    finally:
        player.node.engine.close()


class _Player:
    def __init__(self) -> None:
        self.node = SweptStore()
        self.node.create(TABLE)
        self._unit, self._passed = 1, 0
        self._start_micros = self.node.env.wall_micros()
        self._commits: dict[int, Timestamp] = {}
        """The last commit of each time."""
        self._protections: dict[str, bytes] = {}
        self._known: dict[bytes, Protection] = {}
        """All protections that were made, by id."""

    def run(self, who: str, command: str) -> str:
        if who == "clock":
            return self._clock(command)
        verb, _, rest = command.partition(" ")
        action: Callable[[str, str], str | None] = getattr(self, f"_{verb}")
        try:
            return action(who, rest) or ""
        except TenureError as error:
            return error.sqlstate

    def _clock(self, command: str) -> str:
        begins = re.fullmatch(r"(\w+), ttl (\d+)", command)
        if begins is not None:
            self._unit = SECONDS[begins[1]]
            self.node.set_ttl(int(begins[2]) * self._unit, TABLE)
            return ""
        self.node.wait((int(command) - self._passed) * self._unit)
        self._passed = int(command)
        return ""

    def _ttl(self, who: str, rest: str) -> None:
        self.node.set_ttl(int(rest) * self._unit, TABLE)

    def _put(self, who: str, rest: str) -> None:
        self._commits[self._passed] = self.node.put(TABLE, who, rest)

    def _delete(self, who: str, rest: str) -> None:
        self._commits[self._passed] = self.node.put(TABLE, who, None)

    def _kept(self, who: str, rest: str) -> str:
        key = self.node.key(TABLE, who)
        revisions = self.node.revisions(self.node.head(TABLE))
        return " ".join(
            f"{'-' if value is None else value.decode()}@{self._time(at)}"
            for found, at, value in revisions
            if found == key
        )

    def _read(self, who: str, rest: str) -> str:
        *key, time = rest.split()
        at = self._at(time)
        if not key:
            return self.node.get(TABLE, who, at) or "-"
        protection = self._known[self._protections[who]]
        protected = self.node.protections.protected_read(protection)
        value = self.node.store.snapshot(at, protected).get(self.node.key(TABLE, key[0]))
        return "-" if value is None else value.decode()

    def _protect_at(self, who: str, rest: str) -> None:
        self._protect(who, rest, Mode.AT)

    def _protect_after(self, who: str, rest: str) -> None:
        self._protect(who, rest, Mode.AFTER)

    def _protect(self, who: str, rest: str, mode: Mode) -> None:
        time, _, name = rest.partition(" of ")
        targets = Targets((TABLE,)) if not name else Targets((DEFAULT_SCHEMA,))
        if ".." in name:
            lo, hi = (self.node.key(TABLE, each) for each in name.split(".."))
            targets = Targets((), (Span(lo, hi),))
        protect, at = self.node.protections.protect, self._at(time)
        id = self.node.transact(lambda txn: protect(txn, at, mode, *OWNER, targets))
        self._protections[who] = id
        self._known |= {each.id: each for each in self.node.state().records}

    def _move(self, who: str, rest: str) -> None:
        schema = {"elsewhere": 150, "back": DEFAULT_SCHEMA}[rest]
        self._commits[self._passed] = self.node.alter(TABLE, schema=schema)

    def _release(self, who: str, rest: str) -> None:
        self.node.release(self._protections[who])

    def _sweep(self, who: str, rest: str) -> str:
        return f"{self.node.sweep(TABLE).removed} removed"

    def _at(self, time: str) -> Timestamp:
        if time == "now":
            return self.node.now()
        number = int(time)
        start_at = self._start_micros << 10
        return self._commits.get(number, add_seconds(start_at, number * self._unit))

    def _time(self, at: Timestamp) -> int:
        return round((micros_of(at) - self._start_micros) / 1_000_000 / self._unit)
