"""Reads below the threshold in the name of a protection: asked for after the rows, and only where they would
fail.
"""

from collections.abc import Callable, Iterator, Sequence

import pytest

from tenure.base.errors import RetryError, SnapshotTooOld
from tenure.base.timestamp import Timestamp
from tenure.kv.bases import Base, Row
from tenure.kv.keys import PROTECTIONS, USER_TABLES, Span
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.snapshot import PAGE_ROWS, Snapshot
from tenure.kv.store import Store
from tenure.kv.thresholds import clean, publish_threshold
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Removal, Removes
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import HEAD, KEYS, TABLE, changes, named, number_rows, row, write

OTHER_ROW = KEYS.key(USER_TABLES - 1, ["a"])
RECORD = KEYS.key(PROTECTIONS, [b"\1" * 16])


def protect(store: Store, at: Timestamp) -> ProtectedRead:
    store.transact(lambda txn: txn.put(RECORD, b"protection"))
    return ProtectedRead(at, RECORD, lambda head: head == HEAD)


def release(store: Store) -> None:
    store.transact(lambda txn: txn.delete(RECORD))


def sweep(store: Store, *points: Timestamp) -> Timestamp:
    """Publishes the store clock as threshold, and removes all that only times below it could see."""
    at = store.engine.clock_at()
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    removal = Removal(*TABLE, Removes.GARBAGE, at, 1 << 20, points)
    store.transact(lambda txn: txn.remove(removal))
    return at


def _get_ahead(snapshot: Snapshot) -> bytes | None:
    snapshot.read_ahead([row("a")])
    return snapshot.get(row("a"))


READS: dict[str, Callable[[Snapshot], object]] = {
    "get": lambda snapshot: snapshot.get(row("a")),
    "read_ahead": _get_ahead,
    "scan": lambda snapshot: dict(named(snapshot.scan(TABLE)))["a"],
    "scan in reverse": lambda snapshot: dict(named(snapshot.scan(TABLE, reverse=True)))["a"],
    "stored": lambda snapshot: next(iter(snapshot.stored(TABLE, 10)))[0].value,
    "read_span": lambda snapshot: b"1" if snapshot.read_span(TABLE) == {} else None,
    "diff": lambda snapshot: snapshot.diff(TABLE, since_at=snapshot.at)[:1] == [] and b"1",
}


@pytest.fixture(params=list(READS))
def read(request: pytest.FixtureRequest) -> Callable[[Snapshot], object]:
    return READS[request.param]


@pytest.mark.invariant("protected-read")
@pytest.mark.invariant("I30")
def test_a_read_below_the_threshold_answers_while_its_protection_is_there(
    store: Store, read: Callable[[Snapshot], object]
) -> None:
    at = write(store, a=b"1")
    protected = protect(store, at)
    write(store, a=None)
    sweep(store, at)
    assert read(store.snapshot(at, protected)) == b"1"
    with pytest.raises(SnapshotTooOld):
        read(store.snapshot(at))
    release(store)
    with pytest.raises(SnapshotTooOld):
        read(store.snapshot(at, protected))


@pytest.mark.invariant("protected-read")
def test_a_protection_of_another_index_does_not_help(
    store: Store, read: Callable[[Snapshot], object]
) -> None:
    at = write(store, a=b"1")
    protected = protect(store, at)._replace(covers=lambda head: head != HEAD)
    write(store, a=b"2")
    sweep(store, at)
    with pytest.raises(SnapshotTooOld):
        read(store.snapshot(at, protected))


@pytest.mark.invariant("protected-read")
def test_a_span_of_several_indexes_is_not_protected(store: Store) -> None:
    at = write(store, a=b"1")
    protected = protect(store, at)
    write(store, a=b"2")
    sweep(store, at)
    with pytest.raises(SnapshotTooOld):
        list(store.snapshot(at, protected).scan(KEYS.table_span(USER_TABLES)))


