"""Watches: changes in order, whole timestamps, an honest resolved, signals that may be lost."""

from collections.abc import Callable, Iterator

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.timestamp import MAX_AT, Timestamp, to_bytes
from tenure.kv.gaps import Gap, GapReason
from tenure.kv.keys import CLEANED_MARKS, USER_TABLES
from tenure.kv.store import Store
from tenure.kv.thresholds import clean, publish_threshold
from tenure.kv.watch import BATCH_ROWS, ChangeBatch, Watch
from tenure.storage.engine import Stamp
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import HEAD, KEYS, TABLE, between, changes, row, write
from tests.unit.kv.waiting import PATIENCE_SECONDS, Call

OTHER_TABLE = KEYS.index_span(USER_TABLES + 1)


@pytest.fixture
def watch(store: Store) -> Iterator[Watch]:
    watch = store.watch([TABLE], since_at=0)
    yield watch
    watch.close()


def now(watch: Watch) -> ChangeBatch:
    batch = watch.next(timeout=0)
    assert isinstance(batch, ChangeBatch)
    return batch


def bulk(store: Store, first: int, count: int) -> int:
    txn = store.begin()
    for number in range(first, first + count):
        txn.put(row(number), b"v")
    return txn.commit()


def test_a_batch_has_what_was_committed_in_order(store: Store, watch: Watch) -> None:
    first_at = write(store, b=b"1", a=b"1")
    second_at = write(store, a=None)
    batch = now(watch)
    assert changes(batch.revisions) == [
        ("a", first_at, b"1"),
        ("b", first_at, b"1"),
        ("a", second_at, None),
    ]
    assert batch.resolved_at == second_at


@pytest.mark.invariant("I37")
def test_each_revision_comes_once_and_above_the_last_resolved(store: Store, watch: Watch) -> None:
    resolved_at, seen = 0, []
    for number in range(5):
        write(store, a=b"%d" % number)
        if number % 2:
            batch = now(watch)
            assert all(resolved_at < each.at <= batch.resolved_at for each in batch.revisions)
            seen += [each.value for each in batch.revisions]
            resolved_at = batch.resolved_at
    seen += [each.value for each in now(watch).revisions]
    assert seen == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.invariant("I37")
def test_nothing_is_committed_at_or_below_a_resolved_timestamp(
    store: Store, env: ManualEnv, engine: BreakingEngine, watch: Watch
) -> None:
    write(store, a=b"1")
    resolved_at = now(watch).resolved_at
    slow = Store(engine, ManualEnv(wall_micros=env.wall_micros() - 3_600_000_000))
    assert write(slow, a=b"2") > resolved_at


@pytest.mark.invariant("I37")
def test_a_commit_elsewhere_resolves_the_watched_span_too(store: Store, watch: Watch) -> None:
    txn = store.begin()
    txn.put(KEYS.key(USER_TABLES + 1, ["a"]), b"1")
    at = txn.commit()
    assert now(watch) == ChangeBatch([], at)


def test_what_lies_at_or_before_since_is_not_delivered(store: Store) -> None:
    since_at = write(store, a=b"1")
    at = write(store, a=b"2")
    assert changes(now(store.watch([TABLE], since_at=since_at)).revisions) == [("a", at, b"2")]


def test_a_batch_never_ends_inside_a_timestamp(store: Store, watch: Watch) -> None:
    first_at = bulk(store, 0, BATCH_ROWS - 1)
    second_at = bulk(store, BATCH_ROWS, 2)
    first, second = now(watch), now(watch)
    assert {each.at for each in first.revisions} == {first_at}
    assert first_at <= first.resolved_at < second_at
    assert {each.at for each in second.revisions} == {second_at}
    assert second.resolved_at == second_at


def test_a_transaction_larger_than_a_batch_comes_whole(store: Store, watch: Watch) -> None:
    bulk(store, 0, BATCH_ROWS + 500)
    at = write(store, a=b"1")
    assert len(now(watch).revisions) == BATCH_ROWS + 500
    assert changes(now(watch).revisions) == [("a", at, b"1")]


@pytest.mark.parametrize("count", [BATCH_ROWS, BATCH_ROWS + 1])
def test_a_batch_that_just_fits_resolves_everything(store: Store, watch: Watch, count: int) -> None:
    at = bulk(store, 0, count)
    assert now(watch).resolved_at == at


def test_several_spans_are_merged_in_time_order(store: Store) -> None:
    watch = store.watch([between("x", "z"), between("a", "c")], since_at=0)
    ats = [write(store, **{name: b"1"}) for name in ("x", "a", "m", "y", "b")]
    batch = now(watch)
    assert changes(batch.revisions) == [
        ("x", ats[0], b"1"),
        ("a", ats[1], b"1"),
        ("y", ats[3], b"1"),
        ("b", ats[4], b"1"),
    ]
    assert batch.resolved_at == ats[4]


