"""Columns in memory against a naive scan of the table."""

import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import RetryError
from tenure.catalog.descriptors.definitions import Table, TypeRef, replace
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.table import column_parts
from tenure.table.arrow import Unrepresentable
from tenure.table.column_parts import CachedParts
from tenure.table.columnar import Columnar
from tenure.table.columns import filled_with
from tenure.table.read import Source, rows
from tenure.table.rows import Layout, Layouts, Row
from tests.unit.table.tables import column, table
from tests.unit.table.trees import CONTEXT

TYPES = (
    TypeRef("int8"),
    TypeRef("text"),
    TypeRef("numeric", (30, 2)),
    TypeRef("float8"),
    TypeRef("date"),
    TypeRef("bool"),
    TypeRef("timestamp"),
    TypeRef("jsonb"),
    TypeRef("int4", is_array=True),
    TypeRef("numeric"),
)


def _table(*key: int) -> Table:
    return table(
        columns=[column(id, f"c{id}", kind) for id, kind in enumerate(TYPES, start=1)], key=key or (1,)
    )


def _layout(store: Store, of: Table) -> Layout:
    return Layouts(store.keyspace).of(of)


def _values(rng: random.Random, id: int) -> dict[int, Any]:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    return {
        1: id,
        2: f"text {'é' * rng.randrange(3)} {id}",
        3: maybe(Decimal(f"{rng.choice([0, -5, 10**26, id])}.00")),
        4: maybe(rng.choice([0.0, -1.5, float("inf")])),
        5: maybe(date(1, 1, 1) if rng.random() < 0.3 else date(2024, 2, 29)),
        6: maybe(rng.random() < 0.5),
        7: maybe(datetime(1969, 12, 31, 23, 59, 59, 999999)),
        8: None,
        9: maybe((1, None, rng.randrange(9))),
        10: maybe(Decimal("NaN") if rng.random() < 0.5 else Decimal("1.50")),
    }


def _put(txn: Transaction, layout: Layout, values: dict[int, Any]) -> None:
    entry = layout.entry(layout.primary, Row(layout.key(values), values), CONTEXT)
    assert entry is not None
    txn.put(*entry)


def _fill(store: Store, layout: Layout, count: int) -> None:
    rng = random.Random(1)

    def put(txn: Transaction) -> None:
        for id in range(count):
            _put(txn, layout, _values(rng, id))

    store.transact(put)


def _delete(txn: Transaction, layout: Layout, values: dict[int, Any]) -> None:
    txn.delete(layout.key(values))


def _naive(source: Source, layout: Layout, columns: tuple[int, ...]) -> list[str]:
    return sorted(
        repr(tuple(layout.columns[id].type.pack(row.values[id]) for id in columns))
        for row in rows(source, layout)
    )


def _cached(cache: Columnar, source: Source, layout: Layout, columns: tuple[int, ...]) -> list[str]:
    """As packed values: what the arrays hold is undone by hand."""
    got = cache.read(layout, columns, source, lambda: None)
    data = got.data.read_all() if hasattr(got.data, "read_all") else got.data
    if got.has_dead:
        data = data.filter(data["alive"])
    made = []
    for id in columns:
        kept = layout.columns[id]
        values = data[f"c{id}"].to_pylist()
        if kept.type.ref.is_array or kept.type.ref.name == "jsonb" or kept.type.ref == TypeRef("numeric"):
            values = [None if each is None else msgspec.msgpack.decode(each) for each in values]
        else:
            values = [kept.type.pack(each) for each in values]
        made.append(values)
    return sorted(map(repr, zip(*made, strict=True)))


