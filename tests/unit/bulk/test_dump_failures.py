"""Dumps that fail, are hostile, or have something come in between: nothing is changed, and why is told."""

import threading
from collections.abc import Iterator
from itertools import count

import pytest

from tests.unit.bulk.gates import Gate, held
from tests.unit.bulk.imports import Importing
from tests.unit.sql.sessions import Said

_numbers = count(1)


class Dumping:
    """Dumps of a schema that no other test has."""

    def __init__(self, importing: Importing) -> None:
        self.importing = importing
        self.schema = f"d{next(_numbers)}"

    def file(self, text: str, name: str = "d.sql") -> str:
        return self.importing.file(name, text.replace("SCHEMA_", self.schema))

    def load(self, text: str, options: str = "") -> Said:
        return self.importing.say(f"IMPORT PGDUMP '{self.file(text)}' {options}")

    def names(self) -> list[tuple[str | None, ...]]:
        return self.importing.rows("SELECT * FROM system.namespace ORDER BY 1, 2, 3")

    def rows(self, table: str = "t") -> list[tuple[str | None, ...]]:
        return self.importing.rows(f"SELECT * FROM {self.schema}.{table} ORDER BY 1")


@pytest.fixture
def dumping(importing: Importing) -> Dumping:
    return Dumping(importing)


TABLE = """SET client_encoding = 'UTF8';
SELECT pg_catalog.set_config('search_path', '', false);
CREATE SCHEMA SCHEMA_;
CREATE TABLE SCHEMA_.t (id integer NOT NULL, a text);
COPY SCHEMA_.t (id, a) FROM stdin;
1\tone
2\t\\N
\\.
"""
KEY = "ALTER TABLE ONLY SCHEMA_.t ADD CONSTRAINT t_pkey PRIMARY KEY (id);\n"


@pytest.mark.invariant("dump-whole")
@pytest.mark.parametrize(
    ("text", "sqlstate", "line"),
    [
        (TABLE + "DROP TABLE x;", "0A000", 9),
        (TABLE + "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$;", "0A000", 9),
        (TABLE + "\n\n\\! id\n", "0A000", 11),
        (TABLE + "SELECT 'never ends", "22P04", 9),
        (TABLE + "COPY SCHEMA_.t FROM stdin;\n1\tx\n", "22P04", 9),
        (TABLE + "CREATE TABLE SCHEMA_.u (a nosuchtype);", "42704", 9),
        (TABLE + "CREATE TABLE SCHEMA_.t (a int);", "42P07", 9),
        (TABLE + "ALTER TABLE SCHEMA_.u ADD CONSTRAINT c CHECK (a > 0);", "42P01", 9),
        (TABLE + "CREATE TABLE SCHEMA_.u (a int) PARTITION BY RANGE (a);", "0A000", 9),
        (TABLE + "SELECT pg_catalog.setval('SCHEMA_.s', 1, true);", "42P01", 9),
        (TABLE + "syntax error;", "42601", 9),
        (TABLE + "COPY SCHEMA_.t (nosuch) FROM stdin;\n1\n\\.\n", "42703", 9),
        (TABLE + "COPY SCHEMA_.t (id) FROM stdin;\n1\n\\.\n", "0A000", 9),
        (TABLE.replace("2\t\\N", "2"), "22P04", 7),
        (TABLE.replace("2\t\\N", "2\tx\ty"), "22P04", 7),
        (TABLE.replace("2\t\\N", "x\tx"), "22P02", 7),
        (TABLE.replace("2\t\\N", "\\N\tx"), "23502", 7),
        (TABLE.replace("2\t\\N", "1\tx") + KEY, "23505", 7),
        (TABLE + "ALTER TABLE SCHEMA_.t ADD CONSTRAINT c CHECK ((id < 2));", "23514", 7),
        (
            TABLE + KEY + "CREATE TABLE SCHEMA_.r (t int REFERENCES SCHEMA_.t);\n"
            "COPY SCHEMA_.r (t) FROM stdin;\n1\n\\N\n3\n\\.\n",
            "23503",
            14,
        ),
        ("INSERT INTO SCHEMA_.t VALUES (1);\n", "42P01", 1),
    ],
)
def test_a_dump_that_fails_changes_nothing_and_says_where(
    dumping: Dumping, text: str, sqlstate: str, line: int
) -> None:
    before = dumping.names()
    said = dumping.load(text)
    assert said.sqlstate == sqlstate, said
    assert f'd.sql", line {line}' in said.detail
    assert dumping.names() == before
    assert dumping.load(TABLE + KEY).sqlstate == ""  # nothing is in its way
    assert dumping.rows() == [("1", "one"), ("2", None)]


