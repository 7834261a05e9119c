"""Judges rows, leases and changes of the schema by the store's own history and the processes' logs.

    lost         an acknowledged write is not there, or not at its time
    phantom      a revision that nobody wrote, or whose transaction was told that it failed
    twice        a transaction wrote a row more than once
    half         a transaction is there in part, or a change without its rows, or the reverse
    version      the versions of a descriptor are not 1, 2, 3 ... (I12)
    two versions a commit used a version that was older than the predecessor of the current (I10)
    frontier     a commit is not below the expiration of the session whose lease it used (I13)
    leased       a version was published while an older lease than its predecessor covered it (I12)
    widened      a lease row covers what it did not cover before (I16)
    change       a change was acknowledged before it was there, or failed and was seen all the same
    claim        a worker saw something that must not be

A transaction without a result (its process was killed) and one answered "unknown" may have
happened or not, but entirely. So may a change whose store went away after its first stage.

Walk: `schema_fleet` -> `check`; `test_schema_checker` shows that each kind is caught.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    ElementState,
    Schema,
    Table,
    elements,
    is_dropped,
)
from tenure.catalog.leases.lease_rows import LeaseRow
from tenure.cluster.sessions.session_records import SessionId
from tests.faults.checker import Verdict
from tests.faults.job_checker import Halt, Presence, check_instances, check_sessions, may_end_from
from tests.faults.log import Event
from tests.faults.schema_history import LeaseKey, RowRevision, SchemaHistory

Logs = Sequence[tuple[str, list[Event]]]
Key = tuple[int, int]
"""Of a row: its table and id."""


@dataclass
class Op:
    """One transaction of a process, from its intent to what came of it."""

    name: str
    process: str
    intent: Event
    end: Event | None = None

    @property
    def outcome(self) -> str:
        return "" if self.end is None else self.end["e"]

    @property
    def is_surely_failed(self) -> bool:
        return self.end is not None and self.outcome == "failed" and self.end["is_sure"]

    @property
    def writes(self) -> dict[Key, int | None]:
        return {(table, id): n for table, id, n in self.intent["writes"]}

    @property
    def session(self) -> SessionId:
        return SessionId(*self.intent["session"])

    @property
    def seconds(self) -> float:
        assert self.end is not None
        return float(self.end["m"] - self.intent["m"]) / 1e9


def ops_of(logs: Logs) -> dict[str, Op]:
    found: dict[str, Op] = {}
    for process, events in logs:
        for event in events:
            if event["e"] == "intent":
                found[event["op"]] = Op(event["op"], process, event)
            elif event["e"] in ("ack", "failed", "unknown"):
                found[event["op"]].end = event
    return found


def check(history: SchemaHistory, logs: Logs, halts: Sequence[Halt] = ()) -> Verdict:
    verdict = Verdict()
    ops = ops_of(logs)
    check_sessions(history.jobs, may_end_from(history.jobs, logs, halts), verdict)
    check_instances(Presence(history.jobs), verdict)
    landed = check_rows(history.rows, ops, verdict)
    check_uses(history, ops, landed, verdict)
    check_frontiers(history, ops, landed, verdict)
    check_versions(history, verdict)
    check_leases(history, verdict)
    check_changes(history, ops, landed, _unseen(logs), verdict)
    for process, events in logs:
        for event in events:
            verdict.counts[event["e"]] += 1
            if event["e"] == "claim":
                verdict.claim("claim", f"{process}: {event['what']}")
    changes = [op for op in ops.values() if "change" in op.intent]
    verdict.counts["changes"] = sum(op.outcome == "ack" for op in changes)
    verdict.counts["changes failed"] = sum(op.outcome == "failed" for op in changes)
    verdict.counts["rows acked"] = verdict.counts["ack"] - verdict.counts["changes"]
    verdict.counts["versions"] = sum(map(len, history.versions.values()))
    verdict.counts["sessions"] = len(Presence(history.jobs).made_at)
    return verdict


# ── rows ───────────────────────────────────────────────────────────────────────────────────────


def check_rows(rows: Sequence[RowRevision], ops: dict[str, Op], verdict: Verdict) -> dict[str, Timestamp]:
    """Returns when each transaction that has written rows was committed."""
    landed: dict[str, dict[Key, Timestamp]] = defaultdict(dict)
    deleters: dict[Key, list[Op]] = defaultdict(list)
    for op in ops.values():
        for key, n in op.writes.items():
            if n is None:
                deleters[key].append(op)
    for row in rows:
        key = row.table, row.id
        writer = ops.get(row.tag.split("#")[0]) if row.tag else _deleter(deleters[key], row.at)
        if writer is None or writer.outcome == "failed" or writer.writes.get(key, -1) != row.n:
            verdict.claim("phantom", f"{row} is of {writer and (writer.name, writer.outcome)}")
        elif key in landed[writer.name]:
            verdict.claim("twice", f"{row} was there before, at {landed[writer.name][key]}")
        else:
            landed[writer.name][key] = row.at
    return dict(_commits(ops, landed, verdict))


def _deleter(ops: list[Op], at: Timestamp) -> Op | None:
    """Who has deleted a row: an acknowledged one says when."""
    exact = (op for op in ops if op.end is not None and op.end.get("at") == at)
    doubtful = (op for op in ops if op.outcome in ("", "unknown"))
    return next(exact, next(doubtful, None))


def _commits(
    ops: dict[str, Op], landed: dict[str, dict[Key, Timestamp]], verdict: Verdict
) -> Iterator[tuple[str, Timestamp]]:
    for op in ops.values():
        times = landed.get(op.name, {})
        acked_at = op.end["at"] if op.end is not None and op.outcome == "ack" else None
        if not times:
            if acked_at is not None and op.writes:
                verdict.claim("lost", f"{op.name}, acknowledged at {acked_at}: {op.writes}")
            continue
        if times.keys() != op.writes.keys() or len(set(times.values())) > 1:
            verdict.claim("half", f"{op.name} wrote {times} of {op.writes}")
        at = max(times.values())
        if acked_at not in (None, at):
            verdict.claim("lost", f"{op.name} was acknowledged at {acked_at} and is there at {at}")
        yield op.name, at


# ── versions and leases ────────────────────────────────────────────────────────────────────────


def check_uses(
    history: SchemaHistory, ops: dict[str, Op], landed: dict[str, Timestamp], verdict: Verdict
) -> None:
    for name, at in landed.items():
        for id, version in ops[name].intent["uses"]:
            made_at = {each.version: each.modified_at for each in history.versions[id]}
            next_but_one_at = made_at.get(version + 2)
            if not made_at[version] <= at or (next_but_one_at is not None and at >= next_but_one_at):
                verdict.claim("two versions", f"{name} committed at {at} with version {version} of {id}")


def check_frontiers(
    history: SchemaHistory, ops: dict[str, Op], landed: dict[str, Timestamp], verdict: Verdict
) -> None:
    sessions = Presence(history.jobs)
    promised: dict[SessionId, list[tuple[Timestamp, Timestamp]]] = defaultdict(list)
    for row in history.jobs.sessions:
        if row.expires_at:
            promised[row.session].append((row.at, row.expires_at))
    for name, at in landed.items():
        session = ops[name].session
        before = promised[session][: bisect_left(promised[session], (at,))]
        expires_at = max((expires_at for _, expires_at in before), default=0)
        if not at < expires_at or not sessions.has(session, at):
            verdict.claim("frontier", f"{name} committed at {at} under {session}, valid below {expires_at}")


def check_versions(history: SchemaHistory, verdict: Verdict) -> None:
    for id, versions in history.versions.items():
        numbers = [each.version for each in versions]
        if numbers != list(range(1, len(numbers) + 1)):
            verdict.claim("version", f"descriptor {id} has the versions {numbers}")


def check_leases(history: SchemaHistory, verdict: Verdict) -> None:
    """Replays lease rows and publications. A publisher's own rows count as narrowed, so one may be left."""
    published = [
        (later.modified_at, former.modified_at, later)
        for versions in history.versions.values()
        for former, later in pairwise(versions)
    ]
    held: dict[LeaseKey, LeaseRow] = {}
    changes = iter(history.leases)
    change = next(changes, None)
    for at, predecessor_at, descriptor in sorted(published, key=lambda each: each[0]):
        while change is not None and change.at < at:
            _follow(held, change.key, change.row, verdict)
            change = next(changes, None)
        older = [row for row in held.values() if row.lease_at < predecessor_at and row.covers(descriptor.id)]
        holders = {row.session for row in older}
        if len(holders) > 1:
            named = f'version {descriptor.version} of "{descriptor.name}"'
            verdict.claim("leased", f"{named} was published at {at} over {sorted(holders)}")