TRANSACTION_READS: dict[str, Callable[[Transaction], object]] = {
    "get": lambda txn: txn.get(row("a")),
    "get_many": lambda txn: txn.get_many([row("a"), OTHER_ROW]),
    "scan": lambda txn: list(txn.scan(TABLE)),
    "read_span": lambda txn: txn.read_span(TABLE),
    "view": lambda txn: txn.view().get(row("a")),
}


@pytest.mark.invariant("protected-read")
@pytest.mark.parametrize("name", TRANSACTION_READS)
def test_a_transaction_reads_below_the_threshold_while_its_protection_is_there(
    store: Store, name: str
) -> None:
    at = write(store, a=b"1")
    protected = protect(store, at)
    txn = store.begin()
    protected = protected._replace(at=txn.read_at, covers=lambda head: True)
    write(store, a=b"2")
    sweep(store, txn.read_at)
    with pytest.raises(RetryError):
        TRANSACTION_READS[name](txn)
    txn.allow(protected)
    TRANSACTION_READS[name](txn)
    txn.allow(protected)
    release(store)
    with pytest.raises(RetryError):
        list(txn.scan(TABLE))


@pytest.mark.invariant("protected-read")
@pytest.mark.parametrize(
    "read",
    [
        lambda txn: list(txn.scan(Span(OTHER_ROW, TABLE.hi))),
        lambda txn: txn.read_span(Span(OTHER_ROW, TABLE.hi)),
        lambda txn: txn.get_many([OTHER_ROW, row("a")]),
        lambda txn: txn.present([OTHER_ROW, row("a")]),
    ],
    ids=["scan", "read_span", "get_many", "present"],
)
def test_a_transaction_asks_for_each_index_whether_it_is_protected(
    store: Store, read: Callable[[Transaction], object]
) -> None:
    """The protection covers the first index that is read, and not the one that has a threshold."""
    write(store, a=b"1")
    txn = store.begin()
    protected = protect(store, txn.read_at)._replace(covers=lambda head: head != HEAD)
    write(store, a=b"2")
    sweep(store)
    txn.allow(protected)
    with pytest.raises(RetryError):
        read(txn)


def test_a_snapshot_of_another_time_than_its_protection_is_a_bug(store: Store) -> None:
    at = write(store, a=b"1")
    with pytest.raises(AssertionError):
        store.snapshot(at - 1, protect(store, at))


def test_the_record_is_not_asked_for_where_the_read_would_not_fail(
    store: Store, engine: BreakingEngine, read: Callable[[Snapshot], object]
) -> None:
    at = write(store, a=b"1")
    protected = protect(store, at)
    engine.gets.clear()
    read(store.snapshot(at, protected))
    assert RECORD not in engine.gets


@pytest.mark.invariant("protected-read")
@pytest.mark.parametrize("read", ["scan", "stored"])
def test_a_protection_that_is_released_between_two_pages_fails_the_second(store: Store, read: str) -> None:
    number_rows(store, 2 * PAGE_ROWS)
    at = store.engine.clock_at()
    protected = protect(store, at)
    number_rows(store, 2 * PAGE_ROWS, b"later")
    sweep(store, at)
    snapshot = store.snapshot(at, protected)
    pages: Iterator[object] = snapshot.scan(TABLE) if read == "scan" else snapshot.stored(TABLE, PAGE_ROWS)
    next(pages)
    release(store)
    sweep(store)
    with pytest.raises(SnapshotTooOld):
        for _ in pages:
            pass


@pytest.mark.invariant("protected-read")
def test_the_record_is_asked_for_after_the_rows(store: Store, engine: BreakingEngine) -> None:
    """A release and a sweep between the question and the rows would go unnoticed."""
    at = write(store, a=b"1")
    protected = protect(store, at)
    write(store, a=b"2")
    sweep(store, at)
    engine.gets.clear()
    store.snapshot(at, protected).get(row("a"))
    assert engine.gets == [row("a"), RECORD]


