"""DuckDB over a base in the lake and a delta in the store, against reading row by row."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pyarrow import fs

from tenure.base.errors import CorruptData
from tenure.base.memory import lone_account
from tenure.catalog.descriptors.definitions import Table, TypeRef, replace
from tenure.kv.keys import Span
from tenure.kv.transaction import Transaction
from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.duck.delivered_rows import DeliveredRows
from tenure.sql.duck.duck_types import Value, shape_of
from tenure.sql.duck.offload import Duck
from tenure.sql.duck.rendering import Rendered, Used
from tenure.sql.explain import plan_text
from tenure.sql.rows.run import QueryRun
from tenure.sql.rows.runner import compile
from tenure.sql.text.parse import one
from tenure.table import columnar
from tenure.table.columnar import Columnar
from tenure.table.lake import format
from tenure.table.read import Source, at, rows, visible
from tests import s3_server
from tests.postgres_server import Server
from tests.unit.pipeline.lakes import Lake
from tests.unit.pipeline.test_merge import NOTE, History
from tests.unit.sql import schema
from tests.unit.table.tables import ID, A, B, column, table
from tests.unit.table.trees import CONTEXT


def _table() -> Table:
    columns = [
        column(ID, "id", is_nullable=False),
        column(A, "a", TypeRef("numeric", (20, 2))),
        column(B, "b", TypeRef("text")),
    ]
    return table(columns=columns)


@pytest.fixture(params=["sqlite", "postgres"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    if request.param == "sqlite":
        lake = Lake(tmp_path, _table())
        yield lake
        lake.close()
        return
    server: Server = request.getfixturevalue("postgres")
    name = f"lake_{uuid4().hex[:12]}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        lake = Lake(tmp_path, _table(), address=f"postgresql://postgres@127.0.0.1:{server.port}/{name}")
        yield lake
        lake.close()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def duck(lake: Lake) -> Iterator[Duck]:
    duck = Duck(lake.store, lake=lake.files)
    yield duck
    duck.close()


class Asked:
    """Columns of a table, asked of DuckDB and read row by row."""

    def __init__(self, lake: Lake, duck: Duck, version: Table | None = None) -> None:
        self.lake, self.duck = lake, duck
        self.version = version or lake.table
        self.layout = lake._layouts.of(self.version)

    def by_duck(
        self,
        source: Source,
        *columns: int,
        check: Callable[[], None] = lambda: None,
        where: str = "",
        is_joined: bool = False,
        is_first: bool = False,
    ) -> list[str] | None:
        found = self.stream(
            source, *columns, check=check, where=where, is_joined=is_joined, is_first=is_first
        )
        return None if found is None else sorted(map(repr, found))

    def stream(
        self,
        source: Source,
        *columns: int,
        check: Callable[[], None] = lambda: None,
        where: str = "",
        is_joined: bool = False,
        is_first: bool = False,
    ) -> Iterator[tuple[Any, ...]] | None:
        kinds = [self.layout.columns[id].type for id in columns]
        named = ", ".join(f"t.c{id} AS c{place}" for place, id in enumerate(columns)) or "1 AS one"
        name = f"d{self.version.id}"
        used = Used(self.version, {*columns}, [None])
        if is_joined:
            used = Used(self.version, {*columns, ID}, [None, None])
            where = f" JOIN {name} AS u ON u.c{ID} = t.c{ID}{where}"
        rendered = Rendered(
            f"SELECT {named} FROM {name} AS t{where}",
            (),
            {self.version.id: used},
            tuple(Value("", kind, shape_of(kind)) for kind in kinds),
            is_first,
        )
        run = QueryRun(CONTEXT, source, lambda of: self.layout, lambda key: (), check, lone_account(1 << 30))
        return self.duck.answer(rendered, run)

    def by_rows(self, source: Source, *columns: int) -> list[str]:
        found = [visible(self.layout, row) for row in rows(source, self.layout)]
        return sorted(repr(tuple(row[id] for id in columns)) for row in found)

    def agree(self, source: Source, *columns: int) -> bool:
        """Whether DuckDB answered; if so, rightly."""
        found = self.by_duck(source, *columns)
        assert found is None or found == self.by_rows(source, *columns)
        return found is not None

    def agree_joined(self, source: Source, *columns: int) -> bool:
        """The same of the table joined with itself, row by row."""
        return self.by_duck(source, *columns, is_joined=True) == self.by_rows(source, *columns)

    def agree_first(self, source: Source, count: int) -> bool:
        """The same of its first rows in an order."""
        order = f" ORDER BY t.c{ID} DESC LIMIT {count}"
        found = self.by_duck(source, ID, where=order, is_first=True)
        ids = sorted((visible(self.layout, row)[ID] for row in rows(source, self.layout)), reverse=True)
        return found == sorted(repr((id,)) for id in ids[:count])


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
@pytest.mark.parametrize("seed", range(6))
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
        if rng.random() < 0.3:
            lake.clean(rng.choice([None, *[at for at, _, _ in history.seen]]))
        for committed_at, version, _ in rng.sample(history.seen, min(5, len(history.seen))):
            asked = Asked(lake, duck, version)
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
        assert Asked(lake, duck).agree(txn, ID, B)
        assert step % 4 or Asked(lake, duck).agree_joined(txn, ID, B)
        assert Asked(lake, duck).agree_first(txn, 1 + step)
        if rng.random() < 0.2:
            lake.flush_all()  # the transaction reads before the flush, its own writes included
            lake.bases.load()
            assert Asked(lake, duck).agree(txn, ID, B)
    txn.rollback()
    assert lake.manifest().past, "no history has been flushed"


def _filled(lake: Lake, *ids: int, text: str = "row") -> None:
    writer = lake.writer()

    def work(txn: Transaction) -> None:
        for id in ids:
            writer.insert(txn, {ID: id, A: Decimal(id), B: f"{text} {id}"})

    lake.write(work)


def _changed(lake: Lake, id: int, text: str) -> None:
    def work(txn: Transaction) -> None:
        row = at(txn, lake.layout, lake.layout.key({ID: id}))
        assert row is not None
        lake.writer().update(txn, row, {**visible(lake.layout, row), B: text})

    lake.write(work)


def test_a_reader_whose_base_moves_before_it_reads_the_delta_starts_over(lake: Lake, duck: Duck) -> None:
    _filled(lake, *range(10))
    lake.flush()
    lake.bases.load()
    _changed(lake, 3, "changed")
    source, asked = lake.store.snapshot(), Asked(lake, duck)
    moved: list[object] = []
    expected = asked.by_rows(source, ID, B)

    def check() -> None:
        if not moved:  # the manifest is in hand, the delta is not
            moved.append(lake.bases.of(asked.layout.primary.head))
            _changed(lake, 3, "too late")
            lake.flush()
            assert lake.clean() > 0

    assert asked.by_duck(source, ID, B, check=check) == expected
    assert moved and lake.bases.of(asked.layout.primary.head) is not moved[0]


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_reader_whose_files_are_gone_plans_again(lake: Lake, duck: Duck, is_cached: bool) -> None:
    _filled(lake, *range(10))
    old = lake.flush()
    lake.bases.load()
    _changed(lake, 3, "changed")
    asked, source = Asked(lake, duck), lake.store.snapshot()
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
    _filled(lake, *range(3_000), text="x" * 3_000)  # more than DuckDB reads ahead
    old = lake.flush()
    lake.bases.load()
    _changed(lake, 1_500, "changed")
    asked, source = Asked(lake, duck), lake.store.snapshot()
    expected = asked.by_rows(source, ID, B)
    found = asked.stream(source, ID, B)
    assert found is not None
    rows = [next(found) for _ in range(150)]
    for id in (2, 2_500):
        _changed(lake, id, "too late")
    new = lake.flush()
    assert lake.clean() > 0
    lake.files.delete({file.name for file in old.live} - {file.name for file in new.live})
    rows += found
    assert again
    assert sorted(map(repr, rows)) == expected


def test_a_plan_whose_files_are_gone_is_made_with_the_newest(lake: Lake, duck: Duck) -> None:
    _filled(lake, *range(3_000))
    old = lake.flush()
    lake.bases.load()
    _changed(lake, 3, "changed")
    lake.flush()
    lake.files.delete([file.name for file in old.live])
    lake.bases.bases()[0].groups.forget()
    span = Span(lake.layout.key({ID: 10}), lake.layout.key({ID: 2_990}))
    assert duck._has_many(span)


def test_files_that_the_newest_manifest_names_and_that_are_gone_are_an_error(lake: Lake, duck: Duck) -> None:
    _filled(lake, *range(10))
    lake.files.delete([file.name for file in lake.flush().live])
    lake.bases.load()
    source = lake.store.snapshot()
    for read in (lambda: Asked(lake, duck).by_duck(source, ID, B), lambda: list(rows(source, lake.layout))):
        with pytest.raises(CorruptData, match="of table 200, index 1 is missing"):
            read()


def test_a_delta_too_large_to_be_held_is_streamed(lake: Lake) -> None:
    _filled(lake, *range(500))
    lake.flush()
    lake.clean()
    lake.bases.load()
    _filled(lake, *range(500, 1000))
    _changed(lake, 7, "changed")
    duck = Duck(lake.store, lake=lake.files, cache_bytes=1000)
    asked = Asked(lake, duck)
    assert asked.agree(lake.store.snapshot(), ID, A, B)
    assert asked.agree(lake.store.snapshot())
    assert duck.streams(asked.layout)
    lake.flush()
    lake.bases.load()
    assert asked.agree(lake.store.snapshot(), ID, A, B)
    assert not duck.streams(asked.layout)
    duck.close()


def test_a_delta_is_loaded_with_all_its_columns_at_once(lake: Lake, duck: Duck) -> None:
    _filled(lake, *range(20))
    lake.flush()
    lake.bases.load()
    _changed(lake, 7, "changed")
    assert Asked(lake, duck).agree(lake.store.snapshot(), ID)
    assert _loaded(duck) == {ID, A, B}


def test_a_delta_is_held_without_columns_that_have_no_place_in_arrow(lake: Lake, duck: Duck) -> None:
    _filled(lake, *range(20))
    lake.flush()
    lake.bases.load()
    lake.write(lambda txn: lake.writer().insert(txn, {ID: 50, A: Decimal("NaN"), B: "odd"}))
    asked = Asked(lake, duck)
    assert asked.agree(lake.store.snapshot(), ID)
    assert asked.agree(lake.store.snapshot(), B)
    assert not asked.agree(lake.store.snapshot(), A)
    assert asked.agree(lake.store.snapshot(), ID, B)
    assert _loaded(duck) == {ID, B}


def _loaded(duck: Duck) -> set[int]:
    _, cache = duck._engine_and_columns()
    (slot,) = cache._slots.values()
    assert slot.held is not None
    return set(slot.held.wanted.columns)


def test_only_files_that_meet_the_span_are_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 100)
    _filled(lake, *range(500))
    lake.flush()
    lake.bases.load()
    layout = lake.layout
    within = Span(layout.key({ID: 150}), layout.key({ID: 180}))
    found = Columnar(lake.store).read(layout, (ID,), lake.store.snapshot(), lambda: None, within)
    assert found.base is not None
    assert len(found.base.scans) == 1 < len(found.base.manifest.live)


@pytest.fixture
def plans(duck: Duck, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How DuckDB went about each query."""
    engine, _ = duck._engine_and_columns()
    plans: list[str] = []
    execute = type(engine)._connection

    def connection(self: Any, rendered: Rendered, tables: Any) -> Any:
        made = execute(self, rendered, tables)
        sql, bitmaps, copies = made._query
        for copy in copies:
            made._cursor.execute(copy)
        plans.append(made._cursor.sql(f"EXPLAIN ANALYZE {sql}", params=bitmaps).fetchall()[0][1])
        plans[-1] += made._cursor.sql(f"EXPLAIN {sql}", params=bitmaps).fetchall()[0][1]
        return made

    monkeypatch.setattr(type(engine), "_connection", connection)
    return plans


