"""The contract of sinks: what was committed is there, in order; resolved timestamps do not lie, no matter
where a run ends or how many believe to have the job.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pytest

from tenure.base.errors import RetryError
from tenure.changefeed.records import FeedPosition
from tests.contract.sink_rigs import (
    KEYS,
    START,
    Delivery,
    FileRig,
    KafkaRig,
    Rig,
    WebhookRig,
    message,
    position,
)

MESSAGES = 9
PIECE = 2
"""Messages per emit."""
STEPS = 12
"""Of a run from the start to the end: see `Script`."""

RIGS: dict[str, Callable[[Path], Rig]] = {"files": FileRig, "webhook": WebhookRig, "kafka": KafkaRig}


SELDOM = {"kafka": (0, 2, 7)}
"""A producer needs half a second to begin: `make test` takes these steps, `make longer` the others."""


def at_each(steps: Iterable[int]) -> list[object]:
    return [
        pytest.param(name, each, marks=() if each in SELDOM.get(name, (each,)) else pytest.mark.longer)
        for name in RIGS
        for each in steps
    ]


@pytest.fixture(params=[*RIGS])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    rig = RIGS[request.param](tmp_path)
    yield rig
    rig.close()


class Record:
    """The record of the job, which outlives its runs."""

    def __init__(self) -> None:
        self.saved = START


class Script:
    """A run of the feed that a test takes step by step: two emits, a commit, a checkpoint, and again."""

    def __init__(self, rig: Rig, record: Record, run: int) -> None:
        self._record = record
        self.sink = rig.open(run)
        self._saved = self.sink.resume(record.saved)
        self._rows = self._saved.rows
        self._steps = self._script()

    def take(self, steps: int = 1_000) -> None:
        for _ in range(steps):
            if next(self._steps, None) is None:
                return

    def _script(self) -> Iterator[str]:
        while self._saved.rows < MESSAGES:
            for _ in range(2):
                self._emit()
                yield "emit"
            self._saved = self.sink.commit(position(self._rows, self._saved.batch))
            yield "commit"
            self._record.saved = max(self._record.saved, self._saved, key=attrgetter("rows"))
            yield "checkpoint"

    def _emit(self) -> None:
        until = min(self._rows + PIECE, MESSAGES)
        if until > self._rows:
            self.sink.emit([message(number) for number in range(self._rows + 1, until + 1)])
        self._rows = until


def run_all(rig: Rig, record: Record, run: int) -> None:
    script = Script(rig, record, run)
    script.take()
    script.sink.close()


def check(rig: Rig) -> None:
    """Everything is there; and in what each run has delivered, order and resolved timestamps are true."""
    deliveries = rig.deliveries()
    numbers = [each.number for each in deliveries if not each.is_resolved]
    assert set(numbers) == set(range(1, MESSAGES + 1))
    assert len(numbers) == MESSAGES or not rig.delivers_once
    for of_partition in by(attrgetter("partition"), deliveries):
        check_partition(of_partition, of_all_runs=rig.delivers_once)


def by(key: Callable[[Delivery], int], deliveries: Sequence[Delivery]) -> Iterator[list[Delivery]]:
    for _, group in groupby(sorted(deliveries, key=key), key=key):  # stable
        yield list(group)


def check_partition(deliveries: Sequence[Delivery], *, of_all_runs: bool) -> None:
    """`of_all_runs`: what holds for each run holds for all of them together."""
    keys = {each.number % KEYS for each in deliveries if not each.is_resolved}
    before: set[int] = set()
    for of_run in [deliveries] if of_all_runs else by(attrgetter("run"), deliveries):
        check_truth(of_run, before, keys)
        before.update(each.number for each in of_run if not each.is_resolved)


def check_truth(deliveries: Sequence[Delivery], before: set[int], keys: set[int]) -> None:
    """`before`: what earlier runs have delivered."""
    there, resolved = set(before), 0
    newest: dict[int, int] = {}
    for each in deliveries:
        if each.is_resolved:
            assert each.number >= resolved, "resolved goes back"
            resolved = each.number
            expected = {number for number in range(1, resolved + 1) if number % KEYS in keys}
            assert there >= expected, "resolved lies"
        elif each.number not in there:
            assert each.number > resolved, "a change at or below resolved comes late"
            key = each.number % KEYS
            assert each.number > newest.get(key, 0), "a key's changes are out of order"
            newest[key] = each.number
            there.add(each.number)


def test_what_is_committed_is_there_in_order_and_resolved(rig: Rig) -> None:
    sink = rig.open(1)
    begun = sink.resume(START)
    assert begun == START
    assert sink.emit([message(1), message(2)]) > 0
    sink.emit([message(4)])
    sink.commit(position(4))
    sink.close()
    deliveries = rig.deliveries()
    assert sorted(each.number for each in deliveries if not each.is_resolved) == [1, 2, 4]
    for of_partition in by(attrgetter("partition"), deliveries):
        *messages, last = of_partition
        assert messages == sorted(messages) and not any(each.is_resolved for each in messages)
        assert (last.is_resolved, last.number, last.run) == (True, 4, 1)


def test_batches_are_numbered_one_after_the_other(rig: Rig) -> None:
    sink = rig.open(1)
    committed: list[FeedPosition] = [sink.resume(START)]
    for rows in (1, 2, 3):
        sink.emit([message(rows)])
        committed.append(sink.commit(position(rows, committed[-1].batch)))
    sink.close()
    assert [each.batch for each in committed] == [0, 1, 2, 3]
    assert [each.rows for each in committed] == [0, 1, 2, 3]


def test_a_commit_without_messages_tells_the_resolved_timestamp(rig: Rig) -> None:
    sink = rig.open(1)
    sink.resume(START)
    sink.commit(position(5))
    sink.close()
    assert {each.number for each in rig.deliveries() if each.is_resolved} == {5}


def test_a_run_is_never_sent_back_behind_the_record(rig: Rig) -> None:
    record = Record()
    script = Script(rig, record, 1)
    script.take(STEPS // 2)
    script.sink.close()
    again = rig.open(2)
    assert again.resume(record.saved).rows >= record.saved.rows > 0
    again.close()


def test_closing_twice_is_harmless(rig: Rig) -> None:
    sink = rig.open(1)
    sink.resume(START)
    sink.emit([message(1)])
    sink.close()
    sink.close()


@pytest.mark.parametrize(("rig", "steps"), at_each(range(STEPS)), indirect=["rig"])
@pytest.mark.parametrize("is_orderly", [False, True])
def test_a_run_that_ends_at_any_step_loses_nothing(rig: Rig, steps: int, is_orderly: bool) -> None:
    """In good order, or as its process dies."""
    record = Record()
    former = Script(rig, record, 1)
    former.take(steps)
    if is_orderly:
        former.sink.close()
    run_all(rig, record, 2)
    check(rig)


@pytest.mark.parametrize(("rig", "steps"), at_each(range(STEPS)), indirect=["rig"])
def test_two_runs_that_believe_to_have_the_job_lose_nothing(rig: Rig, steps: int) -> None:
    """The former stands still after some steps, and goes on when the latter is done."""
    record = Record()
    former = Script(rig, record, 1)
    former.take(steps)
    run_all(rig, record, 2)
    try:
        former.take()
    except RetryError:
        pass  # it has found out
    former.sink.close()
    check(rig)


@pytest.mark.parametrize(("rig", "steps"), at_each(range(1, 5)), indirect=["rig"])
def test_two_runs_that_take_turns_lose_nothing(rig: Rig, steps: int) -> None:
    record = Record()
    runs = [Script(rig, record, 1), Script(rig, record, 2)]
    for _ in range(STEPS):
        for script in [*runs]:
            try:
                script.take(steps)
            except RetryError:
                script.sink.close()
                runs.remove(script)
    for script in runs:
        script.sink.close()
    run_all(rig, record, 3)
    check(rig)
