"""The history of sessions and jobs, taken from the store's own: every revision of their records.

Walk: `members.JobCluster.judge` makes a `JobIndex` per tenant; the predicates read it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tenure.base.settings import VERSION
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.cluster.jobs.job_table import JobControl, Jobs
from tenure.cluster.sessions.session_records import Instance, SessionId, Sessions
from tenure.cluster.sessions.versions import OLDEST
from tenure.cluster.settings import StoredSetting
from tenure.kv.encoding import decode
from tenure.kv.keys import (
    DEAD_LANES,
    EXPIRATIONS,
    FREEZES,
    INSTANCES,
    JOB_CONTROL,
    JOB_PROGRESS,
    JOBS,
    JOBS_ENDED,
    OLD_HEARTBEATS,
    SESSIONS,
    SETTINGS,
    Keyspace,
)
from tenure.kv.records import Records
from tenure.storage.engine import HEAD_BYTES
from tenure.version_one.old_heartbeats import OldHeartbeats
from tests.simulation.job_trace import JobTrace
from tests.simulation.labour import EFFECTS, TOTALS
from tests.simulation.trace import Txn, Version, head

T = TypeVar("T")


@dataclass
class Life:
    """One session, from its insert to its deletion."""

    id: SessionId
    versions: list[Version]
    ttl_seconds: float
    lanes: tuple[bytes, ...]
    expirations: list[tuple[Version, Timestamp | None]] = field(default_factory=list)
    freezes: list[Version] = field(default_factory=list)

    @property
    def inserted(self) -> Version:
        return self.versions[0]

    @property
    def deleted(self) -> Version | None:
        return next((version for version in self.versions if version.value is None), None)

    def is_present_before(self, at: Timestamp) -> bool:
        """Whether its row exists just before a commit at this time."""
        deleted = self.deleted
        return self.inserted.at < at and (deleted is None or deleted.at >= at)

    def is_deleted_by_step(self, step: int) -> bool:
        deleted = self.deleted
        return deleted is not None and deleted.step <= step

    def first_expires_at(self) -> Timestamp:
        return add_seconds(self.id.epoch_at, self.ttl_seconds)

    def expires_before(self, at: Timestamp) -> Timestamp:
        """The expiration as stored just before a commit at this time."""
        stored = [expires for version, expires in self.expirations if version.at < at and expires is not None]
        return stored[-1] if stored else self.first_expires_at()


@dataclass
class OldLife:
    """An instance of version 1, from its insert to its deletion."""

    inserted: Version
    deleted: Version | None = None

    def is_present_before(self, at: Timestamp) -> bool:
        return self.inserted.at < at and (self.deleted is None or self.deleted.at >= at)


class JobRow(NamedTuple):
    """One revision of a job's control record, open or ended."""

    version: Version
    control: JobControl | None
    is_ended: bool


