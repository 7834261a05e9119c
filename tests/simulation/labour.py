"""The jobs of the simulation: each has effects that can be counted, and a way of its own to go wrong.

    kind      what it is like
    count     one effect after the other, each in one transaction with its progress
    slow      the same, with long pauses in which it listens
    deaf      the same, never asks whether it should stop: only its fence can hold it back
    helped    its effects are written by a task that may outlive the run
    fails     breaks off half-way: all its effects are taken back
    hopeless  like `fails`, and taking back fails too
    flaky     now and then fails for a passing reason
    late      hears nothing for so long that its session may be gone, then fails like `flaky`

Effect n of job j is the key (j, n), written once, and counted in a total that reads itself.

Walk: `members` hands `kinds()` to the runner; `job_predicates` counts the effects.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tenure.base.errors import RetryError, TenureError, Unavailable
from tenure.cluster.jobs.job_table import Fence, JobProgress
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.kv.transaction import Transaction
from tests.simulation.job_trace import JobFailure, record_of

if TYPE_CHECKING:
    from tests.simulation.processes import Process

EFFECTS, TOTALS = 120, 121

LATE_SECONDS = 10.0
"""Longer than any ttl."""

KINDS = ("count", "slow", "deaf", "helped", "fails", "hopeless", "flaky", "late")


class Labour:
    """The job functions of one runner: of a process, or of a second one in it."""

    def __init__(self, process: "Process", registry: str) -> None:
        self._process = process
        self._registry = registry
        self._hub = process.cluster.hub
        self._tape = process.cluster.tape
        self._trace = process.cluster.job_trace
        self._store = process.store
        self._site = f"{process.machine.name}.job"

    def kinds(self) -> dict[str, JobKind]:
        return {name: JobKind(self._function(name), self._undo) for name in KINDS}

    def _function(self, kind: str) -> Callable[[Run], None]:
        def run(run: Run) -> None:
            with self._trace.at_work(self._registry, run.fence, "run"):
                self._work(run, kind)

        return run

    def _work(self, run: Run, kind: str) -> None:
        steps = int(run.job.payload)
        for step in range(int(run.progress.data or b"0"), steps):
            self._pace(run, kind)
            if kind in ("fails", "hopeless") and step >= steps // 2:
                raise JobFailure(f"broken at {step}")
            if kind in ("flaky", "late") and self._fails_in_passing():
                raise self._tape.choose(f"{self._site}.error", (RetryError, Unavailable))("a passing reason")
            if kind == "deaf":
                self._store.transact(lambda txn, step=step: self._save(txn, run, step))  # type: ignore[misc]
                run.progress = JobProgress(run.job.id, data=b"%d" % (step + 1))
            elif kind == "helped":
                self._let_help(run, step)
            else:
                self._checkpoint(run, step)

    def _fails_in_passing(self) -> bool:
        return self._is_faulty() and self._tape.chance(f"{self._site}.flaky", 0.3)

    def _is_faulty(self) -> bool:
        return self._hub.t < self._process.cluster.knobs.faults_end

    def _pace(self, run: Run, kind: str) -> None:
        seconds = (1.0 if self._is_faulty() else 0.02) * self._tape.draw(f"{self._site}.pace")
        if kind == "slow":
            run.sleep(6.0 * seconds)
        elif kind == "deaf":
            self._hub.sleep(4.0 * seconds, "deaf")
        elif kind == "late":
            self._hub.sleep(LATE_SECONDS * seconds, "late")
        else:
            run.sleep(seconds * self._process.cluster.knobs.think_seconds)

    def _checkpoint(self, run: Run, step: int) -> None:
        run.checkpoint(
            fraction=(step + 1) / int(run.job.payload),
            data=b"%d" % (step + 1),
            also=lambda txn: self._effect(txn, run.fence, step),
        )

    def _save(self, txn: Transaction, run: Run, step: int) -> None:
        progress = JobProgress(run.job.id, (step + 1) / int(run.job.payload), data=b"%d" % (step + 1))
        self._process.jobs.checkpoint(txn, run.fence, progress)
        self._effect(txn, run.fence, step)

    def _effect(self, txn: Transaction, fence: Fence, step: int) -> None:
        record = record_of(txn)
        self._trace.fences[record.id] = fence
        keyspace = self._store.keyspace
        total = keyspace.key(TOTALS, (fence.job,))
        txn.put(keyspace.key(EFFECTS, (fence.job, step)), record.next_value())
        txn.put(total, b"%d" % (int(txn.get(total) or b"0") + 1))

    def _let_help(self, run: Run, step: int) -> None:
        """Has another task write the effect. If the run is stopped meanwhile, nobody tells that task."""
        done = self._process.env.event()
        errors: list[TenureError] = []
        fence = run.fence

        def save(txn: Transaction) -> None:
            self._trace.seen["effect written by a helper"] += 1
            progress = JobProgress(fence.job, (step + 1) / int(run.job.payload), data=b"%d" % (step + 1))
            self._process.jobs.checkpoint(txn, fence, progress)
            self._effect(txn, fence, step)

        def help() -> None:
            calm = 1.0 if self._is_faulty() else 0.02
            self._hub.sleep(calm * 3.0 * self._tape.draw(f"{self._site}.help"), "help")
            try:
                self._store.transact(save)
            except TenureError as error:
                errors.append(error)
            done.set()

        self._process.env.spawn("helper", help)
        while not done.is_set():
            run.check()
            done.wait(0.3)
        if errors:
            raise errors[0]
        run.progress = JobProgress(run.job.id, data=b"%d" % (step + 1))

    # ── taking back ────────────────────────────────────────────────────────────────────────────

    def _undo(self, run: Run) -> None:
        with self._trace.at_work(self._registry, run.fence, "revert"):
            self._trace.seen["revert ran"] += 1
            if run.job.kind == "hopeless":
                raise JobFailure("there is no way back")
            for step in range(int(run.job.payload)):
                self._pace(run, "count")
                run.transact(lambda txn, step=step: self._take_back(txn, run, step))  # type: ignore[misc]

    def _take_back(self, txn: Transaction, run: Run, step: int) -> None:
        self._trace.fences[record_of(txn).id] = run.fence
        keyspace = self._store.keyspace
        effect, total = keyspace.key(EFFECTS, (run.job.id, step)), keyspace.key(TOTALS, (run.job.id,))
        if txn.get(effect) is not None:
            txn.delete(effect)
            txn.put(total, b"%d" % (int(txn.get(total) or b"0") - 1))