@pytest.mark.invariant("columnar-exact")
@pytest.mark.parametrize("seed", range(6))
def test_columns_are_what_a_scan_gives_at_any_time(
    store: Store, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_parts, "PARTS_MAX", 3)
    monkeypatch.setattr(column_parts, "KEY_BYTES_MAX", 48 if seed % 2 else 4)
    rng = random.Random(seed)
    layout = _layout(store, _table(1) if seed % 3 else _table(2, 1))
    known: dict[int, dict[int, Any]] = {}
    cache = Columnar(store)
    times: list[int] = []
    columns = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)

    def change(txn: Transaction) -> None:
        for _ in range(rng.randrange(1, 30)):
            id = rng.randrange(50) * rng.choice((1, 256, 2**24, 2**40))
            if id in known and rng.random() < 0.4:
                _delete(txn, layout, known.pop(id))
            elif id not in known or rng.random() < 0.9:
                if id in known:
                    _delete(txn, layout, known[id])
                known[id] = _values(rng, id)
                _put(txn, layout, known[id])

    for step in range(60):
        store.transact(change)
        times.append(store.engine.clock_at())
        if rng.random() < 0.3:
            cache.keep_up()
        if step % 3 == 0:
            chosen = tuple(sorted(rng.sample(columns, rng.randrange(1, 11))))
            source = store.snapshot(rng.choice(times[-8:]))
            assert _cached(cache, source, layout, chosen) == _naive(source, layout, chosen)
        if step % 5 == 0:
            before = dict(known)
            txn = store.begin()
            txn.read_at  # noqa: B018
            change(txn)
            known = before
            assert _cached(cache, txn, layout, columns) == _naive(txn, layout, columns)
            txn.rollback()


def test_text_has_a_dictionary_unless_it_is_in_the_key(store: Store) -> None:
    for key, expected in (((1,), "dictionary<values=string, indices=int32, ordered=0>"), ((2, 1), "string")):
        layout = _layout(store, _table(*key))
        data = Columnar(store).read(layout, (2, 3), store.snapshot(), lambda: None).data
        assert [str(each) for each in data.schema.types] == [expected, "decimal128(30, 2)"]


def test_a_dictionary_does_not_keep_values_that_no_row_has_any_more(store: Store) -> None:
    layout = _layout(store, _table())
    cache = Columnar(store)
    values = _values(random.Random(1), 1)
    for number in range(100):
        changed = {**values, 2: f"text {number}"}
        store.transact(lambda txn, changed=changed: _put(txn, layout, changed))  # type: ignore[misc]
        data = cache.read(layout, (2,), store.snapshot(), lambda: None).data
    chunks = data["c2"].chunks
    assert sum(len(chunk.dictionary) for chunk in chunks) <= column_parts.PARTS_MAX + 1
    assert "text 99" in data["c2"].to_pylist()


def test_many_small_changes_leave_a_large_part_as_it_is(store: Store) -> None:
    layout = _layout(store, _table())
    cache = Columnar(store)
    rng = random.Random(1)

    def parts_after(*ids: int) -> tuple[column_parts.RowPart, ...]:
        def put(txn: Transaction) -> None:
            for id in ids:
                _put(txn, layout, _values(rng, id))

        store.transact(put)
        cache.read(layout, (2,), store.snapshot(), lambda: None)
        (slot,) = cache._slots.values()
        assert slot.cached is not None
        return slot.cached.parts

    parts_after(0)
    large = parts_after(*range(1, 101))[1]
    assert len(large.at) == 100
    for id in range(101, 150):
        held = parts_after(id)
        assert len(held) <= column_parts.PARTS_MAX
        assert held[1] is large


@pytest.mark.invariant("columnar-read")
def test_a_table_read_as_columns_counts_as_read(store: Store) -> None:
    layout = _layout(store, _table())
    rng = random.Random(1)
    store.transact(lambda txn: _put(txn, layout, _values(rng, 1)))
    txn = store.begin()
    _cached(Columnar(store), txn, layout, (1,))
    txn.put(layout.key(_values(rng, 7)) + b"\x02", b"")
    store.transact(lambda txn: _put(txn, layout, _values(rng, 2)))
    with pytest.raises(RetryError):
        txn.commit()


def test_a_table_too_large_to_be_held_is_read_as_a_stream(store: Store) -> None:
    layout = _layout(store, _table())
    rng = random.Random(1)
    _fill(store, layout, 300)
    cache = Columnar(store, bytes_max=1_000)
    txn = store.begin()
    _put(txn, layout, _values(rng, 5))
    _delete(txn, layout, _values(rng, 6))
    for _ in range(2):
        assert _cached(cache, txn, layout, (1, 2)) == _naive(txn, layout, (1, 2))
    assert not hasattr(cache.read(layout, (1,), txn, lambda: None).data, "num_rows")