class JobIndex:
    """What one tenant has of sessions, jobs, settings and instances."""

    def __init__(self, trace: JobTrace, tenant: int) -> None:
        self.trace = trace
        self.tenant = tenant
        keyspace = Keyspace(tenant)
        self._tables = {
            keyspace.head(table): table
            for table in (
                *(SESSIONS, EXPIRATIONS, FREEZES, DEAD_LANES, JOBS, JOB_CONTROL, JOBS_ENDED, JOB_PROGRESS),
                *(EFFECTS, TOTALS, INSTANCES, SETTINGS, OLD_HEARTBEATS),
            )
        }
        self._sessions = Sessions(keyspace)
        self._settings = Records(keyspace, SETTINGS, StoredSetting, key=("name",))
        self._beats = OldHeartbeats(keyspace)
        self._jobs = Jobs(keyspace, self._sessions, clock=None)  # type: ignore[arg-type]
        self.lives: dict[SessionId, Life] = {}
        self.orphans: list[tuple[SessionId, Version]] = []
        """Expirations and freeze marks of sessions that never were."""
        self.noted_lanes: dict[SessionId, tuple[Version, tuple[bytes, ...]]] = {}
        """Of the dead whose lanes are still to be closed when the history ends: the note of them."""
        self.rows: dict[int, list[JobRow]] = {}
        self.kinds: dict[int, tuple[str, int]] = {}
        """By job: its kind, and how many effects it has."""
        self.effects: dict[int, dict[int, list[Version]]] = {}
        self.progress: dict[int, list[Version]] = {}
        self.totals: dict[int, list[Version]] = {}
        self.payloads: dict[int, list[Version]] = {}
        """By job: its record, which is written once and goes with what is forgotten."""
        self.settings: dict[str, list[tuple[Version, str | None]]] = {}
        self.instances: dict[int, list[tuple[Version, Instance | None]]] = {}
        self.old_lives: dict[int, list[OldLife]] = {}
        self.beats: dict[int, list[tuple[Version, Timestamp | None]]] = {}
        """By instance: its heartbeats of the older way."""
        self.t = {landing.txn.id: landing.t for landing in trace.landings}
        self._read()

    def _read(self) -> None:
        by_table: dict[int, list[tuple[bytes, list[Version]]]] = {each: [] for each in self._tables.values()}
        for key, versions in self.trace.versions.items():
            table = self._tables.get(head(key))
            if table is not None:
                by_table[table].append((key, versions))
        readers: tuple[tuple[int, Callable[[bytes, list[Version]], None]], ...] = (
            (SESSIONS, self._read_existence),
            (EXPIRATIONS, self._read_expirations),
            (FREEZES, self._read_freezes),
            (DEAD_LANES, self._read_dead_lanes),
            (JOBS, self._read_job),
            (JOB_CONTROL, self._read_control),
            (JOBS_ENDED, self._read_ended),
            (JOB_PROGRESS, lambda key, versions: self.progress.update({_job(key)[0]: versions})),
            (EFFECTS, self._read_effects),
            (TOTALS, lambda key, versions: self.totals.update({_job(key)[0]: versions})),
            (INSTANCES, self._read_instance),
            (SETTINGS, self._read_setting),
            (OLD_HEARTBEATS, self._read_beats),
        )
        for table, read in readers:
            for key, versions in by_table[table]:
                read(key, versions)
        for rows in self.rows.values():
            # The deletion of the open record and the ended one are one commit: the latter counts.
            rows.sort(key=lambda row: (row.version.at, row.is_ended))

    def _read_existence(self, key: bytes, versions: list[Version]) -> None:
        id = self._sessions.id_of(key)
        assert versions[0].value is not None
        existence = self._sessions._existence.decode(versions[0].value)
        self.lives[id] = Life(id, versions, existence.ttl_seconds, existence.lanes)

    def _read_expirations(self, key: bytes, versions: list[Version]) -> None:
        id = self._sessions.id_of(key)
        records = self._sessions._expiration
        life = self.lives.get(id)
        if life is None:
            self.orphans += [(id, version) for version in versions]
            return
        for version in versions:
            expires_at = None if version.value is None else records.decode(version.value).expires_at
            life.expirations.append((version, expires_at))

    def _read_freezes(self, key: bytes, versions: list[Version]) -> None:
        id = self._sessions.id_of(key)
        if id in self.lives:
            self.lives[id].freezes += versions
        else:
            self.orphans += [(id, version) for version in versions]

    def _read_dead_lanes(self, key: bytes, versions: list[Version]) -> None:
        if versions[-1].value is not None:
            lanes = self._sessions._dead_lanes.decode(versions[-1].value).lanes
            self.noted_lanes[self._sessions.id_of(key)] = versions[-1], lanes

    def _read_job(self, key: bytes, versions: list[Version]) -> None:
        assert versions[0].value is not None
        job = self._jobs._jobs.decode(versions[0].value)
        self.kinds[job.id] = job.kind, int(job.payload)
        self.payloads[job.id] = versions

    def _read_control(self, key: bytes, versions: list[Version]) -> None:
        self._read_rows(key, versions, is_ended=False)

    def _read_ended(self, key: bytes, versions: list[Version]) -> None:
        self._read_rows(key, versions, is_ended=True)

    def _read_rows(self, key: bytes, versions: list[Version], *, is_ended: bool) -> None:
        rows = self.rows.setdefault(_job(key)[0], [])
        for version in versions:
            control = None if version.value is None else self._jobs.decode_control(version.value)
            rows.append(JobRow(version, control, is_ended))

    def _read_effects(self, key: bytes, versions: list[Version]) -> None:
        job, step = _job(key)
        self.effects.setdefault(job, {})[step] = versions

    def _read_instance(self, key: bytes, versions: list[Version]) -> None:
        rows = [(each, _decoded(self._sessions.instances.decode, each)) for each in versions]
        lives = self.old_lives.setdefault(_job(key)[0], [])
        self.instances[_job(key)[0]] = rows
        for version, instance in rows:
            if lives and lives[-1].deleted is None:
                lives[-1].deleted = version
            if instance is not None and instance.version == OLDEST:
                lives.append(OldLife(version))

    def _read_setting(self, key: bytes, versions: list[Version]) -> None:
        (name,) = decode(key[HEAD_BYTES:])
        rows = [(each, _decoded(self._settings.decode, each)) for each in versions]
        self.settings[str(name)] = [(version, None if row is None else row.text) for version, row in rows]

    def _read_beats(self, key: bytes, versions: list[Version]) -> None:
        rows = [(each, _decoded(self._beats._records.decode, each)) for each in versions]
        self.beats[_job(key)[0]] = [
            (version, None if row is None else row.expires_at) for version, row in rows
        ]

    # ── searching ──────────────────────────────────────────────────────────────────────────────

    def states(self, job: int) -> Iterator[tuple[Version, JobControl | None, JobControl | None]]:
        """Each commit that wrote a job's control: (version, control before, control after)."""
        former: JobControl | None = None
        rows = self.rows[job]
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            if following is not None and following.version.at == row.version.at:
                continue  # the open record went in the commit that wrote the ended one
            yield row.version, former, row.control
            former = row.control

    def control_before(self, job: int, at: Timestamp) -> JobControl | None:
        found = None
        for row in self.rows.get(job, ()):
            if row.version.at >= at:
                break
            found = row.control
        return found

    def version_before(self, at: Timestamp) -> int:
        """The cluster's version just before a commit at this time; 0 while it has none."""
        return int(before(self.settings.get(VERSION.name, ()), at) or 0)

    def beat_before(self, instance: int, at: Timestamp) -> Timestamp | None:
        """When an instance's heartbeat of the older way runs out, as stored before a commit at this time."""
        return before(self.beats.get(instance, ()), at)

    def old_life(self, instance: int, at: Timestamp) -> OldLife | None:
        """The instance of version 1 that had this id at a time."""
        lives = self.old_lives.get(instance, ())
        return next((life for life in lives if life.is_present_before(at)), None)

    def is_present_before(self, session: SessionId, at: Timestamp) -> bool:
        life = self.lives.get(session)
        return life is not None and life.is_present_before(at)

    def process_of(self, txn: Txn) -> str:
        return self.trace.processes[txn.id]


def before(rows: Sequence[tuple[Version, T | None]], at: Timestamp) -> T | None:
    """What stood there just before a commit at this time."""
    return next((value for version, value in reversed(rows) if version.at < at), None)


def _decoded(decode: Callable[[bytes], T], version: Version) -> T | None:
    return None if version.value is None else decode(version.value)


def _job(key: bytes) -> tuple[int, ...]:
    return tuple(int(column) for column in decode(key[HEAD_BYTES:]))  # type: ignore[arg-type]
