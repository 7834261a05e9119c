"""What must hold of settings, of ended jobs that are forgotten, of tenants, and of an upgrade's end.

Walk: `job_predicates.check` runs `PREDICATES` over a `JobIndex`, and `check_end` after a whole run.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tenure.base.setting_kinds import parse_duration
from tenure.base.settings import JOBS_RETENTION, MAX_OFFSET, VERSION
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.cluster.jobs.job_states import TERMINAL
from tenure.cluster.sessions.session_records import SessionId
from tenure.cluster.sessions.versions import PROGRAM
from tenure.kv.keys import Keyspace
from tests.simulation.holder_predicates import wrong
from tests.simulation.hub import EPOCH_MICROS
from tests.simulation.job_history import JobIndex
from tests.simulation.job_knobs import TTL_MAX, JobKnobs
from tests.simulation.predicates import Violation
from tests.simulation.trace import Get, Txn

if TYPE_CHECKING:
    from tests.simulation.processes import Process

ROUND_SECONDS = 2.0 + 2 * TTL_MAX + 5.0
"""What retention may take for a round: calls under way, two rests of its loop, news of a setting."""


def forgotten(index: JobIndex) -> Iterator[Violation]:
    """Retention: a job goes with all its records, in one commit, and only after it has ended."""
    for job, versions in index.payloads.items():
        version = versions[-1]
        rows = index.rows.get(job, [])
        gone = [row for row in rows if row.is_ended and row.control is None]
        if version.value is not None:
            if gone:
                yield wrong("retention", job, "was forgotten but for its record", gone[0].version)
            continue
        index.trace.seen["ended job forgotten"] += 1
        former = index.control_before(job, version.at)
        if former is None or former.state not in TERMINAL:
            yield wrong("retention", job, "was forgotten before it had ended", version)
        elif not gone or gone[-1].version.writer is not version.writer or rows[-1] is not gone[-1]:
            yield wrong("retention", job, "was forgotten in part", version)
        if job in index.progress and index.progress[job][-1].value is not None:
            yield wrong("retention", job, "was forgotten but for its progress", version)


def too_young(index: JobIndex, knobs: JobKnobs) -> Iterator[Violation]:
    """Retention: what is forgotten had ended long enough before, by any value that was in force."""
    for job, versions in index.payloads.items():
        version = versions[-1]
        former = index.control_before(job, version.at)
        if version.value is not None or former is None:
            continue
        least_seconds = min(_retentions(index, knobs, until_at=version.at))
        if add_seconds(former.finished_at, least_seconds - MAX_OFFSET.default) > version.at:
            yield wrong("retention", job, "was forgotten too soon", version)


def _retentions(index: JobIndex, knobs: JobKnobs, *, until_at: Timestamp) -> list[float]:
    stored = index.settings.get(JOBS_RETENTION.name, ())
    texts = [text for version, text in stored if version.at < until_at and text is not None]
    return [knobs.retention_seconds, *map(parse_duration, texts)]


def tenants(index: JobIndex) -> Iterator[Violation]:
    """Tenants: what a node reads, writes and asks about is of its own tenant."""
    prefix = Keyspace(index.tenant).prefix
    trace = index.trace
    if len(set(trace.tenants.values())) == 1:
        return  # there is nobody else
    for txn in trace.txns:
        if trace.tenants.get(trace.processes[txn.id]) != index.tenant:
            continue
        if any(not key.startswith(prefix) for key in _keys(txn)):
            yield Violation("tenants", f"t{txn.id} left tenant {index.tenant}", txn.ended, (txn.id,))
    for answer in trace.answers:
        if answer.tenant == index.tenant and _is_foreign(index, answer.session):
            yield Violation("tenants", f"{answer.question} of {answer.session} crosses tenants", answer.step)
    for id, session in trace.claims.items():
        if trace.txns[id - 1].tenant == index.tenant and _is_foreign(index, session):
            yield Violation("tenants", f"t{id} claims for {session} across tenants", trace.step, (id,))


def _keys(txn: Txn) -> Iterator[bytes]:
    for put in txn.puts:
        yield put.key
    for read in txn.reads:
        yield read.key if isinstance(read, Get) else read.span.lo


def _is_foreign(index: JobIndex, session: SessionId) -> bool:
    return index.trace.owners.get(session, index.tenant) != index.tenant


# ── at the end ───────────────────────────────────────────────────────────────────────────────────


def check_end(index: JobIndex, knobs: JobKnobs, living: Sequence["Process"]) -> Iterator[Violation]:
    if not living:
        return
    yield from settings(index, living)
    yield from remembered(index, knobs)
    if knobs.upgrades and index.version_before(_end_at(knobs)) != PROGRAM:
        yield Violation("version-join", "no older node is left, and it is not finalized", index.trace.step)


def settings(index: JobIndex, living: Sequence["Process"]) -> Iterator[Violation]:
    """Settings watched: every node ends with what is stored, and else with what it was started with."""
    stored = {name: rows[-1][1] for name, rows in index.settings.items()}
    for process in living:
        base, current = process.cluster.settings, process.settings.current()
        for setting in base:
            expected = stored.get(setting.name) or base.text(setting.name)
            if setting is VERSION and VERSION.name not in stored:
                continue
            if current.text(setting.name) != expected:
                message = f"{process.name} has {setting.name} = {current.text(setting.name)}, not {expected}"
                yield Violation("settings-watched", message, index.trace.step)


def remembered(index: JobIndex, knobs: JobKnobs) -> Iterator[Violation]:
    """Retention: what ended long ago is gone at the end."""
    longest = max(_retentions(index, knobs, until_at=_end_at(knobs)))
    before_at = add_seconds(_end_at(knobs), -longest - ROUND_SECONDS)
    for job, rows in index.rows.items():
        last = rows[-1].control
        if last is not None and last.state in TERMINAL and last.finished_at < before_at:
            yield wrong("retention", job, "ended long ago and is still there", rows[-1].version)


def _end_at(knobs: JobKnobs) -> Timestamp:
    return (EPOCH_MICROS + round(knobs.seconds * 1_000_000)) << 10


PREDICATES: tuple[Callable[[JobIndex], Iterator[Violation]], ...] = (forgotten, tenants)
