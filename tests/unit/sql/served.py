"""A node that serves SQL, and clients of it: for what is best seen from outside."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from tenure.base.env import SystemEnv
from tenure.cluster.jobs.runs import JobKind
from tenure.front import Listen
from tenure.node import Node, NodeOptions


class Served(NamedTuple):
    node: Node
    root: "psycopg.Connection[Any]"

    def connect(self, user: str = "root", **options: str) -> "psycopg.Connection[Any]":
        assert self.node.front is not None
        dsn = f"host={self.node.front.host} port={self.node.front.port} user={user} dbname=defaultdb"
        return psycopg.connect(dsn, autocommit=True, **options)  # type: ignore[arg-type]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.root.execute(statement.encode()).fetchall()

    def tag(self, statement: str) -> str:
        return self.root.execute(statement.encode()).statusmessage or ""

    def refusal(self, statement: str) -> psycopg.errors.Diagnostic:
        """What an error says; the statement must fail."""
        try:
            self.root.execute(statement.encode())
        except psycopg.Error as error:
            return error.diag
        raise AssertionError(f"{statement} did not fail")


@contextmanager
def serving(
    directory: Path, kinds: Mapping[str, JobKind] | None = None, *, store: str = ""
) -> Iterator[Served]:
    listen = Listen(port=0, is_insecure=True)
    node = Node(
        NodeOptions(store or f"sqlite:{directory}/store.db", kinds=kinds or {}, listen=listen), SystemEnv()
    )
    try:
        assert node.front is not None
        dsn = f"host={node.front.host} port={node.front.port} user=root dbname=defaultdb"
        with psycopg.connect(dsn, autocommit=True) as root:
            yield Served(node, root)
    finally:
        node.stop()