def test_a_reader_before_the_first_load_gets_its_own_time(store: Store) -> None:
    layout = _layout(store, _table())
    rng = random.Random(1)
    store.transact(lambda txn: _put(txn, layout, _values(rng, 1)))
    early = store.snapshot()
    store.transact(lambda txn: _put(txn, layout, _values(rng, 2)))
    cache = Columnar(store)
    assert len(_cached(cache, store.snapshot(), layout, (1,))) == 2
    assert len(_cached(cache, early, layout, (1,))) == 1


def test_a_column_added_later_reads_as_filled(store: Store) -> None:
    old = _table()
    layout = _layout(store, old)
    rng = random.Random(1)
    store.transact(lambda txn: _put(txn, layout, _values(rng, 1)))
    cache = Columnar(store)
    assert len(_cached(cache, store.snapshot(), layout, (1, 2))) == 1
    kind = layout.columns[1].type
    added = column(11, "c11", TypeRef("int8"), filled=filled_with(kind, 42))
    newer = _layout(store, replace(old, version=2, columns=(*old.columns, added)))
    assert _cached(cache, store.snapshot(), newer, (1, 11)) == ["(1, 42)"]


def test_what_arrow_cannot_hold_is_said(store: Store) -> None:
    layout = _layout(store, _table())
    values = {**_values(random.Random(1), 1), 3: Decimal("NaN")}
    store.transact(lambda txn: _put(txn, layout, values))
    with pytest.raises(Unrepresentable):
        _cached(Columnar(store), store.snapshot(), layout, (3,))


def test_tables_not_used_for_longest_go_first(store: Store) -> None:
    layouts = [_layout(store, replace(_table(), id=200 + n)) for n in range(3)]
    for layout in layouts:
        _fill(store, layout, 100)
    alone = Columnar(store)
    _cached(alone, store.snapshot(), layouts[0], (1, 2))
    cache = Columnar(store, bytes_max=alone.held_bytes * 5 // 2)
    for layout in layouts:
        _cached(cache, store.snapshot(), layout, (1, 2))
    assert [cache.rows(layout) for layout in layouts] == [None, 100, 100]


def test_what_is_held_is_counted_again_only_when_it_has_changed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, rng = _layout(store, _table()), random.Random(1)
    _fill(store, layout, 100)
    cache, counted = Columnar(store), list[CachedParts]()

    def count(held: CachedParts) -> int:
        counted.append(held)
        return sum(part.held_bytes for part in held.parts)

    monkeypatch.setattr(CachedParts, "held_bytes", property(count))
    _cached(cache, store.snapshot(), layout, (1, 2))
    before, times = cache.held_bytes, len(counted)
    store.transact(lambda txn: txn.put(store.keyspace.key(900, (1,)), b"of another table"))
    _cached(cache, store.snapshot(), layout, (1, 2))
    assert (cache.held_bytes, len(counted)) == (before, times)
    store.transact(lambda txn: _put(txn, layout, _values(rng, 1_000)))
    _cached(cache, store.snapshot(), layout, (1, 2))
    assert cache.held_bytes > before


def test_threads_at_different_times_do_not_disturb_one_another(tmp_path: Path) -> None:
    env = SystemEnv()
    engine = SqliteEngine(str(tmp_path / "store"), env)
    store = Store(engine, env)
    layout = _layout(store, _table())
    _fill(store, layout, 200)
    cache = Columnar(store)
    faults: list[BaseException] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        try:
            for _ in range(15):
                ids = rng.sample(range(200), 5)
                store.transact(lambda txn, ids=ids: _change(txn, layout, rng, ids))  # type: ignore[misc]
                source = store.snapshot()
                columns = (1, 2) if rng.random() < 0.5 else (1, 3, 4)
                assert _cached(cache, source, layout, columns) == _naive(source, layout, columns)
        except BaseException as fault:
            faults.append(fault)

    tasks = [env.spawn(f"worker {seed}", lambda seed=seed: work(seed)) for seed in range(4)]  # type: ignore[misc]
    for task in tasks:
        task.join()
    engine.close()
    assert faults == []


def _change(txn: Transaction, layout: Layout, rng: random.Random, ids: list[int]) -> None:
    for id in ids:
        if rng.random() < 0.3:
            _delete(txn, layout, _values(rng, id))
        else:
            _put(txn, layout, _values(rng, id))