@pytest.mark.parametrize("location", ["../x.sql", "/etc/passwd", "a/%2e%2e/%2e%2e/x.sql", "nosuch.sql"])
def test_a_dump_lies_where_files_may(dumping: Dumping, location: str) -> None:
    said = dumping.importing.say(f"IMPORT PGDUMP '{location}'")
    assert said.sqlstate in ("22023", "42501", "58P01")


def test_several_files_are_refused(dumping: Dumping) -> None:
    dumping.file("", "a/1.sql")
    dumping.file("", "a/2.sql")
    assert dumping.importing.say(f"IMPORT PGDUMP '{dumping.importing.name}/a/*.sql'").sqlstate == "22023"


def test_unknown_options_and_blocks_are_refused(dumping: Dumping) -> None:
    assert dumping.load(TABLE, "WITH nosuch").sqlstate == "42601"
    dumping.importing.done("BEGIN")
    assert dumping.load(TABLE).sqlstate == "25001"
    dumping.importing.done("ROLLBACK")


def test_what_is_there_already_is_not_used(dumping: Dumping) -> None:
    own = dumping.importing
    own.done("CREATE TABLE there (id int PRIMARY KEY)")
    own.done("CREATE TYPE kind AS ENUM ('a')")
    for text in (
        f"CREATE TABLE SCHEMA_.r (a int REFERENCES {own.name}.there);",
        f"CREATE TABLE SCHEMA_.r (a {own.name}.kind);",
        f"CREATE VIEW SCHEMA_.v AS SELECT id FROM {own.name}.there;",
        f"COPY {own.name}.there (id) FROM stdin;\n1\n\\.\n",
        f"COMMENT ON TABLE {own.name}.there IS 'x';",
        f"CREATE INDEX i ON {own.name}.there (id);",
    ):
        said = dumping.load(f"CREATE SCHEMA SCHEMA_;\n{text}")
        assert said.sqlstate == "0A000", said
        assert "does not make" in said.message
    assert own.rows("SELECT * FROM there") == []


def test_bad_rows_are_tolerated_up_to_a_limit_and_written_down(dumping: Dumping) -> None:
    text = TABLE.replace("2\t\\N", "x\tx\n3\n4\tfour") + KEY
    assert dumping.load(text, "WITH max_bad_rows = 1").sqlstate == "22P02"
    rejects = f"{dumping.importing.name}/out"
    said = dumping.load(text, f"WITH max_bad_rows = 2, rejects = '{rejects}'")
    assert dumping.importing.counts(said) == ("2", "0", "2")
    assert dumping.rows() == [("1", "one"), ("4", "four")]
    (file,) = (dumping.importing.files / "out").iterdir()
    assert len(file.read_text().splitlines()) == 2


def test_names_without_a_schema_are_looked_for_as_the_dump_says(dumping: Dumping) -> None:
    """As versions before 10.3 wrote them."""
    said = dumping.load(
        "CREATE SCHEMA SCHEMA_;\nSET search_path = SCHEMA_, pg_catalog;\nCREATE TABLE t (id int, a text);\n"
        "COPY t (id, a) FROM stdin;\n1\tx\n\\.\nALTER TABLE ONLY t ADD CONSTRAINT t_pkey PRIMARY KEY (id);\n"
    )
    assert said.sqlstate == ""
    assert dumping.rows() == [("1", "x")]
    assert dumping.importing.say(f"INSERT INTO {dumping.schema}.t VALUES (1)").sqlstate == "23505"
    assert dumping.importing.rows("SHOW search_path") == [(dumping.importing.name,)]


def test_a_schema_that_every_database_has_may_be_made(dumping: Dumping) -> None:
    table = f"t_{dumping.schema}"
    said = dumping.load(f"CREATE SCHEMA public;\nCREATE TABLE public.{table} (a int);")
    assert said.sqlstate == ""
    assert dumping.importing.rows(f"SELECT * FROM public.{table}") == []


def test_a_detached_import_goes_on_by_itself(dumping: Dumping) -> None:
    said = dumping.load(TABLE, "WITH detached")
    assert said.columns == ("job_id",)
    dumping.importing.done(f"SHOW JOB WHEN COMPLETE {said.rows[0][0]}")
    assert dumping.rows() == [("1", "one"), ("2", None)]


# ── while it runs ──────────────────────────────────────────────────────────────────────────────


class Background:
    def __init__(self, dumping: Dumping, text: str = TABLE + KEY) -> None:
        self.talk = dumping.importing.session()
        self._said: Said | None = None
        location = dumping.file(text)
        self._thread = threading.Thread(target=self._run, args=(f"IMPORT PGDUMP '{location}'",))
        self._thread.start()

    def _run(self, text: str) -> None:
        self._said = self.talk.say(text)

    def said(self) -> Said:
        self._thread.join(30)
        assert self._said is not None, "it has not ended"
        return self._said