def test_filters_and_columns_reach_the_files_before_the_bitmap(
    lake: Lake, duck: Duck, plans: list[str]
) -> None:
    _filled(lake, *range(50))
    lake.flush()
    lake.bases.load()
    _changed(lake, 7, "changed")
    assert Asked(lake, duck).by_duck(lake.store.snapshot(), ID, where=" WHERE t.c1 > 47") is not None
    (plan,) = plans
    scan = plan[plan.index("Read Parquet") :]
    assert "c1 > 47" in scan
    assert "get_bit" in plan and "get_bit" not in scan, "the bitmap is for what the filters have left"


def test_first_rows_are_those_of_one_scan_of_all_files_with_hidden_rows(
    lake: Lake, duck: Duck, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 20)
    monkeypatch.setattr(format, "GROUP_ROWS", 5)
    _filled(lake, *range(100))
    assert len(lake.flush().live) == 5
    lake.bases.load()
    # A row of the first group and one of the last, all rows of a group, all of a file, none of the last one.
    for id in (0, 19, *range(25, 30), *range(40, 60), 77):
        _changed(lake, id, "changed")
    asked, source = Asked(lake, duck), lake.store.snapshot()
    assert asked.agree_first(source, 3) and asked.agree_first(source, 70) and asked.agree_first(source, 200)
    assert plans[0].count("Total Files Read: 4") == plans[0].count("Total Files Read: 1") == 1
    assert asked.agree(source, ID, B)
    assert plans[-1].count("Total Files Read: 1") == 5


