"""A process that dies before or after any of its commits: the meta record counts exactly what is there, and
no protection outlives its job.
"""

from collections.abc import Callable
from functools import partial

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import TooManyProtections
from tenure.base.settings import PROTECTED_RECORDS_MAX
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Fence, Job
from tenure.kv.keys import JOB_PROTECTIONS, Span
from tenure.kv.transaction import Transaction
from tenure.retention.job_protections import JobProtections
from tenure.retention.protections.protection_records import (
    JOB,
    Mode,
    Protection,
    Targets,
    protections,
)
from tenure.storage.engine import Engine, Group, Outcome
from tests.unit.cluster.members import Member
from tests.unit.kv.breaking import BreakingEngine, Deliver
from tests.unit.retention.protecting import ProtectedStore

CLIENT = ("client", b"somebody")
TABLE, OTHER = 200, 201
COMMITS_MAX = 60
"""No process of this test makes more."""


class Crash(BaseException):
    """The process ends here."""


class Process(ProtectedStore):
    """A node that makes protections of every kind, and jobs that have some."""

    def __init__(self, engine: Engine, env: ManualEnv) -> None:
        self.dying = BreakingEngine(engine)
        super().__init__(self.dying, env)
        self.member = Member(self.dying, env)
        self.job_protections = JobProtections(self.keyspace, self.protections)
        self.member.jobs.on_end.append(self.job_protections.release_all)
        self.member.start()

    def die_at(self, commit: int, *, is_after: bool) -> None:
        left = commit

        def deliver_or_die(group: Group, deliver: Deliver) -> list[Outcome]:
            nonlocal left
            left -= 1
            if left == 0 and not is_after:
                raise Crash
            outcomes = deliver(group)
            if left == 0:
                raise Crash
            return outcomes

        self.dying.on_commit = deliver_or_die

    def work(self) -> None:
        at = self.now()
        first = self.transact(
            lambda txn: self.protections.protect(txn, at, Mode.AT, *CLIENT, Targets((TABLE, OTHER)))
        )
        second = self.transact(partial(self._protect_spans, at=at))
        self.env.advance(1)
        self.transact(lambda txn: self.protections.move_forward(txn, second, at + 1))
        self.transact(lambda txn: self.protections.hand_over(txn, second, "another", b"with a longer name"))
        self.transact(partial(self._several, former=first))
        for state in (JobState.SUCCEEDED, JobState.FAILED):
            self._run_job(state)
        self.release(second)

    def _protect_spans(self, txn: Transaction, *, at: int) -> bytes:
        heads = [self.head(TABLE), self.head(OTHER)]
        targets = Targets((TABLE,), tuple(Span(head + b"a", head + b"b") for head in heads))
        return self.protections.protect(txn, at, Mode.AFTER, *CLIENT, targets)

    def _several(self, txn: Transaction, *, former: bytes) -> None:
        """One transaction releases, protects, takes something back, and goes on after a refusal."""
        self.protections.release(txn, former)
        id = self.protections.protect(txn, txn.read_at, Mode.AT, *CLIENT, Targets((OTHER,)))
        mark = txn.mark()
        self._protect_spans(txn, at=txn.read_at)
        txn.back_to(mark)
        settings = self.settings
        self.settings = settings.with_value(PROTECTED_RECORDS_MAX, 1)
        with pytest.raises(TooManyProtections, match="there would be 3 protections, and 1 are allowed"):
            self._protect_spans(txn, at=txn.read_at)
        self.settings = settings
        self.protections.release(txn, id)

    def _run_job(self, state: JobState) -> None:
        job = self.transact(self._start_job)
        fence = self.member.claim(job)
        self.transact(
            lambda txn: self.job_protections.exchange(txn, job.id, txn.read_at, Targets((TABLE, OTHER)))
        )
        self._end_job(fence, state)

    def _start_job(self, txn: Transaction) -> Job:
        job = self.member.jobs.create(txn, kind="work")
        self.job_protections.protect(txn, job.id, txn.read_at, Mode.AT, Targets((TABLE,)))
        return job

    def _end_job(self, fence: Fence, state: JobState) -> None:
        def work(txn: Transaction) -> None:
            if state is JobState.FAILED:
                reverting = self.member.jobs.step(txn, fence, JobState.REVERTING)
                assert reverting is not None
                self.member.jobs.step(txn, reverting, JobState.FAILED)
            else:
                self.member.jobs.step(txn, fence, state)

        self.transact(work)

    def end_open_jobs(self) -> None:
        """What whoever adopts them does."""
        jobs = self.member.jobs
        for control in list(jobs.open(self.store.snapshot())):
            self.transact(lambda txn, dead=control.claim: self.member.sessions.release(txn, dead))  # type: ignore[misc]
            job = jobs.get(self.store.snapshot(), control.id)
            assert job is not None
            self._end_job(self.member.claim(job), JobState.SUCCEEDED)

    # ── the oracle ─────────────────────────────────────────────────────────────────────────────

    def check(self, lists: dict[int, tuple[Protection, ...]]) -> None:
        """I31: the counters are those of the records; equal versions have equal lists."""
        meta, records = self.state()
        stored = protections(self.keyspace)
        assert (meta.records, meta.spans, meta.objects, meta.bytes) == (
            len(records),
            sum(len(each.spans) for each in records),
            sum(len(each.objects) for each in records),
            sum(len(stored.encode(each)) for each in records),
        )
        assert lists.setdefault(meta.version, records) == records

    def of_jobs(self) -> list[object]:
        """Protections of jobs, and the lists of them."""
        lists = self.store.snapshot().scan(self.keyspace.index_span(JOB_PROTECTIONS))
        owned = [each for each in self.state().records if each.meta_type == JOB]
        return [*owned, *lists]


@pytest.fixture
def start(open_engine: Callable[[], Engine]) -> Callable[[], Process]:
    env = ManualEnv()
    engine = open_engine()

    def start_one() -> Process:
        process = Process(engine, env)
        if process.catalog.get(process.store.snapshot(), TABLE) is None:
            process.create(TABLE)
            process.create(OTHER)
        return process

    return start_one


@pytest.mark.invariant("I31")
@pytest.mark.invariant("I32")
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_the_counters_are_exact_and_no_job_leaves_a_protection_after_a_crash_at_any_commit(
    start: Callable[[], Process], is_after: bool
) -> None:
    lists: dict[int, tuple[Protection, ...]] = {}
    for commit in range(1, COMMITS_MAX):
        process = start()
        process.check(lists)
        process.die_at(commit, is_after=is_after)
        try:
            process.work()
            is_over = True
        except Crash:
            is_over = False
        survivor = start()
        survivor.check(lists)
        survivor.end_open_jobs()
        survivor.check(lists)
        assert survivor.of_jobs() == []
        for record in survivor.state().records:
            survivor.release(record.id)
        survivor.check(lists)
        assert survivor.meta().records == survivor.meta().bytes == 0
        if is_over:
            return
    raise AssertionError("a process makes more commits than the test thinks")
