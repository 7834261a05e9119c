"""What must hold of a recorded history: one function per predicate, named by its number.

Versions of a key are kept sorted by timestamp, so a read is judged by one search: O(n log n).

    expected(read)  =  own buffer  over  the ancestors' buffers  over  the newest version below
                       the transaction's timestamp, its descendants' later than the read left out

Walk: `cluster.run` -> `check` -> each of `PREDICATES`, in order, over one `Index`.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from tenure.base.timestamp import LOGICAL_MAX, Timestamp, from_bytes
from tenure.kv.keys import CLEANED_MARKS, THRESHOLDS, Keyspace, Span
from tenure.storage.engine import CommitStatus, Removes
from tests.simulation.trace import Get, Interval, Range, Refusal, Trace, Txn, Version, head


class Violation(NamedTuple):
    predicate: str
    message: str
    step: int
    txns: tuple[int, ...] = ()
    """The transactions concerned, for the timeline."""


class Index:
    """The history, arranged for searching."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.versions = trace.versions
        self.ats = {key: [version.at for version in versions] for key, versions in trace.versions.items()}
        self.keys = sorted(self.versions)
        self._marks: dict[tuple[int, bytes], list[Version]] = {}

    def below(self, key: bytes, bound_at: Timestamp) -> int:
        """How many versions of a key are below a timestamp."""
        return bisect_left(self.ats.get(key, ()), bound_at)

    def keys_in(self, span: Span) -> list[bytes]:
        return self.keys[bisect_left(self.keys, span.lo) : bisect_left(self.keys, span.hi)]

    def mark_at(self, table: int, tenant: int, head_bytes: bytes, before: int) -> Timestamp:
        """The mark of a head as it was at a step."""
        keyspace = Keyspace(tenant)
        key = keyspace.threshold_key(head_bytes) if table == THRESHOLDS else keyspace.cleaned_key(head_bytes)
        found = 0
        for version in self.versions.get(key, ()):
            if version.step < before and version.value is not None:
                found = max(found, from_bytes(version.value))
        return found


Predicate = Callable[[Index], Iterator[Violation]]


def check(trace: Trace, *, without: Collection[Predicate] = ()) -> list[Violation]:
    """All predicates, but for those that a world has in a stricter form of its own."""
    index = Index(trace)
    found: list[Violation] = []
    for predicate in PREDICATES:
        if predicate in without:
            continue
        found += predicate(index)
        if found and predicate is commit_order:
            break  # every search below rests on it
    return found


def commit_order(index: Index) -> Iterator[Violation]:
    """I1: commits have strictly increasing timestamps, so no two versions share one."""
    last_at = 0
    for landing in index.trace.landings:
        if landing.at <= last_at or landing.at <= landing.former_clock_at:
            yield Violation(
                "I1", f"committed at {landing.at}, not above {last_at}", landing.step, (landing.txn.id,)
            )
        last_at = max(last_at, landing.at)


def clock_readings(index: Index) -> Iterator[Violation]:
    """I1: a node's readings increase, and lie above every timestamp it has been told."""
    last: dict[str, Timestamp] = {}
    for reading in index.trace.readings:
        if reading.at <= last.get(reading.clock, 0):
            yield Violation("I1", f"clock {reading.clock} read {reading.at} twice or went back", reading.step)
        if reading.at <= reading.above_at:
            yield Violation(
                "I1", f"clock {reading.clock} read {reading.at} below {reading.above_at}", reading.step
            )
        last[reading.clock] = reading.at


def reads(index: Index) -> Iterator[Violation]:
    """I2, I3, I7: every read gave what was visible at the transaction's timestamp."""
    for txn in index.trace.txns:
        descendants = txn.descendants() if txn.children else set()
        for read in txn.reads:
            if isinstance(read, Get):
                wrong = _judge_get(index, txn, descendants, read)
            else:
                wrong = _judge_range(index, txn, descendants, read)
            if wrong is not None:
                yield wrong


