"""Many keys read and written together, beside one after the other."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.env import ManualEnv
from tenure.base.errors import CommitTooLarge
from tenure.kv.buffer import Buffer, CommitLimits
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Write
from tenure.storage.sqlite import MEMORY, SqliteEngine

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
