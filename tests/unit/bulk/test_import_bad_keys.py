"""Rows whose keys are taken, or that refer to nothing, where some bad rows are tolerated."""

import json
from typing import Any

import pytest

from tenure.bulk.importing.clashes import RefusedRow, decided
from tenure.bulk.ingest import run_chunks
from tenure.pipeline import runs
from tenure.pipeline.merge_inputs import Clash
from tests.unit.bulk.imports import Importing
from tests.unit.sql.sessions import Said

SAID = 'duplicate key value violates unique constraint "t_pkey"'
MISSING = 'insert or update on table "t" violates foreign key constraint "t_r_fkey"'


@pytest.fixture
def t(importing: Importing) -> Importing:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text, u int UNIQUE)")
    return importing


def options(t: Importing, tolerated: int) -> str:
    return f"WITH max_bad_rows = {tolerated}, rejects = '{t.name}/out'"


def rejects(t: Importing, said: Said) -> list[dict[str, Any]]:
    ((job, *_),) = said.rows
    text = (t.files / "out" / f"import-{job}.rejects.ndjson").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.invariant("first-stays")
def test_of_equal_keys_the_first_by_file_and_line_stays(t: Importing) -> None:
    first = t.file("first.csv", "3,a,\n1,b,\n3,c,\n")
    second = t.file("second.csv", "1,d,\n2,e,\n")
    said = t.say(f"IMPORT INTO t CSV DATA ('{first}', '{second}') {options(t, 2)}")
    assert t.counts(said) == ("3", "3", "2")
    assert t.rows("SELECT id, a FROM t ORDER BY 1") == [("1", "b"), ("2", "e"), ("3", "a")]
    assert [(each["file"], each["line"], each["sqlstate"], each["reason"]) for each in rejects(t, said)] == [
        (first, 3, "23505", f'{SAID}: Key (id)=(3) is in file "{first}", line 1'),
        (second, 1, "23505", f'{SAID}: Key (id)=(1) is in file "{first}", line 2'),
    ]


def test_a_row_whose_key_the_table_has_is_refused(t: Importing) -> None:
    t.done("INSERT INTO t VALUES (1, 'there', 7)")
    said = t.csv("1,x,1\n2,y,2\n1,z,3\n3,w,7\n", options=options(t, 3))
    assert t.counts(said) == ("1", "1", "3")
    assert t.rows() == [("1", "there", "7"), ("2", "y", "2")]
    reasons = [each["reason"] for each in rejects(t, said)]
    assert reasons[:2] == [f"{SAID}: Key (id)=(1) is in the table"] * 2
    assert reasons[2].endswith("Key (u)=(7) is in the table")


def test_a_row_that_was_refused_takes_no_key_from_others(t: Importing) -> None:
    said = t.csv("1,a,10\n1,b,20\n2,c,20\n", options=options(t, 1))
    assert t.counts(said) == ("2", "2", "1")
    assert t.rows() == [("1", "a", "10"), ("2", "c", "20")]
    assert t.rows("SELECT id FROM t WHERE u = 20") == [("2",)]


def test_indexes_have_the_rows_that_stay_and_no_others(t: Importing) -> None:
    t.done("CREATE INDEX by_a ON t (a)")
    t.csv("1,x,1\n1,x,2\n2,x,3\n", options=options(t, 1))
    assert t.rows("SELECT id FROM t WHERE a = 'x' ORDER BY 1") == [("1",), ("2",)]
    assert t.rows("SELECT id FROM t WHERE u = 2") == []
    t.done("INSERT INTO t VALUES (3, 'y', 2)")


