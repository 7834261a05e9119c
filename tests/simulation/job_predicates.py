"""What must hold of jobs: I23 to I26, and of their effects from one end to the other.

Walk: `members.JobCluster.judge` -> `check` -> the predicates here and in the modules beside.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import TYPE_CHECKING

from tenure.cluster.jobs.job_states import CLAIMABLE, STEPS, TERMINAL, JobState
from tenure.cluster.jobs.job_table import JobControl
from tests.simulation import holder_predicates, session_predicates, upkeep_predicates
from tests.simulation.holder_predicates import wrong
from tests.simulation.hub import EPOCH_MICROS
from tests.simulation.job_history import JobIndex
from tests.simulation.job_knobs import JobKnobs
from tests.simulation.job_trace import Running
from tests.simulation.predicates import Violation
from tests.simulation.trace import Version

if TYPE_CHECKING:
    from tests.simulation.processes import Process

REQUESTED = frozenset({JobState.PAUSE_REQUESTED, JobState.CANCEL_REQUESTED, JobState.PENDING})
"""What control statements may write."""


def check(
    index: JobIndex,
    knobs: JobKnobs,
    living: Sequence["Process"],
    open_lanes: Set[bytes],
    *,
    is_whole: bool,
) -> list[Violation]:
    predicates = (
        *session_predicates.PREDICATES,
        *holder_predicates.PREDICATES,
        *PREDICATES,
        *upkeep_predicates.PREDICATES,
    )
    found = [each for predicate in predicates for each in predicate(index)]
    found += upkeep_predicates.too_young(index, knobs)
    found += session_predicates.lanes(index, open_lanes)
    if is_whole:
        found += session_predicates.notes(index, knobs) if living else ()
        found += heartbeats(index, knobs, living)
        found += adoption(index, knobs, living)
        found += upkeep_predicates.check_end(index, knobs, living)
    return found


def writes(index: JobIndex) -> Iterator[Violation]:
    """I23: every write of a run lands under its fence; everybody else only asks."""
    for job in index.rows:
        for version, before, after in index.states(job):
            if before is None:
                continue  # its creation; written again after its end is I25's
            if version.writer.id in index.trace.fences:
                yield from _judge_fenced(index, job, version)
            elif version.writer.id in index.trace.claims:
                yield from _judge_claim(job, version, before, after)
            elif after is not None and not _is_request(before, after):
                yield wrong("I23", job, "was changed by a statement that may only ask", version)
    for job, versions in index.progress.items():
        for version in versions:
            if version.value is not None:  # it is deleted with what is forgotten: see `upkeep_predicates`
                yield from _judge_fenced(index, job, version)
    for job, effects in index.effects.items():
        for versions in effects.values():
            for version in versions:
                yield from _judge_fenced(index, job, version)


def _judge_fenced(index: JobIndex, job: int, version: Version) -> Iterator[Violation]:
    fence = index.trace.fences.get(version.writer.id)
    control = index.control_before(job, version.at)
    if fence is None or control is None:
        yield wrong("I23", job, "was written without a run", version)
        return
    way = index.trace.ways.get(version.writer.id, "session")
    is_held = control.claim == fence.session or way == "old"
    is_held &= control.lease_instance == fence.session.instance or way == "session"
    if not is_held or (control.run, control.state) != fence[2:]:
        held = (str(control.claim), control.lease_instance, control.run, control.state.value)
        yield wrong("I23", job, f"was written by run {fence.run} of {fence.session}, held by {held}", version)
    elif not holder_predicates.is_there(index, fence.session, version.at):
        yield wrong("I23", job, f"was written under {fence.session}, which was gone", version)


def _judge_claim(
    job: int, version: Version, before: JobControl, after: JobControl | None
) -> Iterator[Violation]:
    if after is None or after.run != before.run + 1:
        yield wrong("I23", job, "was claimed without the next run number", version)
    elif after.state is not (JobState.RUNNING if before.state is JobState.PENDING else before.state):
        yield wrong("I23", job, f"was claimed and made {after.state.value}", version)


def _is_request(before: JobControl, after: JobControl) -> bool:
    def kept(control: JobControl) -> tuple[object, ...]:
        held = control.claim, control.lease_instance, control.run
        return *held, control.started_at, control.attempts, control.canceled

    return after.state in REQUESTED and kept(before) == kept(after)


def runs(index: JobIndex) -> Iterator[Violation]:
    """I24: effects follow the run numbers; in one process a job's runs do not overlap."""
    for job, effects in index.effects.items():
        written = sorted(
            (each for versions in effects.values() for each in versions), key=lambda each: each.at
        )
        last = 0
        for version in written:
            fence = index.trace.fences.get(version.writer.id)
            run = 0 if fence is None else fence.run
            if run < last:
                yield wrong("I24", job, f"run {run} has an effect after run {last}", version)
            last = max(last, run)
    open_runs: dict[tuple[str, int], Running] = {}
    for running in index.trace.running:
        former = open_runs.get((running.process, running.job))
        if former is not None and (former.ended is None or former.ended > running.began):
            message = f"job {running.job}: run {running.run} began in {running.process} beside {former.run}"
            yield Violation("I24", message, running.began)
        open_runs[running.process, running.job] = running


