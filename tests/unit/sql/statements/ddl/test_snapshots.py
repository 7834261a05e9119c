"""Named snapshots, as clients of a node use them."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.unit.sql.long_reads import LongReads, run_until_stopped


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LongReads]:
    served = LongReads(tmp_path_factory.mktemp("snapshots"))
    yield served
    served.close()


def refused(served: LongReads, statement: str) -> str | None:
    with pytest.raises(psycopg.Error) as error:
        served.root.execute(statement)
    return error.value.sqlstate


def rows(served: LongReads, query: str) -> list[Any]:
    return served.root.execute(query).fetchall()


@pytest.mark.invariant("snapshot")
@pytest.mark.parametrize("target", ["TABLE kept_{}", "SCHEMA public", "DATABASE defaultdb"])
def test_a_snapshot_is_read_after_the_history_around_it_is_gone(served: LongReads, target: str) -> None:
    name = target.split()[0].lower()
    served.table(f"kept_{name}", 3)
    served.root.execute(f"CREATE SNAPSHOT {name}_shot FOR {target.format(name)}")
    served.root.execute(f"CREATE INDEX ON kept_{name} (v)")
    served.overwrite(f"kept_{name}")
    past = f"kept_{name} AS OF SNAPSHOT {name}_shot"
    assert rows(served, f"SELECT sum(v) FROM {past}") == [(0,)]
    assert rows(served, f"SELECT sum(v) FROM {past} WHERE id = 2") == [(0,)]
    served.root.execute(f"BEGIN AS OF SNAPSHOT {name}_shot")
    assert rows(served, f"SELECT sum(v) FROM kept_{name}") == [(0,)]
    served.root.execute("COMMIT")
    served.root.execute(f"CREATE TABLE undone_{name} AS SELECT * FROM {past}")
    assert rows(served, f"SELECT sum(v) FROM undone_{name}") == [(0,)]
    assert rows(served, f"SELECT sum(v) FROM kept_{name}") == [(3,)]
    served.root.execute(f"DROP SNAPSHOT {name}_shot")
    assert refused(served, f"SELECT sum(v) FROM {past}") == "42704"
    served.awaited(0)


@pytest.mark.invariant("following")
@pytest.mark.parametrize("source", ["TABLE old", "SELECT id, v FROM old"])
def test_a_snapshot_that_is_older_than_the_ttl_is_exported(served: LongReads, source: str) -> None:
    served.table("old", 3)
    served.root.execute("CREATE SNAPSHOT old_shot FOR SCHEMA public")
    served.overwrite("old")
    place = source.split()[0]
    kind = served.node.runner._kinds["export"]
    served.node.runner._kinds["export"] = kind._replace(run=run_until_stopped)
    export = f"EXPORT INTO CSV '{place}' WITH detached FROM {source} AS OF SNAPSHOT old_shot"
    ((job,),) = served.root.execute(export).fetchall()
    served.root.execute(f"PAUSE JOB {job}")
    served.status(job, "paused")
    served.root.execute("DROP SNAPSHOT old_shot")
    served.overwrite("old")
    served.node.runner._kinds["export"] = kind
    served.root.execute(f"RESUME JOB {job}")
    served.status(job, "succeeded")
    (file,) = (served.directory / "files" / place).iterdir()
    assert file.read_text() == "1,0\n2,0\n3,0\n"
    assert served.protections() == []
    served.root.execute("DROP TABLE old")


def test_an_export_of_what_the_snapshot_does_not_cover_is_refused(served: LongReads) -> None:
    served.table("within", 1)
    served.table("without", 1)
    served.root.execute("CREATE SNAPSHOT within FOR TABLE within")
    served.overwrite("without")
    export = "EXPORT INTO CSV 'no' FROM SELECT * FROM within, without AS OF SNAPSHOT within"
    assert refused(served, export) == "72000"
    served.root.execute("DROP SNAPSHOT within")


def test_a_table_that_it_does_not_cover_is_refused(served: LongReads) -> None:
    served.table("inside", 1)
    served.table("outside", 1)
    served.root.execute('CREATE SNAPSHOT "One Table" FOR TABLE inside')
    served.overwrite("outside")
    assert refused(served, 'SELECT * FROM outside AS OF SNAPSHOT "One Table"') == "72000"
    assert rows(served, 'SELECT v FROM inside AS OF SNAPSHOT "One Table"') == [(0,)]
    served.root.execute('DROP SNAPSHOT "One Table"')


def test_show_and_expire(served: LongReads) -> None:
    served.table("shown", 1)
    served.root.execute("CREATE SNAPSHOT forever FOR TABLE shown")
    served.root.execute("CREATE SNAPSHOT brief FOR TABLE shown EXPIRES '1 second'")
    assert [(each[0], each[2], each[3], each[4] is None) for each in rows(served, "SHOW SNAPSHOTS")] == [
        ("brief", "TABLE defaultdb.public.shown", "root", False),
        ("forever", "TABLE defaultdb.public.shown", "root", True),
    ]
    served.env.sleep(1.1)
    served.node.reconciler.step()
    assert [each[0] for each in rows(served, "SHOW SNAPSHOTS")] == ["forever"]
    served.root.execute("DROP SNAPSHOT forever")
    assert served.protections() == []


def test_what_is_refused(served: LongReads) -> None:
    served.table("plain", 1)
    served.root.execute("CREATE SNAPSHOT twice FOR TABLE plain")
    assert refused(served, "CREATE SNAPSHOT twice FOR TABLE plain") == "42710"
    assert refused(served, "CREATE SNAPSHOT other FOR TABLE nowhere") == "42P01"
    assert refused(served, "CREATE SNAPSHOT other FOR INDEX plain_pkey") == "42601"
    assert refused(served, "CREATE SNAPSHOT other FOR TABLE plain EXPIRES '-1s'") == "22023"
    assert refused(served, "DROP SNAPSHOT nowhere") == "42704"
    assert refused(served, "SELECT * FROM plain AS OF SNAPSHOT nowhere") == "42704"
    served.root.execute("DROP SNAPSHOT IF EXISTS nowhere")
    with served.connect() as client:
        client.execute("BEGIN")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            client.execute("CREATE SNAPSHOT other FOR TABLE plain")
    served.root.execute("DROP SNAPSHOT twice")


def test_rights(served: LongReads) -> None:
    served.table("of_root", 1)
    served.root.execute("CREATE SNAPSHOT of_root FOR TABLE of_root")
    served.root.execute("CREATE USER ann PASSWORD 'secret-of-ann'")
    front = served.node.front
    assert front is not None
    with psycopg.connect(
        host=front.host,
        port=front.port,
        user="ann",
        password="secret-of-ann",
        dbname="defaultdb",
        autocommit=True,
    ) as ann:
        for statement in ("CREATE SNAPSHOT mine FOR TABLE of_root", "DROP SNAPSHOT of_root"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ann.execute(statement)
    served.root.execute("DROP SNAPSHOT of_root")


@pytest.mark.setting("kv.protected_timestamp.max_records")
def test_too_many_protections_are_refused_with_the_name_of_the_limit(served: LongReads) -> None:
    """Snapshots have half of them; the job of an export that is refused is not there either."""
    served.table("limited", 3)
    served.root.execute("CREATE SNAPSHOT first_shot FOR TABLE limited")
    served.root.execute("SET CLUSTER SETTING kv.protected_timestamp.max_records = 1")
    jobs = rows(served, "SELECT count(*) FROM tenure_internal.jobs")
    try:
        for statement, told, hint in (
            ("CREATE SNAPSHOT second_shot FOR TABLE limited", "2 named snapshots, and 0", "SHOW SNAPSHOTS"),
            ("EXPORT INTO CSV 'limited' FROM TABLE limited", "2 protections, and 1", "SHOW PROTECTED TIME"),
        ):
            with pytest.raises(psycopg.Error, match=f"there would be {told} are allowed") as error:
                served.root.execute(statement)
            assert error.value.sqlstate == "53400"
            assert hint in (error.value.diag.message_hint or "")
            assert "kv.protected_timestamp.max_records" in (error.value.diag.message_hint or "")
    finally:
        served.root.execute("RESET CLUSTER SETTING kv.protected_timestamp.max_records")
    assert rows(served, "SELECT count(*) FROM tenure_internal.jobs") == jobs
    served.root.execute("CREATE SNAPSHOT second_shot FOR TABLE limited")
    for name in ("first_shot", "second_shot"):
        served.root.execute(f"DROP SNAPSHOT {name}")
    served.awaited(0)
