"""Nodes that serve SQL over one store, for real clients: two of them on SQLite, two on PostgreSQL."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import psycopg.conninfo
import pytest

from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tests import postgres_server


class Cluster:
    """Two nodes on one store."""

    def __init__(self, address: str, undo: ExitStack, settings: Settings | None = None) -> None:
        self.nodes = []
        for _ in range(2):
            node = Node(
                NodeOptions(address, settings=settings or Settings(DEFINITIONS), listen=Listen(port=0)),
                SystemEnv(),
            )
            undo.callback(node.stop)
            self.nodes.append(node)
        self._undo = undo

    def address(self, node: int = 0, database: str = "defaultdb") -> str:
        front = self.nodes[node].front
        assert front is not None
        return f"host={front.host} port={front.port} user=root dbname={database}"

    def connect(self, node: int = 0, *, autocommit: bool = True, **options: Any) -> "psycopg.Connection[Any]":
        connection = psycopg.connect(self.address(node), autocommit=autocommit, **options)
        self._undo.callback(connection.close)
        return connection

    def run(self, *texts: str, node: int = 0) -> None:
        with psycopg.connect(self.address(node), autocommit=True) as connection:
            for text in texts:
                connection.execute(text)


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as undo:
        if request.param == "sqlite":
            address = f"sqlite:{tmp_path_factory.mktemp('clients')}/store.db"
        else:
            server: postgres_server.Server = request.getfixturevalue("postgres")
            address = _new_database(server)
        yield Cluster(address, undo)


def _new_database(server: postgres_server.Server) -> str:
    name = f"clients_{uuid4().hex[:12]}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    parts = psycopg.conninfo.conninfo_to_dict(server.dsn)
    return f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/{name}"


TTL_SECONDS = 1.0


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Cluster]:
    """Two nodes whose sessions expire soon, unless they are kept up."""
    settings = Settings(DEFINITIONS, {LIVENESS_TTL: TTL_SECONDS, LIVENESS_HEARTBEAT: TTL_SECONDS / 4})
    with ExitStack() as undo:
        yield Cluster(f"sqlite:{tmp_path}/store.db", undo, settings)


@pytest.fixture(scope="session")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node by itself."""
    directory: Path = tmp_path_factory.mktemp("lone")
    node = Node(NodeOptions(f"sqlite:{directory}/store.db", listen=Listen(port=0)), SystemEnv())
    yield node
    node.stop()
