"""DuckDB over a base in the lake and a delta in the store, against reading row by row."""

from decimal import Decimal
from pathlib import Path

import pytest

from tenure.base.errors import CorruptData
from tenure.catalog.descriptors.definitions import TypeRef, replace
from tenure.kv.keys import Span
from tenure.kv.transaction import Transaction
from tenure.sql.duck.delivered_rows import DeliveredRows
from tenure.sql.duck.offload import Duck
from tenure.table import columnar
from tenure.table.columnar import Columnar
from tenure.table.lake import format
from tenure.table.read import at, rows
from tests.seeds import seeds
from tests.unit.pipeline.lakes import Lake
from tests.unit.pipeline.test_merge import NOTE, History
from tests.unit.sql.duck.asked_tables import AskedTable, change_row, duck_table, insert_rows
from tests.unit.table.tables import ID, A, B, column


class Plain(History):
    """Without values that files cannot hold in their columns."""

    odd = Decimal("1.00")


def _own_writes(history: History, txn: Transaction) -> None:
    """Changes a few rows: some that the base has, some of the delta, some that are new."""
    lake, writer = history.lake, history.lake.writer()
    for id in history.rng.sample(range(70), 9):
        old = at(txn, lake.layout, lake.layout.key({ID: id}))
        if old is None:
            writer.insert(txn, history.values(id))
        elif history.rng.random() < 0.5:
            writer.delete(txn, old)
        else:
            writer.update(txn, old, history.values(id))


@pytest.mark.invariant("hidden-exact")
@pytest.mark.invariant("columnar-exact")
@pytest.mark.parametrize("seed", seeds(6, few=2))
def test_answers_at_any_time_are_those_of_reading_row_by_row(
    lake: Lake, duck: Duck, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(format, "GROUP_ROWS", 5)
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 15 if seed % 3 else 1_000)
    history = (Plain if seed % 2 else History)(lake, seed)
    rng, txn = history.rng, lake.store.begin()
    for step in range(20):
        history.write(rng.randrange(1, 12))
        if step == 7:
            history.add_column()
        if step == 14:
            history.drop_column()
        if rng.random() < 0.3:
            lake.flush_all()
        if rng.random() < 0.3:
            lake.bases.load()
        if seed % 3:
            duck.step()  # DuckDB holds some of the files
        if rng.random() < 0.3:
            lake.clean(rng.choice([None, *[at for at, _, _ in history.seen]]))
        for committed_at, version, _ in rng.sample(history.seen, min(5, len(history.seen))):
            asked = AskedTable(lake, duck, version)
            ids = [id for id in (ID, B, NOTE) if id in asked.layout.columns]
            source = lake.store.snapshot(committed_at)
            assert asked.agree(source, *ids)
            assert asked.agree(source)
            assert step % 4 or asked.agree_joined(source, *ids)
            assert asked.agree_first(source, 1 + step)
            if A in asked.layout.columns:
                is_answered = asked.agree(source, A, B)
                # A column that was dropped is in `rest`, for what was written before.
                assert is_answered or seed % 2 == 0 or step >= 14
        txn.rollback()
        txn = lake.store.begin()
        _own_writes(history, txn)
        assert AskedTable(lake, duck).agree(txn, ID, B)
        assert step % 4 or AskedTable(lake, duck).agree_joined(txn, ID, B)
        assert AskedTable(lake, duck).agree_first(txn, 1 + step)
        if rng.random() < 0.2:
            lake.flush_all()  # the transaction reads before the flush, its own writes included
            lake.bases.load()
            assert AskedTable(lake, duck).agree(txn, ID, B)
    txn.rollback()
    assert lake.manifest().past, "no history has been flushed"


def test_a_reader_whose_base_moves_before_it_reads_the_delta_starts_over(lake: Lake, duck: Duck) -> None:
    insert_rows(lake, *range(10))
    lake.flush()
    lake.bases.load()
    change_row(lake, 3, "changed")
    source, asked = lake.store.snapshot(), AskedTable(lake, duck)
    moved: list[object] = []
    expected = asked.by_rows(source, ID, B)

    def check() -> None:
        if not moved:  # the manifest is in hand, the delta is not
            moved.append(lake.bases.of(asked.layout.primary.head))
            change_row(lake, 3, "too late")
            lake.flush()
            assert lake.clean() > 0

    assert asked.by_duck(source, ID, B, check=check) == expected
    assert moved and lake.bases.of(asked.layout.primary.head) is not moved[0]


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_reader_whose_files_are_gone_plans_again(lake: Lake, duck: Duck, is_cached: bool) -> None:
    insert_rows(lake, *range(10))
    old = lake.flush()
    lake.bases.load()
    change_row(lake, 3, "changed")
    asked, source = AskedTable(lake, duck), lake.store.snapshot()
    expected = asked.by_rows(source, ID, B)
    if is_cached:
        assert asked.by_duck(source, ID, B) == expected
    lake.flush()
    lake.files.delete([file.name for file in old.live])
    given_up = duck.failed_count
    if not is_cached:
        lake.bases.bases()[0].groups.forget()
    assert asked.by_duck(source, ID, B) == expected
    assert duck.failed_count == given_up


