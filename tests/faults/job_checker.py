"""Judges sessions, claims, states and effects by the store's own history.

    revived      something is written under a session's id after its existence was deleted (I20)
    expiry       an expiration fell (I14), or another deleted a session that had not expired (I21)
    epoch        a session's epoch is not the commit timestamp of its insert, or it was made twice
    instance     two sessions have one instance id at a time
    claim        a claim moved while its session was there, or to a session that was not (I22)
    run          a run number fell, or a claim did not take the next one (I24)
    step         a state followed that the table does not allow, or something after the end (I25)
    fence        an effect or a progress was written by a run that did not hold the claim (I23)
    twice        an effect was applied more than once; half: without its progress, or the reverse
    lost         an acknowledged job or effect is not there, or a job that succeeded left a step out
    unreverted   a job that was canceled or failed has effects that were not undone
    open         a job has not come to an end
    overlap      a process ran a job while a former run of it had not ended there (I24)

Walk: `job_fleet` -> `check`, `adoptions`; `test_job_checker` shows that each kind is caught.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tenure.base.timestamp import Timestamp, from_micros, seconds_between
from tenure.cluster.jobs.job_records import NOBODY, JobControl
from tenure.cluster.jobs.job_states import CLAIMABLE, STEPS, TERMINAL, JobState
from tenure.cluster.sessions.session_records import SessionId
from tests.faults.checker import Verdict
from tests.faults.job_history import ControlRow, EffectRow, JobHistory, SessionRow
from tests.faults.log import Event


def check(
    history: JobHistory, logs: Sequence[tuple[str, list[Event]]], halts: "Sequence[Halt]" = ()
) -> Verdict:
    verdict = Verdict()
    sessions = Presence(history)
    controls = Controls(history)
    check_sessions(history, may_end_from(history, logs, halts), verdict)
    check_instances(sessions, verdict)
    for job, rows in controls.of.items():
        check_claims(job, rows, sessions, verdict)
        check_steps(job, rows, verdict)
    check_fences(history, controls, sessions, verdict)
    check_effects(history, controls, verdict)
    check_logs(history, logs, verdict)
    verdict.counts["effects"] = sum(not row.is_undo for row in history.effects)
    verdict.counts["undone"] = sum(row.is_undo for row in history.effects)
    verdict.counts["sessions"] = len(sessions.made_at)
    verdict.counts.update(f"{controls.last(job).state.value}" for job in controls.of)
    return verdict


class Presence:
    """When each session existed."""

    def __init__(self, history: JobHistory) -> None:
        # Backwards: of several, the first counts.
        existence = [row for row in reversed(history.sessions) if row.part == "existence"]
        self.made_at = {row.session: row.at for row in existence if not row.is_deleted}
        self.deleted_at = {row.session: row.at for row in existence if row.is_deleted}

    def has(self, session: SessionId, at: Timestamp) -> bool:
        """Whether it is there just before a commit at this time."""
        made_at, deleted_at = self.made_at.get(session), self.deleted_at.get(session)
        return made_at is not None and made_at < at and (deleted_at is None or deleted_at >= at)


class Controls:
    """Each job's control records in commit order; at its end the open one gives way to the ended one."""

    def __init__(self, history: JobHistory) -> None:
        self.of: dict[int, list[ControlRow]] = defaultdict(list)
        ended = {(row.job, row.at) for row in history.controls if row.is_ended}
        for row in history.controls:
            if row.control is None and not row.is_ended and (row.job, row.at) in ended:
                continue  # the same commit writes the ended one
            self.of[row.job].append(row)

    def before(self, job: int, at: Timestamp) -> JobControl | None:
        rows = self.of.get(job, [])
        position = bisect_left(rows, at, key=lambda row: row.at)
        return rows[position - 1].control if position else None

    def last(self, job: int) -> JobControl:
        control = next(row.control for row in reversed(self.of[job]) if row.control is not None)
        assert control is not None
        return control


def check_sessions(history: JobHistory, may_end: Mapping[SessionId, Timestamp], verdict: Verdict) -> None:
    """A node that drains, or was told to stop, may delete its own session before it expires; and that of one
    that was killed may be ended by who proves its death, from the kill on.
    """
    drained = {**may_end, **{row.session: 0 for row in history.instances if row.is_draining}}
    rows_of: dict[SessionId, list[SessionRow]] = defaultdict(list)
    for row in history.sessions:
        rows_of[row.session].append(row)
    for session, rows in rows_of.items():
        _check_session(session, rows, drained.get(session), verdict)


