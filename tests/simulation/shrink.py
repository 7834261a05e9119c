"""Shrinking a failing seed: as few deviations from the quiet run as still break the same predicate.

    cut time ──► drop sites, whole prefixes first ──► drop single draws ──► round what is left

What is shrunk is the tape, never the seed: a draw that is dropped becomes its site's default, so
every try is a simpler run of the same world.

Walk: `__main__` -> `shrink` -> `cluster.run` many times; `save` and `load` keep a tape as JSON.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.simulation import cluster
from tests.simulation.cluster import Result
from tests.simulation.predicates import Violation
from tests.simulation.trace import Get, Txn

REPLAYS_MAX = 300
"""Enough to get to the core of most failures, at some seconds to a minute."""

Draws = dict[str, dict[int, float]]
Item = tuple[str, int]
T = TypeVar("T")


@dataclass
class Case:
    """A run that can be repeated: written to a file, it is a regression test."""

    seed: int
    predicate: str
    seconds: float = 60.0
    nodes: int = 3
    profile: str = "all"
    until: float | None = None
    mutant: str = ""
    draws: Draws = field(default_factory=dict)

    def run(self) -> Result:
        return cluster.run(
            self.seed,
            seconds=self.seconds,
            nodes=self.nodes,
            profile=self.profile,
            kept=self.draws,
            until=self.until,
        )

    def violation(self) -> Violation | None:
        return next((each for each in self.run().violations if each.predicate == self.predicate), None)


def case_of(result: Result, *, seconds: float, nodes: int, profile: str = "all", mutant: str = "") -> Case:
    predicate = result.violations[0].predicate
    draws = result.tape.deviations()
    return Case(result.seed, predicate, seconds, nodes, profile, None, mutant, draws)


def shrink(case: Case, *, replays_max: int = REPLAYS_MAX) -> Case:
    tries = _Tries(case, replays_max)
    if case.predicate not in ("I9", "I19", "I26"):  # whatever should come to an end needs its time
        tries.cut_time()
    tries.drop_sites()
    tries.drop_draws()
    tries.round_off()
    return tries.best


class _Tries:
    def __init__(self, case: Case, replays_max: int) -> None:
        self.best = case
        self._left = replays_max

    def _fails(self, case: Case) -> bool:
        if self._left == 0:
            return False
        self._left -= 1
        if case.violation() is None:
            return False
        self.best = case
        return True

    def cut_time(self) -> None:
        low, high = 0.0, self.best.until or self.best.seconds
        for _ in range(8):
            middle = (low + high) / 2
            if self._fails(replace(self.best, until=middle)):
                high = middle
            else:
                low = middle

    def drop_sites(self) -> None:
        for depth in (1, 2, 9):
            groups = sorted({_prefix(site, depth) for site in self.best.draws})
            self._without_chunks(groups, partial(_is_in_group, depth))

    def drop_draws(self) -> None:
        items = [(site, n) for site, values in sorted(self.best.draws.items()) for n in sorted(values)]
        self._without_chunks(items, lambda dropped, item: dropped == item)

    def _without_chunks(self, units: list[T], holds: Callable[[T, Item], bool]) -> None:
        """Leaves out halves, then quarters, and so on, whatever the failure does not need."""
        size = (len(units) + 1) // 2
        while size and self._left:
            start = 0
            while start < len(units) and self._left:
                chunk = units[start : start + size]
                if self._fails(replace(self.best, draws=_without(self.best.draws, chunk, holds))):
                    del units[start : start + size]
                else:
                    start += size
            size //= 2

    def round_off(self) -> None:
        for site, values in sorted(self.best.draws.items()):
            for n, value in sorted(values.items()):
                if round(value, 1) != value:
                    rounded = self.best.draws | {site: self.best.draws[site] | {n: round(value, 1)}}
                    self._fails(replace(self.best, draws=rounded))


def _is_in_group(depth: int, group: str, item: Item) -> bool:
    return _prefix(item[0], depth) == group


def _prefix(site: str, depth: int) -> str:
    return ".".join(site.split(".")[:depth])


def _without(draws: Draws, units: list[T], holds: Callable[[T, Item], bool]) -> Draws:
    left = {
        site: {n: value for n, value in values.items() if not any(holds(unit, (site, n)) for unit in units)}
        for site, values in draws.items()
    }
    return {site: values for site, values in left.items() if values}


# ── showing and keeping ──────────────────────────────────────────────────────────────────────────


def describe(case: Case) -> Iterable[str]:
    result = case.run()
    violation = next((each for each in result.violations if each.predicate == case.predicate), None)
    count = sum(len(values) for values in case.draws.values())
    yield f"seed {case.seed}: {case.predicate} is violated with {count} deviations from the quiet run"
    if case.until is not None:
        yield f"  cut at {case.until:.3f} virtual seconds"
    for site, values in sorted(case.draws.items()):
        yield f"  {site}: " + ", ".join(f"#{n}={value:.3g}" for n, value in sorted(values.items())[:12])
    if violation is None:
        yield "it does not fail any more"
        return
    yield f"{violation.predicate}: {violation.message}"
    yield from _timeline(result, violation)


def _timeline(result: Result, violation: Violation) -> Iterable[str]:
    named = {*violation.txns}
    events = []
    for txn in result.trace.txns:
        if txn.id in named or (txn.parent is not None and txn.parent.id in named):
            events += _events(txn)
    for step, what in sorted(events):
        yield f"  {step:6} {what}"


def _events(txn: Txn) -> list[tuple[int, str]]:
    who = f"{txn.node} t{txn.id}" + (f" (child of t{txn.parent.id})" if txn.parent else "")
    events = [(txn.begun, f"{who} begins at {txn.begun_t:.3f} s")]
    for read in txn.reads:
        if isinstance(read, Get):
            events.append((read.step, f"{who} reads {read.key.hex()} at {read.read_at}: {read.value!r}"))
        else:
            rows = ", ".join(f"{key.hex()}: {value!r}" for key, value in read.rows)
            ends = f"{read.span.lo.hex()} to {read.span.hi.hex()}"
            events.append((read.step, f"{who} scans {ends} at {read.read_at}: {rows or 'nothing'}"))
    events += [(put.step, f"{who} writes {put.key.hex()}: {put.value!r}") for put in txn.puts]
    events += [(refusal.step, f"{who} refused: {refusal.outcome}") for refusal in txn.refusals]
    if txn.landed:
        events.append((txn.landed, f"{who} LANDS at {txn.landed_at}"))
    events.append((txn.ended or txn.begun, f"{who} {txn.state} {txn.error} (read at {txn.read_at})"))
    return events


def save(case: Case, path: Path) -> None:
    path.write_text(json.dumps(case.__dict__, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> Case:
    fields = json.loads(path.read_text(encoding="utf-8"))
    draws = {site: {int(n): value for n, value in values.items()} for site, values in fields["draws"].items()}
    return Case(**{**fields, "draws": draws})
