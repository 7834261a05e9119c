"""What is imported from: formats, compressed and many files, splits, bad rows, and what is no file at all."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tenure.pipeline.reading import splits
from tests.unit.bulk.imports import Importing


@pytest.fixture
def t(importing: Importing) -> Importing:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    return importing


def test_ndjson(t: Importing) -> None:
    location = t.file("a.ndjson", '{"a": "x", "id": 1}\n{"id": 2}\n')
    assert t.counts(t.say(f"IMPORT INTO t NDJSON DATA ('{location}')")) == ("2", "0", "0")
    assert t.rows() == [("1", "x"), ("2", None)]


def test_parquet(t: Importing) -> None:
    pq.write_table(pa.table({"a": ["x", None], "more": [1, 2], "id": [7, 8]}), t.files / "a.parquet")
    assert t.say(f"IMPORT INTO t PARQUET DATA ('{t.name}/a.parquet')").sqlstate == ""
    assert t.rows() == [("7", "x"), ("8", None)]


def test_compressed_files_and_wildcards(t: Importing) -> None:
    t.file("in/1.csv.gz", "1,a\n")
    t.file("in/2.csv", "2,b\n")
    t.file("in/3.txt", "no,number\n")
    assert t.say(f"IMPORT INTO t CSV DATA ('{t.name}/in/*.csv', '{t.name}/in/*.gz')").sqlstate == ""
    assert t.rows() == [("1", "a"), ("2", "b")]


def test_many_small_files(t: Importing) -> None:
    for number in range(150):
        t.file(f"in/{number:03}.csv", f"{number},x\n")
    t.file("in/150.csv", "7,again\n")
    said = t.say(f"IMPORT INTO t CSV DATA ('{t.name}/in/*')")
    assert (
        f'It is in file "{t.name}/in/007.csv", line 1, and in file "{t.name}/in/150.csv", line 1.'
        in said.detail
    )
    t.file("in/150.csv", "150,x\n")
    assert t.counts(t.say(f"IMPORT INTO t CSV DATA ('{t.name}/in/*')")) == ("151", "0", "0")


def test_a_large_file_is_cut_by_whole_records(t: Importing, monkeypatch: pytest.MonkeyPatch) -> None:
    _small_splits(monkeypatch)
    rng = random.Random(4)
    expected = {}
    lines = []
    for id in rng.sample(range(10_000), 2_000):
        text = "".join(rng.choice('ab",\n') for _ in range(rng.randrange(12)))
        expected[id] = text
        quoted = text.replace('"', '""')
        lines.append(f'{id},"{quoted}"')
    said = t.csv("\n".join(lines) + "\n")
    assert t.counts(said) == ("2000", "0", "0")
    assert t.rows() == [(str(id), expected[id]) for id in sorted(expected)]


def test_errors_in_a_split_name_the_line_of_the_file(t: Importing, monkeypatch: pytest.MonkeyPatch) -> None:
    _small_splits(monkeypatch)
    lines = [f'{id},"two\nlines"' for id in range(500)]
    lines[400] = 'x,"two\nlines"'
    said = t.csv("\n".join(lines))
    assert (said.sqlstate, said.message) == ("22P02", 'invalid input syntax for type integer: "x"')
    assert said.detail.endswith(", line 801, column id")


def _small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits.pieces, "__kwdefaults__", {"split_bytes": 1000})
    monkeypatch.setattr(splits, "SPLIT_BYTES", 1000)


def test_options_of_csv(t: Importing) -> None:
    text = "id;a\n1;'x;''y'\n2;none\n"
    said = t.csv(text, options="WITH delimiter = ';', quote = '''', nullif = 'none', header")
    assert said.sqlstate == ""
    assert t.rows() == [("1", "x;'y"), ("2", None)]


def test_tabs_and_skipped_lines(t: Importing) -> None:
    assert t.csv("a\nb\n1\tx\n", options=r"WITH (delimiter = e'\t', skip = 2)").sqlstate == ""
    assert t.rows() == [("1", "x")]


def test_columns_in_the_order_of_the_file(t: Importing) -> None:
    assert t.csv("x,1\n", "t (a, id)").sqlstate == ""
    assert t.rows() == [("1", "x")]


def test_an_empty_file_brings_nothing(t: Importing) -> None:
    assert t.counts(t.csv("")) == ("0", "0", "0")
    t.done("INSERT INTO t VALUES (1, 'x')")
    assert t.rows() == [("1", "x")]


def test_bad_rows_are_tolerated_up_to_a_number_and_written(t: Importing) -> None:
    t.done("ALTER TABLE t ALTER COLUMN a SET NOT NULL")
    text = "1,x\nno,x\n2\n3,\n4,y\n"
    options = f"WITH max_bad_rows = 3, rejects = '{t.name}/out'"
    said = t.csv(text, options=options)
    assert t.counts(said) == ("2", "0", "3")
    ((job, *_),) = said.rows
    written = (t.files / "out" / f"import-{job}.rejects.ndjson").read_text().splitlines()
    found = [json.loads(line) for line in written]
    assert [(each["line"], each["sqlstate"], each["raw"]) for each in found] == [
        (2, "22P02", "no,x"),
        (3, "22P04", "2"),
        (4, "23502", "(3, null)"),
    ]


def test_too_many_bad_rows_are_listed(t: Importing) -> None:
    said = t.csv("a,x\n1,x\nb,x\nc,x\n", options="WITH max_bad_rows = 2")
    assert (said.sqlstate, said.message) == ("22P02", 'invalid input syntax for type integer: "a"')
    first, second, third, more = said.detail.splitlines()
    assert first.endswith('.csv", line 1, column id')
    assert second.endswith(', line 3, column id: invalid input syntax for type integer: "b"')
    assert third.endswith(', line 4, column id: invalid input syntax for type integer: "c"')
    assert more == "More than 2 rows were refused."
    assert t.rows() == []


def test_bad_rows_of_all_files_count_together(t: Importing) -> None:
    for name in ("1", "2", "3"):
        t.file(f"in/{name}.csv", f"{name},x\nbad,x\n")
    assert t.say(f"IMPORT INTO t CSV DATA ('{t.name}/in/*') WITH max_bad_rows = 2").sqlstate == "22P02"
    said = t.say(f"IMPORT INTO t CSV DATA ('{t.name}/in/*') WITH max_bad_rows = 3")
    assert t.counts(said) == ("3", "0", "3")


@pytest.mark.parametrize(
    ("location", "sqlstate"),
    [
        ("missing.csv", "58P01"),
        ("../store.db", "22023"),
        ("/etc/passwd", "42501"),
        ("file:///etc/passwd", "42501"),
        ("http://example.com/a.csv", "22023"),
        ("a%00b", "22023"),
    ],
)
def test_locations_that_lead_nowhere_are_refused_before_there_is_a_job(
    t: Importing, location: str, sqlstate: str
) -> None:
    jobs = t.rows("SELECT count(*) FROM tenure_internal.jobs")
    assert t.say(f"IMPORT INTO t CSV DATA ('{location}')").sqlstate == sqlstate
    assert t.rows("SELECT count(*) FROM tenure_internal.jobs") == jobs


def test_a_link_is_not_followed(t: Importing, directory: Path) -> None:
    (directory / "secret").write_text("1,secret\n")
    (t.files / "link.csv").symlink_to(directory / "secret")
    assert t.say(f"IMPORT INTO t CSV DATA ('{t.name}/link.csv')").sqlstate == "42501"


def test_a_bomb_is_refused(t: Importing) -> None:
    location = t.file("bomb.csv.gz", b"1,x\n" + b"0" * (64 << 20))
    said = t.say(f"IMPORT INTO t CSV DATA ('{location}')")
    assert said.sqlstate == "54000"
    assert t.rows() == []
