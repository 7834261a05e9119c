"""IMPORT on Spark for real: the same statement, the same rows, the same errors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_sessions import SparkSessions
from tests.unit.bulk.imports import Importing
from tests.unit.lake_nodes import lake_node

ROWS = 20_000


@pytest.fixture
def importing(spark_sessions: SparkSessions, tmp_path: Path) -> Iterator[Importing]:
    with lake_node(tmp_path, spark=spark_sessions.tasks) as node:
        importing = Importing(node, tmp_path)
        importing.done("SET CLUSTER SETTING pipeline.spark_min_rows = 0")
        yield importing
        importing.talk.close()


def test_an_import_on_spark(importing: Importing) -> None:
    importing.done("CREATE TABLE p (id int PRIMARY KEY)")
    importing.csv("".join(f"{id}\n" for id in range(100)), "p")
    importing.done(
        "CREATE TABLE t (n serial, id int PRIMARY KEY CHECK (id >= 0), a text NOT NULL UNIQUE,"
        " p int REFERENCES p)"
    )
    for part in range(4):
        ids = [id * 7919 % ROWS for id in range(part, ROWS, 4)]
        importing.file(f"in/{part}.csv", "".join(f"{id},text {id},{id % 100}\n" for id in ids))
    said = importing.say(f"IMPORT INTO t (id, a, p) CSV DATA ('{importing.name}/in/*')")
    assert importing.counts(said) == (str(ROWS), str(ROWS), "0")
    ((job, *_),) = said.rows
    ((engine,),) = importing.rows(f"SELECT running_status FROM tenure_internal.jobs WHERE job_id = {job}")
    assert engine == f"spark: {ROWS} rows"
    assert importing.rows("SELECT count(*), count(DISTINCT n), sum(id) FROM t") == [
        (str(ROWS), str(ROWS), str(ROWS * (ROWS - 1) // 2))
    ]
    assert importing.rows("SELECT id FROM t WHERE a = 'text 777'") == [("777",)]


def test_an_error_comes_from_spark_as_it_is(importing: Importing) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY)")
    said = importing.csv("1\n2\nx\n")
    assert (said.sqlstate, said.message) == ("22P02", 'invalid input syntax for type integer: "x"')
    assert said.detail.endswith(", line 3, column id")
    said = importing.csv("1\n2\n1\n")
    assert said.sqlstate == "23505"
    assert "line 1, and in file" in said.detail
    importing.done("INSERT INTO t VALUES (1)")


@pytest.mark.parametrize("name", ["d.sql", "d.sql.gz"])
def test_a_dump_on_spark(importing: Importing, name: str) -> None:
    schema = f"{importing.name}_dump"
    people = "".join(f"{id * 7919 % ROWS}\tit's\\t{id}\t{id % 10}\n" for id in range(ROWS))
    teams = "".join(f"INSERT INTO {schema}.teams VALUES ({id});\n" for id in range(10))
    location = importing.file(
        name,
        f"CREATE SCHEMA {schema};\nCREATE TABLE {schema}.people (id int, a text, team int);\n"
        f"CREATE TABLE {schema}.teams (id int);\n"
        f"COPY {schema}.people (id, a, team) FROM stdin;\n{people}\\.\n{teams}"
        f"ALTER TABLE ONLY {schema}.people ADD CONSTRAINT people_pkey PRIMARY KEY (id);\n"
        f"ALTER TABLE ONLY {schema}.teams ADD CONSTRAINT teams_pkey PRIMARY KEY (id);\n"
        f"CREATE INDEX people_a ON {schema}.people (a);\n"
        f"ALTER TABLE {schema}.people ADD CONSTRAINT c FOREIGN KEY (team) REFERENCES {schema}.teams(id);\n",
    )
    said = importing.say(f"IMPORT PGDUMP '{location}'")
    assert importing.counts(said) == (str(ROWS + 10), str(ROWS), "0")
    assert importing.rows(f"SELECT count(*), sum(id), sum(team) FROM {schema}.people") == [
        (str(ROWS), str(ROWS * (ROWS - 1) // 2), str(ROWS * 9 // 2))
    ]
    assert importing.rows(f"SELECT id FROM {schema}.people WHERE a = E'it''s\\t1'") == [(str(7919 % ROWS),)]
