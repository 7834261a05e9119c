"""`tenure.connect()`: a connection for notebooks and tests, to a node in this process or to a running one.

    tenure.connect()                                     a node of its own, over a store that is removed when
                                                         the connection is closed
    tenure.connect(store="sqlite:data/store.db")         a node of its own, over a store that stays
    tenure.connect("postgresql://root@host:26257/db")    a node that runs already

Each is a connection of psycopg, and takes psycopg's options. A node of its own serves on a free port of this
machine, so that other clients can use it too: `connection.info.dsn` says where. It stops when the connection
is closed, is forgotten, or the process ends.

Walk: the package's own `connect` calls the one here; it opens the node with `cli.open_node`, as `tenure
start` does.
"""

import os
import shutil
import tempfile
import weakref
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from tenure import cli
from tenure.base.env import SystemEnv
from tenure.base.errors import InvalidParameter
from tenure.front import Listen
from tenure.node import Node
from tenure.storage.addresses import default_lake

DATABASE = "defaultdb"


class EmbeddedConnection(psycopg.Connection[Any]):
    """A connection that owns a node: closing it stops the node."""

    stop_node: "weakref.finalize[..., Any] | None" = None

    def close(self) -> None:
        super().close()
        if self.stop_node is not None:
            self.stop_node()


def connect(url: str = "", *, store: str = "", **options: Any) -> "psycopg.Connection[TupleRow]":
    """Connects to the node at `url`, or to one in this process over `store`. `options` are psycopg's."""
    if url and store:
        raise InvalidParameter("connect takes the address of a running node or the address of a store")
    if url:
        return psycopg.connect(url, **options)
    directory = "" if store else tempfile.mkdtemp(prefix="tenure-")
    node = _open(store or f"sqlite:{directory}/store.db")
    stop = _Stop(node, directory)
    try:
        assert node.front is not None
        place = {"host": node.front.host, "port": node.front.port, "user": "root", "dbname": DATABASE}
        connection = EmbeddedConnection.connect(**{**place, **options})
    except BaseException:
        stop()
        raise
    connection.stop_node = weakref.finalize(connection, stop)
    return connection


def _open(store: str) -> Node:
    """Files of IMPORT and EXPORT lie beside the lake."""
    files = os.path.join(os.path.dirname(default_lake(store)), "files")
    options = cli.command_options(["start", "--store", store, "--files", files])
    return cli.open_node(options, Listen(port=0), SystemEnv())


class _Stop:
    """Stops a node, and removes the directory of a store that is not to stay."""

    def __init__(self, node: Node, directory: str) -> None:
        self._node = node
        self._directory = directory

    def __call__(self) -> None:
        self._node.stop()
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)
