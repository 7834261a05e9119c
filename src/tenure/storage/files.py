"""The lake's files: a tree with generated names, which any process can open again by its address.

    files = open_files("file:///var/lake")      or a plain path, or s3://bucket/prefix?AWS_REGION=...
    with files.create("t104/1/live-7f3a.parquet") as output:
        pyarrow.parquet.write_table(table, output)
    open_files(files.address)                   the same, in an executor

Names that Tenure generates use a small alphabet that every file system and object store reads alike. Names
that users choose go through `storage.locations` instead.

Before a delete, the opener's `confirm` checks that this is still the lake that was opened
(`table.lake.identity`).

Invariant (own-names): a name outside the alphabet of our own never reaches a file system.

Walk: `composition.table_layer` opens one for the lake; `table.lake` reads and writes through it; kernels of
the pipeline open it again by its address.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import IO, Any
from urllib.parse import quote, unquote, urlencode

from tenure.base.errors import FileMissing, InvalidParameter
from tenure.storage.bucket import Bucket, Credentials, bucket_address, credentials_of
from tenure.storage.directory import Directory
from tenure.storage.location_text import LocationText, Pattern, parse
from tenure.storage.tree import PAGE_ENTRIES, DuckConnection, OutputStream, Tree, TreeEntry, join, walk

PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")
NAME_LENGTH_MAX = 500
"""S3 allows 1024 bytes with the prefix, which is the operator's."""


Page = list[TreeEntry]


class Files:
    def __init__(self, tree: Tree, address: str, credentials: Credentials | None = None) -> None:
        self._tree = tree
        self.address = address
        """The address for `open_files`, in another process too; contains no secrets."""
        self.credentials = credentials
        """The credentials for `open_files`; None where the environment has them, or none are needed."""
        self._confirm: Callable[[], None] = lambda: None

    def confirm_by(self, confirm: Callable[[], None]) -> None:
        """From now on `confirm` is called before each deletion; it raises if this is the wrong lake."""
        self._confirm = confirm

    def confirm(self) -> None:
        """Raises unless this still is the lake that was opened."""
        self._confirm()

    @property
    def is_local(self) -> bool:
        """Whether it is a directory, which other machines reach only if it is shared."""
        return self.address.startswith("file://")

    @property
    def arrow(self) -> Any:
        """Opens files (`open_input_file`) for pyarrow's readers.

        Writers go through `create`, which alone is durable.
        """
        return self._tree.arrow

    @property
    def duck_root(self) -> str:
        """For DuckDB's `allowed_directories`: with it and no other external access, DuckDB reads these files
        alone.
        """
        return self._tree.duck_root

    def duck_path(self, name: str) -> str:
        """How DuckDB names the file, on a connection that `let_duckdb_read` was called for."""
        return self._tree.duck_path(check_name(name))

    def let_duckdb_read(self, connection: DuckConnection) -> None:
        self._tree.let_duckdb_read(connection)

    def open_input(self, name: str) -> IO[bytes]:
        return self._tree.open_input(check_name(name))

    def reading(self, name: str) -> AbstractContextManager[None]:
        """Wraps the use of `arrow`: translates its errors into those of `open_input`."""
        return self._tree.translated("read file", check_name(name))

    def read(self, name: str, *, bytes_max: int) -> bytes:
        """Reads a small file whole. A file larger than `bytes_max` is refused, not cut."""
        with self.open_input(name) as file:
            data = file.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise InvalidParameter(f'file "{name}" is larger than {bytes_max} bytes')
        return data

    def create(self, name: str) -> OutputStream:
        return self._tree.create(check_name(name))

    def create_scratch(self, name: str) -> OutputStream:
        """For a file that can be made again: it is not forced to the disk."""
        return self._tree.create(check_name(name), is_lasting=False)

    def exists(self, name: str) -> bool:
        entry = self._tree.entry(check_name(name))
        return entry is not None and not entry.is_directory

    def size(self, name: str) -> int:
        entry = self._tree.entry(check_name(name))
        if entry is None or entry.is_directory:
            raise FileMissing(f'file "{name}" does not exist')
        return entry.bytes

    def list(self, directory: str = "") -> Iterator[Page]:
        """Pages of the files below a directory, in name order, directory by directory."""
        page = []
        for entry in walk(self._tree, check_name(directory) if directory else ""):
            page.append(entry)
            if len(page) == PAGE_ENTRIES:
                yield page
                page = []
        if page:
            yield page

    def names_in(self, directory: str) -> Iterator[str]:
        """The files directly in a directory; none if the directory does not exist."""
        for entry in self._tree.children(check_name(directory)):
            if not entry.is_directory:
                yield entry.name.rpartition("/")[2]

    def delete(self, names: Iterable[str]) -> None:
        self._confirm()
        self._tree.delete([check_name(name) for name in names])

    def delete_unfinished(self, *, before_micros: int) -> int:
        self._confirm()
        return self._tree.delete_unfinished(before_micros=before_micros)


def open_files(address: str, credentials: Credentials | None = None) -> Files:
    """Opens a path or an address; makes a local directory that does not exist.

    An object store's credentials come from the address, the argument or the environment; the resulting
    `address` never contains them.
    """
    if address.startswith("s3://"):
        return _open_bucket(parse(address), credentials)
    path = unquote(address.removeprefix("file://")) if address.startswith("file://") else address
    if "\0" in path or not path:
        raise InvalidParameter("an empty path, or one with a NUL, cannot be opened")
    directory = Directory(os.path.realpath(path))
    directory.make_root()
    return Files(directory, f"file://{quote(directory.root)}")


def check_name(name: str) -> str:
    parts = name.split("/")
    if len(name) > NAME_LENGTH_MAX or not all(PART.fullmatch(part) for part in parts):
        raise InvalidParameter(f"{name[:80]!a} is not a name for a file of the lake")
    return name


def _open_bucket(text: LocationText, credentials: Credentials | None) -> Files:
    if any(isinstance(part, Pattern) for part in text.parts):
        raise InvalidParameter(f'"{text.shown}" has wildcards, so it is not one place')
    address = replace(bucket_address(text), prefix="/".join(map(str, text.parts)))
    credentials = credentials_of(text) or credentials
    options = {"AWS_REGION": address.region, "AWS_ENDPOINT": address.endpoint}
    query = urlencode({name: value for name, value in options.items() if value})
    shown = f"s3://{join(address.bucket, quote(address.prefix))}"
    return Files(Bucket(address, credentials), f"{shown}?{query}" if query else shown, credentials)
