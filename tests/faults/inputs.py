"""Bad input from outside: files that are not a store, a server that refuses, is away, or goes.

Each case asserts the class's SQLSTATE and what the message names, that nothing was changed, and
that service goes on once the cause is gone.

Walk: `__main__` and `test_faults_smoke` call `bad_input` with a `Run`.
"""

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import apsw
import psycopg

from tenure.base.env import SystemEnv
from tenure.base.errors import TenureError, for_operator
from tenure.kv.store import Store
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tests import postgres_server
from tests.faults import names
from tests.faults.harness import Place, Result, Run
from tests.faults.worker import open_engine, open_store

PASSWORD = "correct-horse"
Case: TypeAlias = Callable[[Run, Result], None]


def bad_input(run: Run) -> Result:
    result = Result()
    cases = SQLITE if run.engine == "sqlite" else POSTGRES
    for case in cases:
        case(run, result)
    result.counts["cases"] = len(cases)
    return result


def not_a_database(run: Run, result: Result) -> None:
    path = run.place("bad").path
    content = b"this is not a database, and nobody may write to it\n" * 200
    path.write_bytes(content)
    _refused(result, lambda: open_engine(f"sqlite:{path}", SystemEnv()), "XX001", str(path))
    result.require(path.read_bytes() == content, "a file that is not a database was changed")
    path.unlink()
    _use(f"sqlite:{path}", result, expected=None)


def foreign_database(run: Run, result: Result) -> None:
    path = run.place("bad").path
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
    connection.close()
    _refused(result, lambda: open_engine(f"sqlite:{path}", SystemEnv()), "XX001", "not a Tenure store")
    connection = apsw.Connection(str(path))
    result.require(connection.execute("SELECT a FROM theirs").get == 1, "a foreign database was changed")
    connection.close()


