"""Watches over several spans: the head clock says which of them to read, and misses nothing."""

from collections.abc import Iterator
from random import Random

import pytest

from tenure.base.env import SystemEnv
from tenure.base.timestamp import MAX_AT, Timestamp, to_bytes
from tenure.kv.gaps import Gap, GapReason
from tenure.kv.keys import SETTINGS, USER_TABLES, Span
from tenure.kv.store import Store
from tenure.kv.thresholds import clean, publish_threshold
from tenure.kv.watch import ChangeBatch, Watch
from tenure.storage.engine import History, ReadResult, Revision, Stamp
from tenure.storage.head_spans import HeadSpans
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.kv.rows import KEYS

TABLES = 20
SPANS = [KEYS.index_span(USER_TABLES + number) for number in range(TABLES)]


class CountingEngine(SqliteEngine):
    histories = 0

    def history(self, query: History) -> ReadResult:
        self.histories += 1
        return super().history(query)


@pytest.fixture
def engine() -> Iterator[CountingEngine]:
    engine = CountingEngine(MEMORY, SystemEnv())
    yield engine
    engine.close()


@pytest.fixture
def store(engine: CountingEngine) -> Iterator[Store]:
    store = Store(engine, SystemEnv())
    yield store
    store.close()


def start(store: Store) -> Timestamp:
    txn = store.begin()
    txn.put(KEYS.key(SETTINGS, ["version"]), b"2")
    txn.start_head_clock()
    return txn.commit()


def put(store: Store, *tables: int, name: str = "a") -> Timestamp:
    txn = store.begin()
    for table in tables:
        txn.put(KEYS.key(USER_TABLES + table, [name]), b"v")
    return txn.commit()


def look(watch: Watch) -> ChangeBatch:
    batch = watch.next(0)
    assert isinstance(batch, ChangeBatch)
    return batch


@pytest.mark.invariant("I37")
def test_only_the_spans_that_have_moved_are_read(store: Store, engine: CountingEngine) -> None:
    watch = store.watch(SPANS, since_at=start(store))
    at = put(store, 3, 7)
    engine.histories = 0
    batch = look(watch)
    assert [revision.key for revision in batch.revisions] == [
        KEYS.key(USER_TABLES + table, ["a"]) for table in (3, 7)
    ]
    assert (batch.resolved_at, engine.histories) == (at, 2)
    at = put(store, TABLES + 5)
    assert look(watch) == ChangeBatch((), at)
    assert engine.histories == 2


def test_every_span_is_read_while_a_writer_may_not_keep_the_head_clock(
    store: Store, engine: CountingEngine
) -> None:
    since_at = put(store, 0)
    watch = store.watch(SPANS, since_at=since_at)
    put(store, 3)
    assert len(look(watch).revisions) == 1
    assert engine.histories == TABLES


def test_a_watch_from_before_the_head_clock_was_kept_reads_every_span_once(
    store: Store, engine: CountingEngine
) -> None:
    watch = store.watch(SPANS, since_at=put(store, 0))
    put(store, 3)
    start(store)
    assert len(look(watch).revisions) == 1
    engine.histories = 0
    put(store, 4)
    assert len(look(watch).revisions) == 1
    assert engine.histories == 1


def head(table: int) -> bytes:
    return KEYS.head(USER_TABLES + table)


def test_a_raised_threshold_is_a_gap_of_a_span_in_which_nothing_was_written(store: Store) -> None:
    watch = store.watch(SPANS, since_at=start(store))
    at = put(store, TABLES + 1)
    store.transact(lambda txn: publish_threshold(txn, KEYS, head(5), at))
    assert watch.next(0) == Gap(SPANS[5], at, GapReason.BELOW_THRESHOLD)


def test_a_raised_cleaned_mark_is_a_gap_of_a_span_in_which_nothing_was_written(store: Store) -> None:
    watch = store.watch(SPANS, since_at=start(store))
    at = put(store, TABLES + 1)
    store.transact(lambda txn: clean(txn, KEYS, head(5), at, limit=10))
    assert watch.next(0) == Gap(SPANS[5], at, GapReason.FLUSHED)


def test_a_merge_with_input_is_a_gap_of_its_span(store: Store) -> None:
    watch = store.watch(SPANS, since_at=start(store))
    txn = store.begin()
    txn.put(KEYS.cleaned_key(head(5)), to_bytes(MAX_AT), value_stamp=Stamp(0))
    at = txn.commit()
    assert watch.next(0) == Gap(SPANS[5], at, GapReason.IMPORTED)


def test_a_raised_mark_wakes_those_who_watch_its_index(store: Store, engine: CountingEngine) -> None:
    at = start(store)
    woken: list[int] = []
    for table in (5, 6):
        engine.subscribe(lambda table=table: woken.append(table), [SPANS[table]])  # type: ignore[misc]
    store.transact(lambda txn: publish_threshold(txn, KEYS, head(5), at))
    assert woken == [5]


@pytest.mark.invariant("I37")
@pytest.mark.parametrize("seed", range(20))
def test_a_watch_by_the_head_clock_delivers_what_was_committed(store: Store, seed: int) -> None:
    rng = Random(seed)
    chosen = rng.sample(range(TABLES), rng.randint(2, TABLES))
    since_at = start(store) if rng.random() < 0.7 else store.engine.clock_at()
    watch = store.watch([SPANS[table] for table in chosen], since_at=since_at)
    found: list[Revision] = []
    for _ in range(40):
        if rng.random() < 0.1:
            start(store)
        tables = rng.sample(range(TABLES + 5), rng.randint(1, 4))
        put(store, *tables, name=rng.choice("abc"))
        if rng.random() < 0.6:
            found += look(watch).revisions
    batch = look(watch)
    found += batch.revisions
    history = store.history(KEYS.all(), since_at=since_at).revisions
    assert found == [
        each for each in history if any(lo <= each.key < hi for lo, hi in map(SPANS.__getitem__, chosen))
    ]
    assert batch.resolved_at == store.engine.clock_at()


@pytest.mark.parametrize("seed", range(30))
def test_spans_are_found_by_heads_as_a_naive_search_finds_them(seed: int) -> None:
    rng = Random(seed)

    def some_key() -> bytes:
        return bytes(9) + bytes(rng.choices(range(4), k=rng.randint(1, 3)))

    spans = sorted(Span(lo, hi) for lo, hi in ((some_key(), some_key()) for _ in range(20)) if lo < hi)
    heads = [bytes(9) + bytes([number]) for number in range(4)]
    expected = [
        position
        for position, (lo, hi) in enumerate(spans)
        if any(lo[:10] <= each < hi for each in heads[: seed % 4 + 1])
    ]
    assert HeadSpans(spans).touched(heads[: seed % 4 + 1]) == expected
