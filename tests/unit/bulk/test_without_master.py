"""Spark's master is away, or hangs: jobs and those who wait for them say so, and can be canceled."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from tenure.bulk import phases
from tenure.pipeline.masters import unreachable
from tenure.pipeline.tasks import Tasks
from tenure.sql.statements.jobs import waiting_statements
from tests.pipeline.waiting import await_true
from tests.unit.bulk.imports import Importing
from tests.unit.lake_nodes import lake_node

WHY = 'Spark\'s master "spark://10.0.0.1:7077" does not answer'
ROWS = "1,a row that is long enough\n2,another that is as long as the first\n"


def away() -> Tasks:
    raise unreachable("spark://10.0.0.1:7077", "does not answer")


@contextmanager
def importing_with(directory: Path, spark: Callable[[], Tasks]) -> Iterator[Importing]:
    with lake_node(directory, spark=spark) as node:
        importing = Importing(node, directory)
        importing.done("SET CLUSTER SETTING pipeline.spark_min_rows = 0")
        importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
        yield importing
        importing.talk.close()


def status(t: Importing) -> str:
    ((said,),) = t.rows("SELECT running_status FROM tenure_internal.jobs WHERE job_type = 'import'")
    return said or ""


def test_a_job_says_that_the_master_does_not_answer(tmp_path: Path) -> None:
    with importing_with(tmp_path, away) as t:
        assert not t.csv(ROWS, options="WITH detached").sqlstate
        await_true(lambda: WHY in status(t))


def test_a_statement_gives_up_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_statements, "PATIENCE_SECONDS", 0.1)
    with importing_with(tmp_path, away) as t:
        said = t.csv(ROWS)
        assert said.sqlstate == "58000" and WHY in said.message
        await_true(lambda: t.rows("SELECT status FROM tenure_internal.jobs") == [("canceled",)])
        assert t.rows() == []


def test_a_job_whose_master_hangs_says_what_it_waits_for_and_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phases, "START_SECONDS", 0.0)
    has_come = threading.Event()

    def hang() -> Tasks:
        has_come.wait()
        return away()

    with importing_with(tmp_path, hang) as t:
        try:
            assert not t.csv(ROWS, options="WITH detached").sqlstate
            await_true(lambda: status(t) == "waits for Spark to start")
            t.done("CANCEL JOBS SELECT job_id FROM tenure_internal.jobs")
            await_true(lambda: t.rows("SELECT status FROM tenure_internal.jobs") == [("canceled",)])
            t.done("SET statement_timeout = '300ms'")
            began = monotonic()
            assert t.csv(ROWS).sqlstate == "57014"
            assert monotonic() - began < 1.3
        finally:
            has_come.set()