def _follow(held: dict[LeaseKey, LeaseRow], key: LeaseKey, row: LeaseRow | None, verdict: Verdict) -> None:
    former = held.pop(key, None)
    if row is None:
        return
    if former is not None and former.descriptors is not None:
        covered = row.descriptors
        if covered is None or not {*covered} <= {*former.descriptors}:
            verdict.claim("widened", f"{key} from {former.descriptors} to {covered}")
    held[key] = row


# ── changes ────────────────────────────────────────────────────────────────────────────────────


def _unseen(logs: Logs) -> set[str]:
    return {event["op"] for _, events in logs for event in events if event["e"] == "unseen"}


def check_changes(
    history: SchemaHistory,
    ops: dict[str, Op],
    landed: dict[str, Timestamp],
    unseen: set[str],
    verdict: Verdict,
) -> None:
    dropped = {
        (op.intent.get("table"), op.intent["drops"])
        for op in ops.values()
        if "drops" in op.intent and not op.is_surely_failed
    }
    for op in ops.values():
        intent = op.intent
        if "change" not in intent:
            continue
        if "adds" in intent:
            _check_addition(op, history.versions[intent["table"]], landed.get(op.name), verdict)
            is_kept = (intent["table"], intent["adds"]) not in dropped
            if op.outcome == "ack" and is_kept and not _has(history.versions[intent["table"]][-1], op):
                verdict.claim("change", f"what {op.name} added is gone, and nobody dropped it")
            if is_kept and op.name in unseen:
                verdict.claim("change", f"{op.name} was acknowledged, and its node does not see it")
        elif "drops" in intent and op.outcome == "ack":
            left = {each.name for each in _elements(history.versions[intent["table"]][-1])}
            if intent["drops"] in left:
                verdict.claim("change", f"{op.name} dropped {intent['drops']!r}, which is there")
        elif "name" in intent:
            seen = any(each.name == intent["name"] for each in history.versions[intent["table"]])
            _check_seen(op, seen, verdict, is_unique=" " in intent["name"])
        elif "creates" in intent:
            schemas = [each for versions in history.versions.values() for each in versions]
            seen = any(isinstance(each, Schema) and each.name == intent["creates"] for each in schemas)
            _check_seen(op, seen, verdict)
        elif (
            op.outcome == "ack" and "ends" in intent and not is_dropped(history.versions[intent["ends"]][-1])
        ):
            verdict.claim("change", f"{op.name} dropped schema {intent['ends']}, which is there")


