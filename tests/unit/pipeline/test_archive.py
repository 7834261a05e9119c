"""The archive of Spark's classes: which one fits."""

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