def test_a_diff_below_the_threshold_is_exact_in_the_name_of_its_start(store: Store) -> None:
    start_at = write(store, a=b"1", b=b"1", c=b"1")
    protected = protect(store, start_at)
    deleted_at = write(store, a=None)
    write(store, d=b"2")
    changed_at = write(store, b=b"3", d=None)
    sweep(store, start_at)
    found = store.snapshot().diff(TABLE, since_at=start_at, start=protected)
    assert changes(found) == [("a", deleted_at, None), ("b", changed_at, b"3")]
    with pytest.raises(SnapshotTooOld):
        store.snapshot().diff(TABLE, since_at=start_at)


def test_the_end_of_a_diff_needs_a_protection_of_its_own(store: Store) -> None:
    start_at = write(store, a=b"1")
    start = protect(store, start_at)
    end_at = write(store, a=b"2")
    write(store, a=b"3")
    sweep(store, start_at, end_at)
    with pytest.raises(SnapshotTooOld):
        store.snapshot(end_at).diff(TABLE, since_at=start_at, start=start)
    end = start._replace(at=end_at)
    assert changes(store.snapshot(end_at, end).diff(TABLE, since_at=start_at, start=start)) == [
        ("a", end_at, b"2")
    ]


class _Base:
    """A base of rows that never changed since they were flushed."""

    described = "rows in memory"

    def __init__(self, flushed_at: Timestamp, rows: dict[bytes, bytes]) -> None:
        self.flushed_at = flushed_at
        self.rows = rows

    def get(self, key: bytes, at: Timestamp) -> bytes | None:
        return self.rows.get(key)

    def present(self, keys: Sequence[bytes], at: Timestamp) -> set[bytes]:
        return set(self.get_many(keys, at))

    def get_many(self, keys: Sequence[bytes], at: Timestamp) -> dict[bytes, bytes]:
        return {key: self.rows[key] for key in keys if key in self.rows}

    def page(self, span: Span, at: Timestamp, limit: int, *, reverse: bool) -> list[Row]:
        return sorted(self.rows.items(), reverse=reverse)[:limit]

    def rows_within(self, span: Span) -> int:
        return len(self.rows)


class _Bases:
    """What is in memory is older than the newest."""

    def __init__(self, cached: Base | None, newest: Base) -> None:
        self._cached = cached
        self._newest = newest
        self.on_newer: Callable[[], None] = lambda: None

    def of(self, head: bytes) -> Base | None:
        return self._cached

    def newer(self, head: bytes, base: Base | None) -> Base:
        self.on_newer()
        return self._newest


@pytest.mark.invariant("protected-read")
@pytest.mark.parametrize("name", ["get", "read_ahead", "scan", "scan in reverse"])
def test_a_base_that_moves_is_followed_and_the_record_is_asked_for_again(store: Store, name: str) -> None:
    at = write(store, a=b"1")
    protected = protect(store, at)
    flushed_at = write(store, a=b"2")
    newest = _Base(flushed_at, {row("a"): b"1"})  # its past file has what is visible at the kept point
    store.transact(lambda txn: clean(txn, KEYS, HEAD, flushed_at, limit=10))
    sweep(store, at)
    bases = _Bases(None, newest)
    store.use_bases(bases)
    assert READS[name](store.snapshot(at, protected)) == b"1"
    bases.on_newer = lambda: release(store)
    with pytest.raises(SnapshotTooOld):
        READS[name](store.snapshot(at, protected))


def test_a_history_from_below_the_threshold_is_refused_whatever_is_protected(store: Store) -> None:
    """A protection of one time keeps what is visible then, not what came after it."""
    at = write(store, a=b"1")
    protect(store, at)
    write(store, a=b"2")
    write(store, a=b"3")
    sweep(store, at)
    with pytest.raises(SnapshotTooOld):
        store.history(TABLE, since_at=at)
