"""Whoever waits for a job loses the store, at every step of the wait: what it says of the job is true."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tenure.base.errors import Unavailable
from tenure.cluster import job_waits
from tenure.node import Node
from tests.unit.bulk.imports import Importing
from tests.unit.sql.sessions import Said, Talk, running

STEPS_MAX = 40
"""More than any of these statements takes: a run that came to its end unbroken ends the test."""


NUMBERS = iter(range(1, 10_000))
"""For rows, directories and names that no other statement has."""


class Breaker:
    """Breaks what one thread asks of the store, from its `step`-th question on, `times` times."""

    def __init__(self, step: int, times: float) -> None:
        self._thread = threading.get_ident()
        self._left, self._times = step, times
        self.has_broken = False

    def ask(self) -> None:
        if threading.get_ident() != self._thread:
            return
        self._left -= 1
        if self._left < 0 and self._times > 0:
            self._times -= 1
            self.has_broken = True
            raise Unavailable("the store cannot be reached")


@contextmanager
def breaking(node: Node, breaker: Breaker) -> Iterator[None]:
    """Every question that a statement asks once its job is there."""
    with pytest.MonkeyPatch.context() as patches:
        for target, name in (
            (node.store, "snapshot"),
            (node.store, "watch"),
            (node.jobs, "control"),
            (node.jobs, "progress"),
            (node.leases, "renew"),
        ):
            patches.setattr(target, name, _broken(getattr(target, name), breaker))
        yield


def _broken(original: Callable[..., Any], breaker: Breaker) -> Callable[..., Any]:
    def ask(*values: Any, **named: Any) -> Any:
        breaker.ask()
        return original(*values, **named)

    return ask


def run_broken(node: Node, say: Callable[[], Said], times: float) -> Iterator[tuple[Said, bool]]:
    """The same statement, broken at every step in turn; until one is not."""
    for step in range(STEPS_MAX):
        breaker = Breaker(step, times)
        with breaking(node, breaker):
            said = say()
        yield said, breaker.has_broken
        if not breaker.has_broken:
            return
    raise AssertionError("it asks the store for ever")


@pytest.fixture
def t(importing: Importing) -> Importing:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    return importing


def created(talk: Talk) -> set[str | None]:
    return {id for (id,) in talk.say("SELECT job_id FROM tenure_internal.jobs").rows}


def ended(talk: Talk, before: set[str | None]) -> tuple[str | None, str] | None:
    for id in created(talk) - before:
        said = talk.say(f"SHOW JOB WHEN COMPLETE {id}")
        return id, str(said.rows[0][said.columns.index("status")])
    return None


@pytest.mark.invariant("job-outcome")
@pytest.mark.parametrize("times", [1, float("inf")], ids=["once", "for good"])
@pytest.mark.parametrize("what", ["IMPORT", "EXPORT"])
def test_what_a_statement_says_of_its_job_is_true(
    t: Importing, monkeypatch: pytest.MonkeyPatch, what: str, times: float
) -> None:
    monkeypatch.setattr(job_waits, "AWAY_SECONDS_MAX", 0.0 if times > 1 else 30.0)
    monkeypatch.setattr(job_waits, "AWAY_PAUSE_SECONDS", 0.0)
    look = t.session()
    seen = set()

    def say() -> Said:
        nonlocal before
        before = created(look)
        if what == "IMPORT":
            return t.csv(f"{next(NUMBERS)},x\n")
        return t.say(f"EXPORT INTO CSV 'out{next(NUMBERS)}' FROM TABLE t")

    before: set[str | None] = set()
    for said, has_broken in run_broken(t.node, say, times):
        job = ended(look, before)
        seen.add(said.sqlstate)
        if said.sqlstate == "08006":
            assert job is None, f"it says that nothing happened, and {job}"
        elif said.sqlstate == "40003":
            assert job is not None and f"job {job[0]} is not known" in said.message, said
            assert f"SHOW JOB {job[0]}" in said.hint and job[1] == "succeeded"
        else:
            assert said.sqlstate == "" and job is not None and job[1] == "succeeded", (said, has_broken)
    assert "" in seen
    assert times == 1 or "40003" in seen


@pytest.mark.invariant("job-outcome")
def test_an_index_that_is_built_by_a_job_is_said_to_be_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_waits, "AWAY_SECONDS_MAX", 0.0)
    monkeypatch.setattr(job_waits, "AWAY_PAUSE_SECONDS", 0.0)
    with running(tmp_path) as node, running(tmp_path) as other:
        talk, look = Talk(node), Talk(other)
        talk.say("CREATE TABLE t (id int PRIMARY KEY, a int)")
        talk.say("INSERT INTO t VALUES (1, 1)")
        seen = set()
        before: set[str | None] = set()

        def say() -> Said:
            nonlocal before
            before = created(look)
            return talk.say(f"CREATE INDEX i{next(NUMBERS)} ON t (a)")

        for said, _ in run_broken(node, say, float("inf")):
            seen.add(said.sqlstate)
            job = ended(look, before)
            if said.sqlstate == "40003" and job is not None:
                assert job[1] == "succeeded"
            elif said.sqlstate:
                assert job is None, (said, job)
        assert "" in seen and "40003" in seen
