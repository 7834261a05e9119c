"""A node with a lake and a directory for files; alone, or with a client.

with lake_node(directory) as node: ...
client = LakeClient(lake_options(directory))      client.run("SELECT 1")      client.close()
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from tenure.base.env import SystemEnv
from tenure.front import Listen
from tenure.node import Node, NodeOptions


def lake_options(directory: Path, **others: Any) -> NodeOptions:
    """All that is stored lies in the directory, unless another option says otherwise."""
    options = NodeOptions(
        f"sqlite:{directory}/store.db",
        listen=Listen(port=0),
        lake=str(directory / "lake"),
        files=str(directory / "files"),
    )
    return replace(options, **others)


@contextmanager
def lake_node(directory: Path, **others: Any) -> Iterator[Node]:
    node = Node(lake_options(directory, **others), SystemEnv())
    try:
        yield node
    finally:
        node.stop()


class LakeClient:
    """A node, and a client of it that is a superuser."""

    def __init__(self, options: NodeOptions) -> None:
        self.env = SystemEnv()
        self.node = Node(options, self.env)
        self.root = self.connect()

    def connect(self, user: str = "root", password: str = "") -> "psycopg.Connection[Any]":
        front = self.node.front
        assert front is not None
        place = {"host": front.host, "port": front.port, "dbname": "defaultdb"}
        return psycopg.connect(**place, user=user, password=password, autocommit=True)  # type: ignore[arg-type]

    def run(self, statement: str) -> list[Any]:
        cursor = self.root.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self.root.close()
        self.node.stop()