def test_spans_that_overlap_deliver_a_change_once(store: Store) -> None:
    watch = store.watch([between("a", "m"), between("c", "z"), between("c", "d")], since_at=0)
    at = write(store, c=b"1")
    assert changes(now(watch).revisions) == [("c", at, b"1")]


@pytest.mark.invariant("I37")
def test_a_span_cut_short_holds_the_others_back(store: Store) -> None:
    watch = store.watch([OTHER_TABLE, TABLE], since_at=0)
    first_at = bulk(store, 0, BATCH_ROWS - 1)
    second_at = bulk(store, BATCH_ROWS, 2)
    txn = store.begin()
    txn.put(KEYS.key(USER_TABLES + 1, ["late"]), b"1")
    third_at = txn.commit()
    first, second = now(watch), now(watch)
    assert {each.at for each in first.revisions} == {first_at}
    assert first.resolved_at < second_at
    assert [each.at for each in second.revisions] == [second_at, second_at, third_at]


def test_without_news_the_wait_ends_with_an_empty_batch_and_the_old_resolved(
    store: Store, env: ManualEnv, watch: Watch
) -> None:
    at = write(store, a=b"1")
    now(watch)
    assert watch.next(timeout=2.5) == ChangeBatch((), at)
    assert env.monotonic() == pytest.approx(2.5)


def test_a_timeout_of_zero_looks_once(store: Store, env: ManualEnv, watch: Watch) -> None:
    assert now(watch) == ChangeBatch((), 0)
    assert env.monotonic() == 0


