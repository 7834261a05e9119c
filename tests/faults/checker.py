"""Judges the logs of all processes against the history of the store they shared.

    logs (what was answered)  +  history (what is there)  ->  violations, in words

The model is a plain dictionary: name -> revisions in time order, replayed by commit timestamp.

    lost        an acknowledged commit is missing, or is there at another time or with other values
    phantom     a commit that was reported as failed, or that nobody made, is there
    half        a commit is there in part, or two share a timestamp
    doubled     an attempt or an operation id committed twice
    stale       a read is not what the model has at its time (I2, I3); nor an older state than what
                was acknowledged before it began (I6)
    deadline    the final commit timestamp reached the deadline (I4)
    order       a process's timestamps do not increase (I1); a child is not before its parent (I7)
    clock       a process beyond max_offset committed (I6)
    total       the accounts do not sum up at some time; list: a list skipped or lost an entry

An attempt without a result (its process was killed) and one answered "unknown" may have committed
or not, but entirely.

Walk: `harness` -> `check`; `test_checker` shows that each kind is caught.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.faults import names
from tests.faults.log import Event

MAX_OFFSET_MS = 500
SETUP = "setup"
SHOWN_MAX = 12
"""Violations described per kind; the rest are counted."""


class Entry(NamedTuple):
    """One revision of the final store."""

    name: str
    at: int
    value: str | None


@dataclass
class Verdict:
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    beats_ms: list[float] = field(default_factory=list)

    def claim(self, kind: str, why: str) -> None:
        self.kinds[kind] += 1
        if self.kinds[kind] <= SHOWN_MAX:
            self.violations.append(f"{kind}: {why}")


@dataclass
class _Commit:
    """An attempt as the logs tell it."""

    process: str
    event: Event
    result: Event | None = None

    @property
    def outcome(self) -> str:
        return "unknown" if self.result is None else str(self.result["e"])


def check(logs: Sequence[tuple[str, list[Event]]], history: Iterable[Entry]) -> Verdict:
    verdict = Verdict()
    model = Model(history)
    commits = _gather(logs, verdict)
    landed = _check_history(model, commits, verdict)
    _check_outcomes(commits, landed, verdict)
    _check_reads(logs, commits, landed, model, verdict)
    _check_order(logs, commits, verdict)
    _check_totals(model, verdict)
    return verdict


class Model:
    """Every name's revisions in time order."""

    def __init__(self, history: Iterable[Entry]) -> None:
        self.by_at: dict[int, dict[str, str | None]] = defaultdict(dict)
        self._ats: dict[str, list[int]] = defaultdict(list)
        self._values: dict[str, list[str | None]] = defaultdict(list)
        self.repeated: list[Entry] = []
        for entry in sorted(history, key=lambda entry: (entry.at, entry.name)):
            if entry.name in self.by_at[entry.at]:
                self.repeated.append(entry)
            self.by_at[entry.at][entry.name] = entry.value
            self._ats[entry.name].append(entry.at)
            self._values[entry.name].append(entry.value)
        self._sorted = sorted(self._ats, key=lambda name: name.replace(":", "/").split("/"))
        self._under: dict[str, list[str]] = {}

    def get(self, name: str, at: int, excused: Sequence[int] = ()) -> str | None:
        """The value of the newest revision at or before `at`, but for the excused ones."""
        ats = self._ats.get(name, [])
        position = bisect_right(ats, at) - 1
        while position >= 0 and ats[position] in excused:
            position -= 1
        return self._values[name][position] if position >= 0 else None

    def scan(self, prefix: str, at: int, limit: int | None, reverse: bool) -> list[list[str]]:
        if prefix not in self._under:
            self._under[prefix] = [name for name in self._sorted if names.is_under(name, prefix)]
        under = self._under[prefix]
        rows: list[list[str]] = []
        for name in reversed(under) if reverse else under:
            value = self.get(name, at)
            if value is not None:
                rows.append([name, value])
            if limit is not None and len(rows) == limit:
                break
        return rows

    def revisions(self, name: str) -> list[str | None]:
        return self._values[name]


