"""Reads and jobs that last longer than history is kept, while sweeps run: real clients of a real node."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.unit.sql.long_reads import LongReads, run_until_stopped


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LongReads]:
    served = LongReads(tmp_path_factory.mktemp("long"))
    yield served
    served.close()


def test_without_a_protection_the_past_is_gone(served: LongReads) -> None:
    served.table("plain", 3)
    ((at,),) = served.root.execute("SELECT cluster_logical_timestamp()").fetchall()
    served.overwrite("plain")
    with pytest.raises(psycopg.Error) as refused:
        served.root.execute(f"SELECT * FROM plain AS OF SYSTEM TIME '{at}'")
    assert refused.value.sqlstate == "72000"


@pytest.mark.invariant("long-read")
def test_a_cursor_of_a_read_only_block_reads_on(served: LongReads) -> None:
    served.table("paged", 3_000)
    with served.connect() as client:
        client.execute("BEGIN READ ONLY")
        client.execute("DECLARE c CURSOR FOR SELECT v FROM paged ORDER BY id")
        first = client.execute("FETCH 10 FROM c").fetchall()
        assert served.awaited(1) == [("read", 1)]
        served.overwrite("paged")
        rest = client.execute("FETCH ALL FROM c").fetchall()
        assert first + rest == [(0,)] * 3_000
        client.execute("COMMIT")
    served.awaited(0)


@pytest.mark.invariant("long-read")
def test_a_block_that_may_write_reads_on_and_commits(served: LongReads) -> None:
    served.table("written", 3)
    served.table("beside", 3)
    with served.connect() as client:
        client.execute("BEGIN")
        assert client.execute("SELECT sum(v) FROM written").fetchall() == [(0,)]
        assert served.awaited(1) == [("read", 2)]
        served.overwrite("beside")
        served.root.execute("RUN GC NOW FOR TABLE written")
        client.execute("INSERT INTO written VALUES (4, 4)")
        client.execute("COMMIT")
    served.awaited(0)
    assert served.root.execute("SELECT count(*) FROM written").fetchall() == [(4,)]


def test_its_conflict_is_still_found(served: LongReads) -> None:
    served.table("conflicting", 3)
    with served.connect() as client:
        client.execute("BEGIN")
        client.execute("SELECT sum(v) FROM conflicting")
        served.awaited(1)
        served.overwrite("conflicting")
        client.execute("INSERT INTO conflicting VALUES (4, 4)")
        with pytest.raises(psycopg.Error) as refused:
            client.execute("COMMIT")
        assert refused.value.sqlstate == "40001"
    served.awaited(0)


@pytest.mark.invariant("long-read")
def test_a_block_of_the_past_reads_on(served: LongReads) -> None:
    served.table("past", 3)
    ((at,),) = served.root.execute("SELECT cluster_logical_timestamp()").fetchall()
    with served.connect() as client:
        client.execute(f"BEGIN AS OF SYSTEM TIME '{at}'")
        assert client.execute("SELECT sum(v) FROM past").fetchall() == [(0,)]
        assert served.awaited(1) == [("read", 1)]
        served.overwrite("past")
        assert client.execute("SELECT sum(v) FROM past").fetchall() == [(0,)]
        client.execute("COMMIT")
    served.awaited(0)


@pytest.mark.invariant("I32")
@pytest.mark.parametrize("place", ["table", "query"])
def test_a_paused_export_keeps_what_it_reads(served: LongReads, place: str) -> None:
    served.table(f"exported_{place}", 3)
    source = f"TABLE exported_{place}" if place == "table" else f"SELECT id, v FROM exported_{place}"
    kind = served.node.runner._kinds["export"]
    served.node.runner._kinds["export"] = kind._replace(run=run_until_stopped)
    ((job,),) = served.root.execute(f"EXPORT INTO CSV '{place}' WITH detached FROM {source}").fetchall()
    served.root.execute(f"PAUSE JOB {job}")
    served.status(job, "paused")
    served.overwrite(f"exported_{place}")
    assert served.protections() == [("job", 1)]
    served.node.runner._kinds["export"] = kind
    served.root.execute(f"RESUME JOB {job}")
    served.status(job, "succeeded")
    assert served.protections() == []
    (file,) = (served.directory / "files" / place).iterdir()
    assert file.read_text() == "1,0\n2,0\n3,0\n"


@pytest.mark.invariant("I32")
def test_a_canceled_export_releases(served: LongReads) -> None:
    served.table("canceled", 3)
    kind = served.node.runner._kinds["export"]
    served.node.runner._kinds["export"] = kind._replace(run=run_until_stopped)
    ((job,),) = served.root.execute("EXPORT INTO CSV 'c' WITH detached FROM TABLE canceled").fetchall()
    assert served.protections() == [("job", 1)]
    served.root.execute(f"CANCEL JOB {job}")
    served.status(job, "canceled")
    served.node.runner._kinds["export"] = kind
    assert served.protections() == []


@pytest.mark.invariant("long-read")
def test_a_block_with_a_table_of_its_own_keeps_no_other_read_from_its_protection(served: LongReads) -> None:
    """The table is in no catalog yet, so there is nothing to protect."""
    served.table("neighbor", 3_000)
    with served.connect() as maker, served.connect() as client:
        maker.execute("BEGIN")
        maker.execute("CREATE TABLE own (id int PRIMARY KEY)")
        maker.execute("SELECT count(*) FROM own")
        maker.execute("SELECT count(*) FROM neighbor")
        client.execute("BEGIN READ ONLY")
        client.execute("DECLARE c CURSOR FOR SELECT v FROM neighbor ORDER BY id")
        rows = client.execute("FETCH 10 FROM c").fetchall()
        assert sorted(served.awaited(2)) == [("read", 1), ("read", 2)]
        served.overwrite("neighbor")
        rows += client.execute("FETCH ALL FROM c").fetchall()
        assert rows == [(0,)] * 3_000
        client.execute("COMMIT")
        maker.execute("ROLLBACK")
    served.awaited(0)
