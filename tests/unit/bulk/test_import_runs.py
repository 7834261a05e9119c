"""Runs and ranges made small, so that a few thousand rows are cut in every way; against a plain dict."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from tenure.bulk.ingest import references, run_chunks
from tenure.pipeline import merge, runs
from tenure.pipeline.reading import blocks, csv_rows
from tenure.pipeline.runs import cuts, read_runs, within, write_run
from tenure.storage.engine import REVISION_BYTES
from tenure.storage.files import Files, open_files
from tenure.table.key_order import even
from tests.unit.bulk.imports import Importing


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return open_files(str(tmp_path))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "BATCH_ROWS", 16)
    monkeypatch.setattr(run_chunks, "CHUNK_BYTES", 4_000)
    monkeypatch.setattr(merge, "RUN_ROWS", 100)
    monkeypatch.setattr(references, "RANGE_KEYS", 64)
    monkeypatch.setattr(merge, "RANGE_BYTES", 50 * (REVISION_BYTES + 40))


def _table(keys: list[bytes]) -> pa.Table:
    return pa.table({"key": pa.array(keys, pa.binary()), "row": list(range(len(keys)))})


def test_ranges_together_have_every_row_once(files: Files, small: None) -> None:
    rng = random.Random(3)
    made, expected = [], []
    for number in range(7):
        keys = sorted(b"%03d" % int(rng.paretovariate(1) * 3) for _ in range(rng.randrange(1, 300)))
        expected += keys
        made.append(write_run(files, f"{number}.arrow", _table(keys)))
    between = cuts(made, 60)
    assert between == sorted(set(between))
    found: list[bytes] = []
    for lo, hi in zip([b"", *between], [*between, None], strict=True):
        rows = read_runs(files, within(made, lo, hi), lo, hi)
        keys = [] if rows is None else rows.column("key").to_pylist()
        assert all(lo <= key and (hi is None or key < hi) for key in keys)
        found += keys
    assert sorted(found) == sorted(expected)


def test_runs_whose_keys_are_as_long_are_read_with_others(files: Files) -> None:
    even_keys = _table([b"ab", b"cd"])
    even_keys = even_keys.set_column(0, "key", even(even_keys.column("key").chunk(0)))
    made = [write_run(files, "0", even_keys), write_run(files, "1", _table([b"a", b"abc"]))]
    alone, both = read_runs(files, made[:1], b"", None), read_runs(files, made, b"", None)
    assert alone is not None and both is not None
    assert alone.column("key").to_pylist() == [b"ab", b"cd"]
    assert both.column("key").to_pylist() == [b"ab", b"cd", b"a", b"abc"]


def test_values_that_have_no_column_in_some_batches_and_runs_are_kept(
    importing: Importing, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 200)
    monkeypatch.setattr(csv_rows, "BLOCK_BYTES", 200)
    ids = random.Random(5).sample(range(-400, 400), 600)
    rows = {id: (str(id), "NaN" if id % 90 == 0 else f"{id}.25") for id in ids}
    importing.done("CREATE TABLE t (id int PRIMARY KEY, n numeric(6, 2))")
    said = importing.csv("".join(",".join(rows[id]) + "\n" for id in ids))
    assert said.sqlstate == ""
    assert importing.rows() == [rows[id] for id in sorted(ids)]


def test_ranges_are_about_as_large_as_asked_for_even_if_runs_are_tiny(files: Files, small: None) -> None:
    made = [write_run(files, f"{number}.arrow", _table([b"%04d" % number])) for number in range(500)]
    between = cuts(made, 50)
    assert len(between) == 9


def test_rows_of_many_runs_join_a_base_and_a_delta(importing: Importing, small: None) -> None:
    rng = random.Random(8)
    importing.done("CREATE TABLE p (id int PRIMARY KEY)")
    importing.csv("".join(f"{id}\n" for id in range(200)), "p")
    importing.done(
        "CREATE TABLE t (id int PRIMARY KEY, a text UNIQUE, p int REFERENCES p, self int REFERENCES t (id))"
    )
    importing.done("CREATE INDEX ON t (p)")
    rows: dict[int, tuple[str, ...]] = {}
    ids = rng.sample(range(100_000), 1_200)
    for _ in range(3):
        chosen = [ids.pop() for _ in range(300)]
        lines = []
        for id in chosen:
            rows[id] = (str(id), f"text {id}", str(rng.randrange(200)), str(rng.choice(chosen)))
            lines.append(",".join(rows[id]) + "\n")
        assert importing.csv("".join(lines)).sqlstate == ""
        for id in rng.sample(sorted(rows), 20):
            rows[id] = (str(id), f"changed {id}", *rows[id][2:])
            importing.done(f"UPDATE t SET a = 'changed {id}' WHERE id = {id}")
        added = ids.pop()
        rows[added] = (str(added), f"text {added}", "7", str(added))
        importing.done(f"INSERT INTO t VALUES ({','.join(repr(each) for each in rows[added])})")
        assert importing.rows() == [rows[id] for id in sorted(rows)]
    for column in ("a", "p"):
        sample = rows[rng.choice(sorted(rows))]
        value = sample[1] if column == "a" else sample[2]
        expected = sorted(row for row in rows.values() if value in row[1:3])
        found = importing.rows(f"SELECT * FROM t WHERE {column} = '{value}'")
        assert sorted(found) == expected
    doubled = rng.choice(sorted(rows))
    fresh = "".join(f"{id},new {id},1,{doubled}\n" for id in ids)
    said = importing.csv(f"{fresh}{doubled},x,1,\n")
    assert (said.sqlstate, f"Key (id)=({doubled})" in said.detail) == ("23505", True)
    assert f", line {len(ids) + 1}." in said.detail
    said = importing.csv(f"{fresh}-1,x,999,\n")
    assert (said.sqlstate, "Key (p)=(999)" in said.detail) == ("23503", True)
    assert importing.rows() == [rows[id] for id in sorted(rows)]
