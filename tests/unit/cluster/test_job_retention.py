"""Ended jobs go after a while; open ones and young ones stay."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.settings import DEFINITIONS, JOBS_RETENTION, Settings
from tenure.cluster.jobs import job_retention
from tenure.cluster.jobs.job_retention import JobRetention
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import SqliteEngine

SETTINGS = Settings(DEFINITIONS)


class Place:
    def __init__(self) -> None:
        self.env = ManualEnv()
        self.store = Store(SqliteEngine(":memory:", self.env), self.env)
        sessions = Sessions(self.store.keyspace)
        self.jobs = Jobs(self.store.keyspace, sessions, self.store.clock)
        self.retention = JobRetention(self.store, self.jobs, lambda: SETTINGS)
        txn = self.store.begin()
        instance = sessions.create(txn, ttl_seconds=1e9, lanes=(), address="", started_at=0, version=2)
        self.session = SessionId(instance, txn.commit())

    def open_job(self) -> int:
        return self.store.transact(lambda txn: self.jobs.create(txn, kind="work")).id

    def ended_job(self) -> int:
        id = self.open_job()
        fence = self.store.transact(lambda txn: self.jobs.claim(txn, id, self.session))
        assert fence is not None
        self.store.transact(lambda txn: self.jobs.step(txn, fence, JobState.SUCCEEDED))
        return id

    def kept(self) -> list[int]:
        return [job.id for job, _, _ in self.jobs.list(self.store.snapshot())]


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.mark.setting("jobs.retention")
def test_an_old_ended_job_is_forgotten_and_open_or_young_ones_are_not(place: Place) -> None:
    open_job, old = place.open_job(), place.ended_job()
    place.env.advance(SETTINGS[JOBS_RETENTION] + 1)
    young = place.ended_job()
    assert place.retention.step() is None
    assert place.kept() == [open_job, young]
    assert old not in place.kept()


def test_a_round_goes_batch_by_batch_past_young_jobs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_retention, "BATCH_JOBS", 2)
    for _ in range(5):
        place.ended_job()
    place.env.advance(SETTINGS[JOBS_RETENTION] + 1)
    assert [place.retention.step() for _ in range(3)] == [0.0, 0.0, None]
    assert place.kept() == []


def test_a_round_goes_past_young_jobs_while_the_store_clock_stands_still(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_retention, "BATCH_JOBS", 2)
    old = place.open_job()
    young = [place.ended_job() for _ in range(3)]
    place.env.advance(60)  # nobody writes meanwhile
    assert [place.retention.step() for _ in range(2)] == [0.0, None]
    assert place.kept() == [old, *young]
    place.env.advance(SETTINGS[JOBS_RETENTION])
    assert [place.retention.step() for _ in range(2)] == [0.0, None]
    assert place.kept() == [old]
