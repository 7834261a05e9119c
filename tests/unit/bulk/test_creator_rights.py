"""IMPORT and EXPORT by users who are no superusers, and jobs whose creators lose their rights."""

from collections.abc import Iterator

import pytest

from tests.unit.bulk.gates import held
from tests.unit.bulk.imports import Importing
from tests.unit.sql.sessions import Said, Talk

IMPORTS = "IMPORT INTO t CSV DATA ('{0}/a.csv')"
EXPORTS = "EXPORT INTO CSV '{0}/out' FROM TABLE t"


@pytest.fixture
def user(importing: Importing) -> Iterator[Talk]:
    """Has the rights to import into, and to export, one table."""
    t, name = importing, f"u_{importing.name}"
    t.file("a.csv", "2,new\n")
    t.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
    t.done("INSERT INTO t VALUES (1, 'old')")
    t.done(f"CREATE USER {name}")
    t.done(f"GRANT USAGE ON SCHEMA {t.name} TO {name}")
    t.done(f"GRANT SELECT, INSERT, IMPORT, EXPORT ON t TO {name}")
    t.done(f"GRANT pg_read_server_files, pg_write_server_files TO {name}")
    talk = Talk(t.node, user=name)
    talk.say(f"SET search_path = {t.name}")
    yield talk
    talk.close()


def tried(t: Importing, user: Talk, statement: str) -> Said:
    return user.say(statement.format(t.name))


def test_users_with_the_rights_import_and_export(importing: Importing, user: Talk) -> None:
    t = importing
    assert tried(t, user, IMPORTS).sqlstate == ""
    assert t.rows() == [("1", "old"), ("2", "new")]
    assert tried(t, user, EXPORTS).sqlstate == ""
    assert tried(t, user, "EXPORT INTO CSV '{0}/query' FROM SELECT a FROM t").sqlstate == ""
    assert len(list((t.files / "out").iterdir())) == 1


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        (IMPORTS, "IMPORT ON t"),
        (IMPORTS, "INSERT ON t"),
        (IMPORTS, "pg_read_server_files"),
        (IMPORTS + " WITH rejects = '{0}/bad'", "pg_write_server_files"),
        (EXPORTS, "EXPORT ON t"),
        (EXPORTS, "SELECT ON t"),
        (EXPORTS, "pg_write_server_files"),
        ("EXPORT INTO CSV '{0}/out' FROM SELECT 1 FROM t", "EXPORT ON t"),
    ],
)
def test_each_of_the_rights_is_needed(importing: Importing, user: Talk, statement: str, missing: str) -> None:
    t = importing
    t.done(f"REVOKE {missing} FROM u_{t.name}")
    assert tried(t, user, statement).sqlstate == "42501"
    assert t.rows() == [("1", "old")]
    assert not (t.files / "out").exists()


def test_rights_on_columns_are_for_those_columns(importing: Importing, user: Talk) -> None:
    t, name = importing, f"u_{importing.name}"
    t.file("ids.csv", "3\n")
    t.done(f"REVOKE SELECT, INSERT ON t FROM {name}")
    t.done(f"GRANT SELECT (id), INSERT (id) ON t TO {name}")
    assert tried(t, user, IMPORTS).sqlstate == "42501"
    assert tried(t, user, "IMPORT INTO t (id) CSV DATA ('{0}/ids.csv')").sqlstate == ""
    assert tried(t, user, EXPORTS).sqlstate == "42501"
    assert tried(t, user, "EXPORT INTO CSV '{0}/ids' FROM SELECT id FROM t").sqlstate == ""


def test_a_view_is_exported_by_a_right_on_the_view(importing: Importing, user: Talk) -> None:
    t, name = importing, f"u_{importing.name}"
    t.done("CREATE VIEW v AS SELECT a FROM t")
    t.done(f"GRANT SELECT ON v TO {name}")
    t.done(f"REVOKE ALL ON t FROM {name}")
    statement = "EXPORT INTO CSV '{0}/view' FROM TABLE v"
    assert tried(t, user, statement).sqlstate == "42501"
    t.done(f"GRANT EXPORT ON v TO {name}")
    assert tried(t, user, statement).sqlstate == ""


def test_the_owner_of_a_table_has_no_files_by_that(importing: Importing, user: Talk) -> None:
    t, name = importing, f"u_{importing.name}"
    t.done(f"GRANT CREATE ON SCHEMA {t.name} TO {name}")
    t.done(f"REVOKE pg_read_server_files, pg_write_server_files FROM {name}")
    assert tried(t, user, "CREATE TABLE own (id int, a text)").sqlstate == ""
    assert tried(t, user, "IMPORT INTO own CSV DATA ('{0}/a.csv')").sqlstate == "42501"
    assert tried(t, user, "EXPORT INTO CSV '{0}/out' FROM TABLE own").sqlstate == "42501"
    assert tried(t, user, f"GRANT pg_read_server_files TO {name}").sqlstate == "42501"
    assert tried(t, user, "IMPORT PGDUMP '{0}/a.csv'").sqlstate == "42501"


