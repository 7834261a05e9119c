"""What must hold of jobs: I22 to I26, and of their effects from one end to the other.

Walk: `members.JobCluster.judge` -> `check` -> the predicates here and in `session_predicates`.
"""

from collections.abc import Callable, Iterator, Mapping, Set

from tenure.cluster.job_states import CLAIMABLE, STEPS, TERMINAL, State
from tenure.cluster.jobs import NOBODY, Control
from tenure.cluster.liveness import Session
from tenure.cluster.sessions import SessionId
from tests.simulation import session_predicates
from tests.simulation.hub import EPOCH_MICROS
from tests.simulation.job_history import JobIndex
from tests.simulation.job_knobs import JobKnobs
from tests.simulation.job_trace import JobTrace, Running
from tests.simulation.predicates import Violation
from tests.simulation.trace import Txn, Version

REQUESTED = frozenset({State.PAUSE_REQUESTED, State.CANCEL_REQUESTED, State.PENDING})
"""What control statements may write."""


def check(
    trace: JobTrace,
    knobs: JobKnobs,
    living: Mapping[str, Session | None],
    open_lanes: Set[bytes],
    *,
    is_whole: bool,
) -> list[Violation]:
    index = JobIndex(trace)
    found = [each for predicate in (*session_predicates.PREDICATES, *PREDICATES) for each in predicate(index)]
    found += session_predicates.lanes(index, open_lanes)
    if is_whole:
        found += session_predicates.notes(index, knobs) if living else ()
        found += heartbeats(index, knobs, living)
        found += adoption(index, knobs, living)
    return found


def claims(index: JobIndex) -> Iterator[Violation]:
    """I22: a claim moves only where the former session is absent; who takes it is there."""
    for job in index.rows:
        for version, before, after in index.states(job):
            former, now = _claim(before), _claim(after)
            if former == now:
                continue
            txn = version.writer
            fence = index.trace.fences.get(txn.id)
            is_own = fence is not None and fence.session == former
            if former != NOBODY and not is_own and index.is_present_before(former, version.at):
                yield _wrong("I22", job, f"was taken from {former}, which is there", version)
            if former != NOBODY and now == NOBODY and not is_own:
                yield _wrong("I22", job, f"was let go for {former} by somebody else", version)
            if now != NOBODY and not index.is_present_before(now, version.at):
                yield _wrong("I22", job, f"was claimed for {now}, which is not there", version)
            if former != NOBODY and now != NOBODY:
                index.trace.seen["job adopted after death"] += 1


def _claim(control: Control | None) -> SessionId:
    return NOBODY if control is None else control.claim


def writes(index: JobIndex) -> Iterator[Violation]:
    """I23: every write of a run lands under its fence; everybody else only asks."""
    for job in index.rows:
        for version, before, after in index.states(job):
            if before is None:
                continue  # its creation; written again after its end is I25's
            if version.writer.id in index.trace.fences:
                yield from _judge_fenced(index, job, version)
            elif version.writer.id in index.trace.claims:
                yield from _judge_claim(index, job, version, before, after)
            elif after is not None and not _is_request(before, after):
                yield _wrong("I23", job, "was changed by a statement that may only ask", version)
    for job, versions in index.progress.items():
        for version in versions:
            yield from _judge_fenced(index, job, version)
    for job, effects in index.effects.items():
        for versions in effects.values():
            for version in versions:
                yield from _judge_fenced(index, job, version)


def _judge_fenced(index: JobIndex, job: int, version: Version) -> Iterator[Violation]:
    fence = index.trace.fences.get(version.writer.id)
    control = index.control_before(job, version.at)
    if fence is None or control is None:
        yield _wrong("I23", job, "was written without a run", version)
        return
    if (control.claim, control.run, control.state) != fence[1:]:
        held = (str(control.claim), control.run, control.state.value)
        yield _wrong(
            "I23", job, f"was written by run {fence.run} of {fence.session}, held by {held}", version
        )
    elif not index.is_present_before(fence.session, version.at):
        yield _wrong("I23", job, f"was written under {fence.session}, which was gone", version)


def _judge_claim(
    index: JobIndex, job: int, version: Version, before: Control, after: Control | None
) -> Iterator[Violation]:
    session = index.trace.claims[version.writer.id]
    if after is None or after.claim != session or after.run != before.run + 1:
        yield _wrong("I23", job, "was claimed without the next run number", version)
    elif after.state is not (State.RUNNING if before.state is State.PENDING else before.state):
        yield _wrong("I23", job, f"was claimed and made {after.state.value}", version)


