"""A release and a sweep before any call of a read in the name of a protection: its answer is right, or there
is none.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tenure.base.errors import SnapshotTooOld
from tenure.base.timestamp import Timestamp
from tenure.kv import snapshot as product
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tests.simulation import retention_mistakes
from tests.simulation.mutants import Mutant
from tests.unit.kv.rows import KEYS, TABLE, named, number_rows, row
from tests.unit.kv.test_protected_reads import protect, release, sweep

ROWS = 5

READS: dict[str, Callable[[Snapshot], list[bytes | None]]] = {
    "get": lambda snapshot: [snapshot.get(row(3))],
    "scan": lambda snapshot: [value for _, value in named(snapshot.scan(TABLE))],
    "scan in reverse": lambda snapshot: [value for _, value in named(snapshot.scan(TABLE, reverse=True))],
    "stored": lambda snapshot: [each.value for page in snapshot.stored(TABLE, 2) for each in page],
}


class InterruptedEngine:
    """Something happens before one of its calls."""

    def __init__(self, engine: Any, calls: int, interrupt: Callable[[], None]) -> None:
        self._engine = engine
        self._calls = calls
        self._interrupt = interrupt

    @property
    def is_over(self) -> bool:
        """Whether there were not so many calls."""
        return self._calls > 0

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._engine, name)

        def call(*arguments: object) -> object:
            self._calls -= 1
            if self._calls == 0:
                self._interrupt()
            return called(*arguments)

        return call


def end(store: Store) -> None:
    release(store)
    sweep(store)


def read_interrupted(store: Store, read: Callable[[Snapshot], object], calls: int) -> tuple[object, bool]:
    """What a read of a kept point gives, with the end of its protection before one of its calls."""
    at, protected = _keep(store)
    engine: Any = InterruptedEngine(store.engine, calls, lambda: end(store))
    try:
        answer = read(Snapshot(engine, KEYS, at, protected=protected))
    except SnapshotTooOld:
        answer = None
    return answer, engine.is_over


def _keep(store: Store) -> tuple[Timestamp, ProtectedRead]:
    number_rows(store, ROWS)
    at = store.engine.clock_at()
    protected = protect(store, at)
    number_rows(store, ROWS, b"later")
    sweep(store, at)
    return at, protected


def answers(store: Store, read: Callable[[Snapshot], object]) -> list[object]:
    """Those of reads that were interrupted before their first call, their second, and so on."""
    found = []
    for calls in range(1, 100):
        answer, is_over = read_interrupted(store, read, calls)
        found.append(answer)
        if is_over:
            return found
    raise AssertionError("a read has more calls than the test thinks")


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "PAGE_ROWS", 2)


@pytest.mark.invariant("protected-read")
@pytest.mark.parametrize("name", READS)
def test_a_protection_that_ends_before_any_call_of_a_read_never_changes_its_answer(
    store: Store, name: str
) -> None:
    *interrupted, right = answers(store, READS[name])
    assert right
    assert None in interrupted
    assert all(answer in (None, right) for answer in interrupted)


@pytest.mark.parametrize("name", ["get", "scan", "scan in reverse"])
def test_a_record_that_is_asked_for_before_the_rows_is_found_out(store: Store, name: str) -> None:
    mistake = "record asked before the rows"
    with Mutant(mistake, retention_mistakes.IN_SCENARIOS[mistake]).applied():
        *interrupted, right = answers(store, READS[name])
    assert not all(answer in (None, right) for answer in interrupted)
