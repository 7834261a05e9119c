"""Whoever waits for a job loses the store, at every step of the wait: what it says of the job is true."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tenure.base.errors import Unavailable
from tenure.cluster.jobs import job_waits
from tenure.node import Node
from tests.unit.bulk.imports import Importing
from tests.unit.sql.sessions import Said, Talk, running

QUESTIONS = ("snapshot", "watch", "control", "progress", "renew")
"""What a statement asks of the store and of the jobs while it waits, and in the end."""

TURNS = 3
"""How often each is asked before it breaks: before there is a job, at the first look, at a later one."""

NUMBERS = iter(range(1, 10_000))
"""For rows, directories and names that no other statement has."""


class Breaker:
    """Breaks what one thread asks: from the n-th question of a kind on, so many questions of any kind."""

    def __init__(self, kind: str, turn: int, times: float) -> None:
        self._thread = threading.get_ident()
        self._kind, self._left, self._times = kind, turn, times
        self._is_open = False

    def ask(self, kind: str) -> None:
        if threading.get_ident() != self._thread:
            return
        if kind == self._kind:
            self._left -= 1
            self._is_open = self._is_open or self._left < 0
        if self._is_open and self._times > 0:
            self._times -= 1
            raise Unavailable("the store cannot be reached")


@contextmanager
def breaking(node: Node, breaker: Breaker) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patches:
        for kind in QUESTIONS:
            target = next(each for each in (node.store, node.jobs, node.leases) if hasattr(each, kind))
            patches.setattr(target, kind, _broken(getattr(target, kind), kind, breaker))
        yield


def _broken(original: Callable[..., Any], kind: str, breaker: Breaker) -> Callable[..., Any]:
    def ask(*values: Any, **named: Any) -> Any:
        breaker.ask(kind)
        return original(*values, **named)

    return ask


def run_broken(node: Node, say: Callable[[], Said], times: float) -> Iterator[Said]:
    """The same statement, broken at every step in turn."""
    for kind in QUESTIONS:
        for turn in range(TURNS):
            with breaking(node, Breaker(kind, turn, times)):
                said = say()
            yield said


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
        if what == "IMPORT":
            return t.csv(f"{next(NUMBERS)},x\n")
        return t.say(f"EXPORT INTO CSV 'out{next(NUMBERS)}' FROM TABLE t")

    before = created(look)
    for said in run_broken(t.node, say, times):
        job, before = ended(look, before), created(look)
        seen.add(said.sqlstate)
        if said.sqlstate == "08006":
            assert job is None, f"it says that nothing happened, and {job}"
        elif said.sqlstate == "40003":
            assert job is not None and f"job {job[0]} is not known" in said.message, said
            assert f"SHOW JOB {job[0]}" in said.hint and job[1] == "succeeded"
        else:
            assert said.sqlstate == "" and job is not None and job[1] == "succeeded", said
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
        seen, before = set(), created(look)

        def say() -> Said:
            return talk.say(f"CREATE INDEX i{next(NUMBERS)} ON t (a)")

        for said in run_broken(node, say, float("inf")):
            seen.add(said.sqlstate)
            job, before = ended(look, before), created(look)
            if said.sqlstate == "40003" and job is not None:
                assert job[1] == "succeeded"
            elif said.sqlstate:
                assert job is None, (said, job)
        assert "" in seen and "40003" in seen