def _check_addition(
    op: Op, versions: list[AnyDescriptor], rows_at: Timestamp | None, verdict: Verdict
) -> None:
    shown_at = next((each.modified_at for each in versions if _has(each, op)), None)
    _check_seen(op, shown_at is not None, verdict)
    if op.writes and shown_at != rows_at:
        verdict.claim("half", f"{op.name}: its element is public from {shown_at}, its rows from {rows_at}")


def _check_seen(op: Op, is_seen: bool, verdict: Verdict, *, is_unique: bool = True) -> None:
    assert op.end is not None or op.outcome == ""
    if op.outcome == "ack" and not is_seen:
        verdict.claim("change", f"{op.name} ({op.intent['change']}) was acknowledged and never seen")
    if op.outcome == "failed" and is_seen and is_unique and op.end is not None:
        why = f"{op.end['state']} {op.end['why']}"
        if op.is_surely_failed:
            verdict.claim("change", f"{op.name} ({op.intent['change']}) failed ({why}) and was seen")
        else:
            verdict.counts["landed after an error"] += 1


def _has(descriptor: AnyDescriptor, op: Op) -> bool:
    """Whether readers see in this version what a change adds."""
    name = op.intent["adds"]
    return any(each.name == name and each.state is ElementState.PUBLIC for each in _elements(descriptor))


def _elements(descriptor: AnyDescriptor) -> Iterator[Any]:
    return elements(descriptor) if isinstance(descriptor, Table) else iter(())