def test_first_rows_of_very_many_files_are_those_of_several_scans(
    lake: Lake, duck: Duck, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 10)
    monkeypatch.setattr("tenure.sql.duck.base_scan_sql.TOGETHER_FILES_MAX", 2)
    _filled(lake, *range(50))
    assert len(lake.flush().live) == 5
    lake.bases.load()
    for id in range(0, 50, 10):
        _changed(lake, id, "changed")
    assert Asked(lake, duck).agree_first(lake.store.snapshot(), 45)
    assert plans[0].count("Total Files Read: 2") == 2


def test_of_a_file_with_hidden_rows_many_are_expected(lake: Lake, duck: Duck, plans: list[str]) -> None:
    _filled(lake, *range(50))
    lake.flush()
    lake.bases.load()
    _changed(lake, 7, "changed")
    assert Asked(lake, duck).by_duck(lake.store.snapshot(), ID, is_joined=True) is not None
    scan = plans[0][plans[0].index("Read Parquet") :]
    assert "~10 rows" in scan  # a fifth: what DuckDB takes for granted of a condition it knows nothing of


def test_a_join_knows_the_bounds_of_base_and_delta(lake: Lake, duck: Duck, plans: list[str]) -> None:
    _filled(lake, *range(50))
    lake.flush()
    lake.bases.load()
    _changed(lake, 7, "changed")
    assert Asked(lake, duck).agree(lake.store.snapshot(), ID)
    assert Asked(lake, duck).agree_joined(lake.store.snapshot(), ID)
    name = f"n{lake.table.id}"
    assert name not in plans[0] and name in plans[1]  # a table of DuckDB's own, of which it knows them


