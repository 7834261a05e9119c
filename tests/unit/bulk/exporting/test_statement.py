"""EXPORT said to a node: what files come of it, and what is refused."""

import csv
import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tenure.node import Node
from tenure.sql.text.redaction import without_secrets
from tests.unit.bulk.exporting.exported_files import ROWS, exported, files
from tests.unit.sql.sessions import Talk


def test_a_table_is_exported_whole_as_csv(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'whole' FROM TABLE t")
    assert said.tag == "EXPORT"
    lines = exported(directory, said, "whole").decode().splitlines()
    assert len(lines) == ROWS
    assert lines[:3] == [
        '1,"a,""b",1.50,ok,"{x,NULL}",2024-01-01 00:00:00.5+00',
        '2,"",3.00,ok,"{x,NULL}",2024-01-01 00:00:00.5+00',
        '3,,4.50,ok,"{x,NULL}",2024-01-01 00:00:00.5+00',
    ]
    ((name, rows, _),) = said.rows
    assert str(name).startswith("t-") and str(name).endswith("-0.0.csv")
    assert rows == str(ROWS)


def test_options_say_how_csv_is_written(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'options' WITH delimiter = '|', nullas = '-', header FROM TABLE v")
    assert exported(directory, said, "options") == b'id|name\n1|"a,""b"\n2|\n'


def test_a_query_across_schemas_is_exported(talk: Talk, directory: Path) -> None:
    said = talk.say(
        "EXPORT INTO NDJSON 'query' FROM SELECT t.id, word, price FROM t JOIN other.u USING (id) ORDER BY id"
    )
    lines = exported(directory, said, "query").decode().splitlines()
    assert lines == ['{"id":1,"word":"one","price":1.50}', '{"id":2,"word":"two","price":3.00}']
    assert str(said.rows[0][0]).startswith("query-")


def test_parquet_has_natural_types(talk: Talk, directory: Path) -> None:
    data = exported(directory, talk.say("EXPORT INTO PARQUET 'parquet' FROM TABLE t"), "parquet")
    table = pq.read_table(io.BytesIO(data))
    assert table.schema.field("price").type == pa.decimal128(10, 2)
    assert table.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert table.column("m").to_pylist() == ["ok"] * ROWS
    assert table.column("tags")[0].as_py() == "{x,NULL}"
    assert table.column("id").to_pylist() == list(range(1, ROWS + 1))


def test_files_are_cut_after_so_many_rows(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'chunks' WITH chunk_rows = 15, header FROM SELECT id FROM t ORDER BY id")
    exported(directory, said, "chunks")
    assert [row for _, row, _ in said.rows] == ["15", "15", "10"]
    assert all(data.startswith(b"id\n") for data in files(directory, "chunks").values())


def test_files_are_compressed_if_asked_for(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'packed' WITH compression = gzip FROM TABLE t")
    assert str(said.rows[0][0]).endswith(".csv.gz")
    assert gzip.decompress(exported(directory, said, "packed")).count(b"\n") == ROWS


def test_a_table_without_rows_is_one_file(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'none' WITH header FROM TABLE empty")
    assert exported(directory, said, "none") == b'id,"no,name"\n'


def test_a_name_that_means_something_to_a_file_system_does_not_get_there(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'odd' FROM TABLE \"f*/x\"")
    assert exported(directory, said, "odd") == b"1\n"
    assert str(said.rows[0][0]).startswith("f__x-")


def test_the_past_is_exported_as_it_was(talk: Talk, directory: Path) -> None:
    talk.say("CREATE TABLE changing (id int PRIMARY KEY, a text)")
    talk.say("INSERT INTO changing VALUES (1, 'before')")
    moment = talk.say("SELECT cluster_logical_timestamp()").rows[0][0]
    talk.say("UPDATE changing SET a = 'after'")
    talk.say("ALTER TABLE changing ADD COLUMN b int DEFAULT 7")
    said = talk.say(f"EXPORT INTO CSV 'then' FROM TABLE changing AS OF SYSTEM TIME '{moment}'")
    assert exported(directory, said, "then") == b"1,before\n"
    said = talk.say(f"EXPORT INTO CSV 'then2' FROM SELECT * FROM changing AS OF SYSTEM TIME '{moment}'")
    assert exported(directory, said, "then2") == b"1,before\n"
    assert exported(directory, talk.say("EXPORT INTO CSV 'now' FROM TABLE changing"), "now") == b"1,after,7\n"


def test_csv_comes_back_by_copy(talk: Talk, directory: Path) -> None:
    data = exported(directory, talk.say("EXPORT INTO CSV 'back' FROM TABLE t"), "back")
    read = list(csv.reader(io.StringIO(data.decode())))
    assert [row[0] for row in read] == [str(number) for number in range(1, ROWS + 1)]


@pytest.mark.invariant("S24")
def test_the_keys_of_an_object_store_are_shown_to_nobody(talk: Talk) -> None:
    keys = "AWS_ACCESS_KEY_ID=one&AWS_SECRET_ACCESS_KEY=hidden/word%26&AWS_SESSION_TOKEN=hidden"
    said = talk.say(f"EXPORT INTO CSV 's3://bucket/x?{keys}&AWS_ENDPOINT=https://nowhere' FROM TABLE t")
    assert said.sqlstate == "42501"
    assert "hidden" not in f"{said.message} {said.hint} {said.detail} {talk.session.state.activity.statement}"
    assert "hidden" not in without_secrets(f"EXPORT INTO CSV 's3://b/x?{keys}' FROM TABLE t")


@pytest.mark.parametrize("format", ["CSV", "NDJSON", "PARQUET"])
def test_what_is_exported_can_be_imported(talk: Talk, format: str) -> None:
    columns = (
        "id int PRIMARY KEY, a int8, b numeric, c numeric(12, 3), d text, e bool, f float8, g float4, "
        "h date, i timestamp, j timestamptz, k time, l uuid, m bytea, n jsonb, o int[], p interval, "
        "q char(4), r mood"
    )
    for name in ("made", "read"):
        assert not talk.say(f"CREATE TABLE {name}_{format} ({columns})").sqlstate
    said = talk.say(
        f"INSERT INTO made_{format} SELECT g, g * 10000000000, g / 7.0, g * 1.5, repeat('x\"y,', g), "
        "g % 2 = 0, g / 3.0::float8, g / 3.0::float4, date '2024-02-29' + g, "
        "timestamp '2024-01-01 10:00:00.25', "
        "timestamptz '2024-01-01 10:00:00.5+02', time '10:11:12.5', '00000000-0000-0000-0000-00000000000a', "
        "'\\x00ff', '{\"a\": [1.50, null]}', ARRAY[g, NULL], interval '1 mon 2 days 3.5 s', 'ab', 'sad' "
        "FROM generate_series(1, 5) g"
    )
    assert not said.sqlstate, said
    assert not talk.say(f"INSERT INTO made_{format} (id, d) VALUES (6, '')").sqlstate
    assert not talk.say(f"EXPORT INTO {format} 'trip/{format}' FROM TABLE made_{format}").sqlstate
    said = talk.say(f"IMPORT INTO read_{format} {format} DATA ('trip/{format}/*')")
    assert not said.sqlstate, said
    rows = [talk.say(f"SELECT * FROM {name}_{format} ORDER BY id").rows for name in ("made", "read")]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("EXPORT INTO CSV '../x' FROM TABLE t", "22023"),
        ("EXPORT INTO CSV '/etc' FROM TABLE t", "42501"),
        ("EXPORT INTO CSV 'a/*' FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 's3://bucket/x' FROM TABLE t", "22023"),
        ("EXPORT INTO XML 'x' FROM TABLE t", "42601"),
        ("EXPORT INTO CSV 'x' FROM TABLE missing", "42P01"),
        ("EXPORT INTO CSV 'x' FROM DELETE FROM t", "42601"),
        ("EXPORT INTO CSV 'x' FROM SELECT * FROM t FOR UPDATE", "0A000"),
        ("EXPORT INTO CSV 'x' FROM SELECT * FROM t WHERE id = $1", "0A000"),
        ("EXPORT INTO CSV 'x' WITH delimiter = 'ab' FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x' WITH nullas = 'a,b' FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x' WITH chunk_rows = 0 FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x' WITH compression = rar FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x' WITH wings FROM TABLE t", "42601"),
        ("EXPORT INTO CSV 'x' WITH header, header FROM TABLE t", "42601"),
        ("EXPORT INTO PARQUET 'x' WITH header FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x'", "42601"),
    ],
)
def test_what_is_wrong_is_refused_and_leaves_nothing(
    talk: Talk, directory: Path, statement: str, sqlstate: str
) -> None:
    before = talk.say("SELECT count(*) FROM tenure_internal.jobs").rows
    assert talk.say(statement).sqlstate == sqlstate
    assert talk.say("SELECT count(*) FROM tenure_internal.jobs").rows == before
    assert not files(directory, "x")


def test_a_user_without_rights_does_not_export(node: Node, directory: Path) -> None:
    talk = Talk(node, user="plain")
    assert talk.say("EXPORT INTO CSV 'plain' FROM TABLE t").sqlstate == "42501"
    talk.close()
    assert not files(directory, "plain")


def test_it_does_not_belong_to_a_transaction(talk: Talk) -> None:
    talk.say("BEGIN")
    assert talk.say("EXPORT INTO CSV 'block' FROM TABLE t").sqlstate == "25001"
    talk.say("ROLLBACK")


def test_an_error_of_the_query_is_the_statements_and_leaves_no_file(talk: Talk, directory: Path) -> None:
    said = talk.say(
        "EXPORT INTO CSV 'fails' WITH chunk_rows = 5 FROM SELECT id, 10 / (30 - id) FROM t ORDER BY 1"
    )
    assert (said.sqlstate, said.message) == ("22012", "division by zero")
    assert not files(directory, "fails")


def test_a_detached_export_tells_its_job_and_goes_on(node: Node, talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'detached' WITH detached, header FROM TABLE t")
    assert (said.tag, said.columns) == ("EXPORT", ("job_id",))
    ((id,),) = said.rows
    assert not talk.say(f"SHOW JOB WHEN COMPLETE {id}").sqlstate
    ((name, data),) = files(directory, "detached").items()
    assert name.startswith(f"t-{id}-") and data.count(b"\n") == ROWS + 1


def test_a_value_that_parquet_cannot_hold_is_an_error(talk: Talk, directory: Path) -> None:
    talk.say("CREATE TABLE odd (id int PRIMARY KEY, a numeric(10, 2))")
    talk.say("INSERT INTO odd VALUES (1, 'NaN')")
    said = talk.say("EXPORT INTO PARQUET 'odd_parquet' FROM TABLE odd")
    assert said.sqlstate == "22003"
    assert not files(directory, "odd_parquet")
    assert exported(directory, talk.say("EXPORT INTO CSV 'odd_csv' FROM TABLE odd"), "odd_csv") == b"1,NaN\n"


def test_a_job_shows_no_secrets_and_how_far_it_came(talk: Talk) -> None:
    talk.say("EXPORT INTO CSV 'told' FROM TABLE t")
    said = talk.say(
        "SELECT description, status, running_status, fraction_completed FROM tenure_internal.jobs "
        "WHERE job_type = 'export' AND description LIKE '%told%'"
    )
    assert said.rows == (("EXPORT INTO CSV 'told' FROM t", "succeeded", f"{ROWS} rows in 1 files", "1"),)
