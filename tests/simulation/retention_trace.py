"""What the world of retention records besides transactions: what is lost, and what was known and refused.

    present   of a head: its revisions in the store, and those in the files that its newest manifest names
    lost      present before a commit, and not after it

Whenever a commit removes revisions, or changes a manifest, a mark or a table, every readable time of its
heads is read from what is present, and compared with the history of all that was ever written (I30). So what
a mistake has lost is found at once, not only when somebody happens to read it.

Walk: `retention_world` makes a `RetentionTrace` and a `RetentionWire`; `retention_predicates` reads them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tenure.base.timestamp import MAX_AT, ZERO_AT, Timestamp, from_bytes
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table, is_dropped
from tenure.kv.encoding import decode
from tenure.kv.keys import CLEANED_MARKS, DESCRIPTORS, MANIFESTS, USER_TABLES, Keyspace, Span
from tenure.kv.store import DEFAULT_TENANT
from tenure.retention.protections.protection_records import Mode, Protection, protections
from tenure.storage.engine import HEAD_BYTES, Commit, CommitStatus, Group, Outcome
from tenure.table.lake.manifests import Manifest, Manifests
from tests.simulation.lake_files import FileRow, SimBase, SimTree
from tests.simulation.predicates import Violation
from tests.simulation.retention_coverage import covered_from
from tests.simulation.trace import Trace, head
from tests.simulation.wire import Wire

_ROWS = (
    "SELECT key, at, ?3, value FROM live WHERE key >= ?1 AND key < ?2"
    " UNION ALL SELECT key, at, until, value FROM past WHERE key >= ?1 AND key < ?2"
)


class Loss(NamedTuple):
    """A revision that is in no place any more."""

    began: int
    step: int
    """The group of commits that lost it landed between these."""
    key: bytes
    at: Timestamp
    until: Timestamp
    """When it ended, by itself or with its table; MAX_AT if it had not."""
    value: bytes | None


class KnownList(NamedTuple):
    """The protections as a node's tracker has them."""

    step: int
    read_at: Timestamp
    version: int
    records: tuple[Protection, ...]


class RefusedRead(NamedTuple):
    began: int
    step: int
    head: bytes
    at: Timestamp
    protection: bytes
    """The id of the protection that should have kept this time."""


class RetentionTrace(Trace):
    def __init__(self) -> None:
        super().__init__()
        self.losses: list[Loss] = []
        self.lists: list[KnownList] = []
        self.names: dict[int, Protection] = {}
        """By snapshot: the protection in whose name it reads."""
        self.refused: list[RefusedRead] = []
        self.found: list[Violation] = []
        """What was found to be wrong at the very commit."""
        self.closed = 0
        """The step at which the last sweep, after everything was released, had ended."""
        self.lowered_at: Timestamp = ZERO_AT
        """What had ended by then may go with that sweep."""

    def newest(self, key: bytes) -> bytes | None:
        versions = self.versions.get(key)
        return versions[-1].value if versions else None

    def wrong(self, predicate: str, message: str) -> None:
        self.found.append(Violation(predicate, message, self.step))


class Present:
    """What is present of a head, and what it shows."""

    def __init__(self, wire: "RetentionWire", head: bytes) -> None:
        self.head = head
        keyspace, trace = wire.keyspace, wire.trace
        span = keyspace.head_span(head)
        self.stored: list[tuple[bytes, Timestamp, Timestamp, bytes | None]] = wire.engine._writer.execute(
            _ROWS, (span.lo, span.hi, MAX_AT)
        )
        self.cleaned_at = _mark(trace.newest(keyspace.cleaned_key(head)))
        self.threshold_at = _mark(trace.newest(keyspace.threshold_key(head)))
        self.manifest = wire.manifest(head)
        self.files: list[FileRow] = [] if self.manifest is None else wire.file_rows(self.manifest)
        self._by_key: dict[bytes, list[tuple[Timestamp, Timestamp, bytes | None]]] = {}
        for key, at, until, value in self.stored:
            self._by_key.setdefault(key, []).append((at, until, value))

    def revisions(self) -> set[tuple[bytes, Timestamp]]:
        found = {(key, at) for key, at, _, _ in self.stored}
        return found | {(row.key, row.at) for row in self.files}

    def value_at(self, key: bytes, at: Timestamp) -> bytes | None:
        """As `kv.bases` reads: the store's revision if it lies above the cleaned mark, else the base's."""
        for since_at, until, value in self._by_key.get(key, ()):
            if since_at <= at < until and since_at > self.cleaned_at:
                return value
        for row in self.files:
            if row.key == key and row.at <= at < row.until:
                return row.value
        return None


