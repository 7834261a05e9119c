"""A session that imports files into tables of its own schema."""

import gzip
from itertools import count
from pathlib import Path

from tenure.node import Node
from tests.unit.sql.sessions import Said, Talk

_numbers = count(1)


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