def steps(index: JobIndex) -> Iterator[Violation]:
    """I25: every step is in the table, and terminal is final."""
    for job, rows in index.rows.items():
        if rows[0].control is None or rows[0].control.state is not JobState.PENDING:
            yield wrong("I25", job, "did not begin as pending", rows[0].version)
        for version, before, after in index.states(job):
            if before is None:
                continue
            if after is None and before.state in TERMINAL:
                continue  # it is forgotten: see `upkeep_predicates`
            if after is None or before.state in TERMINAL:
                yield wrong("I25", job, f"was {before.state.value} and is written again", version)
            elif after.state is not before.state and after.state not in STEPS[before.state]:
                yield wrong("I25", job, f"went from {before.state.value} to {after.state.value}", version)


def effects(index: JobIndex) -> Iterator[Violation]:
    """From one end to the other: what succeeded has each effect once; what did not has none left."""
    for job, (kind, count) in index.kinds.items():
        control = next((row.control for row in reversed(index.rows[job]) if row.control is not None), None)
        assert control is not None, "a job was made without a control record"
        written = index.effects.get(job, {})
        last = index.rows[job][-1].version
        total = int(index.totals[job][-1].value or b"0") if job in index.totals else 0
        alive = [step for step, versions in sorted(written.items()) if versions[-1].value is not None]
        for step, versions in written.items():
            if sum(version.value is not None for version in versions) > 1:
                yield wrong("effects", job, f"has effect {step} twice", versions[-1])
        if total != len(alive):
            yield wrong("effects", job, f"counts {total} effects and has {len(alive)}", last)
        if control.state is JobState.SUCCEEDED and alive != list(range(count)):
            yield wrong("effects", job, f"succeeded with effects {alive} of {count}", last)
        if control.state in (JobState.CANCELED, JobState.FAILED) and alive:
            yield wrong("effects", job, f"is {control.state.value} and has effects {alive} left", last)
        if control.state is JobState.FAILED and kind not in ("fails", "hopeless"):
            yield wrong("effects", job, f"of kind {kind} failed: {control.error_text}", last)


# ── liveness ─────────────────────────────────────────────────────────────────────────────────────


def heartbeats(index: JobIndex, knobs: JobKnobs, living: Sequence["Process"]) -> Iterator[Violation]:
    """I26: after the faults every node that is up has a session that it keeps alive."""
    end_at = (EPOCH_MICROS + round(knobs.seconds * 1_000_000)) << 10
    for process in living:
        session = process.liveness._session
        life = None if session is None else index.lives.get(session.id)
        if session is None or life is None or session.done.is_set() or not life.is_present_before(end_at):
            yield Violation("I26", f"{process.name} has no session at the end", index.trace.step)
        elif life.expires_before(end_at) < end_at:
            yield Violation("I26", f"{process.name} lets its session expire", index.trace.step)


def adoption(index: JobIndex, knobs: JobKnobs, living: Sequence["Process"]) -> Iterator[Violation]:
    """I26: after the faults every runnable job soon has a live claim, and what can end has ended."""
    if not living or knobs.seconds - knobs.faults_end < knobs.adoption_seconds + 3.0:
        return
    bound_at = (EPOCH_MICROS + round((knobs.faults_end + knobs.adoption_seconds) * 1_000_000)) << 10
    for job, rows in index.rows.items():
        control = index.control_before(job, bound_at)
        is_due = control is not None and control.state in CLAIMABLE and control.retry_at < bound_at
        if control is not None and is_due and not holder_predicates.is_held_before(index, control, bound_at):
            what = f"is {control.state.value} and nobody's, for {control.claim}"
            yield wrong("I26", job, what, rows[-1].version)
        last = rows[-1].control
        if last is not None and last.state in CLAIMABLE and last.retry_at < bound_at:
            yield wrong("I26", job, f"is {last.state.value} at the end", rows[-1].version)


PREDICATES: tuple[Callable[[JobIndex], Iterator[Violation]], ...] = (writes, runs, steps, effects)
