"""Sessions of Spark: what they start with, and what does not keep them from starting.

A test that starts a session of its own is marked `longer`: the session that others share has to end first.
"""

import os
import socket
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home

from tenure.base.env import SystemEnv
from tenure.base.errors import MasterUnreachable, SparkRefused
from tenure.pipeline import archive_maker, spark
from tenure.pipeline.archive import Archive, summed
from tenure.pipeline.java import find_java
from tenure.pipeline.spark import close_session, open_session
from tenure.pipeline.spark_tasks import SparkTasks
from tenure.worker import cache_directory
from tests.pipeline import kernels
from tests.pipeline.waiting import children_of, go_on, ignore
from tests.spark_sessions import ROOT, SparkSessions


@pytest.fixture
def alone(spark_sessions: SparkSessions) -> None:
    """pyspark knows one session per process."""
    spark_sessions.close()


def archive_in(directory: Path) -> Archive:
    return Archive.of(directory, find_java(os.environ), Path(_find_spark_home()))


def square_in(directory: Path) -> list[int]:
    session = open_session("local[1]", cache_directory=directory, python_path=[str(ROOT)])
    try:
        tasks = SparkTasks(session, SystemEnv())
        return tasks.run(kernels.square, [3], on_done=ignore, check=go_on)
    finally:
        close_session(session)


@pytest.mark.longer
@pytest.mark.usefixtures("alone")
def test_a_damaged_archive_is_made_anew_and_does_not_keep_spark_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(Archive, "make_in_background", lambda self: asked.append(self.path))
    archive = archive_in(tmp_path)
    archive.path.write_bytes(b"made" * 10_000)
    archive.sum_path.write_text(summed(archive.path))
    with archive.path.open("r+b") as file:
        file.seek(20_000)
        file.write(b"\xff" * 4096)
    assert square_in(tmp_path) == [9]
    assert asked == [archive.path]


@pytest.mark.longer
@pytest.mark.usefixtures("alone")
def test_what_java_does_not_take_for_an_archive_does_not_keep_spark_from_starting(tmp_path: Path) -> None:
    archive = archive_in(tmp_path)
    archive.path.write_bytes(b"no archive at all" * 10_000)
    archive.sum_path.write_text(summed(archive.path))
    assert square_in(tmp_path) == [9]


@pytest.mark.longer
@pytest.mark.usefixtures("alone")
def test_a_session_that_cannot_be_had_leaves_nothing_behind() -> None:
    before = set(children_of(os.getpid()))
    with pytest.raises(SparkRefused, match="Master URL"):
        open_session("local-nonsense", cache_directory=cache_directory(os.environ))
    assert SparkContext._gateway is None
    assert not set(children_of(os.getpid())) - before


@pytest.mark.longer
@pytest.mark.usefixtures("alone")
def test_a_master_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "MASTER_SECONDS", 5.0)
    before = set(children_of(os.getpid()))
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(MasterUnreachable, match="does not answer"):
            open_session(master, cache_directory=cache_directory(os.environ), env=SystemEnv())
    assert not set(children_of(os.getpid())) - before


def test_an_archive_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "spark-1.jsa")
    (tmp_path / "spark-1.part").write_bytes(b"made")
    archive.publish(tmp_path / "spark-1.part")
    archive_maker.make(archive.path)
    assert archive.path.read_bytes() == b"made"


def test_old_archives_go(tmp_path: Path) -> None:
    for number in range(4):
        path = tmp_path / f"spark-{number}.jsa"
        path.touch()
        os.utime(path, ns=(number, number))
        path.with_suffix(".sum").touch()
    archive_maker._prune(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"spark-{number}.{ending}" for number in (2, 3) for ending in ("jsa", "sum")
    ]


@pytest.mark.longer
def test_what_spark_writes_for_a_while_is_for_its_owner_alone(
    tmp_path: Path, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that it spills lie there: whatever the modes inside, nobody else gets in."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session = open_session("local[1]", cache_directory=None, python_path=[str(ROOT)])
    try:
        SparkTasks(session, SystemEnv()).run(kernels.square, [3], on_done=ignore, check=go_on)
        (directory,) = tmp_path.glob("tenure-spark-*")
        assert directory.stat().st_mode & 0o777 == 0o700
        assert any(each.name.startswith("blockmgr-") for each in directory.iterdir())
    finally:
        close_session(session)
    assert not directory.exists()
