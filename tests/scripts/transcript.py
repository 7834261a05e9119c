"""Plays transcripts of interleaved transactions.

    == a case begins with its name
    given: x=1 y=1                   one transaction that commits
    t1: begin                        the name before the colon says who acts
    t1: get x -> 1                   what comes of a command stands behind the arrow
    t1: scan a..z limit 2 -> x=1 y=1
    t1: commit -> 40001              an error by its SQLSTATE; "forbidden" is a bug of the caller
    now: get x -> 1                  "now" reads what is committed at that moment

Timestamps are counted from the start of the case: on a clock that stands still, the n-th commit
of a case is at @n. With several nodes, those who act are spread over them in turn; a child is on
the node of its parent.
"""

import re
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from tenure.base.env import ManualEnv
from tenure.base.errors import Disconnected, TenureError
from tenure.kv.encoding import decode
from tenure.kv.keys import USER_TABLES, Span
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import HEAD_BYTES, Engine, Group, Outcome
from tests.unit.kv.breaking import BreakingEngine, Deliver, cut_after_landing, cut_before_landing

_LINE = re.compile(r"(?P<who>\w+): (?P<command>[^>]*?)(?: -> (?P<result>.*))?")
_SCAN = re.compile(r"(\w+)\.\.(\w+)(?: limit (\d+))?(?P<reverse> reverse)?")


class Case(NamedTuple):
    path: Path
    name: str
    first: int
    """The number of its first line in the file, from zero."""
    lines: tuple[str, ...]


def read_cases(path: Path) -> Iterator[Case]:
    name, first, lines = "", 0, list[str]()
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), "== end"]):
        if line.startswith("== "):
            if name:
                yield Case(path, name, first, tuple(lines))
            name, first, lines = line.removeprefix("== "), number + 1, []
        else:
            lines.append(line)


def play(case: Case, engine: Engine, *, nodes: int, tenant: int) -> list[str]:
    """Runs a case; returns its lines with what came of each command."""
    player = _Player(engine, nodes=nodes, tenant=tenant)
    return [played(player.run, line) for line in case.lines]


def played(run: Callable[[str, str], str], line: str) -> str:
    """Runs one line; returns it with what came of it."""
    if not line or line.startswith("#"):
        return line
    match = _LINE.fullmatch(line)
    assert match is not None, f"not a line of a transcript: {line}"
    result = run(match["who"], match["command"])
    return f"{match['who']}: {match['command']}" + (f" -> {result}" if result else "")


