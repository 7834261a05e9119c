"""Scans of random histories, flushed and cleaned at random, against a naive model, at random times."""

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tenure.base.errors import CorruptData
from tenure.base.timestamp import Timestamp
from tenure.expr.types.type_names import type_of
from tenure.pipeline import scan
from tenure.pipeline.remote_handles import TableVersion
from tenure.table.arrow import packed
from tenure.table.lake import format, scanning
from tenure.table.packing import unpack_columns
from tenure.table.read import rows, visible
from tests.postgres_server import Server
from tests.seeds import seeds
from tests.unit.pipeline.histories import History, first_version
from tests.unit.pipeline.lakes import Lake


@pytest.fixture(params=["sqlite", "postgres"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    if request.param == "sqlite":
        lake = Lake(tmp_path, first_version())
        yield lake
        lake.close()
        return
    server: Server = request.getfixturevalue("postgres")
    name = f"scan_{uuid4().hex[:12]}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    address = f"postgresql://postgres@127.0.0.1:{server.port}/{name}"
    lake = Lake(tmp_path, first_version(), address=address)
    yield lake
    lake.close()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many: groups, pieces and tasks of a handful."""
    monkeypatch.setattr(format, "GROUP_ROWS", 5)
    monkeypatch.setattr(scanning, "PIECE_ROWS", 12)
    monkeypatch.setattr(scanning, "DELTA_ROWS", 7)
    monkeypatch.setattr(scanning, "PAGE_KEYS", 4)
    monkeypatch.setattr(scan, "TASK_ROWS", 20)
    monkeypatch.setattr(scan, "CUT_ROWS", 9)


def planned(lake: Lake, history: History, at: Timestamp, **asked: Any) -> list[scan.ScanTask]:
    cut = scan.bounds(lake.store, lake.bases.checked, lake.table.id, 1, at).keys
    return scan.tasks(lake.place, TableVersion(history.version(at), ()), at, cut, **asked)


def shown(history: History, at: Timestamp, batches: Iterable[Any]) -> list[str]:
    """Rows of a scan as the model shows them."""
    columns = history.version(at).columns
    kinds = {each.id: type_of(each.type) for each in columns}
    found = []
    for batch in batches:
        values = {
            each.id: [kinds[each.id].unpack(value) for value in packed(each.type, batch[f"c{each.id}"])]
            for each in columns
        }
        for place, odd in enumerate(batch["odd"].to_pylist()):
            for id, value in unpack_columns(odd or b"\x80").items():
                values[id][place] = kinds[id].unpack(value)
        rows = [str({id: column[place] for id, column in values.items()}) for place in range(len(batch))]
        more = [batch[name].to_pylist() for name in ("at", "deleted", "until") if name in batch.schema.names]
        found += [" ".join(map(str, row)) for row in zip(rows, *more, strict=True)]
    return found


def check(lake: Lake, history: History, rng: random.Random) -> None:
    at = rng.choice(history.times)
    since_at = rng.choice([0, *[each for each in history.times if each <= at]])
    assert shown(history, at, scan.scanned(planned(lake, history, at))) == history.visible(at)
    newest = planned(lake, history, at, since_at=since_at)
    assert shown(history, at, scan.scanned(newest)) == history.changed(since_at, at)
    revisions = planned(lake, history, at, since_at=since_at, revisions="all")
    assert shown(history, at, scan.scanned(revisions)) == history.revisions(since_at, at)
    layout = lake._layouts.of(history.version(at))
    selected = [str(visible(layout, row)) for row in rows(lake.store.snapshot(at), layout)]
    assert selected == history.visible(at)


@pytest.mark.invariant("scan-exact")
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", seeds(3, few=1))
def test_scans_and_reads_at_any_time_agree_with_a_naive_model(lake: Lake, seed: int) -> None:
    history = History(lake, seed)
    for step in range(18):
        history.write(history.rng.randrange(1, 12))
        if step == 6:
            history.add_column()
        if step == 12:
            history.drop_column()
        if step in (4, 9) or history.rng.random() < 0.2:
            lake.flush()
        if history.rng.random() < 0.3:
            lake.clean(history.rng.choice([None, *history.times]))
        for _ in range(2):
            check(lake, history, history.rng)
    assert lake.manifest().past, "no history has been flushed"


@pytest.mark.invariant("scan-exact")
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(3))
def test_a_scan_that_a_flush_and_a_cleaning_overtake_goes_on_at_the_same_time(lake: Lake, seed: int) -> None:
    history = History(lake, seed)
    for _ in range(4):
        history.write(10)
    lake.flush()
    history.write(10)
    at = history.times[-1]
    batches = scan.scanned(planned(lake, history, at))
    found = [next(batches)]
    history.write(20)
    lake.flush()
    lake.clean()
    found += [next(batches)]
    history.write(20)
    named = {file.name for file in lake.manifest().files}
    lake.flush()
    lake.clean()
    lake.files.delete(named - {file.name for file in lake.manifest().files})
    found += batches
    assert shown(history, at, found) == history.visible(at)


def test_a_lake_whose_files_are_not_there_is_an_error_and_not_an_empty_table(lake: Lake) -> None:
    history = History(lake, 1)
    history.write(20)
    lake.flush()
    lake.files.delete([file.name for file in lake.manifest().files])
    with pytest.raises(CorruptData, match=r"of table 200, index 1 is missing"):
        list(scan.scanned(planned(lake, history, history.times[-1])))


@pytest.mark.usefixtures("small")
def test_a_scan_of_few_columns_gives_no_others(lake: Lake) -> None:
    history = History(lake, 2)
    history.write(30)
    lake.flush()
    history.write(10)
    batches = list(scan.scanned(planned(lake, history, history.times[-1], columns=[4, 1])))
    assert batches[0].schema.names == ["c4", "c1", "odd"]
    assert [row for batch in batches for row in batch["c1"].to_pylist()] == sorted(history.now)


@pytest.mark.usefixtures("small")
def test_tasks_are_cut_by_files_and_delta(lake: Lake) -> None:
    history = History(lake, 3)
    for _ in range(6):
        history.write(30)
    at = history.times[-1]
    assert len(planned(lake, history, at)) > 2
    lake.flush()
    cut = scan.bounds(lake.store, lake.bases.checked, lake.table.id, 1, at)
    assert len(cut.keys) > 2
    assert cut.rows == len(history.now)