def absences(index: Index) -> Iterator[Violation]:
    """I2: what a transaction counted on being absent had no row at its commit."""
    for txn in index.trace.txns:
        for key in txn.absent if txn.landed_at is not None else ():
            assert txn.landed_at is not None
            position = index.below(key, txn.landed_at)
            before = index.versions[key][position - 1] if position else None
            if before is not None and before.value is not None:
                message = f"t{txn.id} landed at {txn.landed_at} although {key.hex()} had a row"
                yield Violation("I2", message, txn.landed, (txn.id, before.writer.id))


def presences(index: Index) -> Iterator[Violation]:
    """I2: what a transaction counted on being there had a row at its commit."""
    for txn in index.trace.txns:
        written = {put.key for put in txn.kept_puts()}  # of those it has seen to itself
        for key in txn.present if txn.landed_at is not None else ():
            if key in written:
                continue
            assert txn.landed_at is not None
            position = index.below(key, txn.landed_at)
            before = index.versions[key][position - 1] if position else None
            if before is None or before.value is None:
                writers = () if before is None else (before.writer.id,)
                message = f"t{txn.id} landed at {txn.landed_at} although {key.hex()} had no row"
                yield Violation("I2", message, txn.landed, (txn.id, *writers))


def _judge_get(index: Index, txn: Txn, descendants: set[Txn], read: Get) -> Violation | None:
    expected, why = _expected(index, txn, descendants, read.key, read)
    if read.value == expected:
        return None
    message = f"t{txn.id} ({txn.state}) read {read.key.hex()}: {read.value!r}, not {expected!r}"
    return Violation(why, message, read.step, _writers(txn, read.value, expected))


def _judge_range(index: Index, txn: Txn, descendants: set[Txn], read: Range) -> Violation | None:
    keys = set(index.keys_in(read.span)) | _buffered_in(txn, read.span, read.step)
    rows = []
    whys = {}
    for key in sorted(keys, reverse=read.is_reverse):
        value, whys[key] = _expected(index, txn, descendants, key, read)
        if value is not None:
            rows.append((key, value))
            if len(rows) == read.limit:
                break
    if rows == read.rows:
        return None
    key, got, expected = _first_difference(read.rows, rows)
    message = f"t{txn.id} ({txn.state}) scan found {key.hex()}: {got!r}, not {expected!r}"
    return Violation(whys.get(key, "I2"), message, read.step, _writers(txn, got, expected))


def _first_difference(
    got: list[tuple[bytes, bytes]], expected: list[tuple[bytes, bytes]]
) -> tuple[bytes, bytes | None, bytes | None]:
    ours, theirs = dict(got), dict(expected)
    for key in sorted(ours.keys() | theirs.keys()):
        if ours.get(key) != theirs.get(key):
            return key, ours.get(key), theirs.get(key)
    return b"", None, None  # the same rows in another order


def _expected(
    index: Index, txn: Txn, descendants: set[Txn], key: bytes, read: Get | Range
) -> tuple[bytes | None, str]:
    """What a read of a key should have given, and which predicate it is a matter of."""
    step = read.step
    reader: Txn | None = txn
    while reader is not None:
        for put in reversed(reader.puts):
            if put.key == key and put.is_there(step) and put.key_stamp is None:
                return put.value, "I2" if reader is txn else "I7"
        reader = None if reader.is_committed_only else reader.parent
    versions = index.versions.get(key, [])
    position = index.below(key, _bound(txn, read))
    while position and descendants and _is_later(versions[position - 1], descendants, step):
        position -= 1
    version = versions[position - 1] if position else None
    if descendants and not _is_settled(txn):
        version = _newest_of(versions[position:], descendants, step) or version
    if version is None:
        return None, "I2"
    if version.writer in descendants:
        return version.value, "I7"
    return version.value, "I3" if version.step > step and not txn.landed else "I2"


