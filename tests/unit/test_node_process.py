"""A node as its operator sees it: a real process that says when it is ready, and drains."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests import postgres_server

SOURCE = Path(__file__).resolve().parents[2] / "src"
ENDS_WITHIN_SECONDS = 30
FREE_PORT = ("--sql", "127.0.0.1:0")


def test_a_node_says_ready_and_drains_on_sigterm(tmp_path: Path) -> None:
    with _node(tmp_path, "--store", "sqlite:data/store.db") as node:
        assert _ready_parts(node)[1:] == ["instance=1", "store=sqlite:data/store.db", "created=store"]
        out, err = _stop(node, signal.SIGTERM)
    assert node.returncode == 0, err
    assert out == ""
    assert "drained" in err
    assert "Traceback" not in err


def test_ctrl_c_drains_too(tmp_path: Path) -> None:
    with _node(tmp_path) as node:
        _ready_line(node)
        _, err = _stop(node, signal.SIGINT)
    assert node.returncode == 0, err
    assert "Traceback" not in err


def test_the_default_store_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    with _node(tmp_path) as node:
        made = ["instance=1", "store=sqlite:tenure-data/store.db", "created=store"]
        assert _ready_parts(node)[1:] == made
        _, log = _stop(node, signal.SIGTERM)
    assert "there was no store at sqlite:tenure-data/store.db: a new, empty one was created" in log
    assert stat.S_IMODE((tmp_path / "tenure-data").stat().st_mode) == 0o700
    assert (tmp_path / "tenure-data" / "store.db").is_file()


def test_a_second_start_finds_the_store(tmp_path: Path) -> None:
    for _ in range(2):
        with _node(tmp_path) as node:
            parts = _ready_parts(node)
            _, log = _stop(node, signal.SIGTERM)
        assert (parts[1], node.returncode) == ("instance=1", 0)
    assert "created=store" not in parts and "there was no store" not in log
    assert "expiring lease" not in log


def test_two_nodes_share_a_store(tmp_path: Path) -> None:
    with _node(tmp_path) as first, _node(tmp_path) as second:
        assert sorted([_ready_parts(first)[1], _ready_parts(second)[1]]) == ["instance=1", "instance=2"]
        _stop(first, signal.SIGTERM)
        _stop(second, signal.SIGTERM)
    assert (first.returncode, second.returncode) == (0, 0)


def test_an_instance_id_is_not_given_away_while_its_session_is_there(tmp_path: Path) -> None:
    with _node(tmp_path) as stopped:
        assert _ready_parts(stopped)[1] == "instance=1"
        stopped.send_signal(signal.SIGSTOP)
        try:
            with _node(tmp_path) as node:
                assert _ready_parts(node)[1] == "instance=2"
                _stop(node, signal.SIGTERM)
        finally:
            stopped.send_signal(signal.SIGCONT)
        _stop(stopped, signal.SIGTERM)
    assert node.returncode == 0


def test_a_killed_nodes_session_is_ended_by_the_next_node_on_its_machine(tmp_path: Path) -> None:
    with _node(tmp_path) as killed:
        assert _ready_parts(killed)[1] == "instance=1"
        killed.kill()
        killed.wait(ENDS_WITHIN_SECONDS)
        with _node(tmp_path) as node:
            assert _ready_parts(node)[1] == "instance=1"
            _stop(node, signal.SIGTERM)
    assert node.returncode == 0


def test_a_store_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert '"file"' in _failure(tmp_path, "sqlite:file/store.db")


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    assert f"[{tmp_path}: " in _failure(tmp_path, f"sqlite:{tmp_path}")


def test_a_corrupt_store_is_a_clear_error_and_left_alone(tmp_path: Path) -> None:
    damaged = b"not a store " * 1000
    (tmp_path / "store.db").write_bytes(damaged)
    assert "[store.db: " in _failure(tmp_path, "sqlite:store.db")
    assert (tmp_path / "store.db").read_bytes() == damaged


@pytest.mark.parametrize("address", ["mysql://ann:secret@host/db", "postgresql://ann:secret@127.0.0.1:1/db"])
def test_an_error_names_the_store_without_its_password(tmp_path: Path, address: str) -> None:
    assert "secret" not in _failure(tmp_path, address)


def test_a_node_runs_on_postgresql(tmp_path: Path, postgres: postgres_server.Server) -> None:
    address = f"postgresql://postgres:secret@127.0.0.1:{postgres.port}/postgres"
    with _node(tmp_path, "--store", address) as node:
        _, instance, shown = _ready_parts(node)
        assert instance.removeprefix("instance=").isdigit()
        assert shown == f"store={address.replace('secret', '***')}"
        _, err = _stop(node, signal.SIGTERM)
    assert node.returncode == 0, err
    assert "secret" not in err


def test_a_wrong_password_is_a_clear_error(tmp_path: Path, postgres_directory: Path) -> None:
    server = postgres_server.start(postgres_directory)
    address = postgres_server.add_role_with_password(server, "right")
    line = _failure(tmp_path, address.replace("right", "wrong"))
    assert "guarded" in line
    assert "wrong" not in line


def test_a_node_outlives_its_store_and_logs(tmp_path: Path, postgres_directory: Path) -> None:
    server = postgres_server.start(postgres_directory)
    with _node(tmp_path, "--store", f"postgresql://postgres@127.0.0.1:{server.port}/postgres") as node:
        _ready_line(node)
        postgres_server.stop(postgres_directory, immediate=True)
        assert node.stderr is not None
        assert any("clock check" in line for line in node.stderr)
        assert node.poll() is None
        _, err = _stop(node, signal.SIGTERM)
    assert node.returncode == 0, err
    assert "drained" in err


@contextmanager
def _node(folder: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tenure.cli",
            "start",
            *(options if "--sql" in options else (*FREE_PORT, *options)),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _ready_line(node: "subprocess.Popen[str]") -> str:
    assert node.stdout is not None
    return node.stdout.readline()


def _ready_parts(node: "subprocess.Popen[str]") -> list[str]:
    """What a node says when it is ready: where SQL is served, its instance, its store."""
    word, sql, *rest = _ready_line(node).split()
    assert (word, sql.startswith("sql=127.0.0.1:")) == ("ready", True)
    return [sql, *rest]


def _stop(node: "subprocess.Popen[str]", number: signal.Signals) -> tuple[str, str]:
    node.send_signal(number)
    return node.communicate(timeout=ENDS_WITHIN_SECONDS)


def _failure(folder: Path, address: str) -> str:
    """Starts a node that cannot run; returns its one line on standard error."""
    with _node(folder, "--store", address) as node:
        out, err = node.communicate(timeout=ENDS_WITHIN_SECONDS)
    assert (node.returncode, out) == (1, ""), err
    assert err.startswith("tenure: ")
    assert err.count("\n") == 1, err
    return err


def test_a_node_serves_sql_where_it_says(tmp_path: Path) -> None:
    with _node(tmp_path) as node:
        host, port = _ready_parts(node)[0].removeprefix("sql=").split(":")
        with psycopg.connect(f"host={host} port={port} user=root dbname=defaultdb") as client:
            assert client.execute("SELECT addr FROM system.sql_instances").fetchall() == [(f"{host}:{port}",)]
        _stop(node, signal.SIGTERM)
    assert node.returncode == 0


def test_two_processes_serve_one_port(tmp_path: Path) -> None:
    with _node(tmp_path, "--processes", "2") as parent:
        parts = _ready_parts(parent)
        assert parts[-1] == "processes=2"
        host, port = parts[0].removeprefix("sql=").split(":")
        with psycopg.connect(f"host={host} port={port} user=root dbname=defaultdb") as client:
            instances = client.execute("SELECT id FROM system.sql_instances ORDER BY 1").fetchall()
        assert instances == [(1,), (2,)]
        _stop(parent, signal.SIGTERM)
    assert parent.returncode == 0


def test_a_port_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    with _node(tmp_path) as first:
        taken = _ready_parts(first)[0].removeprefix("sql=")
        with _node(tmp_path, "--sql", taken) as second:
            _, err = second.communicate(timeout=ENDS_WITHIN_SECONDS)
        _stop(first, signal.SIGTERM)
    assert second.returncode == 1
    assert f"listening on {taken}" in err


def test_other_addresses_need_a_certificate(tmp_path: Path) -> None:
    with _node(tmp_path, "--sql", "0.0.0.0:0") as node:
        _, err = node.communicate(timeout=ENDS_WITHIN_SECONDS)
    assert node.returncode == 1
    assert "needs a certificate" in err
