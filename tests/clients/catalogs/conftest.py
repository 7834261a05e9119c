"""Both sides: a node, and a PostgreSQL with the same objects."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tenure.base.env import SystemEnv
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tests import postgres_server
from tests.clients.catalogs.world import Side, side_of, side_of_postgres


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    directory: Path = tmp_path_factory.mktemp("catalogs")
    node = Node(NodeOptions(f"sqlite:{directory}/store.db", listen=Listen(port=0)), SystemEnv())
    try:
        yield side_of(node)
    finally:
        node.stop()


@pytest.fixture(scope="module")
def theirs(postgres: postgres_server.Server) -> Iterator[Side]:
    name = f"catalogs_{uuid4().hex[:12]}"
    yield side_of_postgres(postgres, name)
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        connection.execute(b"DROP ROLE reader")
