"""The files of the simulated lake: lists of revisions in a tree, read through the product's own `LakeBases`.

Reading a file takes a moment, and it may be gone.

Walk: `lake_world` makes a `SimTree` for a cluster, and `SimFiles` and `SimBases` for each node.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from tenure.base.errors import BaseMoved
from tenure.base.timestamp import Timestamp
from tenure.kv.bases import Row
from tenure.kv.keys import Span
from tenure.kv.store import DEFAULT_TENANT
from tenure.storage.files import Files
from tenure.storage.tree import TreeEntry
from tenure.table.lake.bases import LakeBases
from tenure.table.lake.identity import DIRECTORY, id_file
from tenure.table.lake.manifests import (
    AS_PUBLISHED,
    File,
    Manifest,
)
from tenure.table.lake.visible_files import visible_files
from tests.simulation.hub import Hub

ID = "own"
"""What the lake and its store carry."""


class FileRow(NamedTuple):
    """A revision in a file; a time that an import gives is AS_PUBLISHED."""

    key: bytes
    at: Timestamp
    until: Timestamp
    """MAX_AT in a live file."""
    value: bytes


Contents = tuple[FileRow, ...]


class SimTree:
    """The files of all nodes, and how an operator may mix them up with another store's.

    While the other lake is mounted in the place of this one, its id and its files are what is listed, and its
    files are what is deleted. Reads and writes go to this one all the same: what they would miss is not
    what is asked here.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._contents: dict[str, Contents] = {}
        self._count = 0
        self.others = {f"{DEFAULT_TENANT}/j{number}-r1-0-live" for number in range(3)}
        """The other store's: of jobs that nobody here knows, so here they look like strays."""
        self.has_other_mounted = False
        self.others_deleted: list[str] = []
        self.kept_in_vain: list[FileRow] = []
        """Revisions that a merge took in and wrote again though no readable time shows them."""

    def add(self, contents: Contents) -> str:
        self._count += 1
        self._contents[f"file{self._count}"] = contents
        return f"file{self._count}"

    def read(self, name: str) -> Contents:
        self._hub.sleep(0.2 * self._hub.tape.draw("lake.read") ** 2, "lake")
        if name not in self._contents:
            raise BaseMoved(f'file "{name}" is gone')
        return self._contents[name]

    def children(self, directory: str) -> Iterator[TreeEntry]:
        if directory == DIRECTORY:
            yield TreeEntry(id_file("other" if self.has_other_mounted else ID), 1, 0)
        elif self.has_other_mounted:
            yield from (TreeEntry(name, 1, 0) for name in sorted(self.others))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            if not self.has_other_mounted:
                self._contents.pop(name, None)
            elif name in self.others:
                self.others_deleted.append(name)

    def delete_unfinished(self, *, before_micros: int) -> int:
        return 0


class SimJobs:
    def open(self, snapshot: object) -> tuple[()]:
        return ()


class SimFiles(Files):
    """As one node has opened them."""

    def __init__(self, tree: SimTree) -> None:
        super().__init__(cast(Any, tree), "sim")
        self.tree = tree


class SimBase:
    def __init__(self, manifest: Manifest, files: SimFiles) -> None:
        self.manifest = manifest
        self.flushed_at = manifest.flushed_at
        self._files = files

    def get(self, key: bytes, at: Timestamp) -> bytes | None:
        return self._visible(at).get(key)

    def present(self, keys: Sequence[bytes], at: Timestamp) -> set[bytes]:
        return set(self.get_many(keys, at))

    def get_many(self, keys: Sequence[bytes], at: Timestamp) -> dict[bytes, bytes]:
        visible = self._visible(at)
        return {key: visible[key] for key in keys if key in visible}

    def page(self, span: Span, at: Timestamp, limit: int, *, reverse: bool) -> list[Row]:
        visible = self._visible(at)
        keys = sorted((key for key in visible if span.lo <= key < span.hi), reverse=reverse)
        return [(key, visible[key]) for key in keys][:limit]

    def rows(self, files: Iterable[File]) -> list[FileRow]:
        """All that files have, with the times at which imports were published."""
        return [
            row._replace(
                at=file.published_at if row.at == AS_PUBLISHED else row.at,
                until=file.published_at if row.until == AS_PUBLISHED else row.until,
            )
            for file in files
            for row in self._files.tree.read(file.name)
        ]

    def _visible(self, at: Timestamp) -> dict[bytes, bytes]:
        rows = self.rows(visible_files(self.manifest, at))
        return {row.key: row.value for row in rows if row.at <= at < row.until}


class SimBases(LakeBases):
    def _base(self, manifest: Manifest, head: bytes) -> Any:
        return SimBase(manifest, cast(SimFiles, self.files))