def test_too_many_rows_with_taken_keys_leave_the_table_as_it_was(t: Importing) -> None:
    t.done("INSERT INTO t VALUES (9, 'there', 9)")
    said = t.csv("1,a,\n1,b,\n2,c,\n2,d,\nx,e,\n", options="WITH max_bad_rows = 2")
    assert (said.sqlstate, said.message) == ("23505", said.message)
    assert said.message.startswith(f"{SAID}: Key (id)=(1) is in file")
    assert said.detail.splitlines()[-1] == "More than 2 rows were refused."
    assert t.rows() == [("9", "there", "9")]


def test_all_kinds_of_bad_rows_count_together(t: Importing) -> None:
    text = "1,a,\nx,e,\n1,b,\n"
    assert t.csv(text, options="WITH max_bad_rows = 1").sqlstate
    assert t.counts(t.csv(text, options="WITH max_bad_rows = 2")) == ("1", "1", "2")


@pytest.mark.invariant("first-stays")
def test_it_does_not_matter_how_the_input_is_cut(t: Importing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_chunks, "CHUNK_BYTES", 1)
    monkeypatch.setattr(runs, "BATCH_ROWS", 2)
    lines = [f"{number * 7 % 50},a{number},{number * 3 % 80}" for number in range(100)]
    said = t.csv("\n".join(lines) + "\n", options="WITH max_bad_rows = 100")
    ids: set[int] = set()
    others: set[int] = set()
    kept = []
    for line in lines:
        id, text, other = line.split(",")
        if int(id) not in ids and int(other) not in others:
            ids.add(int(id))
            others.add(int(other))
            kept.append((id, text, other))
    assert t.rows() == sorted(kept, key=lambda row: int(row[0]))
    assert t.counts(said) == (str(len(kept)), str(len(kept)), str(100 - len(kept)))


@pytest.fixture
def referring(importing: Importing) -> Importing:
    importing.done("CREATE TABLE there (id int PRIMARY KEY)")
    importing.done("INSERT INTO there VALUES (1), (2)")
    importing.done("CREATE TABLE t (id int PRIMARY KEY, r int REFERENCES there)")
    return importing


def test_all_rows_that_refer_to_nothing_are_refused(referring: Importing) -> None:
    said = referring.csv("1,1\n2,9\n3,\n4,8\n5,9\n6,2\n", options=options(referring, 3))
    assert referring.counts(said) == ("3", "0", "3")
    assert referring.rows() == [("1", "1"), ("3", None), ("6", "2")]
    assert [(each["line"], each["sqlstate"], each["reason"]) for each in rejects(referring, said)] == [
        (2, "23503", f'{MISSING}: Key (r)=(9) is not present in table "there".'),
        (4, "23503", f'{MISSING}: Key (r)=(8) is not present in table "there".'),
        (5, "23503", f'{MISSING}: Key (r)=(9) is not present in table "there".'),
    ]


def test_too_many_rows_that_refer_to_nothing_fail_the_import(referring: Importing) -> None:
    said = referring.csv("1,1\n2,9\n3,9\n", options="WITH max_bad_rows = 1")
    assert said.sqlstate == "23503"
    assert referring.rows() == []


def test_what_refers_to_a_row_that_was_refused_is_refused_too(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, r int REFERENCES t)")
    said = importing.csv("1,\n2,3\n3,4\n4,9\n5,1\n", options=options(importing, 3))
    assert importing.rows() == [("1", None), ("5", "1")]
    assert [each["line"] for each in rejects(importing, said)] == [2, 3, 4]


def test_nothing_is_tolerated_unless_asked_for(t: Importing) -> None:
    assert t.csv("1,a,\n1,b,\n").detail.startswith("Key (id)=(1) is there twice.")


def test_rows_are_decided_in_their_order_whatever_the_order_of_clashes() -> None:
    clashes = [
        Clash((1, 2), b"y", "two", False, ((0, 2), (0, 3))),
        Clash((1, 1), b"x", "one", False, ((0, 1), (0, 2))),
    ]
    for order in (clashes, clashes[::-1]):
        assert decided(order) == {(0, 2): RefusedRow("23505", "one", (0, 1))}