def damaged_pages(run: Run, result: Result) -> None:
    """Pages of a store overwritten: reads and commits refuse; the file put back serves again."""
    place = run.place("bad")
    _use(place.address, result, expected=None)
    _fill(place)
    good = place.path.read_bytes()
    damaged = bytearray(good)
    for page in range(2, len(good) // 4096):
        damaged[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
    place.path.write_bytes(bytes(damaged))
    _refused(result, lambda: _read_all(place.address), "XX001", str(place.path))
    result.require(place.path.read_bytes() == bytes(damaged), "a damaged file was changed")
    _remove_wal(place.path)
    place.path.write_bytes(good)
    _use(place.address, result, expected=b"1")


def newer_file(run: Run, result: Result) -> None:
    place = run.place("bad")
    _use(place.address, result, expected=None)
    _pragma_version(place.path, 99)
    _refused(result, lambda: open_engine(place.address, SystemEnv()), "0A000", "format 99")
    _pragma_version(place.path, 1)
    _use(place.address, result, expected=b"1")


def missing_directory(run: Run, result: Result) -> None:
    path = run.place("bad").directory / "missing" / "store.db"
    _refused(result, lambda: open_engine(f"sqlite:{path}", SystemEnv()), "58030", str(path))
    path.parent.mkdir()
    _use(f"sqlite:{path}", result, expected=None)


def newer_schema(run: Run, result: Result) -> None:
    place = run.place("bad")
    schema = place.address.partition("@")[0]
    _use(place.address, result, expected=None)
    _set_format(run, schema, "99")
    _refused(result, lambda: open_engine(place.address, SystemEnv()), "0A000", "format 99")
    _set_format(run, schema, "1")
    _use(place.address, result, expected=b"1")


def wrong_password(run: Run, result: Result) -> None:
    assert run.server is not None
    right = postgres_server.add_role_with_password(run.server, PASSWORD)
    wrong = right.replace("correct", "incorrect")
    error = _refused(result, lambda: PostgresEngine(wrong, SystemEnv(), schema="guarded"), "28P01", "guarded")
    result.require(error is None or "horse" not in str(error) + error.hint, "the message shows the password")
    PostgresEngine(right, SystemEnv(), schema="guarded").close()


def unreachable_server(run: Run, result: Result) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    dsn = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
    began = time.monotonic()
    _refused(result, lambda: PostgresEngine(dsn, SystemEnv()), "08006", str(port))
    result.require(time.monotonic() - began < 10, "an unreachable server is not given up")


def silent_server(run: Run, result: Result) -> None:
    """Accepts and never answers, as a wedged machine does."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        dsn = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        began = time.monotonic()
        _refused(result, lambda: PostgresEngine(dsn, SystemEnv()), "08006", "")
        result.require(time.monotonic() - began < 20, "a silent server is not given up")


def server_goes_away(run: Run, result: Result) -> None:
    """Reads say so at once; a commit fails, or waits until its outcome is known; then all goes on."""
    assert run.server is not None
    place = run.place("bad")
    store = open_store(place.address, SystemEnv())
    key = names.key_of(store.keyspace, "b:00")
    store.transact(lambda txn: txn.put(key, b"1"))
    postgres_server.stop(run.server.directory)
    _refused(result, lambda: store.snapshot().get(key), "08006", "")
    answers: list[str] = []
    thread = threading.Thread(target=_commit, args=(store, key, b"2", answers), daemon=True)
    thread.start()
    thread.join(1.0)
    postgres_server.start(run.server.directory)
    thread.join(30)
    result.require(not thread.is_alive(), "a commit hangs though the server is back")
    seen = store.snapshot().get(key)
    expected = b"2" if answers == ["ack"] else b"1"
    result.require(seen == expected, f"the commit was answered {answers}, but {seen!r} is there")
    store.transact(lambda txn: txn.put(key, b"3"))
    result.require(store.snapshot().get(key) == b"3", "the store does not go on")
    store.close()
    store.engine.close()


SQLITE = (not_a_database, foreign_database, damaged_pages, newer_file, missing_directory)
POSTGRES = (newer_schema, wrong_password, unreachable_server, silent_server, server_goes_away)


def _refused(result: Result, run: Callable[[], object], state: str, named: str) -> TenureError | None:
    try:
        run()
    except TenureError as error:
        text = f"{for_operator(error)} {error.hint}"
        result.require(error.sqlstate == state, f"{error.sqlstate} instead of {state}: {text}")
        result.require(named in text, f'the message does not name "{named}": {text}')
        return error
    result.violations.append(f"no error where {state} was expected ({named})")
    return None


def _use(address: str, result: Result, *, expected: bytes | None) -> None:
    """Opens a store, finds what should be there, and commits."""
    store = open_store(address, SystemEnv())
    try:
        key = names.key_of(store.keyspace, "b:00")
        found = store.snapshot().get(key)
        result.require(found == expected, f"{address}: found {found!r} instead of {expected!r}")
        store.transact(lambda txn: txn.put(key, b"1"))
        result.require(store.snapshot().get(key) == b"1", f"{address} does not serve")
    finally:
        store.close()
        store.engine.close()


def _fill(place: Place) -> None:
    store = open_store(place.address, SystemEnv())
    for number in range(200):
        key = names.key_of(store.keyspace, f"u:00/{number:05d}")
        store.transact(lambda txn, key=key: txn.put(key, b"x" * 900))  # type: ignore[misc]
    _close(store)


def _read_all(address: str) -> None:
    store = open_store(address, SystemEnv())
    try:
        dict(store.snapshot().scan(store.keyspace.all()))
    finally:
        store.engine.close()


def _commit(store: Store, key: bytes, value: bytes, answers: list[str]) -> None:
    try:
        store.transact(lambda txn: txn.put(key, value), attempts=1)
        answers.append("ack")
    except TenureError as error:
        answers.append(error.sqlstate)


def _close(store: Store) -> None:
    store.close()
    store.engine.close()


def _remove_wal(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _pragma_version(path: Path, version: int) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", version)
    connection.close()


def _set_format(run: Run, schema: str, version: str) -> None:
    assert run.server is not None
    with psycopg.connect(run.server.dsn, autocommit=True) as connection:
        connection.execute(f"UPDATE \"{schema}\".meta SET value = %s WHERE name = 'format'", [version])