@pytest.fixture
def gate(dumping: Dumping) -> Iterator[Gate]:
    with held(dumping.importing.node) as gate:
        yield gate


def test_nothing_is_seen_of_it_until_all_of_it_is(dumping: Dumping, gate: Gate) -> None:
    before = dumping.names()
    loading = Background(dumping)
    gate.wait()
    assert dumping.names() == before
    assert dumping.importing.say(f"SELECT * FROM {dumping.schema}.t").sqlstate == "42P01"
    gate.open()
    assert loading.said().sqlstate == ""
    assert dumping.rows() == [("1", "one"), ("2", None)]


def test_a_name_that_somebody_takes_meanwhile_is_in_its_way(dumping: Dumping, gate: Gate) -> None:
    loading = Background(dumping)
    gate.wait()
    dumping.importing.done(f"CREATE SCHEMA {dumping.schema}")
    before = dumping.names()
    gate.open()
    assert loading.said().sqlstate == "42P06"
    assert dumping.names() == before


def test_a_schema_that_goes_meanwhile_is_missed(dumping: Dumping, gate: Gate) -> None:
    dumping.importing.done(f"CREATE SCHEMA {dumping.schema}")
    loading = Background(dumping, TABLE.replace("CREATE SCHEMA SCHEMA_;", ""))
    gate.wait()
    dumping.importing.done(f"DROP SCHEMA {dumping.schema}")
    before = dumping.names()
    gate.open()
    assert loading.said().sqlstate == "3F000"
    assert dumping.names() == before


def test_other_schemas_may_come_and_go_meanwhile(dumping: Dumping, gate: Gate) -> None:
    loading = Background(dumping)
    gate.wait()
    dumping.importing.done(f"CREATE SCHEMA {dumping.schema}_other")
    dumping.importing.done(f"DROP SCHEMA {dumping.schema}_other")
    gate.open()
    assert loading.said().sqlstate == ""


RUNNING = "SELECT job_id FROM tenure_internal.jobs WHERE job_type = 'import' AND status = "


def test_a_canceled_import_leaves_nothing(dumping: Dumping, gate: Gate) -> None:
    before = dumping.names()
    loading = Background(dumping)
    gate.wait()
    dumping.importing.done(f"CANCEL JOBS ({RUNNING} 'running')")
    assert loading.said().sqlstate == "57014"
    assert dumping.names() == before


def test_an_import_that_is_taken_up_again_brings_everything_once(dumping: Dumping, gate: Gate) -> None:
    loading = Background(dumping)
    gate.wait()
    dumping.importing.done(f"PAUSE JOBS ({RUNNING} 'running') AND WAIT")
    gate.open()
    dumping.importing.done(f"RESUME JOBS ({RUNNING} 'paused')")
    assert loading.said().sqlstate == ""
    assert gate.runs.count("sort_split") == 2
    assert dumping.rows() == [("1", "one"), ("2", None)]


def test_a_file_that_changes_meanwhile_is_not_read_on(dumping: Dumping, gate: Gate) -> None:
    other = "CREATE TABLE SCHEMA_.u (id int);\nCOPY SCHEMA_.u (id) FROM stdin;\n1\n\\.\n"
    before = dumping.names()
    loading = Background(dumping, TABLE + other)
    gate.wait()  # at the first table
    dumping.file(TABLE + "-- longer\n" + other)
    gate.open()
    said = loading.said()
    assert said.sqlstate == "22023"
    assert "has changed" in said.message
    assert dumping.names() == before


def test_a_compressed_dump_is_decompressed_once_and_leaves_nothing(dumping: Dumping) -> None:
    other = "CREATE TABLE SCHEMA_.u (id int);\nCOPY SCHEMA_.u (id) FROM stdin;\n5\n\\.\n"
    location = dumping.file(TABLE + other, "d.sql.gz")
    assert dumping.importing.say(f"IMPORT PGDUMP '{location}'").sqlstate == ""
    assert (dumping.rows(), dumping.rows("u")) == ([("1", "one"), ("2", None)], [("5",)])
    lake = dumping.importing.node.lake
    assert lake is not None
    listed = [entry.name for page in lake.files.list("") for entry in page]
    assert [name for name in listed if name.endswith("-dump")] == []


def test_a_bomb_is_refused_before_it_is_written_anywhere(dumping: Dumping) -> None:
    location = dumping.file(TABLE.replace("one", "x" * (8 << 20)), "d.sql.gz")
    assert dumping.importing.say(f"IMPORT PGDUMP '{location}'").sqlstate == "54000"
