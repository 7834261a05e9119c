"""The archive of Spark's classes: which one fits, and whether it is whole."""

from pathlib import Path

import pytest

from tenure.pipeline.archive import Archive
from tenure.pipeline.java import Java


@pytest.fixture
def java(tmp_path: Path) -> Java:
    program = tmp_path / "java"
    program.touch()
    return Java(program, "17.0.15")


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "core.jar").write_bytes(b"core")
    return tmp_path / "spark"


def test_the_same_java_and_jars_have_the_same_archive(tmp_path: Path, java: Java, spark: Path) -> None:
    assert Archive.of(tmp_path, java, spark) == Archive.of(tmp_path, java, spark)


def test_another_java_has_another_archive(tmp_path: Path, java: Java, spark: Path) -> None:
    newer = java._replace(version="17.0.16")
    assert Archive.of(tmp_path, newer, spark) != Archive.of(tmp_path, java, spark)


def test_other_jars_have_another_archive(tmp_path: Path, java: Java, spark: Path) -> None:
    former = Archive.of(tmp_path, java, spark)
    (spark / "jars" / "core.jar").write_bytes(b"newer core")
    changed = Archive.of(tmp_path, java, spark)
    (spark / "jars" / "sql.jar").write_bytes(b"sql")
    assert len({former, changed, Archive.of(tmp_path, java, spark)}) == 3


@pytest.fixture
def made(tmp_path: Path) -> Archive:
    partial = tmp_path / "spark-1.part"
    partial.write_bytes(b"classes" * 1000)
    archive = Archive(tmp_path / "spark-1.jsa")
    archive.publish(partial)
    return archive


def test_an_archive_is_whole_when_it_was_published(made: Archive) -> None:
    assert made.is_whole()


def test_one_byte_makes_it_damaged(made: Archive) -> None:
    with made.path.open("r+b") as file:
        file.seek(3_000)
        file.write(b"X")
    assert not made.is_whole()


def test_one_that_was_cut_off_is_damaged(made: Archive) -> None:
    with made.path.open("r+b") as file:
        file.truncate(3_000)
    assert not made.is_whole()


def test_one_without_its_sum_is_not_used(made: Archive) -> None:
    made.sum_path.unlink()
    assert not made.is_whole()


def test_one_that_is_removed_is_gone_with_its_sum(made: Archive) -> None:
    made.remove()
    assert not made.is_whole() and not made.sum_path.exists()