class _Player:
    def __init__(self, engine: Engine, *, nodes: int, tenant: int) -> None:
        self._wires = [BreakingEngine(engine) for _ in range(nodes)]
        self._stores = [Store(wire, ManualEnv(), tenant=tenant) for wire in self._wires]
        self._turns = cycle(range(nodes))
        self._node_of: dict[str, int] = {}
        self._actors: dict[str, Transaction | Snapshot] = {}
        self._in_flight: list[Group] = []
        keyspace = self._stores[0].keyspace
        # Brings the store clock up to the nodes' clocks, from where it goes on by ones.
        self._stores[0].transact(lambda txn: txn.put(keyspace.key(USER_TABLES + 1, ["start"]), b""))
        self._start_at = engine.clock_at()

    def run(self, who: str, command: str) -> str:
        verb, _, rest = command.partition(" ")
        if who in ("given", "wire"):
            verb, rest = who, command
        action: Callable[[str, str], str | None] = getattr(self, f"_{verb.rstrip(',')}")
        try:
            return action(who, rest) or ""
        except TenureError as error:
            return error.sqlstate
        except AssertionError:
            return "forbidden"

    # ── who acts ───────────────────────────────────────────────────────────────────────────────

    def _store(self, who: str) -> Store:
        return self._stores[self._node(who)]

    def _node(self, who: str) -> int:
        if who not in self._node_of:
            self._node_of[who] = next(self._turns)
        return self._node_of[who]

    def _txn(self, who: str) -> Transaction:
        actor = self._actors[who]
        assert isinstance(actor, Transaction)
        return actor

    def _reader(self, who: str) -> Transaction | Snapshot:
        return self._store(who).snapshot() if who == "now" else self._actors[who]

    def _begin(self, who: str, _: str) -> None:
        self._actors[who] = self._store(who).begin()

    def _as(self, who: str, rest: str) -> None:
        self._actors[who] = self._store(who).snapshot(self._at(rest.removeprefix("of ")))

    def _child(self, who: str, rest: str) -> None:
        parent, _, kind = rest.removeprefix("of ").partition(", ")
        self._node_of[who] = self._node(parent)
        self._actors[who] = self._txn(parent).child(committed_only=kind == "committed rows only")

    # ── what they do ───────────────────────────────────────────────────────────────────────────

    def _given(self, who: str, rest: str) -> None:
        txn = self._stores[0].begin()
        for name, _, value in (pair.partition("=") for pair in rest.split()):
            txn.put(self._key(name), value.encode())
        txn.commit()

    def _get(self, who: str, name: str) -> str:
        value = self._reader(who).get(self._key(name))
        return "none" if value is None else value.decode()

    def _scan(self, who: str, rest: str) -> str:
        match = _SCAN.fullmatch(rest)
        assert match is not None, f"not a scan: {rest}"
        rows = self._reader(who).scan(
            Span(self._key(match[1]), self._key(match[2])),
            limit=None if match[3] is None else int(match[3]),
            reverse=match["reverse"] is not None,
        )
        return " ".join(f"{_name(key)}={value.decode()}" for key, value in rows) or "nothing"

    def _put(self, who: str, rest: str) -> None:
        name, value = rest.split()
        self._txn(who).put(self._key(name), value.encode())

    def _delete(self, who: str, name: str) -> None:
        self._txn(who).delete(self._key(name))

    def _refresh(self, who: str, _: str) -> str:
        self._txn(who).refresh()
        return "ok"

    def _deadline(self, who: str, rest: str) -> None:
        self._txn(who).deadline_at = self._at(rest)

    def _not(self, who: str, rest: str) -> None:
        self._txn(who).not_before_at = self._at(rest.removeprefix("before "))

    def _rollback(self, who: str, _: str) -> None:
        self._txn(who).rollback()

    def _commit(self, who: str, fault: str) -> str:
        wire = self._wires[self._node(who)]
        wire.on_commit = {
            "": None,
            "cut before it lands": cut_before_landing,
            "cut after it landed": cut_after_landing,
            "cut on its way": self._keep_in_flight,
            "cut and declared dead": lambda group, deliver: _die(wire, group, deliver),
        }[fault]
        try:
            self._txn(who).commit()
        finally:
            wire.on_commit = None
        return "ok"

    def _keep_in_flight(self, group: Group, deliver: Deliver) -> list[Outcome]:
        self._in_flight.append(group)
        raise Disconnected("cut")

    def _wire(self, who: str, rest: str) -> str:
        assert rest == "delivers what was on its way", rest
        self._wires[0].engine.commit(self._in_flight.pop(0))
        return "ok"

    def _when(self, who: str, _: str) -> str:
        commit_at = self._txn(who).commit_at
        return "never" if commit_at is None else f"@{commit_at - self._start_at}"

    def _key(self, name: str) -> bytes:
        return self._stores[0].keyspace.key(USER_TABLES, [name])

    def _at(self, text: str) -> int:
        return self._start_at + int(text.removeprefix("@"))


def _name(key: bytes) -> object:
    return decode(key[HEAD_BYTES:])[0]


def _die(wire: BreakingEngine, group: Group, deliver: Deliver) -> list[Outcome]:
    deliver(group)
    wire.after_leaving.append(lambda: wire.close_lane(group.lane))
    raise Disconnected("cut")
