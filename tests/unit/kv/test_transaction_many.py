"""Many keys read and written together, beside one after the other."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.env import ManualEnv
from tenure.base.errors import CommitTooLarge, RetryError
from tenure.kv.buffer import Buffer, CommitLimits
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Write
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine

LIMITS = CommitLimits(rows_max=8, bytes_max=60)
WRITES = st.lists(
    st.builds(
        Write, st.sampled_from([bytes([letter]) * 3 for letter in b"abcdefghijk"]), st.binary(max_size=9)
    ),
    max_size=12,
)


def _after(fill: Callable[[Buffer], None], *, mark: bool, is_viewed: bool) -> tuple[object, ...]:
    """What a buffer holds, tells and goes back to; or that it refuses."""
    buffer, told = Buffer(LIMITS), list[int]()
    buffer.account_to(told.append)
    buffer.write(Write(b"eee", b"former"))
    savepoint = buffer.mark() if mark else None
    view = buffer.view() if is_viewed else None
    everything = Span(b"", b"z")
    try:
        fill(buffer)
    except CommitTooLarge as error:
        return str(error), buffer.within(everything)
    held = (
        buffer.within(everything),
        list(buffer.within(everything)),
        None if view is None else view.within(everything),
    )
    buffer.back_to(savepoint)
    return *held, buffer.within(everything)


@given(WRITES, st.booleans(), st.booleans())
def test_a_buffer_takes_many_writes_as_one_after_the_other(
    writes: list[Write], mark: bool, is_viewed: bool
) -> None:
    def one_by_one(buffer: Buffer) -> None:
        for write in writes:
            buffer.write(write)

    together = _after(lambda buffer: buffer.write_all(writes), mark=mark, is_viewed=is_viewed)
    assert together == _after(one_by_one, mark=mark, is_viewed=is_viewed)


@pytest.fixture
def store() -> Store:
    env = ManualEnv()
    return Store(SqliteEngine(MEMORY, env), env)


def test_many_keys_are_read_under_its_own_writes(store: Store) -> None:
    keys = [store.keyspace.key(200, (number,)) for number in range(100)]
    store.transact(lambda txn: txn.put_all((key, b"stored") for key in keys[:50]))

    def read(txn: Transaction) -> list[bytes | None]:
        assert txn.get_many(keys) == [b"stored"] * 50 + [None] * 50
        txn.put(keys[99], b"own")
        txn.delete(keys[0])
        return txn.get_many(keys)

    assert store.transact(read) == [None, *[b"stored"] * 49, *[None] * 49, b"own"]


def test_keys_read_together_conflict_as_those_read_alone(store: Store) -> None:
    keys = [store.keyspace.key(200, (number,)) for number in range(100)]
    attempts = 0

    def work(txn: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        txn.get_many(keys)
        if attempts == 1:
            store.transact(lambda other: other.put(keys[70], b"other"))
        txn.put(keys[0], b"own")

    store.transact(work)
    assert attempts == 2


@pytest.mark.parametrize("taken", [None, 7, 10, 55, 99])
def test_absent_keys_are_told_by_one_look_or_one_by_one(store: Store, taken: int | None) -> None:
    keys = [store.keyspace.key(200, (number,)) for number in range(0, 100, 5)]
    if taken is not None:
        store.transact(lambda txn: txn.put(store.keyspace.key(200, (taken,)), b"there"))
    assert store.transact(lambda txn: txn.are_absent(keys)) == (taken in (None, 7, 99))
    assert store.transact(lambda txn: _put_and_look(txn, keys)) is False


def test_keys_found_absent_conflict_with_one_who_writes_them_alone(store: Store) -> None:
    """What lies between them was looked at, but is of no account."""
    keys = [store.keyspace.key(200, (number,)) for number in (1, 9)]
    for written, attempts_expected in ((5, 1), (9, 2)):
        attempts = 0

        def work(txn: Transaction, written: int = written) -> None:
            nonlocal attempts
            attempts += 1
            txn.are_absent(keys)
            if attempts == 1:
                key = store.keyspace.key(200, (written,))
                store.transact(lambda other: other.put(key, b"other"))
            txn.put(store.keyspace.key(300, (written,)), b"own")

        store.transact(work)
        assert attempts == attempts_expected


def _put_and_look(txn: Transaction, keys: list[bytes]) -> bool:
    txn.put(keys[3], b"own")
    return txn.are_absent(keys)


def test_the_rows_of_a_span_conflict_with_writers_of_them_alone(store: Store) -> None:
    """Rows that come between them are of no account."""
    span = store.keyspace.index_span(200)
    keys = [store.keyspace.key(200, (number,)) for number in range(0, 10, 2)]
    store.transact(lambda txn: txn.put_all((key, b"stored") for key in keys))
    for written, attempts_expected in ((5, 1), (8, 1), (2, 2)):
        attempts = 0

        def work(txn: Transaction, written: int = written) -> None:
            nonlocal attempts
            attempts += 1
            found = txn.rows(span, limit=4)
            assert len(found) == 4
            if attempts == 1:
                key = store.keyspace.key(200, (written,))
                store.transact(lambda other: other.put(key, b"other"))
            txn.put(store.keyspace.key(300, (written,)), b"own")

        store.transact(work)
        assert attempts == attempts_expected


def test_rows_are_those_that_the_transaction_sees(store: Store) -> None:
    keys = [store.keyspace.key(200, (number,)) for number in range(4)]
    store.transact(lambda txn: txn.put_all((key, b"stored") for key in keys[:3]))
    txn = store.begin()
    txn.delete(keys[0])
    txn.put(keys[3], b"own")
    found = txn.rows(store.keyspace.index_span(200), limit=9)
    assert found == [(keys[1], b"stored"), (keys[2], b"stored"), (keys[3], b"own")]


def test_present_keys_are_those_with_a_row_and_only_they_count_as_read(store: Store) -> None:
    keys = [store.keyspace.key(200, (number,)) for number in range(6)]
    store.transact(lambda txn: txn.put_all((key, b"stored") for key in keys[:4]))
    store.transact(lambda txn: txn.delete(keys[1]))
    for written, attempts_expected in ((5, 1), (1, 1), (2, 2)):
        attempts = 0

        def work(txn: Transaction, written: int = written) -> None:
            nonlocal attempts
            attempts += 1
            found = txn.present(keys)
            assert found >= {keys[0], keys[2], keys[3]}
            if attempts == 1:
                store.transact(lambda other: other.put(keys[written], b"other"))
            txn.put(store.keyspace.key(300, (written,)), b"own")

        store.transact(work)
        assert attempts == attempts_expected


def test_keys_that_it_has_written_are_left_to_get(store: Store) -> None:
    keys = [store.keyspace.key(200, (number,)) for number in range(3)]
    store.transact(lambda txn: txn.put_all((key, b"stored") for key in keys[:2]))
    txn = store.begin()
    txn.delete(keys[0])
    txn.put(keys[2], b"own")
    assert txn.present(keys) == set()
    assert [txn.get(key) for key in keys] == [None, b"stored", b"own"]


def test_an_index_found_empty_is_looked_at_again_when_the_time_has_moved(store: Store) -> None:
    keys = [store.keyspace.key(200, (number,)) for number in range(9)]
    txn = store.begin()
    assert txn.are_absent(keys[:3]) and txn.are_absent(keys[3:6])
    store.transact(lambda other: other.put(keys[7], b"other"))
    assert txn.are_absent(keys[6:]), "it reads as of its time"
    refreshed = store.begin()
    assert refreshed.are_absent(keys[:3])
    store.transact(lambda other: other.put(keys[5], b"other"))
    refreshed.refresh()
    assert not refreshed.are_absent(keys[3:6])
    txn.put(keys[0], b"own")
    with pytest.raises(RetryError):
        txn.commit()


def test_rows_before_the_known_end_of_an_index_are_looked_for(store: Store) -> None:
    keys = [store.keyspace.key(200, (number,)) for number in range(9)]
    store.transact(lambda other: other.put(keys[2], b"stored"))
    txn = store.begin()
    assert txn.are_absent(keys[5:])
    assert not txn.are_absent(keys[:4]) and txn.are_absent(keys[:2])


@pytest.mark.parametrize("written", [0, 150, 299, None])
def test_many_keys_of_several_indexes_are_proved(store: Store, written: int | None) -> None:
    keys = [store.keyspace.key(200 + number // 100, (number,)) for number in range(300)]
    txn = store.begin()
    assert txn.get_many(keys) == [None] * 300
    other = store.keyspace.key(201, (1_000,)) if written is None else keys[written]
    store.transact(lambda txn: txn.put(other, b"other"))
    txn.put(store.keyspace.key(400, (1,)), b"own")
    if written is None:
        txn.commit()
    else:
        with pytest.raises(RetryError):
            txn.commit()


def test_a_commit_of_many_rows_keeps_what_it_overwrites(store: Store) -> None:
    keys = [store.keyspace.key(200, (number,)) for number in range(700)]
    store.transact(lambda txn: txn.put_all((key, b"first") for key in keys[::2]))
    before = store.snapshot()
    store.transact(lambda txn: txn.put_all((key, b"second") for key in keys))
    span = store.keyspace.index_span(200)
    assert list(before.scan(span)) == [(key, b"first") for key in keys[::2]]
    assert list(store.snapshot().scan(span)) == [(key, b"second") for key in keys]
