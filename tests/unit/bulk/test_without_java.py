"""Bulk work that needs Spark on a node that cannot start it: whoever asked for it learns why."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.pipeline.starter import Process
from tenure.sql.statements.jobs import waiting_statements
from tests.pipeline.waiting import await_true
from tests.unit.bulk.imports import Importing
from tests.unit.lake_nodes import lake_node

WHY = "waits for a process with spark: Spark needs Java, and JAVA_HOME names none"


def never() -> Process:
    raise AssertionError("there is no Java for it")


@pytest.fixture
def t(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Importing]:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with lake_node(tmp_path, start_worker=never) as node:
        importing = Importing(node, tmp_path)
        importing.done("SET CLUSTER SETTING pipeline.spark_min_rows = 0")
        importing.done("CREATE TABLE t (id int PRIMARY KEY, a text)")
        yield importing
        importing.talk.close()


ROWS = "1,a row that is long enough\n2,another that is as long as the first\n"


def status(t: Importing) -> str:
    ((said,),) = t.rows("SELECT running_status FROM tenure_internal.jobs WHERE job_type = 'import'")
    return said or ""


@pytest.mark.setting("pipeline.spark_min_rows")
def test_show_jobs_says_why_a_job_waits(t: Importing) -> None:
    said = t.csv(ROWS, options="WITH detached")
    assert not said.sqlstate, said
    await_true(lambda: status(t).startswith(WHY))


def test_a_statement_gives_up_and_says_why(t: Importing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_statements, "PATIENCE_SECONDS", 0.1)
    said = t.csv(ROWS)
    assert said.sqlstate == "58000"
    assert WHY in said.message and "openjdk-17-jre-headless" in said.message
    assert t.rows("SELECT status FROM tenure_internal.jobs WHERE job_type = 'import'") == [("canceled",)]
    assert t.rows() == []