def _is_settled(txn: Txn) -> bool:
    return bool(txn.landed) or (txn.state == "committed" and txn.snapshot_at is None)


def _bound(txn: Txn, read: Get | Range) -> Timestamp:
    """Versions below this count: those before its commit, or up to where it read."""
    if txn.landed_at is not None:
        return txn.landed_at
    if _is_settled(txn):
        assert txn.acked_at is not None
        return txn.acked_at + 1
    return read.read_at + 1


def _is_later(version: Version, descendants: set[Txn], step: int) -> bool:
    return version.step > step and version.writer in descendants


def _newest_of(versions: list[Version], descendants: set[Txn], step: int) -> Version | None:
    seen = [each for each in versions if each.writer in descendants and each.step < step]
    return seen[-1] if seen else None


def _buffered_in(txn: Txn, span: Span, step: int) -> set[bytes]:
    keys: set[bytes] = set()
    reader: Txn | None = txn
    while reader is not None:
        keys |= {put.key for put in reader.puts if put.is_there(step) and span.lo <= put.key < span.hi}
        reader = None if reader.is_committed_only else reader.parent
    return keys


def _point(key: bytes) -> Span:
    return Span(key, key + b"\0")


def _writers(txn: Txn, *values: bytes | None) -> tuple[int, ...]:
    named = [int(part[0]) for value in values if value and (part := value[-12:].split(b":"))[0].isdigit()]
    return (txn.id, *named)


def timing(index: Index) -> Iterator[Violation]:
    """I4: the final timestamp lies strictly between "not before" and the deadline."""
    for landing in index.trace.landings:
        txn = landing.txn
        if txn.deadline_at is not None and landing.at >= txn.deadline_at:
            yield Violation(
                "I4", f"t{txn.id} committed {landing.at - txn.deadline_at} late", landing.step, (txn.id,)
            )
        if txn.not_before_at is not None and landing.at <= txn.not_before_at:
            yield Violation("I4", f"t{txn.id} committed too early", landing.step, (txn.id,))


def outcomes(index: Index) -> Iterator[Violation]:
    """I5: what was acknowledged has landed, once; what was reported as failed never does."""
    for txn in index.trace.txns:
        writes = bool(txn.kept_puts() or txn.removals)
        if txn.landings > 1:
            yield Violation("I5", f"t{txn.id} landed {txn.landings} times", txn.landed, (txn.id,))
        if txn.state == "committed" and writes and txn.landed_at != txn.acked_at:
            yield Violation("I5", f"t{txn.id} was acknowledged but did not land so", txn.ended, (txn.id,))
        if txn.state == "aborted" and txn.landed:
            yield Violation("I5", f"t{txn.id} failed ({txn.error}) but landed", txn.landed, (txn.id,))


def clock_bound(index: Index) -> Iterator[Violation]:
    """I6: no commit is more than max_offset ahead; no read is older than what was acknowledged.

    A transaction that starts from what is known reads at an old time and may be believed only once it
    has committed: what it read, by I2, is then so at its commit, and that is the time that counts.
    """
    for landing in index.trace.landings:
        latest_at = landing.host_at + landing.max_offset + LOGICAL_MAX
        if landing.at > max(landing.former_clock_at + 1, latest_at):
            yield Violation(
                "I6", f"t{landing.txn.id} committed ahead of its time", landing.step, (landing.txn.id,)
            )
    for txn in index.trace.txns:
        for read in txn.reads:
            if 0 < _believed_at(txn, read) < txn.floor_at:
                yield Violation("I6", f"t{txn.id} read at {read.read_at}: stale", read.step, (txn.id,))


def _believed_at(txn: Txn, read: Get | Range) -> Timestamp:
    """The time for which a read is taken to be true; zero if nobody may believe it."""
    return (txn.landed_at or txn.acked_at or 0) if txn.is_from_known else read.read_at