@pytest.mark.invariant("creators-rights")
@pytest.mark.parametrize(
    ("statement", "kernel", "loss"),
    [
        (IMPORTS, "sort_split", "REVOKE IMPORT ON t FROM {1}"),
        (IMPORTS, "sort_split", "REVOKE INSERT ON t FROM {1}"),
        (IMPORTS, "sort_split", "REVOKE pg_read_server_files FROM {1}"),
        (EXPORTS, "export_range", "REVOKE SELECT ON t FROM {1}"),
        (EXPORTS, "export_range", "REVOKE EXPORT ON t FROM {1}"),
        (EXPORTS, "export_range", "REVOKE pg_write_server_files FROM {1}"),
        (EXPORTS, "export_range", "DROP OWNED BY {1}; DROP ROLE {1}"),
    ],
)
def test_a_right_lost_between_pause_and_resume_fails_the_job(
    importing: Importing, user: Talk, statement: str, kernel: str, loss: str
) -> None:
    t, name = importing, f"u_{importing.name}"
    with held(t.node, kernel) as gate:
        ((id,),) = tried(t, user, statement + " WITH detached" if "IMPORT" in statement else DETACHED).rows
        gate.wait()
        t.done(f"PAUSE JOB {id} AND WAIT")
    for each in loss.format(t.name, name).split("; "):
        t.done(each)
    t.done(f"RESUME JOB {id}")
    t.done(f"SHOW JOBS WHEN COMPLETE {id}")
    ((status, error),) = t.done(f"SELECT status, error FROM tenure_internal.jobs WHERE job_id = {id}").rows
    assert status == "failed"
    assert "permission denied" in str(error) or "does not exist" in str(error)
    assert t.rows() == [("1", "old")]
    assert not [*(t.files / "out").glob("*")]


DETACHED = EXPORTS.replace(" FROM", " WITH detached FROM")


def test_another_role_of_the_name_does_not_have_the_job(importing: Importing, user: Talk) -> None:
    t, name = importing, f"u_{importing.name}"
    with held(t.node) as gate:
        ((id,),) = tried(t, user, IMPORTS + " WITH detached").rows
        gate.wait()
        t.done(f"PAUSE JOB {id} AND WAIT")
    for each in (f"DROP OWNED BY {name}", f"DROP ROLE {name}", f"CREATE USER {name}"):
        t.done(each)
    t.done(f"GRANT SELECT, INSERT, IMPORT ON t TO {name}")
    t.done(f"GRANT pg_read_server_files TO {name}")
    other = Talk(t.node, user=name)
    assert other.say("SHOW JOBS").rows == ()
    assert other.say(f"RESUME JOB {id}").sqlstate == "42501"
    other.close()
    t.done(f"RESUME JOB {id}")
    t.done(f"SHOW JOBS WHEN COMPLETE {id}")
    ((status,),) = t.done(f"SELECT status FROM tenure_internal.jobs WHERE job_id = {id}").rows
    assert status == "failed"
    assert t.rows() == [("1", "old")]


def test_imports_draw_from_sequences_by_the_creators_rights(importing: Importing, user: Talk) -> None:
    t, name = importing, f"u_{importing.name}"
    t.done("CREATE TABLE counted (id serial, a text)")
    t.done(f"GRANT INSERT, IMPORT ON counted TO {name}")
    t.file("names.csv", "new\n")
    statement = "IMPORT INTO counted (a) CSV DATA ('{0}/names.csv') WITH detached"
    assert tried(t, user, statement).sqlstate == "42501"
    t.done(f"GRANT USAGE ON counted_id_seq TO {name}")
    with held(t.node) as gate:
        ((id,),) = tried(t, user, statement).rows
        gate.wait()
        t.done(f"PAUSE JOB {id} AND WAIT")
    t.done(f"REVOKE USAGE ON counted_id_seq FROM {name}")
    t.done(f"RESUME JOB {id}")
    t.done(f"SHOW JOBS WHEN COMPLETE {id}")
    ((status,),) = t.done(f"SELECT status FROM tenure_internal.jobs WHERE job_id = {id}").rows
    assert status == "failed"


def test_a_job_goes_on_after_its_creator_was_renamed(importing: Importing, user: Talk) -> None:
    t, name = importing, f"u_{importing.name}"
    with held(t.node) as gate:
        ((id,),) = tried(t, user, IMPORTS + " WITH detached").rows
        gate.wait()
        t.done(f"PAUSE JOB {id} AND WAIT")
    t.done(f"ALTER ROLE {name} RENAME TO {name}_later")
    assert user.say("SHOW JOBS").rows[0][3] == f"{name}_later"
    assert user.say(f"RESUME JOB {id}").sqlstate == ""
    t.done(f"SHOW JOBS WHEN COMPLETE {id}")
    assert t.rows() == [("1", "old"), ("2", "new")]


def test_the_rows_of_an_exported_query_are_read_by_the_creators_rights(
    importing: Importing, user: Talk
) -> None:
    t, name = importing, f"u_{importing.name}"
    t.done(f"CREATE ROLE {name}_team")
    t.done(f"GRANT {name}_team TO {name}")
    t.done(f"REVOKE SELECT ON t FROM {name}")
    t.done(f"GRANT SELECT ON t TO {name}_team")
    assert tried(t, user, "EXPORT INTO CSV '{0}/out' FROM SELECT a FROM t").sqlstate == ""


def test_members_control_the_jobs_of_their_role(importing: Importing, user: Talk) -> None:
    t, name = importing, f"u_{importing.name}"
    t.done(f"CREATE USER {name}_boss")
    t.done(f"CREATE USER {name}_other")
    t.done(f"GRANT {name} TO {name}_boss")
    boss, other = Talk(t.node, user=f"{name}_boss"), Talk(t.node, user=f"{name}_other")
    with held(t.node) as gate:
        ((id,),) = tried(t, user, IMPORTS + " WITH detached").rows
        gate.wait()
        assert other.say("SHOW JOBS").rows == ()
        assert other.say(f"CANCEL JOB {id}").sqlstate == "42501"
        assert [row[0] for row in boss.say("SHOW JOBS").rows] == [id]
        assert boss.say(f"CANCEL JOB {id}").sqlstate == ""
    t.done(f"SHOW JOBS WHEN COMPLETE {id}")
    assert t.rows() == [("1", "old")]
    boss.close()
    other.close()