def test_a_stream_whose_files_go_under_it_plans_again_at_its_time(
    lake: Lake, duck: Duck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.sql.duck.query_connection.RESULT_BYTES_MAX", 0)
    monkeypatch.setattr("tenure.sql.duck.query_connection.FETCH_ROWS", 100)
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 300)
    again: list[DeliveredRows] = []
    start_over = DeliveredRows.start_over

    def noted(given: DeliveredRows) -> None:
        again.append(given)
        start_over(given)

    monkeypatch.setattr(DeliveredRows, "start_over", noted)
    insert_rows(lake, *range(3_000), text="x" * 3_000)  # more than DuckDB reads ahead
    old = lake.flush()
    lake.bases.load()
    change_row(lake, 1_500, "changed")
    asked, source = AskedTable(lake, duck), lake.store.snapshot()
    expected = asked.by_rows(source, ID, B)
    found = asked.stream(source, ID, B)
    assert found is not None
    rows = [next(found) for _ in range(150)]
    for id in (2, 2_500):
        change_row(lake, id, "too late")
    new = lake.flush()
    assert lake.clean() > 0
    lake.files.delete({file.name for file in old.live} - {file.name for file in new.live})
    rows += found
    assert again
    assert sorted(map(repr, rows)) == expected


def test_a_plan_whose_files_are_gone_is_made_with_the_newest(lake: Lake, duck: Duck) -> None:
    insert_rows(lake, *range(3_000))
    old = lake.flush()
    lake.bases.load()
    change_row(lake, 3, "changed")
    lake.flush()
    lake.files.delete([file.name for file in old.live])
    lake.bases.bases()[0].groups.forget()
    span = Span(lake.layout.key({ID: 10}), lake.layout.key({ID: 2_990}))
    assert duck._has_many(span)


def test_files_that_the_newest_manifest_names_and_that_are_gone_are_an_error(lake: Lake, duck: Duck) -> None:
    insert_rows(lake, *range(10))
    lake.files.delete([file.name for file in lake.flush().live])
    lake.bases.load()
    source = lake.store.snapshot()
    for read in (
        lambda: AskedTable(lake, duck).by_duck(source, ID, B),
        lambda: list(rows(source, lake.layout)),
    ):
        with pytest.raises(CorruptData, match="of table 200, index 1 is missing"):
            read()


def test_a_delta_too_large_to_be_held_is_streamed(lake: Lake) -> None:
    insert_rows(lake, *range(500))
    lake.flush()
    lake.clean()
    lake.bases.load()
    insert_rows(lake, *range(500, 1000))
    change_row(lake, 7, "changed")
    duck = Duck(lake.store, lake=lake.files, cache_bytes=1000)
    asked = AskedTable(lake, duck)
    assert asked.agree(lake.store.snapshot(), ID, A, B)
    assert asked.agree(lake.store.snapshot())
    assert duck.streams(asked.layout)
    lake.flush()
    lake.bases.load()
    assert asked.agree(lake.store.snapshot(), ID, A, B)
    assert not duck.streams(asked.layout)
    duck.close()


def test_a_delta_is_loaded_with_all_its_columns_at_once(lake: Lake, duck: Duck) -> None:
    insert_rows(lake, *range(20))
    lake.flush()
    lake.bases.load()
    change_row(lake, 7, "changed")
    assert AskedTable(lake, duck).agree(lake.store.snapshot(), ID)
    assert _loaded(duck) == {ID, A, B}


def test_a_delta_is_held_without_columns_that_have_no_place_in_arrow(lake: Lake, duck: Duck) -> None:
    insert_rows(lake, *range(20))
    lake.flush()
    lake.bases.load()
    lake.write(lambda txn: lake.writer().insert(txn, {ID: 50, A: Decimal("NaN"), B: "odd"}))
    asked = AskedTable(lake, duck)
    assert asked.agree(lake.store.snapshot(), ID)
    assert asked.agree(lake.store.snapshot(), B)
    assert not asked.agree(lake.store.snapshot(), A)
    assert asked.agree(lake.store.snapshot(), ID, B)
    assert _loaded(duck) == {ID, B}


