"""pg_cancel_backend and pg_terminate_backend, also of sessions of another node."""

from threading import Thread
from typing import Any

import psycopg
import pytest

from tests.clients.conftest import Cluster


class Sleeper:
    """A statement that sleeps in a thread of its own, until somebody ends it."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection
        self.error: psycopg.Error | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.connection.execute("SELECT pg_sleep(60)")
        except psycopg.Error as error:
            self.error = error

    def ended(self) -> str | None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return None if self.error is None else self.error.sqlstate


def _signal(connection: "psycopg.Connection[Any]", function: str, pid: int) -> bool:
    row = connection.execute(f"SELECT {function}({pid})".encode()).fetchone()
    assert row is not None
    return bool(row[0])


def _await_active(connection: "psycopg.Connection[Any]", pid: int) -> None:
    query = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND query LIKE 'SELECT pg_sleep%'"
    while connection.execute(query.encode()).fetchone() != (1,):
        pass


@pytest.mark.parametrize("other", [0, 1])
def test_a_statement_is_canceled_and_its_session_goes_on(cluster: Cluster, other: int) -> None:
    victim, boss = cluster.connect(), cluster.connect(other)
    sleeper = Sleeper(victim)
    _await_active(boss, victim.info.backend_pid)
    assert _signal(boss, "pg_cancel_backend", victim.info.backend_pid)
    assert sleeper.ended() == "57014"
    assert victim.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("other", [0, 1])
def test_a_session_is_ended(cluster: Cluster, other: int) -> None:
    victim, boss = cluster.connect(), cluster.connect(other)
    sleeper = Sleeper(victim)
    _await_active(boss, victim.info.backend_pid)
    assert _signal(boss, "pg_terminate_backend", victim.info.backend_pid)
    assert sleeper.ended() == "57P01"
    assert victim.closed


def test_a_pid_of_nobody_is_a_warning(cluster: Cluster) -> None:
    boss, said = cluster.connect(), []
    boss.add_notice_handler(lambda notice: said.append(notice.message_primary))
    assert not _signal(boss, "pg_cancel_backend", 2_000_000_000)
    assert said == ["PID 2000000000 is not a PostgreSQL backend process"]


def test_a_plain_user_ends_its_own_sessions_only(cluster: Cluster) -> None:
    cluster.run("DROP ROLE IF EXISTS meek", "CREATE ROLE meek")
    boss, victim = cluster.connect(), cluster.connect()
    with cluster.connect() as meek:
        meek.execute("SET ROLE meek")
        for function in ("pg_cancel_backend", "pg_terminate_backend"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                _signal(meek, function, victim.info.backend_pid)
        victim.execute("SET ROLE meek")
        assert _signal(meek, "pg_terminate_backend", victim.info.backend_pid)
    with pytest.raises(psycopg.OperationalError):
        _talk_on(victim)
    boss.execute("DROP ROLE meek")


def _talk_on(connection: "psycopg.Connection[Any]") -> None:
    while True:
        connection.execute("SELECT 1")
