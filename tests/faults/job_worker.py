"""One node under test: a real `Node` that runs counting jobs, makes them, and asks them to stop.

    python -m tests.faults.job_worker --store sqlite:PATH --log DIRECTORY --name p0.1 --seed 7 ...

A job counts its steps; each step is an effect (see `job_history`) in the fenced transaction that
saves it as progress. A stubborn job never looks whether it should stop: only the fence keeps it.

Logged: start, session (under which session it lives) and stopping, created, asked (a request that was
acknowledged), run and ran (a run begins and ends here), effect (a step was acknowledged), trouble.
A file "quiet" beside the logs ends the making of jobs and requests.

Walk: `job_fleet` starts it; it builds `tenure.node.Node` and hands it the kind "count".
"""

import argparse
import logging
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tenure.base.env import SystemEnv
from tenure.base.errors import OutcomeUnknown, SessionLost, TenureError, Unavailable
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster.jobs.job_records import JobProgress
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.cluster.sessions import deaths
from tenure.cluster.sessions.session_records import SessionId
from tenure.cluster.sessions.versions import PROGRAM
from tenure.kv.transaction import Transaction
from tenure.node import Node, NodeOptions
from tests.faults.job_history import Done, Order, decode_done, decode_order, effect_key, effect_value
from tests.faults.log import Log

KIND = "count"
FAILURE = "this job cannot count any further"
OPEN_SECONDS_MAX = 60.0
SESSION_SECONDS = 0.02
"""How often it looks whether its session is another."""


