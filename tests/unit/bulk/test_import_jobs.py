"""An import as a job: the table is offline while it runs, and comes back whatever becomes of it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.cluster.jobs.job_states import JobState
from tenure.sql.text.redaction import without_secrets
from tests.unit.bulk.gates import Gate, held
from tests.unit.bulk.imports import Importing
from tests.unit.sql.sessions import Said, Talk, running


class Background:
    """A statement that another session says meanwhile."""

    def __init__(self, importing: Importing, text: str) -> None:
        self.talk = importing.session()
        self._said: Said | None = None
        self._thread = threading.Thread(target=self._run, args=(text,))
        self._thread.start()

    def _run(self, text: str) -> None:
        self._said = self.talk.say(text)

    def said(self) -> Said:
        self._thread.join(30)
        assert self._said is not None, "it has not ended"
        return self._said


@pytest.fixture
def t(importing: Importing) -> Importing:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    importing.done("INSERT INTO t VALUES (1, 'old')")
    return importing


@pytest.fixture
def gate(t: Importing) -> Iterator[Gate]:
    with held(t.node) as gate:
        yield gate


def start(t: Importing, text: str = "2,new\n") -> Background:
    location = t.file("a.csv", text)
    return Background(t, f"IMPORT INTO t CSV DATA ('{location}')")


def test_nobody_uses_a_table_that_is_being_imported_into(t: Importing, gate: Gate) -> None:
    importing = start(t)
    gate.wait()
    for text in ("SELECT * FROM t", "INSERT INTO t VALUES (3, 'x')", "UPDATE t SET a = 'x'", "DELETE FROM t"):
        said = t.say(text)
        assert (said.sqlstate, said.message) == ("55000", 'table "t" is being imported into')
        assert said.detail.startswith("Job ") and "CANCEL JOB" in said.hint
    gate.open()
    assert importing.said().sqlstate == ""
    assert t.rows() == [("1", "old"), ("2", "new")]


def test_the_past_of_an_offline_table_can_be_read(t: Importing, gate: Gate) -> None:
    ((now,),) = t.rows("SELECT cluster_logical_timestamp()::text")
    importing = start(t)
    gate.wait()
    assert t.rows(f"SELECT * FROM t AS OF SYSTEM TIME '{now}'") == [("1", "old")]
    gate.open()
    importing.said()


def test_a_change_of_the_table_waits_for_the_import(t: Importing, gate: Gate) -> None:
    importing = start(t)
    gate.wait()
    change = Background(t, "ALTER TABLE t ADD COLUMN b int DEFAULT 7")
    gate.open()
    assert importing.said().sqlstate == ""
    assert change.said().sqlstate == ""
    assert t.rows() == [("1", "old", "7"), ("2", "new", "7")]


def test_an_import_waits_for_transactions_that_use_the_table(t: Importing) -> None:
    other = t.session()
    other.say("BEGIN")
    other.say("INSERT INTO t VALUES (3, 'mine')")
    importing = start(t)
    assert other.say("COMMIT").sqlstate == ""
    assert importing.said().sqlstate == ""
    assert len(t.rows()) == 3


def test_a_canceled_statement_cancels_its_import(t: Importing, gate: Gate) -> None:
    importing = start(t)
    gate.wait()
    importing.talk.session.cancel()
    assert importing.said().sqlstate == "57014"
    assert t.rows() == [("1", "old")]
    assert _states(t) == ["canceled"]


def test_cancel_job(t: Importing, gate: Gate) -> None:
    importing = start(t)
    gate.wait()
    t.done("CANCEL JOBS (SELECT job_id FROM tenure_internal.jobs WHERE status = 'running') AND WAIT")
    assert importing.said().sqlstate == "57014"
    assert t.rows() == [("1", "old")]


def test_a_client_that_goes_away_cancels_its_import(t: Importing, gate: Gate) -> None:
    importing = start(t)
    gate.wait()
    importing.talk.close()
    importing.said()
    assert _states(t) == ["canceled"]
    assert t.rows() == [("1", "old")]


def test_a_paused_import_keeps_the_table_and_goes_on_later(t: Importing, gate: Gate) -> None:
    importing = start(t)
    gate.wait()
    query = "SELECT job_id FROM tenure_internal.jobs WHERE job_type = 'import'"
    t.done(f"PAUSE JOBS ({query} AND status = 'running') AND WAIT")
    assert t.say("SELECT * FROM t").sqlstate == "55000"
    gate.open()
    t.done(f"RESUME JOBS ({query} AND status = 'paused')")
    assert importing.said().sqlstate == ""
    assert t.rows() == [("1", "old"), ("2", "new")]


def test_a_detached_import_says_its_job(t: Importing) -> None:
    location = t.file("a.csv", "2,new\n")
    said = t.done(f"IMPORT INTO t CSV DATA ('{location}') WITH detached")
    assert said.columns == ("job_id",)
    ((job,),) = said.rows
    (row,) = t.done(f"SHOW JOB WHEN COMPLETE {job}").rows
    assert (row[1], row[4]) == ("import", "succeeded")
    assert row[2] == f"IMPORT INTO \"t\" CSV DATA ('{location}')"
    assert t.rows() == [("1", "old"), ("2", "new")]


def test_progress_is_shown(t: Importing) -> None:
    with held(t.node, "merge_range") as gate:
        importing = start(t)
        gate.wait()
        ((status, fraction),) = t.rows(
            "SELECT running_status, fraction_completed FROM tenure_internal.jobs WHERE status = 'running'"
        )
        assert status == "reading, process: 1 of 1 tasks"
        assert fraction is not None and 0.5 < float(fraction) < 0.7
        gate.open()
        importing.said()


def test_not_inside_a_transaction(t: Importing) -> None:
    location = t.file("a.csv", "2,new\n")
    t.done("BEGIN")
    assert t.say(f"IMPORT INTO t CSV DATA ('{location}')").sqlstate == "25001"
    t.done("ROLLBACK")


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("IMPORT INTO missing CSV DATA ('a')", "42P01"),
        ("IMPORT INTO t (missing) CSV DATA ('a')", "42703"),
        ("IMPORT INTO t (a, a) CSV DATA ('a')", "42701"),
        ("IMPORT INTO t XML DATA ('a')", "42601"),
        ("IMPORT INTO t CSV DATA ('a'", "42601"),
        ("IMPORT INTO t CSV DATA ('a') WITH frobnicate", "42601"),
        ("IMPORT INTO t CSV DATA ('a') WITH delimiter = 'ab'", "22023"),
        ("IMPORT INTO t CSV DATA ('a') WITH delimiter = '\"'", "22023"),
        ("IMPORT INTO t CSV DATA ('a') WITH max_bad_rows = -1", "22023"),
        ("IMPORT INTO t CSV DATA ('a') WITH max_bad_rows = many", "22023"),
        ("IMPORT INTO t PARQUET DATA ('a') WITH delimiter = ','", "22023"),
        ("IMPORT INTO pg_catalog.pg_class CSV DATA ('a')", "42501"),
    ],
)
def test_what_is_wrong_with_a_statement(t: Importing, text: str, sqlstate: str) -> None:
    assert t.say(text).sqlstate == sqlstate


def test_an_import_that_has_ended_cannot_be_canceled(t: Importing) -> None:
    ((job, *_),) = t.csv("2,new\n").rows
    assert t.say(f"CANCEL JOB {job}").sqlstate == "55000"
    assert t.rows() == [("1", "old"), ("2", "new")]


def test_a_node_without_a_lake_cannot_import(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        talk = Talk(node)
        talk.say("CREATE TABLE t (id int)")
        assert talk.say("IMPORT INTO t CSV DATA ('a.csv')").sqlstate == "0A000"
        talk.close()


def test_two_imports_of_one_table_come_one_after_the_other(t: Importing, gate: Gate) -> None:
    first = t.file("1.csv", "2,first\n")
    second = t.file("2.csv", "3,second\n")
    jobs = [t.done(f"IMPORT INTO t CSV DATA ('{each}') WITH detached").rows[0][0] for each in (first, second)]
    gate.open()
    t.done(f"SHOW JOBS WHEN COMPLETE {jobs[0]}, {jobs[1]}")
    assert t.rows() == [("1", "old"), ("2", "first"), ("3", "second")]


def test_a_row_that_an_import_may_refer_to_cannot_be_deleted_meanwhile(t: Importing) -> None:
    t.done("CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t)")
    location = t.file("c.csv", "1,1\n")
    with held(t.node, "merge_range") as gate:
        importing = Background(t, f"IMPORT INTO c CSV DATA ('{location}')")
        gate.wait()
        said = t.say("DELETE FROM t")
        assert (said.sqlstate, said.message) == ("55000", 'table "c" is being imported into')
        t.done("UPDATE t SET a = 'other'")
        t.done("INSERT INTO t VALUES (2, 'more')")
        gate.open()
        assert importing.said().sqlstate == ""
    assert t.say("DELETE FROM t WHERE id = 1").sqlstate == "23503"


def test_rows_may_refer_to_a_table_that_is_being_imported_into(t: Importing, gate: Gate) -> None:
    t.done("CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t)")
    importing = start(t)
    gate.wait()
    t.done("INSERT INTO c VALUES (1, 1)")
    assert t.say("INSERT INTO c VALUES (2, 2)").sqlstate == "23503"
    gate.open()
    importing.said()
    t.done("INSERT INTO c VALUES (2, 2)")


def _states(t: Importing) -> list[str]:
    """How the last import has ended."""
    jobs, snapshot = t.node.jobs, t.node.store.snapshot()
    imports = [control for job, control, _ in jobs.list(snapshot) if job.kind == "import"]
    state = imports[-1].state
    assert isinstance(state, JobState)
    return [state.value]


def test_what_sessions_show_has_no_keys_of_an_object_store() -> None:
    text = "IMPORT INTO t CSV DATA ('s3://b/k?AWS_ACCESS_KEY_ID=me&AWS_SECRET_ACCESS_KEY=hush')"
    assert without_secrets(text) == ("IMPORT INTO t CSV DATA ('s3://b/k?redacted")


@pytest.mark.parametrize(
    "text",
    [
        "IMPORT INTO {0}.t CSV DATA ('{0}/a.csv')",
        "IMPORT PGDUMP '{0}/a.sql'",
        "EXPORT INTO CSV '{0}/out' FROM TABLE {0}.t",
    ],
)
def test_all_rights_on_a_table_are_no_right_to_files(t: Importing, text: str) -> None:
    t.file("a.csv", "2,new\n")
    t.file("a.sql", "CREATE TABLE u (id int);\n")
    t.done(f"CREATE USER {t.name} PASSWORD 'a long enough one'")
    t.done(f"GRANT USAGE ON SCHEMA {t.name} TO {t.name}")
    t.done(f"GRANT ALL ON {t.name}.t TO {t.name}")
    said = Talk(t.node, user=t.name).say(text.format(t.name))
    assert said.sqlstate == "42501"
    assert said.message.startswith("permission denied to")
