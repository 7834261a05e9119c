"""PAUSE, RESUME, CANCEL and SHOW of jobs."""

from collections.abc import Iterator
from threading import Thread

import psycopg
import pytest

from tenure.cluster.jobs.runs import JobKind, Run
from tests.unit.sql.served import Served, serving


def _work(run: Run) -> None:
    run.checkpoint(fraction=0.5, status="half way")
    while run.job.payload == b"for ever":
        run.sleep(60)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("jobs"), {"work": JobKind(_work)}) as made:
        yield made


def _job(served: Served, *, payload: bytes = b"for ever", owner: str = "root") -> int:
    node = served.node
    job = node.store.transact(
        lambda txn: node.jobs.create(txn, kind="work", payload=payload, owner=owner, description="WORK")
    )
    return job.id


def _status(served: Served, id: int) -> str:
    ((status,),) = served.rows(f"SELECT status FROM tenure_internal.jobs WHERE job_id = {id}")
    assert isinstance(status, str)
    return status


def test_a_job_is_paused_resumed_and_canceled(served: Served) -> None:
    id = _job(served)
    assert served.tag(f"PAUSE JOB {id} AND WAIT") == "PAUSE JOBS 1"
    assert _status(served, id) == "paused"
    assert served.tag(f"RESUME JOB {id} AND WAIT") == "RESUME JOBS 1"
    assert _status(served, id) == "running"
    assert served.tag(f"CANCEL JOB {id} AND WAIT") == "CANCEL JOBS 1"
    assert _status(served, id) == "canceled"


def test_a_request_is_enough_without_wait(served: Served) -> None:
    id = _job(served)
    served.tag(f"CANCEL JOB {id}")
    assert _status(served, id) in ("cancel-requested", "reverting", "canceled")


def test_several_jobs_by_a_list_and_by_a_query(served: Served) -> None:
    one, two = _job(served), _job(served)
    assert served.tag(f"PAUSE JOBS {one}, {two} AND WAIT") == "PAUSE JOBS 2"
    query = "SELECT job_id FROM tenure_internal.jobs WHERE status = 'paused'"
    assert served.tag(f"CANCEL JOBS ({query}) AND WAIT") == "CANCEL JOBS 2"
    assert (_status(served, one), _status(served, two)) == ("canceled", "canceled")


def test_a_job_by_a_parameter(served: Served) -> None:
    id = _job(served)
    with served.connect() as other:
        assert other.execute("CANCEL JOB %s", [id]).statusmessage == "CANCEL JOBS 1"
        rows = other.execute("SHOW JOBS WHEN COMPLETE %s", [id]).fetchall()
    assert [row[0] for row in rows] == [id]


def test_jobs_are_shown_with_their_progress(served: Served) -> None:
    id = _job(served)
    served.tag(f"PAUSE JOB {id} AND WAIT")
    answer = served.root.execute(f"SHOW JOB {id}".encode())
    names = [each.name for each in answer.description or ()]
    (row,) = answer.fetchall()
    shown = dict(zip(names, row, strict=True))
    assert (shown["job_id"], shown["job_type"], shown["user_name"]) == (id, "work", "root")
    assert (shown["status"], shown["description"], shown["error"]) == ("paused", "WORK", None)
    assert shown["fraction_completed"] in (0.0, 0.5)
    assert id in [each[0] for each in served.rows("SHOW JOBS")]
    served.tag(f"CANCEL JOB {id} AND WAIT")


def test_show_when_complete_waits_for_the_end(served: Served) -> None:
    id = _job(served, payload=b"short")
    ((shown, _, _, _, status, *_),) = served.rows(f"SHOW JOBS WHEN COMPLETE {id}")
    assert (shown, status) == (id, "succeeded")


def test_a_wait_for_jobs_can_be_canceled(served: Served) -> None:
    id = _job(served)
    failed: list[psycopg.Error] = []
    with served.connect() as other:

        def wait() -> None:
            try:
                other.execute(f"SHOW JOBS WHEN COMPLETE {id}".encode())
            except psycopg.Error as error:
                failed.append(error)

        waiting = Thread(target=wait)
        waiting.start()
        query = "SELECT count(*) FROM tenure_internal.sessions WHERE statement LIKE 'SHOW JOBS WHEN%'"
        while served.rows(f"{query} AND state = 'active'") == [(0,)]:
            pass
        other.cancel_safe()
        waiting.join()
    served.tag(f"CANCEL JOB {id} AND WAIT")
    assert [each.sqlstate for each in failed] == ["57014"]


def test_inside_a_block_a_request_counts_from_the_commit_on(served: Served) -> None:
    id = _job(served)
    with served.connect() as other:
        other.execute("BEGIN")
        other.execute(f"PAUSE JOB {id}".encode())
        other.execute("ROLLBACK")
        assert _status(served, id) in ("pending", "running")
        other.execute("BEGIN")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            other.execute(f"PAUSE JOB {id} AND WAIT".encode())
        other.execute("ROLLBACK")
    served.tag(f"CANCEL JOB {id} AND WAIT")


def test_others_control_and_see_their_own_jobs_only(served: Served) -> None:
    served.tag("CREATE USER ann")
    mine, other = _job(served, owner="ann"), _job(served)
    with served.connect("ann") as ann:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match=f"must be owner of job {other}"):
            ann.execute(f"CANCEL JOB {other}".encode())
        assert [row[0] for row in ann.execute("SHOW JOBS").fetchall()] == [mine]
        assert ann.execute(f"CANCEL JOB {mine} AND WAIT".encode()).statusmessage == "CANCEL JOBS 1"
    served.tag(f"CANCEL JOB {other} AND WAIT")


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("PAUSE JOB 5", "42704"),
        ("PAUSE JOB", "42601"),
        ("CANCEL JOB 'x'", "22P02"),
        ("CANCEL JOBS (SELECT 'x')", "42804"),
        ("CANCEL JOBS (SELECT 1, 2)", "42804"),
        ("CANCEL JOBS (DELETE FROM t)", "42601"),
        ("RESUME JOB 1 AND", "42601"),
        ("SHOW JOBS WHEN COMPLETE", "42601"),
    ],
)
def test_what_is_wrong_is_said(served: Served, statement: str, sqlstate: str) -> None:
    assert served.refusal(statement).sqlstate == sqlstate


def test_a_job_that_has_ended_cannot_be_paused(served: Served) -> None:
    id = _job(served, payload=b"short")
    served.rows(f"SHOW JOBS WHEN COMPLETE {id}")
    assert served.refusal(f"PAUSE JOB {id}").sqlstate == "55000"