def _is_request(before: Control, after: Control) -> bool:
    same = (before.claim, before.run, before.started_at, before.attempts, before.canceled)
    return after.state in REQUESTED and same == (
        *(after.claim, after.run, after.started_at, after.attempts, after.canceled),
    )


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
                yield _wrong("I24", job, f"run {run} has an effect after run {last}", version)
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
        if rows[0].control is None or rows[0].control.state is not State.PENDING:
            yield _wrong("I25", job, "did not begin as pending", rows[0].version)
        for version, before, after in index.states(job):
            if before is None:
                continue
            if after is None or before.state in TERMINAL:
                yield _wrong("I25", job, f"was {before.state.value} and is written again", version)
            elif after.state is not before.state and after.state not in STEPS[before.state]:
                yield _wrong("I25", job, f"went from {before.state.value} to {after.state.value}", version)


def effects(index: JobIndex) -> Iterator[Violation]:
    """From one end to the other: what succeeded has each effect once; what did not has none left."""
    for job, (kind, count) in index.kinds.items():
        control = index.rows[job][-1].control
        if control is None:
            yield _wrong("effects", job, "is lost", index.rows[job][-1].version)
            continue
        written = index.effects.get(job, {})
        last = index.rows[job][-1].version
        total = int(index.totals[job][-1].value or b"0") if job in index.totals else 0
        alive = [step for step, versions in sorted(written.items()) if versions[-1].value is not None]
        for step, versions in written.items():
            if sum(version.value is not None for version in versions) > 1:
                yield _wrong("effects", job, f"has effect {step} twice", versions[-1])
        if total != len(alive):
            yield _wrong("effects", job, f"counts {total} effects and has {len(alive)}", last)
        if control.state is State.SUCCEEDED and alive != list(range(count)):
            yield _wrong("effects", job, f"succeeded with effects {alive} of {count}", last)
        if control.state in (State.CANCELED, State.FAILED) and alive:
            yield _wrong("effects", job, f"is {control.state.value} and has effects {alive} left", last)
        if control.state is State.FAILED and kind not in ("fails", "hopeless"):
            yield _wrong("effects", job, f"of kind {kind} failed: {control.error}", last)


# ── liveness ─────────────────────────────────────────────────────────────────────────────────────


def heartbeats(index: JobIndex, knobs: JobKnobs, living: Mapping[str, Session | None]) -> Iterator[Violation]:
    """I26: after the faults every node that is up has a session that it keeps alive."""
    end_at = (EPOCH_MICROS + round(knobs.seconds * 1_000_000)) << 10
    for process, session in living.items():
        life = None if session is None else index.lives.get(session.id)
        if session is None or life is None or session.done.is_set() or not life.is_present_before(end_at):
            yield Violation("I26", f"{process} has no session at the end", index.trace.step)
        elif life.expires_before(end_at) < end_at:
            yield Violation("I26", f"{process} lets its session expire", index.trace.step)


def adoption(index: JobIndex, knobs: JobKnobs, living: Mapping[str, Session | None]) -> Iterator[Violation]:
    """I26: after the faults every runnable job soon has a live claim, and what can end has ended."""
    if not living or knobs.seconds - knobs.faults_end < knobs.adoption_seconds + 3.0:
        return
    bound_at = (EPOCH_MICROS + round((knobs.faults_end + knobs.adoption_seconds) * 1_000_000)) << 10
    for job, rows in index.rows.items():
        control = index.control_before(job, bound_at)
        if control is not None and control.state in CLAIMABLE and control.retry_at < bound_at:
            claim = control.claim
            if claim == NOBODY or not index.is_present_before(claim, bound_at):
                yield _wrong(
                    "I26", job, f"is {control.state.value} and nobody's, for {claim}", rows[-1].version
                )
        last = rows[-1].control
        if last is not None and last.state in CLAIMABLE and last.retry_at < bound_at:
            yield _wrong("I26", job, f"is {last.state.value} at the end", rows[-1].version)


def _wrong(predicate: str, job: int, what: str, version: Version) -> Violation:
    writer: Txn = version.writer
    return Violation(predicate, f"job {job} {what} (t{writer.id})", version.step, (writer.id,))


PREDICATES: tuple[Callable[[JobIndex], Iterator[Violation]], ...] = (claims, writes, runs, steps, effects)