def family_order(index: Index) -> Iterator[Violation]:
    """I7: a child commits and is over before its parent."""
    for txn in index.trace.txns:
        parent = txn.parent
        if parent is None or not parent.ended:
            continue
        if txn.landed_at is not None and parent.landed_at is not None and txn.landed_at >= parent.landed_at:
            yield Violation("I7", f"child t{txn.id} after its parent", txn.landed, (txn.id, parent.id))
        if not txn.ended or txn.ended > parent.ended:
            yield Violation("I7", f"child t{txn.id} outlived its parent", parent.ended, (txn.id, parent.id))


def exemption(index: Index) -> Iterator[Violation]:
    """I8: of what a parent read, nobody but its descendants wrote between its reads and its commit."""
    for txn in index.trace.txns:
        if not (txn.children and txn.landed_at is not None and txn.ended and txn.read_at):
            continue
        descendants = txn.descendants()
        for read in txn.reads:
            keys = [read.key] if isinstance(read, Get) else index.keys_in(read.span)
            if isinstance(read, Range) and read.limit is not None:
                continue
            buffered = _buffered_in(txn, _point(keys[0]) if isinstance(read, Get) else read.span, read.step)
            for key in keys:
                first, end = index.below(key, txn.read_at + 1), index.below(key, txn.landed_at)
                strangers = [v for v in index.versions.get(key, [])[first:end] if v.writer not in descendants]
                if strangers and key not in buffered:
                    message = f"parent t{txn.id} did not notice t{strangers[0].writer.id} on {key.hex()}"
                    yield Violation("I8", message, txn.landed, (txn.id, strangers[0].writer.id))


def refusals(index: Index) -> Iterator[Violation]:
    """I8: nothing is refused without a cause that really is there."""
    for txn in index.trace.txns:
        for refusal in txn.refusals:
            if not _has_cause(index, txn, refusal):
                message = f"t{txn.id} was refused without cause: {refusal.outcome}"
                yield Violation("I8", message, refusal.step, (txn.id,))


def _has_cause(index: Index, txn: Txn, refusal: Refusal) -> bool:
    status, at, key, *_ = refusal.outcome
    commit = refusal.commit
    match status:
        case CommitStatus.TOO_LATE:
            return commit.deadline_at is not None and at >= commit.deadline_at
        case CommitStatus.TOO_EARLY:
            return commit.not_before_at is not None and at <= commit.not_before_at
        case CommitStatus.BELOW_MARK:
            return at > commit.read_at
    in_reads = key in commit.points or any(lo <= key < hi for lo, hi in commit.spans)
    position = index.below(key, at)
    versions = index.versions.get(key, [])
    exists = position < len(versions) and versions[position].at == at
    if status is CommitStatus.TAKEN:
        return key in commit.absent and exists and versions[position].value is not None
    return in_reads and exists and at > commit.read_at and versions[position].writer not in txn.descendants()


def progress(index: Index) -> Iterator[Violation]:
    """I9: once the faults are over, everything that waits comes to its end."""
    for message in index.trace.stuck:
        yield Violation("I9", message, index.trace.step)


def marks(index: Index) -> Iterator[Violation]:
    """I29: a mark never goes back."""
    for key, versions in index.versions.items():
        if int.from_bytes(key[4:8], "big") in (THRESHOLDS, CLEANED_MARKS):
            last_at = 0
            for version in versions:
                at = from_bytes(version.value or b"")
                if at < last_at:
                    yield Violation("I29", f"mark {key.hex()} went back", version.step, (version.writer.id,))
                last_at = at


def removals(index: Index) -> Iterator[Violation]:
    """I30: history is removed only below a mark that was there first."""
    for landing in index.trace.landings:
        for removal in landing.removals:
            table, before = THRESHOLDS, landing.step
            if removal.removes is Removes.FLUSHED:
                table, before = CLEANED_MARKS, landing.step + 1
            mark_at = index.mark_at(table, landing.txn.tenant, head(removal.lo), before)
            if landing.removed and removal.at > mark_at:
                message = f"t{landing.txn.id} removed history up to {removal.at} with the mark at {mark_at}"
                yield Violation("I30", message, landing.step, (landing.txn.id,))