def _gather(logs: Sequence[tuple[str, list[Event]]], verdict: Verdict) -> dict[str, _Commit]:
    commits: dict[str, _Commit] = {}
    for process, events in logs:
        for event in events:
            kind = event["e"]
            verdict.counts[kind] += 1
            if kind == "intent":
                if event["id"] in commits:
                    verdict.claim("log", f"two attempts are called {event['id']}")
                commits[event["id"]] = _Commit(process, event)
            elif kind in ("ack", "failed", "unknown"):
                commits[event["id"]].result = event
            elif kind == "claim":
                verdict.claim("claim", f"{process}: {event['why']}")
            elif kind == "beat":
                verdict.beats_ms.append(event["ns"] / 1e6)
            elif kind == "end" and event["stuck"]:
                verdict.claim("stuck", f"{process}: {event['stuck']} threads did not come to an end")
            if kind in ("failed", "trouble"):
                verdict.counts[f"{kind} {event['state']}"] += 1
    return commits


def _check_history(model: Model, commits: dict[str, _Commit], verdict: Verdict) -> dict[str, int]:
    """Finds whose each commit of the store is; returns where each attempt landed."""
    landed: dict[str, int] = {}
    for entry in model.repeated:
        verdict.claim("half", f"{entry.name} has two revisions at {entry.at}")
    for at, values in model.by_at.items():
        tags = {names.tag_of(value) for value in values.values() if value is not None}
        if tags == {SETUP}:
            continue
        if len(tags) != 1:
            verdict.claim("half", f"the commit at {at} is by {sorted(tags) or 'nobody'}")
            continue
        (tag,) = tags
        commit = commits.get(tag)
        if commit is None:
            verdict.claim("phantom", f"{tag} at {at} was never attempted: {sorted(values)}")
            continue
        if tag in landed:
            verdict.claim("doubled", f"{tag} is there at {landed[tag]} and at {at}")
        landed[tag] = at
        if values != commit.event["writes"]:
            missing = sorted(commit.event["writes"].keys() - values.keys())
            verdict.claim("half", f"{tag} at {at} differs from what it wrote; missing: {missing}")
    return landed


def _check_outcomes(commits: dict[str, _Commit], landed: dict[str, int], verdict: Verdict) -> None:
    by_op: dict[str, list[str]] = defaultdict(list)
    for tag, commit in commits.items():
        at = landed.get(tag)
        event, result = commit.event, commit.result
        if commit.outcome == "ack":
            assert result is not None
            if at != result["at"]:
                verdict.claim("lost", f"{tag} was acknowledged at {result['at']}, is at {at}")
            deadline_at = event["deadline_at"]
            if deadline_at is not None and result["at"] >= deadline_at:
                verdict.claim("deadline", f"{tag} committed at {result['at']}, its deadline {deadline_at}")
        elif commit.outcome == "failed" and at is not None:
            verdict.claim(
                "phantom", f"{tag} was reported as failed ({result and result['state']}), is at {at}"
            )
        elif commit.outcome == "unknown":
            verdict.counts["settled as landed" if at is not None else "settled as not landed"] += 1
        if at is not None and event["op"] is not None:
            by_op[event["op"]].append(tag)
        if at is not None and result is not None:
            ahead_ms = min(event["offset_ms"], result["offset_ms"])  # it may change in between
            if ahead_ms > MAX_OFFSET_MS:
                verdict.claim("clock", f"{tag} committed with its clock {ahead_ms} ms ahead")
        if at is not None and any(child_at >= at for child_at in event["excused"]):
            verdict.claim("order", f"{tag} at {at} is not after its child")
    for op, tags in by_op.items():
        if len(tags) > 1:
            verdict.claim("doubled", f"operation {op} was done by {tags}")