class RetentionWire(Wire):
    trace: RetentionTrace
    tree: SimTree

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.keyspace = Keyspace(DEFAULT_TENANT)
        self.catalog = Catalog(self.keyspace)
        self.manifests = Manifests(self.keyspace)
        self._records = protections(self.keyspace)

    def land(self, group: Group) -> list[Outcome]:
        heads = sorted({each for commit in group.members for each in self._touched(commit)})
        before = {each: Present(self, each) for each in heads}
        began = self.trace.step
        outcomes = super().land(group)
        if any(outcome.status is CommitStatus.COMMITTED for outcome in outcomes):
            self._judge(before, began)
        return outcomes

    def present(self, head_bytes: bytes) -> Present:
        return Present(self, head_bytes)

    def _touched(self, commit: Commit) -> Iterator[bytes]:
        """The heads of which a commit may lose something."""
        yield from (head(removal.lo) for removal in commit.removals)
        for key in (write.key for write in commit.writes):
            table = int.from_bytes(key[4:8], "big")
            if table == MANIFESTS:
                yield self.keyspace.head(*self.manifests.index_of(key))
            elif table == CLEANED_MARKS:
                yield key[HEAD_BYTES:]
            elif table == DESCRIPTORS:
                (id,) = decode(key[HEAD_BYTES:])
                assert isinstance(id, int)
                stored = self.table_versions(id)
                yield from (
                    self.keyspace.head(each.id, index.id) for each in stored for index in each.indexes
                )

    def _judge(self, before: Mapping[bytes, Present], began: int) -> None:
        for former in before.values():
            present = Present(self, former.head)
            lost = sorted(former.revisions() - present.revisions())
            self.trace.losses += [self._loss(began, key, at) for key, at in lost]
            table, _ = self.keyspace.table_and_index(former.head)
            is_system = table < USER_TABLES
            keys = {key for key, _ in lost} if is_system else self.trace.keys_in(self._span(former.head))
            self._judge_shown(present, sorted(keys))
            if lost:
                self._judge_tombstones(former, present)

    def _span(self, head_bytes: bytes) -> Span:
        return self.keyspace.head_span(head_bytes)

    def _loss(self, began: int, key: bytes, at: Timestamp) -> Loss:
        history = self.trace.versions[key]
        place = next(n for n, version in enumerate(history) if version.at == at)
        until = history[place + 1].at if place + 1 < len(history) else MAX_AT
        table, _ = self.keyspace.table_and_index(head(key))
        ended_at = end_of(self.table_versions(table))
        return Loss(began, self.trace.step, key, at, min(until, ended_at or MAX_AT), history[place].value)

    def _judge_shown(self, present: Present, keys: Sequence[bytes]) -> None:
        """I30: each readable time shows what was visible then."""
        versions = self.trace.versions
        table, _ = self.keyspace.table_and_index(present.head)
        tables = self.table_versions(table)
        protected = self._protected(present.head, tables)
        clock_at, floor_at = self.engine.clock_at(), max(present.threshold_at, self._forgotten_at(table))
        for key in keys:
            times = {at for version in versions[key] for at in (version.at, version.at - 1)}
            for at in sorted(times | protected | {floor_at, clock_at}):
                is_readable = at >= floor_at or at in protected
                if not is_readable or at > clock_at or not _is_there(table, tables, at):
                    continue
                expected, shown = self.trace.value_at(key, at), present.value_at(key, at)
                if shown != expected:
                    self.trace.wrong("I30", f"{key.hex()} at {at} shows {shown!r}, not {expected!r}")
                    return

    def _forgotten_at(self, table: int) -> Timestamp:
        """Of a table that is gone: below the catalog's threshold nobody finds it, and its own may be gone."""
        if table < USER_TABLES or self.trace.newest(self.catalog.key(table)) is not None:
            return ZERO_AT
        return _mark(self.trace.newest(self.keyspace.threshold_key(self.keyspace.head(DESCRIPTORS))))

    def _judge_tombstones(self, former: Present, present: Present) -> None:
        """I29: a tombstone does not leave the store while `past` has a revision of its key."""
        gone = {key for key, _, until, value in former.stored if value is None and until == MAX_AT}
        gone -= {key for key, _, until, _ in present.stored if until == MAX_AT}
        for key, at, _, _ in present.stored:
            if key in gone and at > present.cleaned_at and not self._is_collected(former.head):
                self.trace.wrong("I29", f"{key.hex()} has a revision at {at}, but its tombstone is gone")

    def _protected(self, head_bytes: bytes, tables: list[Table]) -> set[Timestamp]:
        """The times of the head that a `protect_at` keeps now."""
        found = set()
        for key in self.trace.keys_in(self._records.span()):
            value = self.trace.newest(key)
            record = None if value is None else self._records.decode(value)
            if record is None or record.mode is not Mode.AT:
                continue
            if covered_from(self.keyspace, record, head_bytes, tables) is not None:
                found.add(record.at)
        return found

    def table_versions(self, id: int) -> list[Table]:
        """All versions that a table has had, oldest first."""
        if id < USER_TABLES:
            return []
        values = [version.value for version in self.trace.versions.get(self.catalog.key(id), ())]
        decoded = [self.catalog.decode(value) for value in values if value is not None]
        return [each for each in decoded if isinstance(each, Table)]

    def _is_collected(self, head_bytes: bytes) -> bool:
        table, _ = self.keyspace.table_and_index(head_bytes)
        versions = self.table_versions(table)
        return bool(versions) and not _is_there(table, versions, MAX_AT)

    def manifest(self, head_bytes: bytes) -> Manifest | None:
        table, index = self.keyspace.table_and_index(head_bytes)
        value = self.trace.newest(self.keyspace.key(MANIFESTS, (table, index)))
        return None if value is None else self.manifests.decode(value)

    def file_rows(self, manifest: Manifest) -> list[FileRow]:
        return SimBase(manifest, _QuickFiles(self.tree)).rows(manifest.files)  # type: ignore[arg-type]


class _QuickFiles:
    """Reads the files of a tree without waiting: for the judge, who takes no time."""

    def __init__(self, tree: SimTree) -> None:
        self.tree = self
        self._contents = tree._contents

    def read(self, name: str) -> tuple[FileRow, ...]:
        return self._contents[name]


def end_of(versions: Sequence[Table]) -> Timestamp | None:
    """When a dropped table ended: at its first version without draining names."""
    ended = None
    for version in reversed(versions):
        if not is_dropped(version) or version.draining:
            break
        ended = version.modified_at
    return ended


def _is_there(table: int, versions: list[Table], at: Timestamp) -> bool:
    """Whether somebody may read or write the rows of a table at a time; system records always."""
    if table < USER_TABLES:
        return True
    current = [each for each in versions if each.modified_at <= at]
    return bool(current) and not (is_dropped(current[-1]) and not current[-1].draining)


def _mark(value: bytes | None) -> Timestamp:
    return ZERO_AT if value is None else from_bytes(value)