def may_end_from(
    history: JobHistory, logs: Sequence[tuple[str, list[Event]]], halts: "Sequence[Halt]"
) -> dict[SessionId, Timestamp]:
    """The last sessions of processes that were told to stop, or killed, and since when each may end.

    A session that no process has logged is that of one killed before it could: it may end from the first kill
    after it was made.
    """
    killed = {halt.process: halt.at for halt in halts if not halt.woken_micros}
    found: dict[SessionId, Timestamp] = {}
    unlogged = {row.session for row in history.sessions}
    for process, events in logs:
        is_told = any(event["e"] == "stopping" for event in events)
        sessions = [SessionId(*event["session"]) for event in events if "session" in event]
        unlogged.difference_update(sessions)
        if sessions and (is_told or process in killed):
            found[sessions[-1]] = 0 if is_told else killed[process]
    for session in unlogged:
        kills = [at for at in killed.values() if at > session.epoch_at]
        if kills:
            found[session] = min(kills)
    return found


def _check_session(
    session: SessionId, rows: list[SessionRow], may_end_at: Timestamp | None, verdict: Verdict
) -> None:
    expires_at, deleted_at = 0, None
    is_made = False
    for row in rows:
        if deleted_at is not None and row.at > deleted_at:
            verdict.claim(
                "revived", f"{row.part} of {session} is written at {row.at}, dead since {deleted_at}"
            )
        elif row.part == "existence" and row.is_deleted:
            deleted_at = row.at
            if row.at <= expires_at and (may_end_at is None or row.at < may_end_at):
                verdict.claim("expiry", f"{session} is deleted at {row.at}, it expires at {expires_at}")
        elif row.part == "existence":
            if is_made or row.at != session.epoch_at:
                verdict.claim("epoch", f"{session} is made at {row.at}")
            is_made = True
        if row.expires_at:
            if row.expires_at < expires_at:
                verdict.claim("expiry", f"expiration of {session} falls to {row.expires_at} at {row.at}")
            expires_at = max(expires_at, row.expires_at)


def check_instances(sessions: Presence, verdict: Verdict) -> None:
    holders: dict[int, SessionId] = {}
    for session, made_at in sorted(sessions.made_at.items(), key=lambda item: item[1]):
        former = holders.get(session.instance)
        if former is not None and sessions.has(former, made_at + 1):
            verdict.claim("instance", f"{session} is made while {former} is there")
        holders[session.instance] = session


def check_claims(job: int, rows: list[ControlRow], sessions: Presence, verdict: Verdict) -> None:
    former: JobControl | None = None
    for at, _, control, _ in rows:
        if control is None:
            continue
        claim, held = control.claim, NOBODY if former is None else former.claim
        run = 0 if former is None else former.run
        if claim != held:
            if held != NOBODY and sessions.has(held, at) != (claim == NOBODY):
                why = "its holder was there" if claim != NOBODY else "it was given up for the dead"
                verdict.claim("claim", f"job {job} passes from {held} to {claim} at {at}: {why}")
            if claim != NOBODY and not sessions.has(claim, at):
                verdict.claim("claim", f"job {job} is claimed at {at} by {claim}, which is not there")
        is_taken = claim not in (NOBODY, held)
        if not run + is_taken <= control.run <= run + 1 or (former is None and control.run != 0):
            verdict.claim("run", f"job {job} goes from run {run} to {control.run} at {at}")
        former = control


def check_steps(job: int, rows: list[ControlRow], verdict: Verdict) -> None:
    former: JobState | None = None
    for at, _, control, is_ended in rows:
        if former in TERMINAL:
            verdict.claim("step", f"job {job} is {former.value if former else ''} and written at {at}")
        if control is None:
            verdict.claim("step", f"the control record of job {job} is deleted at {at}")
            continue
        state = control.state
        is_legal = state is JobState.PENDING if former is None else state is former or state in STEPS[former]
        if not is_legal or is_ended != (state in TERMINAL):
            verdict.claim("step", f"job {job} goes from {former} to {state} at {at}")
        former = state


def check_fences(history: JobHistory, controls: Controls, sessions: Presence, verdict: Verdict) -> None:
    for row in history.effects:
        control = controls.before(row.job, row.at)
        wanted = JobState.REVERTING if row.is_undo else JobState.RUNNING
        held = None if control is None else (control.claim, control.run, control.state)
        if held != (row.session, row.run, wanted) or not sessions.has(row.session, row.at):
            verdict.claim("fence", f"{_named(row)} by run {row.run} of {row.session}; the job had {held}")
    for progress in history.progress:
        control = controls.before(progress.job, progress.at)
        if control is None or not sessions.has(control.claim, progress.at):
            verdict.claim("fence", f"progress of job {progress.job} at {progress.at}: nobody held it")


