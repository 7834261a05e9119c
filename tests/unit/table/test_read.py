"""Reading rows, and the oracle that compares indexes with them."""

import pytest

from tenure.base.errors import CorruptData
from tenure.catalog.descriptors.definitions import replace
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.table.backfill import remove_index
from tenure.table.compiled_index import ScanBound
from tenure.table.consistency import check_indexes
from tenure.table.read import find, get, rows, scan, visible
from tests.unit.table.tables import (
    DELETE_ONLY,
    ID,
    WRITE_ONLY,
    A,
    B,
    Bench,
    column,
    index,
    table,
    with_states,
)
from tests.unit.table.trees import CONTEXT

INDEXES = (index(2, "t_a_b", A, B), index(3, "t_b_key", B, unique=True))


@pytest.fixture
def bench(store: Store) -> Bench:
    bench = Bench(store, table(*INDEXES))
    for id in range(1, 7):
        bench.insert(id, id % 2, 10 * id)
    return bench


def test_get_finds_a_row_by_its_primary_key(bench: Bench) -> None:
    snapshot, layout = bench.store.snapshot(), bench.layout()
    row = get(snapshot, layout, (3,))
    assert row is not None and visible(layout, row) == {ID: 3, A: 1, B: 30}
    assert get(snapshot, layout, (9,)) is None


def test_readers_see_public_columns_only(bench: Bench) -> None:
    id, a, b = bench.tables[200].columns
    bench.show(replace(bench.tables[200], version=2, columns=(id, replace(a, state=WRITE_ONLY), b)))
    assert bench.rows()[0] == (1, 10)


@pytest.mark.parametrize(
    ("prefix", "start", "end", "ids"),
    [
        ((), None, None, [2, 4, 6, 1, 3, 5]),
        ((1,), None, None, [1, 3, 5]),
        ((1,), ScanBound((30,)), None, [3, 5]),
        ((1,), ScanBound((30,), is_inclusive=False), None, [5]),
        ((0,), None, ScanBound((40,)), [2, 4]),
        ((0,), None, ScanBound((40,), is_inclusive=False), [2]),
        ((), ScanBound((0, 60)), ScanBound((1, 10)), [6, 1]),
        ((1,), ScanBound((50,)), ScanBound((10,)), []),
    ],
)
def test_scan_gives_the_rows_along_an_index_between_bounds(
    bench: Bench, prefix: tuple[int, ...], start: ScanBound | None, end: ScanBound | None, ids: list[int]
) -> None:
    snapshot, layout = bench.store.snapshot(), bench.layout()
    found = [row.values[ID] for row in scan(snapshot, layout, 2, prefix=prefix, start=start, end=end)]
    assert found == ids
    backwards = scan(snapshot, layout, 2, prefix=prefix, start=start, end=end, reverse=True, limit=2)
    assert [row.values[ID] for row in backwards] == ids[::-1][:2]


def test_a_transaction_sees_its_own_rows_along_an_index(bench: Bench) -> None:
    txn, writer = bench.store.begin(), bench.writer()
    writer.insert(txn, {ID: 0, A: 1, B: 0})
    assert [row.values[ID] for row in scan(txn, writer.layout, 2, prefix=(1,))] == [0, 1, 3, 5]


def test_rows_are_read_as_of_any_time(bench: Bench) -> None:
    before = bench.store.snapshot()
    bench.delete(1)
    bench.update(2, {B: 0})
    assert [row.values[B] for row in rows(before, bench.layout(), limit=2)] == [10, 20]
    assert [row.values[ID] for row in scan(before, bench.layout(), 3, limit=2)] == [1, 2]


@pytest.mark.parametrize(
    ("columns", "values", "ids"), [((A,), (1,), [1, 3, 5]), ((B,), (20,), [2]), ((B, A), (30, 1), [3])]
)
def test_find_gives_the_same_rows_with_an_index_and_without(
    bench: Bench, columns: tuple[int, ...], values: tuple[int, ...], ids: list[int]
) -> None:
    snapshot = bench.store.snapshot()
    assert [row.values[ID] for row in find(snapshot, bench.layout(), columns, values)] == ids
    bench.show(with_states(bench.tables[200], WRITE_ONLY, 2, 3))
    assert [row.values[ID] for row in find(snapshot, bench.layout(), columns, values)] == ids
    assert [row.values[ID] for row in find(snapshot, bench.layout(), columns, values, limit=1)] == ids[:1]


def test_an_entry_without_its_row_is_corrupt_data(bench: Bench) -> None:
    bench.store.transact(lambda txn: txn.delete(bench.store.keyspace.key(200, [1])))
    with pytest.raises(CorruptData, match='index "t_b_key" of table "t"'):
        list(scan(bench.store.snapshot(), bench.layout(), 3))


# ── the oracle ─────────────────────────────────────────────────────────────────────────────────────


def test_the_oracle_finds_missing_stray_and_wrong_entries(bench: Bench) -> None:
    assert bench.wrong() == []
    first, second, *_ = bench.entries(3)

    def damage(txn: Transaction) -> None:
        txn.put(second, bench.entries(3)[first])
        txn.delete(first)
        txn.put(bench.store.keyspace.key(200, [99], 3), b"\x01")

    bench.store.transact(damage)
    wrong = "\n".join(bench.wrong())
    assert wrong.count("\n") == 2
    assert all(each in wrong for each in ("no entry", "a stray entry", "is not what its row says"))


def test_the_oracle_finds_keys_of_indexes_that_do_not_exist(bench: Bench) -> None:
    bench.show(replace(table(INDEXES[0], version=2), next_index=4))
    assert bench.wrong() == ["6 keys of index 3, which does not exist"]


def test_the_oracle_asks_only_for_a_part_of_an_index_that_is_not_filled(bench: Bench) -> None:
    bench.show(table(*INDEXES, index(4, "t_b", B, state=WRITE_ONLY), index(5, "t_a", A, state=DELETE_ONLY)))
    bench.insert(7, 7, 7)
    assert bench.wrong() == []
    assert len(bench.wrong(4)) == 6


def test_the_oracle_compares_whole_rows_of_a_new_primary_index(bench: Bench) -> None:
    bench.show(table(*INDEXES, index(4, "t_pkey_new", B, unique=True, primary=4, state=WRITE_ONLY)))
    bench.update(1, {A: 5})
    assert bench.wrong() == []
    bench.show(table(*INDEXES, version=2, columns=[*table().columns, column(4, "c")]))
    remove_index(bench.store.transact, bench.store.keyspace, 200, 4)
    assert check_indexes(bench.store.snapshot(), bench.layout(), CONTEXT) == []