class JobWorker:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._rng = random.Random(f"{arguments.seed}.{arguments.name}")
        self._log = Log(arguments.log / f"{arguments.name}.jsonl")
        self._quiet = arguments.log.parent / "quiet"
        signal.signal(signal.SIGTERM, lambda *_: self._stopping.set())

    def run(self) -> None:
        self._node = self._open()
        self._ready.set()
        loops = [partial(self._repeat, SESSION_SECONDS, self._look_at_session())]
        if self._arguments.create_seconds:
            loops.append(partial(self._repeat, self._arguments.create_seconds, self._create))
        if self._arguments.ask_seconds:
            loops.append(partial(self._repeat, self._arguments.ask_seconds, self._ask))
        threads = [threading.Thread(target=loop, daemon=True) for loop in loops]
        for thread in threads:
            thread.start()
        self._stopping.wait()
        for thread in threads:
            thread.join()
        self._log.write("stopping")
        self._node.stop()
        self._log.write("end")

    def _open(self) -> Node:
        """Starts the node; a store that is away is waited for, as a supervisor would."""
        arguments = self._arguments
        settings = Settings(
            DEFINITIONS, {LIVENESS_TTL: arguments.ttl, LIVENESS_HEARTBEAT: arguments.heartbeat}
        )
        give_up = time.monotonic() + OPEN_SECONDS_MAX
        while True:
            try:
                kinds = {KIND: JobKind(self._count, self._uncount)}
                return Node(
                    NodeOptions(
                        arguments.store, settings=settings, kinds=kinds, version=arguments.compat_version
                    ),
                    SystemEnv(),
                )
            except (Unavailable, OutcomeUnknown):
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)

    # ── the jobs ───────────────────────────────────────────────────────────────────────────────

    def _count(self, run: Run) -> None:
        self._logged(run, self._count_on)

    def _uncount(self, run: Run) -> None:
        self._logged(run, self._undo_all)

    def _logged(self, run: Run, work: Callable[[Run], None]) -> None:
        self._ready.wait()
        self._log.write("run", job=run.job.id, run=run.fence.run, session=run.fence.session)
        try:
            work(run)
        finally:
            self._log.write("ran", job=run.job.id, run=run.fence.run)

    def _count_on(self, run: Run) -> None:
        order = decode_order(run.job.payload)
        for step in range(decode_done(run.progress.data).done + 1, order.steps + 1):
            if order.is_stubborn:
                time.sleep(order.pace_seconds)
            else:
                run.sleep(order.pace_seconds)
            if step == order.fails_at:
                raise ArithmeticError(FAILURE)
            self._save(run, order, Done(step), step, is_undo=False)

    def _undo_all(self, run: Run) -> None:
        order = decode_order(run.job.payload)
        done, undone = decode_done(run.progress.data)
        for step in range(undone + 1, done + 1):
            self._save(run, order, Done(done, step), step, is_undo=True)

    def _save(self, run: Run, order: Order, done: Done, step: int, *, is_undo: bool) -> None:
        """One step: its effect and its progress, both or neither."""
        key = effect_key(self._node.store.keyspace, run.job.id, step, is_undo=is_undo)
        value = effect_value(run.fence, self._arguments.name)
        fraction = done.done / order.steps
        if order.is_stubborn:
            progress = JobProgress(run.job.id, fraction, "", done.encode())

            def save(txn: Transaction) -> None:
                self._node.jobs.checkpoint(txn, run.fence, progress)
                txn.put(key, value)

            self._node.store.transact(save)
            run.progress = progress
        else:
            run.checkpoint(fraction=fraction, data=done.encode(), also=lambda txn: txn.put(key, value))
        self._log.write("effect", job=run.job.id, step=step, run=run.fence.run, undo=is_undo)

    # ── the load ───────────────────────────────────────────────────────────────────────────────

    def _repeat(self, seconds: float, step: Callable[[], None]) -> None:
        while not self._stopping.wait(seconds):
            try:
                step()
            except TenureError as error:
                self._log.write("trouble", state=error.sqlstate, why=str(error))

    def _look_at_session(self) -> Callable[[], None]:
        while (known := self._session()) is None:  # lost already, or a race for its instance id
            time.sleep(SESSION_SECONDS)
        self._log.write("start", session=known)

        def look() -> None:
            nonlocal known
            session = self._session()
            if session not in (None, known):
                known = session
                self._log.write("session", session=known)

        return look

    def _session(self) -> SessionId | None:
        try:
            return self._node.liveness.session().id
        except SessionLost:
            return None

    def _create(self) -> None:
        arguments, rng = self._arguments, self._rng
        node = self._node
        snapshot = node.store.snapshot()
        if self._quiet.exists() or sum(1 for _ in node.jobs.open(snapshot)) >= arguments.open_max:
            return
        steps = rng.randint(arguments.steps // 2, arguments.steps)
        fails_at = rng.randint(1, steps) if rng.random() < arguments.fail_rate else 0
        order = Order(steps, arguments.pace, fails_at, rng.random() < 0.5)
        job = node.store.transact(lambda txn: node.jobs.create(txn, kind=KIND, payload=order.encode()))
        self._log.write("created", job=job.id)

    def _ask(self) -> None:
        node = self._node
        jobs = [control.id for control in node.jobs.open(node.store.snapshot())]
        if self._quiet.exists() or not jobs:
            return
        job = self._rng.choice(jobs)
        requests = (node.jobs.request_pause, node.jobs.resume, node.jobs.resume, node.jobs.request_cancel)
        request = self._rng.choices(requests, (4, 4, 4, 1))[0]
        node.store.transact(lambda txn: request(txn, job))
        self._log.write("asked", job=job, what=request.__name__)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--name", required=True, help="process.incarnation, such as p0.3")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--ttl", type=float, required=True)
    parser.add_argument("--heartbeat", type=float, required=True)
    parser.add_argument("--create-seconds", type=float, default=0.0, help="makes a job so often; 0: none")
    parser.add_argument("--ask-seconds", type=float, default=0.0, help="asks some job so often; 0: never")
    parser.add_argument("--open-max", type=int, default=18, help="makes no job while so many are open")
    parser.add_argument("--steps", type=int, default=16, help="of a job, at most; at least half of it")
    parser.add_argument("--pace", type=float, default=0.1, help="seconds before each step")
    parser.add_argument("--fail-rate", type=float, default=0.0, help="of jobs that cannot be done")
    parser.add_argument("--compat-version", type=int, default=PROGRAM)
    parser.add_argument("--deaths-max", type=int, default=deaths.DEATHS_MAX)
    arguments = parser.parse_args()
    deaths.DEATHS_MAX = arguments.deaths_max
    logging.basicConfig(stream=sys.stderr, format=f"%(asctime)s {arguments.name} %(name)s %(message)s")
    JobWorker(arguments).run()


if __name__ == "__main__":
    main()