def _check_reads(
    logs: Sequence[tuple[str, list[Event]]],
    commits: dict[str, _Commit],
    landed: dict[str, int],
    model: Model,
    verdict: Verdict,
) -> None:
    for tag, commit in commits.items():
        if commit.event["read_at"] is not None:
            _check_read(tag, commit.event, commit.event["read_at"], False, model, verdict)
        if tag in landed:
            _check_read(tag, commit.event, landed[tag] - 1, True, model, verdict)
    for process, events in logs:
        for event in events:
            if event["e"] == "read":
                _check_read(f"{process} reading", event, event["read_at"], False, model, verdict)


def _check_read(tag: str, event: Event, at: int, is_commit: bool, model: Model, verdict: Verdict) -> None:
    """Compares all that was read with the model at one time.

    What a parent read before its child committed is compared as if the child had not been, what
    it read after that only as of its own commit.
    """
    excused = event.get("excused", ())
    for name, value, children in event["reads"]:
        verdict.counts["reads"] += 1
        if children and not is_commit:
            continue
        expected = model.get(name, at, excused[children:])
        if value != expected:
            verdict.claim("stale", f"{tag} read {name} = {value!r}, at {at} it is {expected!r}")
    for prefix, limit, reverse, rows in event["scans"]:
        verdict.counts["scans"] += 1
        expected_rows = model.scan(prefix, at, limit, reverse)
        if rows != expected_rows:
            differing = [row for row in rows if row not in expected_rows]
            missing = [row for row in expected_rows if row not in rows]
            why = f"too many {differing[:3]}, missing {missing[:3]}"
            verdict.claim("stale", f"{tag} scanned {prefix} at {at}: {why}")


def _check_order(
    logs: Sequence[tuple[str, list[Event]]], commits: dict[str, _Commit], verdict: Verdict
) -> None:
    """Whatever begins after an acknowledgement, in whichever process, comes after it (I1, I6)."""
    acks = sorted(
        (commit.result["m"], commit.result["at"])
        for commit in commits.values()
        if commit.result is not None and commit.outcome == "ack"
    )
    moments = [moment for moment, _ in acks]
    highest: list[int] = []
    for _, at in acks:
        highest.append(max(at, highest[-1]) if highest else at)

    def acknowledged(before: int) -> int:
        position = bisect_left(moments, before)
        return highest[position - 1] if position else 0

    for tag, commit in commits.items():
        floor = acknowledged(commit.event["began"])
        read_at, result = commit.event["read_at"], commit.result
        if read_at is not None and read_at < floor and commit.event["parent"] is None:
            verdict.claim("stale", f"{tag} reads at {read_at}, below {floor} acknowledged before it began")
        if commit.outcome == "ack" and result is not None and result["at"] <= floor:
            verdict.claim(
                "order", f"{tag} committed at {result['at']}, {floor} was given out before it began"
            )
    for process, events in logs:
        for event in events:
            if event["e"] == "read" and event["is_fresh"] and event["read_at"] < acknowledged(event["began"]):
                verdict.claim("stale", f"{process} reads at {event['read_at']}, below what was acknowledged")


def _check_totals(model: Model, verdict: Verdict) -> None:
    balances: dict[str, int] = {}
    for at, values in model.by_at.items():
        changed = {name: value for name, value in values.items() if name.startswith("b:")}
        for name, value in changed.items():
            balances[name] = 0 if value is None else int(names.payload_of(value))
        if changed and sum(balances.values()) != names.BALANCE * len(names.ACCOUNTS):
            verdict.claim("total", f"accounts sum to {sum(balances.values())} at {at}")
    for name in names.LISTS:
        lengths = [names.length_of(value) for value in model.revisions(name)]
        if lengths != list(range(1, len(lengths) + 1)):
            verdict.claim("list", f"{name} does not grow by one: {lengths[:20]}")
