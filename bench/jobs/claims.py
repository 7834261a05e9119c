"""Jobs per second, from a backlog: claim, run something trivial, finish.

Both sides work on one PostgreSQL with its own defaults, in worker processes of the same number; each
has a database that is vacuumed and analyzed before every round, so that no plan is a stale one. A
round begins when a backlog, made in one transaction, is there, and lasts until every job of it is
finished; the sides take turns, and whoever has none is idle. Both make every claim and every end of a
job durable before they go on with it, and both keep finished jobs. Of ours, several claims are one
commit and runs that end together share an fsync; the peer commits each claim and each end by itself.

The peer is measured twice: with as many jobs at a time as a node of ours runs, and with one at a time,
its default; the better one counts. Its jobs are coroutines, which it likes best; ours are threads.

Walk: `bench.__main__` -> `run` -> `_measure` for each number of workers.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack

import psycopg
from psycopg import sql

from bench.jobs import ours, peer
from bench.jobs.crew import LOST_SECONDS, Crew, Duty, Side, Work, await_finished
from bench.ratio import Bar, Ratio, compare
from bench.store.places import postgres
from bench.store.rounds import Pace, note, timed
from tenure.cluster.jobs.adoption import RUNS_MAX
from tests.postgres_server import Server

TTL_SECONDS, HEARTBEAT_SECONDS = 40.0, 5.0
"""Our defaults, for both."""


def run(quick: bool) -> list[Ratio]:
    ratios = []
    for workers in (1, 2) if quick else (1, 2, 8):
        ratios += _measure(workers, jobs=50 if quick else 300, rounds=1 if quick else 3)
    return ratios


def _measure(workers: int, *, jobs: int, rounds: int) -> list[Ratio]:
    with postgres() as server, ExitStack() as undo:
        duties = [
            Duty(_database(server, name), Work.COUNT, runs_max, TTL_SECONDS, HEARTBEAT_SECONDS)
            for name, runs_max in (("ours", RUNS_MAX), ("peer", RUNS_MAX), ("peer_one", 1))
        ]
        backlogs = [
            Backlog(ours.Ours(duties[0].address), Crew(ours.serve, duties[0]), jobs),
            *(Backlog(peer.Peer(duty.address), Crew(peer.serve, duty), jobs) for duty in duties[1:]),
        ]
        for backlog in backlogs:
            undo.callback(backlog.close)
            backlog.hire(workers)
        mine, many, one = _alternate(rounds, backlogs)
    name = f"jobs.claims.{workers}_worker{'s' if workers > 1 else ''}"
    note(f"{name}: ours {mine.rate:,.0f}/s, peer {many.rate:,.0f}/s, one at a time {one.rate:,.0f}/s")
    best = max(many.rate, one.rate)
    return [compare(name, ours=mine.rate, peer=best, unit="jobs/s", bar=Bar.AT_LEAST, limit=1.0)]


def _database(server: Server, name: str) -> str:
    """Makes a database of its own and returns its address."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return f"postgresql://postgres@127.0.0.1:{server.port}/{name}"


def _alternate(rounds: int, backlogs: Sequence["Backlog"]) -> list[Pace]:
    """Like `alternate`, but what a round prepares is not measured."""
    paces: list[list[Pace]] = [[] for _ in backlogs]
    for _ in range(rounds):
        for backlog, of_backlog in zip(backlogs, paces, strict=True):
            backlog.create()
            of_backlog.append(timed(backlog.work_off))
    return [sorted(of_backlog, key=lambda pace: pace.rate)[rounds // 2] for of_backlog in paces]


class Backlog:
    """One side with its workers: makes jobs and waits until they are worked off, each run once."""

    def __init__(self, side: Side, crew: Crew, jobs: int) -> None:
        self._side = side
        self._crew = crew
        self._jobs = jobs
        self._before = 0

    def hire(self, workers: int) -> None:
        self._crew.hire(workers)
        self.create()
        self.work_off()  # whatever is set up with the first jobs is not measured

    def create(self) -> None:
        self._before = self._crew.counted()
        self._side.tidy()
        self._side.create(self._jobs)

    def work_off(self) -> int:
        deadline = time.monotonic() + LOST_SECONDS
        while self._crew.counted() - self._before < self._jobs:
            assert time.monotonic() < deadline, f"{self._side.name}: jobs were lost"
            time.sleep(0.002)
        await_finished(self._side)
        runs = self._crew.counted() - self._before
        assert runs == self._jobs, f"{self._side.name}: {self._jobs} jobs had {runs} runs"
        return runs

    def close(self) -> None:
        self._crew.dismiss()
        self._side.close()