def check_effects(history: JobHistory, controls: Controls, verdict: Verdict) -> None:
    done: dict[tuple[int, bool], Counter[int]] = defaultdict(Counter)
    saved = {(row.job, row.at): (row.done, row.undone) for row in history.progress}
    for row in history.effects:
        steps = done[row.job, row.is_undo]
        steps[row.step] += 1
        if steps[row.step] > 1 or row.is_deleted:
            verdict.claim("twice", f"{_named(row)} was there before")
        if saved.pop((row.job, row.at), (0, 0))[row.is_undo] != row.step:
            verdict.claim("half", f"{_named(row)} without its progress")
    for (job, at), _ in saved.items():
        verdict.claim("half", f"progress of job {job} at {at} without its effect")
    for created in history.jobs:
        job = created.job
        if job not in controls.of:
            verdict.claim("lost", f"job {job} has no control record")
            continue
        state, effects = controls.last(job).state, sorted(done[job, False])
        if state not in TERMINAL:
            verdict.claim("open", f"job {job} is {state.value}")
        if effects != list(range(1, len(effects) + 1)):
            verdict.claim("lost", f"job {job} has the steps {effects}")
        if state is JobState.SUCCEEDED and len(effects) != created.steps:
            verdict.claim("lost", f"job {job} succeeded after {len(effects)} of {created.steps} steps")
        if state in TERMINAL - {JobState.SUCCEEDED} and sorted(done[job, True]) != effects:
            verdict.claim("unreverted", f"job {job}: {effects} done, {sorted(done[job, True])} undone")
        asked = any(
            row.control and row.control.state is JobState.CANCEL_REQUESTED for row in controls.of[job]
        )
        if asked and state in TERMINAL - {JobState.CANCELED}:
            verdict.claim("unreverted", f"job {job} was to be canceled and is {state.value}")


def check_logs(history: JobHistory, logs: Sequence[tuple[str, list[Event]]], verdict: Verdict) -> None:
    """What was acknowledged to a process is in the store; no run of a job there before the former ended."""
    jobs = {row.job for row in history.jobs}
    effects = {(row.job, row.step, row.run, row.is_undo) for row in history.effects}
    for process, events in logs:
        running: set[int] = set()
        for event in events:
            kind, job = event["e"], event.get("job", 0)
            verdict.counts[kind] += 1
            if kind == "created" and job not in jobs:
                verdict.claim("lost", f"job {job}, acknowledged to {process}")
            elif kind == "effect" and (job, event["step"], event["run"], event["undo"]) not in effects:
                verdict.claim("lost", f"step {event['step']} of job {job}, acknowledged to {process}")
            elif kind == "run":
                if job in running:
                    verdict.claim("overlap", f"{process} runs job {job} twice at a time")
                running.add(job)
            elif kind == "ran":
                running.discard(job)


class Halt(NamedTuple):
    """A process was killed or stopped."""

    process: str
    """Its name and incarnation."""
    micros: int
    """Wall clock just before."""
    factor: float = 0.0
    """Of the ttl, if it was stopped and woken again."""
    woken_micros: int = 0

    @property
    def at(self) -> Timestamp:
        return from_micros(self.micros)


class Adoption(NamedTuple):
    job: int
    seconds: float | None
    """From the halt to the commit of the next claim; None if nobody claimed it."""


def adoptions(history: JobHistory, halt: Halt, held_by: Iterable[SessionId]) -> list[Adoption]:
    """How long each job that was claimed under these sessions waited for its next claim.

    One that the halted process had brought to an end, or given up, before its session died (with
    commits that were under way) waited for nobody.
    """
    mine = set(held_by)
    found = []
    for job, rows in Controls(history).of.items():
        position = bisect_left(rows, halt.at, key=lambda row: row.at)
        control = rows[position - 1].control if position else None
        if control is None or control.claim not in mine or control.state not in CLAIMABLE:
            continue
        later = next((row for row in rows[position:] if row.control and row.control.claim not in mine), None)
        if later is None or later.control is None:
            found.append(Adoption(job, None))
        elif later.control.claim != NOBODY:
            found.append(Adoption(job, seconds_between(halt.at, later.at)))
    return found


def _named(row: EffectRow) -> str:
    return f"{'undoing' if row.is_undo else 'effect'} {row.step} of job {row.job} at {row.at} ({row.process})"
