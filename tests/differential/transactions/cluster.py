"""One node of Tenure or two, with a database for each script; and PostgreSQL, emptied before each.

With two nodes, client 1 is at the first and client 2 at the second, which leases every table that there is:
so a change cannot skip its stages.

Walk: `run` makes both; `play` opens clients on them.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from tenure.base.env import SystemEnv
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tests.differential.sides import Statement
from tests.differential.transactions.steps import Client
from tests.postgres_server import Server

CLIENTS = 2
DATABASE = f"transactions_{os.getpid()}"
DATABASES_MAX = 150
"""After so many scripts the nodes begin with an empty store: databases are not dropped."""
SETTINGS = ("SET client_min_messages = warning", "SET statement_timeout = '20s'")
PEER_SETTINGS = ("SET lock_timeout = '1s'", "SET default_transaction_isolation = serializable")
EMPTY = ("DROP SCHEMA IF EXISTS extra CASCADE", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
_LEASABLE = (
    "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname IN ('public', 'extra') AND c.relkind IN ('r', 'v')"
)
_UNFINISHED = (
    "SELECT 1 FROM tenure_internal.jobs WHERE status NOT IN ('succeeded', 'failed', 'canceled') AND"
    " job_type = 'schema_change'"
)


class Peer:
    """PostgreSQL."""

    def __init__(self, server: Server) -> None:
        self._dsn = server.dsn.replace("dbname=postgres", f"dbname={DATABASE}")
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
            connection.execute(
                f"CREATE DATABASE {DATABASE} TEMPLATE template0 LOCALE_PROVIDER builtin"
                " BUILTIN_LOCALE 'C.UTF-8'"
            )

    @contextmanager
    def clients(self) -> Iterator[list[Client]]:
        clients = [_connected(self._dsn, *SETTINGS, *PEER_SETTINGS) for _ in range(CLIENTS)]
        try:
            for text in EMPTY:
                clients[0].must(text)
            yield clients
        finally:
            for each in clients:
                each.close()


class Cluster:
    """Tenure."""

    def __init__(self, nodes: int) -> None:
        self.size = nodes
        self._databases = 0
        self._start()

    def _start(self) -> None:
        self._directory = TemporaryDirectory()
        store = f"sqlite:{Path(self._directory.name) / 'store.db'}"
        self._nodes = [Node(NodeOptions(store, listen=Listen(port=0)), SystemEnv()) for _ in range(self.size)]

    def stop(self) -> None:
        for node in self._nodes:
            node.stop()
        self._directory.cleanup()

    @contextmanager
    def clients(self) -> Iterator[tuple[list[Client], "Keeper | None"]]:
        """Clients of a new database, and who holds leases at the last node, if there are several."""
        self._databases += 1
        if self._databases % DATABASES_MAX == 0:
            self.stop()
            self._start()
        database = f"play{self._databases}"
        maker = _connected(_dsn(self._nodes[0], "defaultdb"))
        maker.must(f"CREATE DATABASE {database}")
        maker.close()
        places = [self._nodes[0], self._nodes[-1]]
        clients = [_connected(_dsn(each, database), *SETTINGS) for each in places]
        keeper = Keeper(_connected(_dsn(places[-1], database))) if self.size > 1 else None
        try:
            yield clients, keeper
        finally:
            for each in (*clients, *([keeper.client] if keeper else [])):
                each.close()


class Keeper:
    """Reads every table at the second node, which leases them and keeps the leases."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def settle(self) -> None:
        """Waits for what a failed COMMIT had begun to add: a job takes it back."""
        while self.client.must(_UNFINISHED).rows:
            pass

    def lease_all(self) -> None:
        for schema, name in self.client.must(_LEASABLE).rows:
            assert schema is not None
            assert name is not None
            self.client.ask(Statement(f"SELECT count(*) FROM {schema.decode()}.{name.decode()}"))


@contextmanager
def quiet() -> Iterator[None]:
    """Failing statements are what scripts are about: nodes need not log them."""
    log = logging.getLogger("tenure")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _dsn(node: Node, database: str) -> str:
    assert node.front is not None
    return f"host={node.front.host} port={node.front.port} user=root dbname={database}"


def _connected(dsn: str, *settings: str) -> Client:
    client = Client(dsn)
    for text in settings:
        client.must(text)
    return client
