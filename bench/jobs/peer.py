"""The peer's side: a worker is a procrastinate worker in a process of its own.

Each fetch and each finish is a statement that commits durably, with its events by trigger; so is
each heartbeat. An effect is a row inserted by the task, as a task would.

Procrastinate leaves stalled jobs to its user: the recipe of its manual, a periodic task that retries
the jobs of workers without heartbeat, runs here every second, the finest that its schedules have; and
workers look for jobs every 100 ms (5 s by default), since a retried job is not notified.

Walk: `bench.jobs.crew` runs `serve` in a process; the benchmarks make a `Peer` to create and check.
"""

import asyncio
import logging
import threading
from multiprocessing.connection import Connection
from typing import Any

import procrastinate
import psycopg
from procrastinate.worker import FETCH_JOB_POLLING_INTERVAL

from bench.jobs.crew import Duty, Report, Work

TASK = "bench"
EVERY_SECOND = "* * * * * *"
POLL_SECONDS = 0.1
HOLD_SECONDS = 3_600.0
FINISH_SECONDS = 5.0
EFFECT = "INSERT INTO effects (job) VALUES (%(job)s)"


class Peer:
    name = "procrastinate"

    def __init__(self, address: str) -> None:
        self._connection = psycopg.connect(address, autocommit=True)
        self._app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=address))
        self._app.open()
        self._app.schema_manager.apply_schema()
        self._connection.execute("CREATE TABLE effects (job bigint)")

    def create(self, count: int) -> None:
        self._app.configure_task(TASK).batch_defer(*[{}] * count)

    def tidy(self) -> None:
        self._connection.execute("VACUUM (ANALYZE)")

    def unfinished(self) -> int:
        open_jobs = self._connection.execute(
            "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing') AND task_name = %s",
            [TASK],
        )
        ((count,),) = open_jobs
        return int(count)

    def effects(self) -> list[int]:
        return [job for (job,) in self._connection.execute("SELECT job FROM effects")]

    def close(self) -> None:
        self._app.close()
        self._connection.close()


def serve(duty: Duty, pipe: "Connection[Any, Any]", counter: Any) -> None:
    logging.disable(logging.CRITICAL)  # it logs each second end of a doubled job; they are counted here
    asyncio.run(_serve(duty, Report(pipe, counter)))


async def _serve(duty: Duty, report: Report) -> None:
    # A connection for each run that finishes, besides those of the listener and the heartbeat.
    connector = procrastinate.PsycopgConnector(conninfo=duty.address, min_size=4, max_size=8)
    app = procrastinate.App(connector=connector)
    _add_task(app, duty, report)
    poll_seconds = FETCH_JOB_POLLING_INTERVAL
    if duty.work is not Work.COUNT:
        _add_retry_of_stalled_jobs(app, duty.ttl_seconds)
        poll_seconds = POLL_SECONDS
    async with app.open_async():
        worker = asyncio.create_task(
            app.run_worker_async(
                concurrency=duty.runs_max,
                fetch_job_polling_interval=poll_seconds,
                update_heartbeat_interval=duty.heartbeat_seconds,
                stalled_worker_timeout=duty.ttl_seconds,
                shutdown_graceful_timeout=FINISH_SECONDS,
                install_signal_handlers=False,
            )
        )
        loop = asyncio.get_running_loop()
        threading.Thread(target=lambda: _await_stop(report, loop, worker), daemon=True).start()
        report.ready()
        await asyncio.gather(worker, return_exceptions=True)


def _await_stop(report: Report, loop: asyncio.AbstractEventLoop, worker: "asyncio.Task[None]") -> None:
    report.await_stop()
    loop.call_soon_threadsafe(worker.cancel)


def _add_task(app: procrastinate.App, duty: Duty, report: Report) -> None:
    @app.task(name=TASK, pass_context=True)
    async def work(context: procrastinate.JobContext) -> None:
        if duty.work is Work.COUNT:
            report.count()
            return
        assert context.job.id is not None
        report.claimed(context.job.id)
        if duty.work is Work.EFFECT:
            await asyncio.sleep(duty.ttl_seconds / 2)
            await app.connector.execute_query_async(EFFECT, job=context.job.id)
        elif context.job.attempts == 0:
            await asyncio.sleep(HOLD_SECONDS)


def _add_retry_of_stalled_jobs(app: procrastinate.App, ttl_seconds: float) -> None:
    @app.periodic(cron=EVERY_SECOND)
    @app.task(queueing_lock="retry_stalled_jobs", name="retry_stalled_jobs", pass_context=True)
    async def retry_stalled_jobs(context: procrastinate.JobContext, timestamp: int) -> None:
        manager = context.app.job_manager
        # Not a dead worker's own run of this task: another one waits already, under the same lock.
        stalled = await manager.get_stalled_jobs(task_name=TASK, seconds_since_heartbeat=ttl_seconds)
        for job in stalled:
            await manager.retry_job(job)
