"""The document's three examples of transactions that use versions v and v+2 of a table.

Each pair has a serial order: whichever commits second either sees the first or is refused.
"""

from collections.abc import Callable

import pytest

from tenure.base.errors import RetryError
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.table.backfill import backfill_index
from tenure.table.read import scan
from tests.unit.table.tables import DELETE_ONLY, PUBLIC, WRITE_ONLY, A, B, Bench, found, index, table
from tests.unit.table.trees import CONTEXT

WITHOUT = table()
ADDED = [
    table(index(2, "t_a", A, unique=is_unique, state=state), version=version)
    for is_unique in (False, True)
    for version, state in enumerate([DELETE_ONLY, WRITE_ONLY, PUBLIC], 2)
]
BOTH_KINDS = pytest.mark.parametrize(
    ("delete_only", "write_only", "public"), [ADDED[:3], ADDED[3:]], ids=["plain", "unique"]
)


@BOTH_KINDS
@pytest.mark.parametrize("is_delete_first", [False, True])
def test_a_delete_without_the_index_and_an_update_that_writes_it(
    store: Store, delete_only: Table, write_only: Table, public: Table, is_delete_first: bool
) -> None:
    bench = Bench(store, WITHOUT)
    bench.insert(1, 5, 6)
    deleting = _begin_delete(bench, WITHOUT)
    updating = _begin_update(bench, write_only)
    first, second = (deleting, updating) if is_delete_first else (updating, deleting)
    first.commit()
    with pytest.raises(RetryError):
        second.commit()
    bench.show(write_only)
    assert bench.wrong(2) == []


@BOTH_KINDS
@pytest.mark.parametrize("is_delete_first", [False, True])
def test_a_delete_in_delete_only_that_commits_during_the_backfill(
    store: Store, delete_only: Table, write_only: Table, public: Table, is_delete_first: bool
) -> None:
    bench = Bench(store, WITHOUT)
    bench.insert(1, 5, 6)
    layout = bench.show(write_only)
    snapshot = store.snapshot()
    deleting = _begin_delete(bench, delete_only)
    raced: list[Timestamp] = []

    def interleaved(run: Callable[[Transaction], int]) -> int:
        """Commits the backfill's transaction around the delete's, again until it goes through."""

        def body(txn: Transaction) -> int:
            result = run(txn)
            if is_delete_first and not raced:
                raced.append(deleting.commit())
            return result

        return store.transact(body)

    backfill_index(interleaved, snapshot, layout, 2, CONTEXT)
    if not is_delete_first:
        try:
            deleting.commit()
        except RetryError:
            bench.delete(1, version=delete_only)
    assert bench.rows() == []
    assert bench.wrong(2) == []


@BOTH_KINDS
def test_an_update_in_write_only_that_commits_when_the_index_is_read(
    store: Store, delete_only: Table, write_only: Table, public: Table
) -> None:
    bench = Bench(store, write_only)
    bench.insert(1, 5, 6)
    layout = bench.layouts.of(public)
    updating = _begin_update(bench, write_only)
    selecting = store.begin()
    assert [row.values[A] for row in scan(selecting, layout, 2)] == [5]
    bench.writer(version=public).insert(selecting, {1: 2, A: 50, B: 0})
    updating.commit()
    with pytest.raises(RetryError):
        selecting.commit()
    assert [row.values[A] for row in scan(store.snapshot(), layout, 2)] == [7]


def _begin_delete(bench: Bench, version: Table) -> Transaction:
    txn, writer = bench.store.begin(), bench.writer(version=version)
    writer.delete(txn, found(txn, writer.layout, 1))
    return txn


def _begin_update(bench: Bench, version: Table) -> Transaction:
    txn, writer = bench.store.begin(), bench.writer(version=version)
    writer.update(txn, found(txn, writer.layout, 1), {A: 7})
    return txn
