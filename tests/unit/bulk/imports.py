"""A node with a lake and a directory for files, to import into."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tenure.base.env import SystemEnv
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tenure.pipeline.starter import Process
from tenure.pipeline.tasks import Tasks
from tests.unit.sql.sessions import Said, Talk

_numbers = count(1)


@contextmanager
def lake_node(
    directory: Path,
    *,
    start_worker: Callable[[], Process] | None = None,
    spark: Callable[[], Tasks] | None = None,
) -> Iterator[Node]:
    node = Node(
        NodeOptions(
            f"sqlite:{directory}/store.db",
            listen=Listen(port=0),
            lake=str(directory / "lake"),
            files=str(directory / "files"),
            start_worker=start_worker,
            spark=spark,
        ),
        SystemEnv(),
    )
    try:
        yield node
    finally:
        node.stop()


class Importing:
    """A session in a schema of its own, and files of its own."""

    def __init__(self, node: Node, directory: Path) -> None:
        self.node = node
        self.name = f"s{next(_numbers)}"
        self.files = directory / "files" / self.name
        self.files.mkdir(parents=True)
        self.talk = self.session()
        self.done(f"CREATE SCHEMA {self.name}")
        self.done(f"SET search_path = {self.name}")

    def session(self) -> Talk:
        """Another one."""
        talk = Talk(self.node)
        talk.say(f"SET search_path = {self.name}")
        return talk

    def file(self, name: str, text: str | bytes) -> str:
        """A file's location."""
        path = self.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return f"{self.name}/{name}"

    def say(self, text: str) -> Said:
        return self.talk.say(text)

    def done(self, text: str) -> Said:
        said = self.say(text)
        assert not said.sqlstate, said
        return said

    def csv(self, text: str, table: str = "t", options: str = "") -> Said:
        """Imports a CSV file with this content."""
        location = self.file(f"{next(_numbers)}.csv", text)
        return self.say(f"IMPORT INTO {table} CSV DATA ('{location}') {options}")

    def rows(self, query: str = "SELECT * FROM t ORDER BY 1") -> list[tuple[str | None, ...]]:
        return list(self.done(query).rows)

    def counts(self, said: Said) -> tuple[str | None, ...]:
        """Rows, entries and rejected, of what an import has said."""
        assert not said.sqlstate, said
        ((_, rows, entries, _, rejected),) = said.rows
        return rows, entries, rejected
