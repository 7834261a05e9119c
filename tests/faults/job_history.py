"""What the store's own history says of sessions, jobs and effects, as typed rows in commit order.

    (110, job, step)   an effect: written blindly by a job's step, in the fenced transaction that
                       also saves the step as progress
    (111, job, step)   the effect undone, likewise, by the job's revert
    value              session, run and process of the run that wrote it

Effects are written without reading: nothing but the fence keeps a step from being done twice, and
a second time would show as a second revision of its key.

Walk: `job_worker` writes effects with these; `job_fleet` -> `read_history` -> `job_checker`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.cluster.jobs.job_records import Fence, Job, JobControl, JobProgress, control_records
from tenure.cluster.sessions.session_records import Existence, Expiration, Instance, SessionId
from tenure.kv.encoding import At, decode
from tenure.kv.keys import (
    EXPIRATIONS,
    FREEZES,
    INSTANCES,
    JOB_CONTROL,
    JOB_PROGRESS,
    JOBS,
    JOBS_ENDED,
    SESSIONS,
    Keyspace,
)
from tenure.kv.records import Records
from tenure.kv.store import Store
from tenure.storage.engine import HEAD_BYTES, Revision

EFFECTS, UNDOS, NOTES = 110, 111, 112
PAGE = 5_000


class SessionRow(NamedTuple):
    at: Timestamp
    session: SessionId
    part: str
    """existence, expiration or freeze."""
    is_deleted: bool = False
    expires_at: Timestamp = 0
    """What the row promises by itself: a new session lives for its ttl."""


class InstanceRow(NamedTuple):
    at: Timestamp
    session: SessionId
    is_draining: bool


class JobRow(NamedTuple):
    at: Timestamp
    job: int
    steps: int


class ControlRow(NamedTuple):
    at: Timestamp
    job: int
    control: JobControl | None
    is_ended: bool = False
    """Whether it is kept among the jobs that are over."""


class ProgressRow(NamedTuple):
    at: Timestamp
    job: int
    done: int
    undone: int


class EffectRow(NamedTuple):
    at: Timestamp
    job: int
    step: int
    session: SessionId
    run: int
    process: str
    is_undo: bool = False
    is_deleted: bool = False


@dataclass
class JobHistory:
    """Each list in commit order."""

    sessions: list[SessionRow] = field(default_factory=list)
    instances: list[InstanceRow] = field(default_factory=list)
    jobs: list[JobRow] = field(default_factory=list)
    controls: list[ControlRow] = field(default_factory=list)
    progress: list[ProgressRow] = field(default_factory=list)
    effects: list[EffectRow] = field(default_factory=list)


class Order(NamedTuple):
    """What a job is asked to do: its payload."""

    steps: int
    pace_seconds: float
    fails_at: int = 0
    """The step at which it fails for good; 0: never."""
    is_stubborn: bool = False
    """Whether it never looks whether it should stop, so that only the fence stops it."""

    def encode(self) -> bytes:
        return json.dumps(self).encode()


def decode_order(payload: bytes) -> Order:
    return Order(*json.loads(payload))


class Done(NamedTuple):
    """How far a job is: the data of its progress."""

    done: int = 0
    undone: int = 0

    def encode(self) -> bytes:
        return json.dumps(self).encode()


def decode_done(data: bytes) -> Done:
    return Done(*json.loads(data)) if data else Done()


def effect_key(keyspace: Keyspace, job: int, step: int, *, is_undo: bool) -> bytes:
    return keyspace.key(UNDOS if is_undo else EFFECTS, (job, step))


def effect_value(fence: Fence, process: str) -> bytes:
    return json.dumps([*fence.session, fence.run, process]).encode()


def read_history(store: Store) -> JobHistory:
    reader = Reader(store.keyspace)
    for revision in revisions(store):
        reader.read(revision)
    return reader.history


def revisions(store: Store) -> Iterator[Revision]:
    since_at, until_at = 0, store.engine.clock_at()
    while since_at < until_at:
        interval = store.history(store.keyspace.all(), since_at=since_at, until_at=until_at, limit=PAGE)
        yield from interval.revisions
        since_at = interval.through_at


class Reader:
    def __init__(self, keyspace: Keyspace) -> None:
        self.history = JobHistory()
        key = ("instance", "epoch_at")
        self._existence = Records(keyspace, SESSIONS, Existence, key=key)
        self._expiration = Records(keyspace, EXPIRATIONS, Expiration, key=key)
        self._instances = Records(keyspace, INSTANCES, Instance, key=("id",))
        self._jobs = Records(keyspace, JOBS, Job, key=("id",))
        self._control = control_records(keyspace, JOB_CONTROL)
        self._progress = Records(keyspace, JOB_PROGRESS, JobProgress, key=("id",))

    def read(self, revision: Revision) -> None:
        key, at, value = revision
        table = int.from_bytes(key[4:8], "big")
        columns = decode(key[HEAD_BYTES:])
        if table in (SESSIONS, EXPIRATIONS, FREEZES):
            self._read_session(table, at, _session_id(columns), value)
        elif table in (EFFECTS, UNDOS):
            self._read_effect(table, at, columns, value)
        elif table in (JOB_CONTROL, JOBS_ENDED):
            control = None if value is None else self._control.decode(value)
            self.history.controls.append(ControlRow(at, _number(columns[0]), control, table == JOBS_ENDED))
        elif value is not None:
            self._read_other(table, at, value)

    def _read_session(self, table: int, at: Timestamp, session: SessionId, value: bytes | None) -> None:
        part = {SESSIONS: "existence", EXPIRATIONS: "expiration", FREEZES: "freeze"}[table]
        expires_at = 0
        if value is not None and table == SESSIONS:
            ttl_micros = round(self._existence.decode(value).ttl_seconds * 1_000_000)
            expires_at = session.epoch_at + (ttl_micros << 10)
        elif value is not None and table == EXPIRATIONS:
            expires_at = self._expiration.decode(value).expires_at
        self.history.sessions.append(SessionRow(at, session, part, value is None, expires_at))

    def _read_effect(
        self, table: int, at: Timestamp, columns: tuple[object, ...], value: bytes | None
    ) -> None:
        job, step = map(_number, columns)
        instance, epoch_at, run, process = (0, 0, 0, "") if value is None else json.loads(value)
        session, is_undo = SessionId(instance, epoch_at), table == UNDOS
        row = EffectRow(at, job, step, session, run, process, is_undo, is_deleted=value is None)
        self.history.effects.append(row)

    def _read_other(self, table: int, at: Timestamp, value: bytes) -> None:
        if table == JOBS:
            job = self._jobs.decode(value)
            self.history.jobs.append(JobRow(at, job.id, decode_order(job.payload).steps))
        elif table == JOB_PROGRESS:
            progress = self._progress.decode(value)
            self.history.progress.append(ProgressRow(at, progress.id, *decode_done(progress.data)))
        elif table == INSTANCES:
            instance = self._instances.decode(value)
            session = SessionId(instance.id, instance.epoch_at)
            self.history.instances.append(InstanceRow(at, session, instance.draining))


def _session_id(columns: tuple[object, ...]) -> SessionId:
    instance, epoch_at = columns
    assert isinstance(instance, int) and isinstance(epoch_at, At)
    return SessionId(instance, int(epoch_at))


def _number(column: object) -> int:
    assert isinstance(column, int)
    return column
