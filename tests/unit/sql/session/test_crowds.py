"""One user's waits and long statements do not keep others, or an administrator, out."""

import select
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest

from tests.unit.sql.served import Served, serving

SLEEPERS = WAITERS = 70
"""More than any pool of threads that all statements share used to have."""

COMPUTING = 6
"""More than there are places for."""

COMPUTE = b"SELECT max(md5(n::text)) FROM generate_series(1, 1000000000) n"

Client = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("crowds")) as served:
        served.tag("CREATE TABLE t (id int PRIMARY KEY, v int)")
        served.tag("INSERT INTO t VALUES (1, 1), (2, 2)")
        served.tag("CREATE USER mallory")
        served.tag("CREATE USER alice")
        served.tag("GRANT ALL ON t TO mallory, alice")
        yield served


@pytest.fixture
def mallory(served: Served) -> Iterator[Callable[[], Client]]:
    """Connections of a user who lets go of nothing; all are gone in the end, and so is what they did."""
    with ExitStack() as all:
        yield lambda: all.enter_context(closing(served.connect("mallory")))
    await_gone(served)


def begin(client: Client, statement: bytes) -> None:
    """Sends it, and does not wait for an answer."""
    client.pgconn.send_query(statement)


def answer(client: Client) -> psycopg.pq.abc.PGresult:
    """Waits on the socket: libpq itself would wait with the interpreter, which the node needs."""
    while client.pgconn.is_busy():
        assert select.select([client.fileno()], [], [], 20)[0]
        client.pgconn.consume_input()
    result = client.pgconn.get_result()
    assert result is not None
    assert client.pgconn.get_result() is None
    return result


def running(served: Served) -> int:
    """How many statements of mallory have begun."""
    texts = "SELECT count(*) FROM tenure_internal.sessions WHERE user_name = 'mallory' AND state = 'active'"
    return int(served.rows(texts)[0][0])


def await_gone(served: Served) -> None:
    left = "SELECT count(*) FROM tenure_internal.sessions WHERE user_name = 'mallory'"
    for _ in range(200):
        if served.rows(left) == [(0,)]:
            return
        served.rows("SELECT pg_sleep(0.05)")
    raise AssertionError("statements of clients that are gone go on")


def require_service(served: Served) -> None:
    """Others log in, read, write, and have their long statements run."""
    for user in ("root", "alice"):
        with served.connect(user) as client:
            client.execute("SET statement_timeout = '20s'")
            assert client.execute("SELECT v FROM t WHERE id = 2").fetchone() == (2,)
            assert client.execute("SELECT count(*) FROM t a, t b").fetchone() == (4,)
            assert client.execute("UPDATE t SET v = v WHERE id = 2").rowcount == 1


@pytest.mark.invariant("waits-hold-no-place")
def test_sleepers_and_waiters_keep_nobody_out(served: Served, mallory: Callable[[], Client]) -> None:
    holder = mallory()
    holder.execute("BEGIN")
    holder.execute("UPDATE t SET v = v WHERE id = 1")
    holder.execute("SELECT pg_advisory_lock(1)")
    statements = (
        [b"SELECT pg_sleep(600)"] * SLEEPERS
        + [b"UPDATE t SET v = v WHERE id = 1"] * WAITERS
        + [b"SELECT pg_advisory_lock(1)"] * 10
    )
    for statement in statements:
        begin(mallory(), statement)
    while running(served) < len(statements):
        require_service(served)
    require_service(served)
    assert holder.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_long_statements_of_one_user_leave_room_for_others(
    served: Served, mallory: Callable[[], Client]
) -> None:
    for number in range(COMPUTING):
        client = mallory()
        if number % 2:
            client.execute("BEGIN")
        begin(client, COMPUTE)
    require_service(served)


@pytest.mark.setting("sql.user_statements_max")
def test_statements_beyond_a_users_cap_queue_and_can_be_ended(
    served: Served, mallory: Callable[[], Client]
) -> None:
    served.tag("SET CLUSTER SETTING sql.user_statements_max = 2")
    try:
        sleeping = [mallory() for _ in range(2)]
        for client in sleeping:
            begin(client, b"SELECT pg_sleep(600)")
        while running(served) < 2:
            pass
        queued = mallory()
        queued.execute("SET statement_timeout = '100ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            queued.execute("SELECT pg_sleep(0)")
        queued.execute("SET statement_timeout = 0")
        begin(queued, b"SELECT pg_sleep(0)")
        queued.cancel_safe()
        assert b"canceling statement due to user request" in answer(queued).error_message
        queued.execute("BEGIN")
        queued.execute("SELECT pg_sleep(0)")  # in a transaction it does not queue
        sleeping[0].cancel_safe()
        queued.execute("ROLLBACK")
        queued.execute("SELECT pg_sleep(0)")
    finally:
        served.tag("RESET CLUSTER SETTING sql.user_statements_max")


@pytest.mark.setting("sql.user_connections_max")
def test_one_user_has_no_more_connections_than_allowed(served: Served, mallory: Callable[[], Client]) -> None:
    served.tag("SET CLUSTER SETTING sql.user_connections_max = 2")
    try:
        mallory(), mallory()
        with pytest.raises(psycopg.OperationalError, match='too many connections for role "mallory"'):
            mallory()
        served.connect("alice").close()
    finally:
        served.tag("RESET CLUSTER SETTING sql.user_connections_max")


def test_whoever_holds_a_number_can_give_it_up_though_all_else_waits(
    served: Served, mallory: Callable[[], Client]
) -> None:
    served.tag("SET CLUSTER SETTING sql.user_statements_max = 2")
    try:
        holder = mallory()
        holder.execute("SELECT pg_advisory_lock(7)")
        waiting = [mallory() for _ in range(4)]
        for client in waiting:
            begin(client, b"SELECT pg_advisory_lock(7), pg_advisory_unlock(7)")
        while running(served) < 2:
            pass
        assert holder.execute("SELECT pg_advisory_unlock(7)").fetchone() == (True,)
        for client in waiting:
            result = answer(client)
            assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
    finally:
        served.tag("RESET CLUSTER SETTING sql.user_statements_max")
