"""Processes and their ends: an exclusive port, children that end with their parent, a bounded drain."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests import postgres_server
from tests.pipeline.waiting import await_true

SOURCE = Path(__file__).resolve().parents[2] / "src"
PATIENCE_SECONDS = 60
PIDS = 1 << 16
"""A session's number is its instance times this, and a number of its own."""

CONNECTIONS = 12
HALF_AN_HOUR_MICROS = 30 * 60 * 1_000_000


@pytest.mark.invariant("port-is-ours")
def test_nobody_else_can_bind_the_port_of_several_processes(tmp_path: Path) -> None:
    with _node(tmp_path / "first", "--processes", "2") as first:
        host, port = _address(first)
        with closing(socket.socket()) as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with pytest.raises(OSError, match="in use"):
                other.bind((host, port))
        for count in ("1", "2"):
            with _node(tmp_path / "second", "--processes", count, sql=f"{host}:{port}") as second:
                _, err = second.communicate(timeout=PATIENCE_SECONDS)
            assert second.returncode == 1
            assert f"listening on {host}:{port}" in err


def test_connections_are_spread_over_the_processes(tmp_path: Path) -> None:
    with _node(tmp_path, "--processes", "2") as parent:
        address = _address(parent)
        clients = [_connect(address) for _ in range(CONNECTIONS)]
        instances = [client.info.backend_pid // PIDS for client in clients]
        for client in clients:
            client.close()
    assert min(instances.count(1), instances.count(2)) >= CONNECTIONS // 4


def test_sessions_of_all_processes_are_shown_whichever_is_asked(tmp_path: Path) -> None:
    with _node(tmp_path, "--processes", "2") as parent, ExitStack() as open_clients:
        address = _address(parent)
        clients = [open_clients.enter_context(closing(_connect(address))) for _ in range(CONNECTIONS)]
        pids = sorted(client.info.backend_pid for client in clients)
        assert {pid // PIDS for pid in pids} == {1, 2}
        for client in clients:
            shown = client.execute("SELECT session_id FROM tenure_internal.sessions ORDER BY 1").fetchall()
            assert [row[0] for row in shown] == pids


def test_processes_end_with_a_parent_that_is_killed_and_leave_the_port(tmp_path: Path) -> None:
    with _node(tmp_path, "--processes", "2") as parent:
        address = _address(parent)
        children = _children(parent.pid)
        assert len(children) == 2
        with closing(_connect(address)) as client:
            parent.kill()
            with pytest.raises(psycopg.OperationalError):  # it is told, and cut off
                next(client.notifies(timeout=PATIENCE_SECONDS))
        await_true(lambda: not any(_is_there(child) for child in children))
        with closing(socket.create_server(address)):
            pass


def test_a_worker_ends_with_a_node_that_is_killed(tmp_path: Path) -> None:
    worker = "import os, time; from tenure.base.env import SystemEnv"
    worker += "\nfrom tenure.base.process_ending import Ending"
    worker += "\nwith Ending(SystemEnv(), drain_seconds=60.0, has_parent=True):"
    worker += "\n    print(os.getpid(), flush=True); time.sleep(600)"
    node = "import os, sys, time; from tenure.pipeline.starter import spawn"
    node += "\nprint(spawn([sys.executable, '-c', sys.argv[1]], os.environ).pid, flush=True); time.sleep(600)"
    with _python("-c", node, worker, folder=tmp_path) as process:
        assert process.stdout is not None
        worker_pid = int(process.stdout.readline())
        assert _is_there(worker_pid)
        process.kill()
        await_true(lambda: not _is_there(worker_pid))


def test_the_session_of_a_process_that_is_killed_is_ended_by_its_parent(tmp_path: Path) -> None:
    with _node(tmp_path, "--processes", "2") as parent, ExitStack() as open_clients:
        address = _address(parent)
        clients = [open_clients.enter_context(closing(_connect(address))) for _ in range(CONNECTIONS)]
        clients[0].execute("CREATE TABLE t (id int PRIMARY KEY)")
        # So long that within the test no session dies by its expiration.
        clients[0].execute("SET CLUSTER SETTING liveness.ttl = '1h'")
        before = _sessions(clients[0])
        await_true(lambda: min(_sessions(clients[0]).values()) > max(before.values()) + HALF_AN_HOUR_MICROS)
        for client in clients:
            client.execute("SELECT * FROM t")  # each process has a lease on it
        os.kill(_children(parent.pid)[0], signal.SIGKILL)
        survivor = next(client for client in clients if _answers(client))
        await_true(lambda: len(before.keys() & _sessions(survivor).keys()) == 1)
        survivor.execute("ALTER TABLE t ADD COLUMN v text")


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_node_that_is_started_again_ends_the_session_of_its_killed_predecessor(
    tmp_path: Path, postgres_directory: Path, engine: str
) -> None:
    store = ["--store", "sqlite:store.db"]
    if engine == "postgres":
        port = postgres_server.start(postgres_directory).port
        store = ["--store", f"postgresql://postgres@127.0.0.1:{port}/postgres"]
    with _node(tmp_path, *store) as node, closing(_connect(_address(node))) as client:
        client.execute("CREATE TABLE t (id int PRIMARY KEY)")
        client.execute("SET CLUSTER SETTING liveness.ttl = '1h'")
        before = _sessions(client)
        await_true(lambda: min(_sessions(client).values()) > max(before.values()) + HALF_AN_HOUR_MICROS)
        client.execute("SELECT * FROM t")
        with _node(tmp_path, *store) as other, closing(_connect(_address(other))) as witness:
            assert before.keys() < _sessions(witness).keys()  # a second node leaves the living alone
            node.kill()
            node.wait()
            with _node(tmp_path, *store) as again, closing(_connect(_address(again))) as later:
                assert not before.keys() & _sessions(later).keys()
                assert len(_sessions(later)) == 2
                later.execute("ALTER TABLE t ADD COLUMN v text")


@pytest.mark.invariant("drain-ends")
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_drain_that_a_hanging_store_holds_up_ends_when_its_time_is_up(
    tmp_path: Path, postgres_directory: Path, processes: str
) -> None:
    with _hung_node(tmp_path, postgres_directory, "--drain-timeout", "2", "--processes", processes) as node:
        node.terminate()
        _, err = node.communicate(timeout=PATIENCE_SECONDS)
    assert node.returncode == 1, err
    assert "the drain did not end within 2 s" in err


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_second_signal_ends_a_drain_at_once(
    tmp_path: Path, postgres_directory: Path, processes: str
) -> None:
    with _hung_node(
        tmp_path, postgres_directory, "--drain-timeout", "6000", "--processes", processes
    ) as node:
        children = _children(node.pid)
        node.terminate()
        assert node.stderr is not None
        assert any("draining" in line for line in node.stderr)
        node.terminate()
        _, err = node.communicate(timeout=PATIENCE_SECONDS)
        await_true(lambda: not any(_is_there(child) for child in children))
    assert node.returncode == 1, err
    assert "a second signal came during the drain" in err


@contextmanager
def _hung_node(folder: Path, directory: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """A node whose store answers nothing, with a statement that waits for it."""
    server = postgres_server.start(directory)
    store = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
    with _node(folder, "--store", store, *options) as node, closing(_connect(_address(node))) as client:
        client.execute("CREATE TABLE t (id int PRIMARY KEY)")
        postmaster = int((directory / "data" / "postmaster.pid").read_text().split()[0])
        stopped = [postmaster, *_children(postmaster)]
        _signal(stopped, signal.SIGSTOP)
        try:
            client.pgconn.send_query(b"INSERT INTO t VALUES (1)")
            yield node
        finally:
            _signal(stopped, signal.SIGCONT)


@contextmanager
def _node(folder: Path, *options: str, sql: str = "127.0.0.1:0") -> Iterator["subprocess.Popen[str]"]:
    folder.mkdir(exist_ok=True)
    with _python("-m", "tenure.cli", "start", "--sql", sql, *options, folder=folder) as process:
        yield process


@contextmanager
def _python(*arguments: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, *arguments],
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
        process.wait()
        for output in (process.stdout, process.stderr):
            assert output is not None
            output.close()


def _address(node: "subprocess.Popen[str]") -> tuple[str, int]:
    assert node.stdout is not None
    assert node.stderr is not None
    line = node.stdout.readline()
    assert line, node.stderr.read()
    host, port = line.split()[1].removeprefix("sql=").split(":")
    return host, int(port)


def _connect(address: tuple[str, int]) -> "psycopg.Connection[tuple[object, ...]]":
    host, port = address
    return psycopg.connect(host=host, port=port, user="root", dbname="defaultdb", autocommit=True)


def _sessions(client: "psycopg.Connection[tuple[object, ...]]") -> dict[bytes, int]:
    """The node sessions, with when they expire."""
    found = client.execute("SELECT session_id, trunc(expiration)::int8 FROM system.sqlliveness").fetchall()
    return {bytes(id): expires for id, expires in found}  # type: ignore[call-overload, misc]


def _answers(client: "psycopg.Connection[tuple[object, ...]]") -> bool:
    try:
        client.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def _children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def _is_there(pid: int) -> bool:
    """Whether it runs; one that nobody has reaped yet has ended all the same."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)