def refused_reads(index: Index) -> Iterator[Violation]:
    """I30: a read below a threshold, or of what has moved to the lake, gives no answer at all."""
    has_marks = {
        table: any(int.from_bytes(key[4:8], "big") == table for key in index.keys)
        for table in (THRESHOLDS, CLEANED_MARKS)
    }
    for txn in index.trace.txns if any(has_marks.values()) else ():
        for read in txn.reads:
            if isinstance(read, Get) and (
                read.is_in_memory
                or txn.children
                or read.key in _buffered_in(txn, _point(read.key), read.step)
            ):
                continue  # answered without the store: by a layer over it, or by a value in memory
            heads = (
                {head(read.key)} if isinstance(read, Get) else {head(key) for key in index.keys_in(read.span)}
            )
            for each in heads:
                threshold_at = index.mark_at(THRESHOLDS, txn.tenant, each, read.began)
                cleaned_at = index.mark_at(CLEANED_MARKS, txn.tenant, each, read.began)
                if each in index.trace.based:
                    cleaned_at = 0  # the lake answers too
                if 0 < read.read_at < threshold_at or cleaned_at > read.flushed_at:
                    message = f"t{txn.id} read at {read.read_at} below {threshold_at} or {cleaned_at}"
                    yield Violation("I30", message, read.step, (txn.id,))


def intervals(index: Index) -> Iterator[Violation]:
    """I35, I36, I37: watches and histories are whole, in order, and resolved for good."""
    for interval in index.trace.intervals:
        wrong = _judge_interval(index, interval)
        if wrong is not None:
            yield wrong


def _judge_interval(index: Index, interval: Interval) -> Violation | None:
    step, kind, spans, since_at, through_at, revisions = interval
    if through_at < since_at and kind == "watch":
        return Violation("I37", f"{kind}: resolved went back to {through_at}", step)
    got = [(at, key, value) for key, at, value in revisions]
    if got != sorted(got, key=lambda each: each[:2]):
        return Violation("I36", f"{kind}: revisions out of order", step)
    expected = {}
    for span in spans:
        for key in index.keys_in(span):
            first, end = index.below(key, since_at + 1), index.below(key, through_at + 1)
            for version in index.versions[key][first:end]:
                expected[version.at, key, version.value] = version
    missing = [version for each, version in expected.items() if each not in set(got)]
    if missing:
        is_late = missing[0].step > step
        message = f"{kind} through {through_at} lacks the version at {missing[0].at}"
        return Violation("I37" if is_late else "I35", message, step, (missing[0].writer.id,))
    if len(got) != len(expected):
        return Violation("I35", f"{kind} tells what was never committed, or twice", step)
    return None


def differences(index: Index) -> Iterator[Violation]:
    """I2: a diff holds exactly the keys whose visible version is newer than its start."""
    for diff in index.trace.diffs:
        expected = []
        for key in index.keys_in(diff.span):
            position = index.below(key, diff.at + 1)
            if position and index.versions[key][position - 1].at > diff.since_at:
                version = index.versions[key][position - 1]
                expected.append((key, version.at, version.value))
        if expected != [tuple(revision) for revision in diff.revisions]:
            yield Violation(
                "I2", f"diff in ({diff.since_at}, {diff.at}]: {diff.revisions} {expected}", diff.step
            )


PREDICATES: tuple[Predicate, ...] = (
    commit_order,
    clock_readings,
    reads,
    absences,
    presences,
    timing,
    outcomes,
    clock_bound,
    family_order,
    exemption,
    refusals,
    progress,
    marks,
    removals,
    refused_reads,
    intervals,
    differences,
)