def _loaded(duck: Duck) -> set[int]:
    _, cache = duck._engine_and_columns()
    (slot,) = cache._slots.values()
    assert slot.cached is not None
    return set(slot.cached.wanted.columns)


def test_only_files_that_meet_the_span_are_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 100)
    insert_rows(lake, *range(500))
    lake.flush()
    lake.bases.load()
    layout = lake.layout
    within = Span(layout.key({ID: 150}), layout.key({ID: 180}))
    found = Columnar(lake.store).read(layout, (ID,), lake.store.snapshot(), lambda: None, within)
    assert found.base is not None
    assert len(found.base.scans) == 1 < len(found.base.manifest.live)


def test_what_is_held_follows_the_base_between_queries(lake: Lake, duck: Duck) -> None:
    insert_rows(lake, *range(20))
    lake.flush()
    lake.bases.load()
    asked = AskedTable(lake, duck)
    assert asked.agree(lake.store.snapshot(), ID, B)
    change_row(lake, 3, "changed")
    lake.flush()
    lake.bases.load()
    change_row(lake, 4, "changed")
    duck.step()
    _, cache = duck._engine_and_columns()
    assert cache.delta_rows(asked.layout) == 1
    assert asked.agree(lake.store.snapshot(), ID, B)


def test_a_base_tells_how_many_rows_there_are(lake: Lake, duck: Duck) -> None:
    insert_rows(lake, *range(30))
    lake.flush()
    lake.bases.load()
    insert_rows(lake, 100)
    asked = AskedTable(lake, duck)
    asked.by_duck(lake.store.snapshot(), ID)
    _, cache = duck._engine_and_columns()
    assert cache.rows(asked.layout) == 31


def test_a_column_that_became_wider_is_read_as_it_is_now(lake: Lake, duck: Duck) -> None:
    wide = [column(ID, "id", is_nullable=False), column(A, "a", TypeRef("int2")), column(B, "b")]
    lake.table = replace(lake.table, columns=tuple(wide))
    writer = lake.writer()
    lake.write(lambda txn: writer.insert(txn, {ID: 1, A: 5, B: 6}))
    lake.flush()
    lake.bases.load()
    columns = (wide[0], column(A, "a", TypeRef("int8")), wide[2])
    lake.table = replace(lake.table, version=lake.table.version + 1, columns=columns)
    assert AskedTable(lake, duck).agree(lake.store.snapshot(), ID, A, B)


def test_a_column_of_another_type_by_now_is_read_row_by_row(lake: Lake, duck: Duck) -> None:
    insert_rows(lake, 1)
    lake.flush()
    lake.bases.load()
    columns = tuple(
        replace(each, type=TypeRef("numeric", (22, 4))) if each.id == A else each
        for each in lake.table.columns
    )
    lake.table = replace(lake.table, version=lake.table.version + 1, columns=columns)
    asked = AskedTable(lake, duck)
    assert asked.by_duck(lake.store.snapshot(), A) is None
    assert asked.agree(lake.store.snapshot(), ID, B)


def test_catching_up_that_finds_too_much_goes_over_to_streams(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columnar, "HISTORY_ROWS", 100)
    insert_rows(lake, *range(10))
    duck = Duck(lake.store, lake=lake.files, cache_bytes=20_000)
    asked = AskedTable(lake, duck)
    assert asked.agree(lake.store.snapshot(), ID, B)
    assert not duck.streams(asked.layout)
    for first in range(10, 1010, 100):
        insert_rows(lake, *range(first, first + 100))
    assert asked.agree(lake.store.snapshot(), ID, B)
    assert duck.streams(asked.layout)
    duck.close()


def test_a_lake_in_an_object_store_is_read_as_well(
    tmp_path: Path, bucket_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 10)
    lake = Lake(tmp_path, duck_table(), lake=bucket_address)
    duck = Duck(lake.store, lake=lake.files)
    insert_rows(lake, *range(30))
    lake.flush()
    lake.bases.load()
    for id in (7, 17, 29):
        change_row(lake, id, "changed")
    assert AskedTable(lake, duck).agree(lake.store.snapshot(), ID, A, B)
    assert AskedTable(lake, duck).agree_first(lake.store.snapshot(), 20)
    duck.close()
    lake.close()
