"""Columns that the file does not have, and types of all kinds."""

import pytest

from tests.unit.bulk.imports import Importing


def test_defaults(importing: Importing) -> None:
    importing.done(
        "CREATE TABLE t (id int PRIMARY KEY, fixed text DEFAULT 'd', none int, at timestamptz DEFAULT now(),"
        " who text DEFAULT current_user, r float8 DEFAULT random(), u uuid DEFAULT gen_random_uuid())"
    )
    assert importing.csv("1\n2\n3\n", "t (id)").sqlstate == ""
    assert importing.rows("SELECT id, fixed, none, who FROM t ORDER BY id") == [
        (str(id), "d", None, "root") for id in (1, 2, 3)
    ]
    ((ats, rs, us, versions),) = importing.rows(
        "SELECT count(DISTINCT at), count(DISTINCT r), count(DISTINCT u), min(uuid_extract_version(u)) FROM t"
    )
    assert (ats, rs, us, versions) == ("1", "3", "3", "4")


def test_serial_and_identity_go_on_from_where_they_were(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id serial PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY, a text)")
    importing.done("INSERT INTO t (a) VALUES ('first')")
    assert importing.csv("x\ny\nz\n", "t (a)").sqlstate == ""
    importing.done("INSERT INTO t (a) VALUES ('last')")
    ((rows, ids, numbers),) = importing.rows("SELECT count(*), count(DISTINCT id), count(DISTINCT n) FROM t")
    assert (rows, ids, numbers) == ("5", "5", "5")
    assert importing.rows("SELECT a FROM t WHERE id = 1") == [("first",)]


def test_a_sequence_that_is_used_up_fails_the_import(importing: Importing) -> None:
    importing.done("CREATE SEQUENCE s MAXVALUE 2")
    importing.done("CREATE TABLE t (id int PRIMARY KEY DEFAULT nextval('s'), a text)")
    assert importing.csv("x\ny\nz\n", "t (a)").sqlstate == "2200H"
    assert importing.rows() == []


def test_rows_without_a_primary_key_get_ids_of_their_own(importing: Importing) -> None:
    importing.done("CREATE TABLE t (a text)")
    importing.done("CREATE INDEX ON t (a)")
    importing.done("INSERT INTO t VALUES ('0')")
    importing.csv("1\n2\n2\n")
    importing.csv("3\n4\n")
    importing.done("INSERT INTO t VALUES ('5')")
    assert importing.rows("SELECT a FROM t ORDER BY a") == [
        ("0",),
        ("1",),
        ("2",),
        ("2",),
        ("3",),
        ("4",),
        ("5",),
    ]
    assert importing.rows("SELECT a FROM t WHERE a = '2'") == [("2",), ("2",)]


def test_ids_of_several_splits_do_not_meet(importing: Importing) -> None:
    importing.done("CREATE TABLE t (a int)")
    locations = [importing.file(f"{name}.csv{end}", "1\n2\n3\n") for name in "ab" for end in ("", ".gz")]
    texts = ", ".join(f"'{each}'" for each in locations)
    assert importing.counts(importing.say(f"IMPORT INTO t CSV DATA ({texts})")) == ("12", "0", "0")
    assert importing.rows("SELECT count(*) FROM t") == [("12",)]


def test_generated_columns(importing: Importing) -> None:
    importing.done(
        "CREATE TABLE t (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED UNIQUE)"
    )
    assert importing.csv("1,5\n2,\n").sqlstate == ""
    assert importing.rows() == [("1", "5", "10"), ("2", None, None)]
    assert importing.rows("SELECT id FROM t WHERE twice = 10") == [("1",)]
    assert importing.csv("3,5\n").sqlstate == "23505"
    assert importing.csv("3,2000000000\n").sqlstate == "22003"
    assert importing.csv("3,1,2\n", "t (id, a, twice)").sqlstate == "42P17"


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("int2", ["-32768", "32767"]),
        ("int8", ["-9223372036854775808", "9223372036854775807", "0"]),
        ("numeric", ["1.50", "-0.000000000000000000000000000000000000000000001", "NaN"]),
        ("numeric(6,2)", ["1.50", "NaN", "-9999.99"]),
        ("float8", ["1.5", "NaN", "-Infinity", "1e+300"]),
        ("bool", ["t", "f"]),
        ("varchar(5)", ["abc", "äöüéè"]),
        ("char(4)", ["ab  ", "    "]),
        ("bytea", [r"\x00ff", r"\x"]),
        ("uuid", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
        ("date", ["2020-02-29", "1500-01-01", "0001-01-01"]),
        ("time", ["12:34:56.789", "23:59:59.999999"]),
        ("timestamp", ["2020-02-29 12:00:00.5", "1900-01-01 00:00:00"]),
        ("timestamptz", ["2020-02-29 12:00:00+00"]),
        ("interval", ["1 year 2 mons 3 days 04:05:06", "-00:00:01"]),
        ("jsonb", ['{"a": [1, null, "x"]}', "3"]),
        ("text[]", ['{a,NULL,"b c"}', "{}"]),
        ("int[]", ["{1,2}"]),
        ("mood", ["sad", "happy"]),
        ("mood[]", ["{sad,happy}"]),
    ],
)
def test_values_are_those_that_insert_gives(importing: Importing, kind: str, texts: list[str]) -> None:
    importing.done("CREATE TYPE mood AS ENUM ('happy', 'sad')")
    for name in ("t", "o"):
        importing.done(f"CREATE TABLE {name} (id int PRIMARY KEY, v {kind})")
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    lines = "".join(f"{id},{text}\n" for id, text in enumerate(quoted)) + "99,\n"
    assert importing.csv(lines).sqlstate == ""
    for id, text in enumerate(texts):
        importing.done(f"INSERT INTO o VALUES ({id}, '{text}')")
    importing.done("INSERT INTO o VALUES (99, NULL)")
    assert importing.rows() == importing.rows("SELECT * FROM o ORDER BY 1")
    importing.done("UPDATE t SET v = v")
    assert importing.rows() == importing.rows("SELECT * FROM o ORDER BY 1")


@pytest.mark.parametrize(
    "kind", ["numeric(6,2)", "text", "date", "uuid", "bool", "mood", "timestamptz", "char(4)"]
)
def test_keys_of_all_kinds_are_found_and_unique(importing: Importing, kind: str) -> None:
    importing.done("CREATE TYPE mood AS ENUM ('happy', 'sad')")
    values = {
        "numeric(6,2)": "1.50",
        "text": 'x"y',
        "date": "2020-02-29",
        "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "bool": "t",
        "mood": "sad",
        "timestamptz": "2020-02-29 12:00:00+00",
        "char(4)": "ab",
    }
    text = values[kind]
    importing.done(f"CREATE TABLE t (v {kind} PRIMARY KEY, w {kind} UNIQUE)")
    quoted = '"' + text.replace('"', '""') + '"'
    assert importing.csv(f"{quoted},{quoted}\n").sqlstate == ""
    assert len(importing.rows(f"SELECT * FROM t WHERE v = '{text}'")) == 1
    assert len(importing.rows(f"SELECT * FROM t WHERE w = '{text}'")) == 1
    said = importing.csv(f"{quoted},\n")
    assert said.sqlstate == "23505"
    assert importing.say(f"INSERT INTO t VALUES ('{text}', NULL)").sqlstate == "23505"
