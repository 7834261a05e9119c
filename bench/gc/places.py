"""A node in this process whose tables get their history row by row from the store, not by SQL.

A history of millions of revisions is written as entries of the table's primary index, many in a commit: an
UPDATE of each row would take most of a benchmark's time.

Walk: `bench.gc.collection` and `bench.gc.modes` open a `GcNode` here, and fill its tables with `write`.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tenure.base.env import SystemEnv
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import Table
from tenure.front import Listen
from tenure.kv.transaction import Transaction
from tenure.node import Node, NodeOptions
from tenure.storage.engine import Revision, Revisions
from tenure.table.rows import Row
from tests.unit.table.trees import CONTEXT

COLUMNS = "(id bigint PRIMARY KEY, version bigint NOT NULL, note text NOT NULL)"
NOTE = "n" * 80
PAGE_KEYS = 10_000
BLOCK_ROWS = 1_000
"""Rows that get their history together, and rows of a commit."""
WAIT_MORE_SECONDS = 0.3
"""Beyond a ttl: the store's clock may be behind."""


class GcNode:
    """A node, a client of it, and the histories of its tables."""

    def __init__(self, directory: Path) -> None:
        options = NodeOptions(
            f"sqlite:{directory}/store.db", listen=Listen(port=0), lake=str(directory / "lake")
        )
        self.node = Node(options, SystemEnv())
        self.store = self.node.store
        self._client = self.connect()
        self.ask("SET CLUSTER SETTING gc.interval = '7d'")  # every sweep is one that is asked for

    def close(self) -> None:
        self._client.close()
        self.node.stop()

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        front = self.node.front
        assert front is not None
        return psycopg.connect(
            host=front.host, port=front.port, user="root", dbname="defaultdb", autocommit=True
        )

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._client.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def create(self, name: str) -> Table:
        self.ask(f"CREATE TABLE {name} {COLUMNS}")
        ((id,),) = self.ask(f"SELECT '{name}'::regclass::oid::int8")
        table = self.node.catalog.get(self.store.snapshot(), id)
        assert isinstance(table, Table)
        return table

    def write(self, table: Table, ids: Iterable[int], versions: Sequence[int]) -> None:
        """Gives every row each of these versions, one after the other; some rows at a time, as the peers have
        the history of a row in one place. All rows at once would write each page of the store anew for each
        version.
        """
        layout = self.node.layouts.of(table)
        keys = [layout.key({1: id}) for id in ids]
        entries = [
            layout.entry(layout.primary, Row(keys[0], {1: 0, 2: version, 3: NOTE}), CONTEXT)
            for version in versions
        ]
        for first in range(0, len(keys), BLOCK_ROWS):
            for entry in entries:
                assert entry is not None
                self._put(keys[first : first + BLOCK_ROWS], entry.value)

    def _put(self, keys: Sequence[bytes], value: bytes) -> None:
        def run(txn: Transaction) -> None:
            for key in keys:
                txn.put(key, value)

        self.store.transact(run)

    def set_ttl(self, seconds: int) -> None:
        self.ask(f"ALTER RANGE DEFAULT CONFIGURE ZONE USING gc.ttlseconds = {seconds}")

    def collect(self, table: Table) -> int:
        """RUN GC NOW; returns how many revisions it has removed."""
        ((_, _, removed, _),) = self.ask(f"RUN GC NOW FOR TABLE {table.name}")
        return int(removed)

    def revisions(self, table: Table) -> Iterator[Revision]:
        """All revisions of the primary index that are in the store."""
        keyspace, engine = self.store.keyspace, self.store.engine
        span = keyspace.index_span(table.id, table.primary)
        lo, until_at = span.lo, engine.clock_at()
        while True:
            page = engine.revisions(Revisions(lo, span.hi, keyspace.guard(span), 0, until_at, PAGE_KEYS))
            yield from page.revisions
            if not page.last:
                return
            lo = page.last + b"\0"

    def now_at(self) -> Timestamp:
        return self.store.snapshot().at


def wait_for(ttl_seconds: float) -> None:
    """Lets a ttl pass."""
    time.sleep(ttl_seconds + WAIT_MORE_SECONDS)


@contextmanager
def gc_node() -> Iterator[GcNode]:
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as directory:
        node = GcNode(Path(directory))
        try:
            yield node
        finally:
            node.close()
