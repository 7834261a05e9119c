"""Stores and lakes as their operator gives them: what is refused on the command line, and what to do then."""

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.postgres_server import Server
from tests.unit.test_node_process import (
    ENDS_WITHIN_SECONDS,
    SOURCE,
    _node,
    _ready_line,
    _ready_parts,
    _stop,
)

FLUSH = (
    "CREATE TABLE t (id int PRIMARY KEY)",
    "INSERT INTO t SELECT generate_series(1, 500)",
    "SET CLUSTER SETTING lake.flush_bytes = 2000",
)
FLUSHED = "SELECT 1 FROM system.jobs WHERE job_type = 'flush' AND state = 'succeeded'"


def _address(node: "subprocess.Popen[str]") -> str:
    host, port = _ready_parts(node)[0].removeprefix("sql=").split(":")
    return f"host={host} port={port} user=root dbname=defaultdb"


def _flush(address: str, lake: Path) -> set[Path]:
    """Has a node flush a table; returns the files that its lake has then."""
    with psycopg.connect(address, autocommit=True) as client:
        for statement in FLUSH:
            client.execute(statement)
        while not client.execute(FLUSHED).fetchall():
            client.execute("SELECT pg_sleep(0.1)")
    return _files(lake)


def _files(lake: Path) -> set[Path]:
    return {path for path in lake.rglob("*.parquet") if path.is_file()}


def _run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tenure.cli", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=ENDS_WITHIN_SECONDS,
    )


def _refusal(folder: Path, *options: str) -> str:
    with _node(folder, *options) as node:
        out, err = node.communicate(timeout=ENDS_WITHIN_SECONDS)
    assert (node.returncode, out) == (1, ""), err
    (line,) = [line for line in err.splitlines() if line.startswith("tenure: ")]
    return line


@pytest.mark.invariant("lake-id")
def test_a_second_store_is_refused_the_lake_of_the_first_which_loses_nothing(tmp_path: Path) -> None:
    with _node(tmp_path) as first:
        address = _address(first)
        files = _flush(address, tmp_path / "tenure-data" / "lake")
        assert files
        options = ("--store", "sqlite:data/store.db", "--lake", "tenure-data/lake")
        line = _refusal(tmp_path, *options)
        assert "belongs to another store" in line and "--lake" in line
        assert _files(tmp_path / "tenure-data" / "lake") == files
        with psycopg.connect(address) as client:
            assert client.execute("SELECT count(*) FROM t").fetchall() == [(500,)]
        _stop(first, signal.SIGTERM)


def test_a_second_store_has_a_lake_of_its_own_unless_told_otherwise(tmp_path: Path) -> None:
    with _node(tmp_path) as first, _node(tmp_path, "--store", "sqlite:data/store.db") as second:
        _ready_line(first)
        _ready_line(second)
        assert len(list((tmp_path / "tenure-data" / "lake" / "identity").iterdir())) == 1
        assert len(list((tmp_path / "data" / "lake" / "identity").iterdir())) == 1
        for node in (first, second):
            _stop(node, signal.SIGTERM)


@pytest.mark.invariant("one-lake")
def test_a_second_node_with_another_lake_is_refused(tmp_path: Path) -> None:
    with _node(tmp_path) as first:
        _ready_line(first)
        line = _refusal(tmp_path, "--lake", "elsewhere")
        assert "is not the lake of this store" in line and "tenure-data/lake" in line
        with _node(tmp_path) as second:
            assert _ready_parts(second)[1] == "instance=2"
            _stop(second, signal.SIGTERM)
        _stop(first, signal.SIGTERM)


def test_a_worker_with_another_lake_is_refused(tmp_path: Path) -> None:
    with _node(tmp_path) as node:
        _ready_line(node)
        ended = _run(tmp_path, "worker", "--lake", "elsewhere")
        _stop(node, signal.SIGTERM)
    assert ended.returncode == 1
    assert "is not the lake of this store" in ended.stderr


def test_a_lake_that_was_moved_is_told_and_used_after_it_was_said(tmp_path: Path) -> None:
    with _node(tmp_path) as node:
        _flush(_address(node), tmp_path / "tenure-data" / "lake")
        busy = _run(tmp_path, "store", "use-lake", "--lake", "tenure-data/lake")
        assert busy.returncode == 1 and "node 1 is running" in busy.stderr
        _stop(node, signal.SIGTERM)
    (tmp_path / "tenure-data" / "lake").rename(tmp_path / "moved")
    assert "has no id" in _refusal(tmp_path)
    line = _refusal(tmp_path, "--lake", "moved")
    assert "carries the same id" in line and "tenure store use-lake" in line
    done = _run(tmp_path, "store", "use-lake", "--lake", "moved")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"store=sqlite:tenure-data/store.db lake=file://{tmp_path}/moved unknown_files=0\n"
    with _node(tmp_path, "--lake", "moved") as node:
        with psycopg.connect(_address(node)) as client:
            assert client.execute("SELECT count(*) FROM t").fetchall() == [(500,)]
        _stop(node, signal.SIGTERM)


def test_a_running_store_is_copied_and_the_copy_starts(tmp_path: Path) -> None:
    with ExitStack() as stack:
        node = stack.enter_context(_node(tmp_path))
        _flush(_address(node), tmp_path / "tenure-data" / "lake")
        done = _run(tmp_path, "store", "copy", "--to", "sqlite:copy/store.db")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(
            f"copied store=sqlite:copy/store.db lake=file://{tmp_path}/copy/lake files=1"
        )
        copy = stack.enter_context(_node(tmp_path, "--store", "sqlite:copy/store.db"))
        with psycopg.connect(_address(copy)) as client:
            assert client.execute("SELECT count(*) FROM t").fetchall() == [(500,)]
        for each in (copy, node):
            _stop(each, signal.SIGTERM)


def test_a_store_in_postgresql_says_that_a_directory_is_no_lake_for_other_machines(
    tmp_path: Path, postgres: Server
) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("CREATE DATABASE lake_processes")
    store = f"postgresql://postgres@127.0.0.1:{postgres.port}/lake_processes"
    with _node(tmp_path, "--store", store) as node:
        _ready_line(node)
        (tmp_path / "machine2").mkdir()
        line = _refusal(tmp_path / "machine2", "--store", store)
        assert "is not the lake of this store" in line
        _, err = _stop(node, signal.SIGTERM)
    assert "is a directory of this machine" in err