def test_a_delta_that_is_not_small_is_joined_as_it_is(
    lake: Lake, duck: Duck, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _filled(lake, *range(50))
    lake.flush()
    lake.bases.load()
    _changed(lake, 7, "changed")
    engine, _ = duck._engine_and_columns()
    monkeypatch.setattr(engine, "_copied_bytes_max", 10)
    assert Asked(lake, duck).agree_joined(lake.store.snapshot(), ID, B)
    assert f"n{lake.table.id}" not in plans[0]


def test_what_is_held_follows_the_base_between_queries(lake: Lake, duck: Duck) -> None:
    _filled(lake, *range(20))
    lake.flush()
    lake.bases.load()
    asked = Asked(lake, duck)
    assert asked.agree(lake.store.snapshot(), ID, B)
    _changed(lake, 3, "changed")
    lake.flush()
    lake.bases.load()
    _changed(lake, 4, "changed")
    duck.step()
    _, cache = duck._engine_and_columns()
    assert cache.delta_rows(asked.layout) == 1
    assert asked.agree(lake.store.snapshot(), ID, B)


def test_a_base_tells_how_many_rows_there_are(lake: Lake, duck: Duck) -> None:
    _filled(lake, *range(30))
    lake.flush()
    lake.bases.load()
    _filled(lake, 100)
    asked = Asked(lake, duck)
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
    assert Asked(lake, duck).agree(lake.store.snapshot(), ID, A, B)


def test_a_column_of_another_type_by_now_is_read_row_by_row(lake: Lake, duck: Duck) -> None:
    _filled(lake, 1)
    lake.flush()
    lake.bases.load()
    columns = tuple(
        replace(each, type=TypeRef("numeric", (22, 4))) if each.id == A else each
        for each in lake.table.columns
    )
    lake.table = replace(lake.table, version=lake.table.version + 1, columns=columns)
    asked = Asked(lake, duck)
    assert asked.by_duck(lake.store.snapshot(), A) is None
    assert asked.agree(lake.store.snapshot(), ID, B)


def test_catching_up_that_finds_too_much_goes_over_to_streams(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columnar, "HISTORY_ROWS", 100)
    _filled(lake, *range(10))
    duck = Duck(lake.store, lake=lake.files, cache_bytes=20_000)
    asked = Asked(lake, duck)
    assert asked.agree(lake.store.snapshot(), ID, B)
    assert not duck.streams(asked.layout)
    for first in range(10, 1010, 100):
        _filled(lake, *range(first, first + 100))
    assert asked.agree(lake.store.snapshot(), ID, B)
    assert duck.streams(asked.layout)
    duck.close()


def test_a_lake_in_an_object_store_is_read_as_well(
    tmp_path: Path, bucket_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 10)
    lake = Lake(tmp_path, _table(), lake=bucket_address)
    duck = Duck(lake.store, lake=lake.files)
    _filled(lake, *range(30))
    lake.flush()
    lake.bases.load()
    for id in (7, 17, 29):
        _changed(lake, id, "changed")
    assert Asked(lake, duck).agree(lake.store.snapshot(), ID, A, B)
    assert Asked(lake, duck).agree_first(lake.store.snapshot(), 20)
    duck.close()
    lake.close()


def test_nothing_but_the_lake_is_reached(tmp_path: Path) -> None:
    lake = Lake(tmp_path, _table())
    duck = Duck(lake.store, lake=lake.files)
    outside = tmp_path / "outside.parquet"
    _filled(lake, 1)
    (file,) = lake.flush().live
    outside.write_bytes(Path(lake.files.duck_path(file.name)).read_bytes())
    engine, _ = duck._engine_and_columns()
    kind = lake.layout.columns[B].type
    for path, is_reached in ((lake.files.duck_path(file.name), True), (str(outside), False)):
        rendered = Rendered(
            f"SELECT c3 AS c0 FROM read_parquet('{path}')", (), {}, (Value("", kind, shape_of(kind)),)
        )
        assert (
            engine.run(rendered, dict, lambda: None, account=lone_account(1 << 30)) is not None
        ) == is_reached
    duck.close()
    lake.close()


class Shut:
    """DuckDB over a lake in a bucket, with files around it that it must not reach."""

    def __init__(self, directory: Path, address: str, endpoint: str) -> None:
        self.lake = Lake(directory, _table(), lake=address)
        self.duck = Duck(self.lake.store, lake=self.lake.files)
        self.bucket = address.removeprefix("s3://").partition("/")[0]
        self.endpoint = endpoint
        _filled(self.lake, 1)
        (self.file,) = self.lake.flush().live
        host = endpoint.removeprefix("http://")
        self.store = fs.S3FileSystem(region="us-east-1", scheme="http", endpoint_override=host)
        s3_server.make_bucket(endpoint, f"{self.bucket}-other")
        with self.lake.files.open_input(self.file.name) as file:
            data = file.read()
        (directory / "x.parquet").write_bytes(data)
        for path in ("some/x.parquet", "some/where-else/x.parquet", "x.parquet"):
            self._put(f"{self.bucket}/{path}", data)
        self._put(f"{self.bucket}-other/x.parquet", data)

    def _put(self, path: str, data: bytes) -> None:
        with self.store.open_output_stream(path, compression=None) as output:
            output.write(data)

    def answers(self, sql: str) -> bool:
        engine, _ = self.duck._engine_and_columns()
        kind = self.lake.layout.columns[B].type
        rendered = Rendered(sql, (), {}, (Value("", kind, shape_of(kind)),))
        return engine.run(rendered, dict, lambda: None, account=lone_account(1 << 30)) is not None

    def objects(self) -> dict[str, int]:
        """All that is in both buckets, and when it was changed."""
        buckets = (self.bucket, f"{self.bucket}-other")
        found = [
            each
            for name in buckets
            for each in self.store.get_file_info(fs.FileSelector(name, recursive=True))
        ]
        return {each.path: each.mtime_ns for each in found}

    def close(self) -> None:
        self.duck.close()
        self.lake.close()


@pytest.fixture
def shut(tmp_path: Path, bucket_address: str, s3_endpoint: str) -> Iterator[Shut]:
    shut = Shut(tmp_path, bucket_address, s3_endpoint)
    yield shut
    shut.close()


def test_nothing_but_the_lake_in_a_bucket_is_read(shut: Shut, tmp_path: Path) -> None:
    def reads(path: str) -> bool:
        return shut.answers(f"SELECT c3 AS c0 FROM read_parquet('{path}')")

    assert reads(shut.lake.files.duck_path(shut.file.name))
    root = shut.lake.files.duck_root
    for path in (
        f"{root}../x.parquet",
        f"{root}1/../../x.parquet",
        f"{root}../where-else/x.parquet",
        f"{root}../../x.parquet",
        f"{root}../../../{shut.bucket}-other/x.parquet",
        f"{root}%2e%2e/x.parquet",
        f"{root}./../x.parquet",
        f"{root}/x.parquet",
        f"{root}../*.parquet",
        f"s3://{shut.bucket}/x.parquet",
        f"{shut.endpoint}/{shut.bucket}/x.parquet",
        str(tmp_path / "x.parquet"),
        f"file://{tmp_path}/x.parquet",
        f"{root}{tmp_path}/x.parquet",
    ):
        assert not reads(path), path
    assert not shut.answers(f"SELECT file AS c0 FROM glob('{root}../*')")


def test_nothing_is_written_to_a_bucket(shut: Shut) -> None:
    before = shut.objects()
    root = shut.lake.files.duck_root
    for target in ("new.parquet", shut.file.name, "../new.parquet", "../x.parquet"):
        assert not shut.answers(f"COPY (SELECT 'x' AS c0) TO '{root}{target}'"), target
    assert not shut.answers(f"ATTACH '{root}db.duckdb'")
    assert shut.objects() == before


def test_explain_says_where_the_rows_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sales = schema.table(300, "sales", "id bigint; qty int", ["id"])
    monkeypatch.setitem(schema.TABLES, "sales", sales)
    lake = Lake(tmp_path, sales)
    duck = Duck(lake.store, lake=lake.files)
    lake.write(lambda txn: [lake.writer().insert(txn, {1: id, 2: id}) for id in range(3)])
    lake.flush()
    lake.bases.load()
    lake.write(lambda txn: lake.writer().insert(txn, {1: 9, 2: 9}))
    statement = one("SELECT sum(qty) FROM sales WHERE qty > 1")
    assert statement is not None
    query = with_access(bind_query(statement.tree, schema.KnownNames(), Parameters(())))
    source = lake.store.snapshot()
    run = QueryRun(CONTEXT, source, lake._layouts.of, lambda key: (), lambda: None, lone_account(1 << 30))
    run.instead = duck.taking(is_forced=True)
    assert any('Base of "sales": 1 files, 3 rows' in line for line in plan_text.lines(query, run))
    shown = list(plan_text.analyzed(query, compile(query), run, lake.env.monotonic))
    assert any('Base of "sales": 1 files, 3 rows; delta: 1 rows' in line for line in shown)
    duck.close()
    lake.close()