class BusyEnv(ManualEnv):
    """Something happens while somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()


def test_a_lost_signal_costs_one_poll_interval() -> None:
    env = BusyEnv()
    engine = BreakingEngine(SqliteEngine(MEMORY, env))
    engine.loses_signals = True
    store = Store(engine, env)
    watch = store.watch([TABLE], since_at=0)
    env.meanwhile = lambda: write(store, a=b"1")
    batch = watch.next(timeout=60)
    assert isinstance(batch, ChangeBatch) and [each.value for each in batch.revisions] == [b"1"]
    assert env.monotonic() == pytest.approx(1.0)
    engine.close()


@pytest.fixture
def threaded() -> Iterator[Store]:
    env = SystemEnv()
    engine = SqliteEngine(MEMORY, env)
    yield Store(engine, env)
    engine.close()


def test_a_commit_wakes_a_waiting_watch(threaded: Store) -> None:
    watch = threaded.watch([TABLE], since_at=0)
    waiting = Call(lambda: watch.next(timeout=PATIENCE_SECONDS))
    at = write(threaded, a=b"1")
    assert waiting.result().resolved_at == at
    watch.close()


def test_a_watch_that_is_woken_looks_and_waits_on(threaded: Store) -> None:
    watch = threaded.watch([TABLE], since_at=0)
    waiting = Call(lambda: watch.next(timeout=0.05))
    watch.wake()
    assert waiting.result() == ChangeBatch((), 0)
    watch.close()


def test_a_closed_watch_is_no_longer_signalled(store: Store, engine: BreakingEngine) -> None:
    signals: list[int] = []
    stop = engine.subscribe(lambda: signals.append(1))
    write(store, a=b"1")
    stop()
    write(store, a=b"2")
    assert signals == [1]


def test_a_watch_that_waits_for_changes_does_not_hear_of_commits_elsewhere(
    store: Store, engine: BreakingEngine
) -> None:
    watch = store.watch([OTHER_TABLE], since_at=0)
    write(store, a=b"1")
    assert not watch._signal.is_set()
    assert watch.next(timeout=0, changes_only=True) == ChangeBatch((), store.snapshot().at)


def test_a_watch_that_waits_for_the_clock_hears_of_commits_elsewhere(threaded: Store) -> None:
    watch = threaded.watch([OTHER_TABLE], since_at=threaded.snapshot().at)
    watch.next(timeout=0)
    waiting = Call(lambda: watch.next(timeout=PATIENCE_SECONDS))
    at = write(threaded, a=b"1")
    assert waiting.result().resolved_at == at
    watch.close()


@pytest.mark.invariant("I30")
def test_a_watch_below_the_threshold_says_so(store: Store, watch: Watch) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    gap = Gap(TABLE, at, GapReason.BELOW_THRESHOLD)
    assert watch.next(timeout=0) == gap
    assert watch.next(timeout=0, changes_only=True) == gap


def test_a_watch_that_falls_below_the_threshold_between_two_batches_says_so(store: Store) -> None:
    since_at = write(store, a=b"1")
    watch = store.watch([TABLE], since_at=since_at)
    now(watch)
    at = write(store, a=b"2")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    assert watch.next(timeout=0) == Gap(TABLE, at, GapReason.BELOW_THRESHOLD)


def test_a_watch_below_the_cleaned_mark_says_so(store: Store, watch: Watch) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    assert watch.next(timeout=0) == Gap(TABLE, at, GapReason.FLUSHED)


def test_a_watch_goes_on_from_where_its_caller_has_caught_up(store: Store, watch: Watch) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    gap = watch.next(timeout=0)
    assert isinstance(gap, Gap)
    watch.resume(gap.at)
    later_at = write(store, a=b"2")
    assert changes(now(watch).revisions) == [("a", later_at, b"2")]


def test_a_watch_does_not_go_back(store: Store, watch: Watch) -> None:
    at = write(store, a=b"1")
    now(watch)
    with pytest.raises(AssertionError):
        watch.resume(at - 1)


@pytest.mark.invariant("gap-reason")
def test_a_gap_with_an_import_in_it_says_imported(store: Store, watch: Watch) -> None:
    write(store, a=b"1")
    at = import_into(store)
    assert watch.next(timeout=0) == Gap(TABLE, at, GapReason.IMPORTED)


@pytest.mark.invariant("gap-reason")
def test_a_gap_with_an_import_before_a_flush_says_imported(store: Store, watch: Watch) -> None:
    import_into(store)
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    assert watch.next(timeout=0) == Gap(TABLE, at, GapReason.IMPORTED)


def test_an_import_before_the_watch_began_is_not_in_its_gap(store: Store) -> None:
    watch = store.watch([TABLE], since_at=import_into(store))
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    assert watch.next(timeout=0) == Gap(TABLE, at, GapReason.FLUSHED)


@pytest.mark.invariant("gap-reason")
def test_a_gap_says_imported_where_the_history_of_the_marks_is_gone(store: Store, watch: Watch) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    store.transact(lambda txn: publish_threshold(txn, KEYS, KEYS.head(CLEANED_MARKS), txn.read_at))
    assert watch.next(timeout=0) == Gap(TABLE, at, GapReason.IMPORTED)


def test_the_threshold_comes_first_among_the_reasons(store: Store, watch: Watch) -> None:
    at = import_into(store)
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at - 1))
    assert watch.next(timeout=0) == Gap(TABLE, at, GapReason.BELOW_THRESHOLD)


def import_into(store: Store) -> Timestamp:
    """Moves the cleaned mark as the publication of a merge with input does."""
    txn = store.begin()
    txn.put(KEYS.cleaned_key(HEAD), to_bytes(MAX_AT), value_stamp=Stamp(0))
    return txn.commit()


def test_a_watch_at_the_marks_goes_on(store: Store) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    later_at = write(store, a=b"2")
    assert changes(now(store.watch([TABLE], since_at=at)).revisions) == [("a", later_at, b"2")]


def test_the_marks_of_any_of_several_spans_count(store: Store) -> None:
    watch = store.watch([OTHER_TABLE, TABLE], since_at=0)
    at = write(store, a=b"1")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    assert watch.next(timeout=0) == Gap(TABLE, at, GapReason.BELOW_THRESHOLD)


def test_another_tenants_span_cannot_be_watched(store: Store) -> None:
    with pytest.raises(AssertionError):
        store.watch([TABLE._replace(lo=b"\0\0\0\2")], since_at=0)


# ── spacing ───────────────────────────────────────────────────────────────────────────────────────


def test_time_lies_between_two_looks_however_short_the_timeout(store: Store, env: ManualEnv) -> None:
    watch = store.watch([TABLE], since_at=0, spacing_seconds=0.1)
    for number in range(4):
        write(store, a=b"%d" % number)
        assert [each.value for each in now(watch).revisions] == [b"%d" % number]
    assert env.monotonic() == pytest.approx(0.3)
    watch.close()


def test_spacing_that_has_passed_is_not_waited_for(store: Store, env: ManualEnv) -> None:
    watch = store.watch([TABLE], since_at=0, spacing_seconds=0.1)
    now(watch)
    env.advance(5.0)
    now(watch)
    assert env.monotonic() == 5.0
    watch.close()


def test_a_watch_that_is_woken_again_and_again_does_not_spin(store: Store, env: ManualEnv) -> None:
    watch = store.watch([TABLE], since_at=0, spacing_seconds=0.1)
    for _ in range(11):
        watch.wake()
        watch.next(timeout=60.0)
    assert env.monotonic() == pytest.approx(1.0)
    watch.close()
