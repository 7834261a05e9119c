"""Locations: the files that statements may read and write, and nothing else.

    resolve(text)   scheme, names, endpoint, place: all checked before anything is opened or any
                    credential is used; a location that is pickled is resolved again where it arrives
    expand()        the files that a location with wildcards stands for
    open_input, create, list, delete      names relative to the location; "" is the location itself

A local location lies below the one directory for files (`--files`): relative paths start there, absolute ones
and file:// must lead there. `storage.directory` guarantees that no link leads out, not even one that appears
between a check and its use. In an object store, statements bring their own credentials; they may use the
node's only if the operator allows it. The operator also allows endpoints; otherwise any user could make the
node connect to any machine it reaches.

Names here are literal and never decoded again: only `resolve` reads escapes and wildcards.

Invariant (S18): a location leads only to the directory for files and to object stores that are allowed.
Invariant (S19): a location that is refused is refused before anything is opened.

Walk: `composition.storage_layer` makes one `Locations`; statements of `bulk` resolve their locations, jobs
resolve them again when they resume.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, NamedTuple

from tenure.base.errors import FileMissing, InvalidParameter, LimitExceeded, NoPermission, StoreError
from tenure.storage.bucket import Bucket, bucket_address, credentials_of
from tenure.storage.decompression import DEFAULT_LIMITS, DecompressionLimits, decompressed
from tenure.storage.directory import UNFINISHED, Directory
from tenure.storage.location_text import LocationText, Pattern, check_part, fault_of, parse
from tenure.storage.tree import PAGE_ENTRIES, OutputStream, Tree, TreeEntry, join, walk

FILES_MAX = 100_000
"""How many files one statement may name by wildcards: the list must fit into a job's record."""
VISITED_MAX = 1_000_000
"""How many names are listed to find them."""

SCHEMES = frozenset({"file", "s3"})


class FoundFile(NamedTuple):
    name: str
    """A name relative to the location."""
    bytes: int


Page = list[TreeEntry]
Files = list[FoundFile]


@dataclass(frozen=True)
class Locations:
    files_directory: str | None
    """None if statements may use no local files."""
    schemes: frozenset[str] = SCHEMES
    endpoints: tuple[str, ...] = ()
    """The AWS_ENDPOINTs that statements may name, as `https://host:port`; `*` is any."""
    has_implicit_credentials: bool = False
    """Whether AUTH=implicit lets a statement use the node's own credentials."""

    def __post_init__(self) -> None:
        if self.files_directory is not None:  # a process that receives it may have another working directory
            object.__setattr__(self, "files_directory", os.path.abspath(self.files_directory))

    def resolve(self, text: str) -> "Location":
        parsed = parse(text)
        if parsed.scheme not in self.schemes:
            raise NoPermission(f'location "{parsed.shown}" is not allowed: {parsed.scheme} is switched off')
        if UNFINISHED in parsed.parts:
            raise InvalidParameter(f'location "{parsed.shown}" names what is not finished yet')
        location = self._local(text, parsed) if parsed.scheme == "file" else self._bucket(text, parsed)
        location.refuse_links()
        return location

    def make_directory(self) -> None:
        if self.files_directory is not None:
            Directory(self.files_directory).make_root()

    def delete_unfinished(self, *, before_micros: int) -> None:
        """Removes the files that crashed writers have left in the directory for files."""
        if self.files_directory is not None:
            Directory(self.files_directory).delete_unfinished(before_micros=before_micros)

    def _local(self, text: str, parsed: LocationText) -> "Location":
        if self.files_directory is None:
            raise NoPermission(
                f'location "{parsed.shown}" is not allowed: this node has no directory for files',
                hint="Start it with --files DIR.",
            )
        parts = self._below(parsed) if parsed.is_absolute else parsed.parts
        return Location(self, text, parsed.shown, Directory(self.files_directory), parts)

    def _below(self, parsed: LocationText) -> tuple[str | Pattern, ...]:
        """The path from the directory for files, which may be written with its links or without."""
        assert self.files_directory is not None
        for root in (self.files_directory, os.path.realpath(self.files_directory)):
            above = tuple(part for part in root.split("/") if part)
            if parsed.parts[: len(above)] == above:
                return parsed.parts[len(above) :]
        raise NoPermission(
            f'location "{parsed.shown}" is outside of the directory for files',
            hint="Relative paths start in that directory.",
        )

    def _bucket(self, text: str, parsed: LocationText) -> "Location":
        address = bucket_address(parsed)
        if address.endpoint and not {address.endpoint, "*"} & set(self.endpoints):
            raise NoPermission(f'the endpoint of location "{parsed.shown}" is not allowed')
        credentials = credentials_of(parsed)
        how = parsed.options.get("AUTH", "specified")
        if how not in ("specified", "implicit") or (how == "implicit") != (credentials is None):
            raise InvalidParameter(
                f'location "{parsed.shown}" has no credentials, or too many',
                hint="Give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AUTH=implicit.",
            )
        if how == "implicit" and not self.has_implicit_credentials:
            raise NoPermission(f'location "{parsed.shown}" is not allowed the credentials of this node')
        return Location(self, text, parsed.shown, Bucket(address, credentials), parsed.parts)


class Location:
    def __init__(
        self, locations: Locations, text: str, shown: str, tree: Tree, parts: tuple[str | Pattern, ...]
    ) -> None:
        self._locations = locations
        self._tree = tree
        literal = next((at for at, part in enumerate(parts) if isinstance(part, Pattern)), len(parts))
        self._directory = "/".join(str(part) for part in parts[:literal])
        self._wild = parts[literal:]
        self.text = text
        """The original text with its secrets: for `resolve` alone."""
        self.shown = shown

    def __repr__(self) -> str:
        return f"Location({self.shown!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Locations.resolve, (self._locations, self.text)

    @property
    def has_wildcards(self) -> bool:
        return bool(self._wild)

    def open_input(self, name: str = "") -> IO[bytes]:
        with self._told():
            return self._tree.open_input(self._path(name))

    def open_decompressed(self, name: str = "", limits: DecompressionLimits = DEFAULT_LIMITS) -> IO[bytes]:
        source = self.open_input(name)
        try:
            return decompressed(source, self._path(name).rpartition("/")[2], limits)
        except BaseException:
            source.close()
            raise

    def create(self, name: str) -> OutputStream:
        if self._wild:
            raise InvalidParameter(f'location "{self.shown}" has wildcards, so nothing can be written to it')
        with self._told():
            return self._tree.create(self._path(name))

    def size(self, name: str = "") -> int:
        with self._told():
            return _plain_file(self._tree, self._path(name), self.shown).bytes

    def delete(self, names: Iterable[str]) -> None:
        with self._told():
            self._tree.delete([self._path(name) for name in names])

    def list(self) -> Iterator[Page]:
        """Pages of the files below, names relative to the location; without those that could not be
        opened.
        """
        page: Page = []
        with self._told():
            for entry in walk(self._tree, self._directory):
                name = self._relative(entry.name)
                if any(map(fault_of, name.split("/"))):
                    continue
                page.append(entry._replace(name=name))
                if len(page) == PAGE_ENTRIES:
                    yield page
                    page = []
        if page:
            yield page

    def expand(self, *, files_max: int = FILES_MAX) -> Files:
        """The files that the location matches, in name order; there is at least one."""
        found = []
        with self._told():
            for entry in _matching(self._tree, self._directory, self._wild, self.shown):
                found.append(FoundFile(self._relative(entry.name), entry.bytes))
                if len(found) > files_max:
                    raise LimitExceeded(f'location "{self.shown}" stands for more than {files_max} files')
        if not found:
            raise FileMissing(f'no file matches location "{self.shown}"')
        return sorted(found)

    def refuse_links(self) -> None:
        """An early check for a better message: opening refuses links in any case."""
        if isinstance(self._tree, Directory):
            with self._told():
                entry = self._tree.entry(self._directory)
            if entry is not None and entry.is_odd:
                raise NoPermission(f'location "{self.shown}" is a symbolic link or a device')

    def _path(self, name: str) -> str:
        """A name is literal: no escapes, no wildcards."""
        for part in name.split("/") if name else ():
            if check_part(part, self.shown) == UNFINISHED:
                raise InvalidParameter(f'"{name}" in location "{self.shown}" is not finished yet')
        return join(self._directory, name)

    def _relative(self, path: str) -> str:
        return path[len(self._directory) :].removeprefix("/")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors name the location as it was written, and the file below it."""
        try:
            yield
        except StoreError as error:
            raise type(error)(f'location "{self.shown}": {error}', hint=error.hint) from error


def _matching(
    tree: Tree, directory: str, parts: tuple[str | Pattern, ...], shown: str
) -> Iterator[TreeEntry]:
    """Plain files only; an entry that would have to be followed or could not be shown is refused, not
    skipped.
    """
    if not parts:
        yield _plain_file(tree, directory, shown)
        return
    visited = 0
    pending = [(directory, parts)]
    while pending:
        above, (first, *rest) = pending.pop()
        for child in _children(tree, above, first):
            visited += 1
            if visited > VISITED_MAX:
                raise LimitExceeded(f'location "{shown}" stands for too many files to look through')
            name = child.name.rpartition("/")[2]
            if isinstance(first, Pattern) and not first.matches(name):
                continue
            check_part(name, shown)
            if child.is_odd:
                raise NoPermission(f'"{child.name}" is a symbolic link or a device')
            if rest and child.is_directory:
                pending.append((child.name, tuple(rest)))
            elif not rest and not child.is_directory:
                yield child


def _children(tree: Tree, directory: str, first: str | Pattern) -> Iterable[TreeEntry]:
    if isinstance(first, Pattern):
        return tree.children(directory)
    entry = tree.entry(join(directory, first))
    return () if entry is None else (entry,)


def _plain_file(tree: Tree, path: str, shown: str) -> TreeEntry:
    entry = tree.entry(path)
    if entry is None:
        raise FileMissing(f'file "{path}" does not exist')
    if entry.is_directory:
        raise InvalidParameter(f'location "{shown}" is a directory', hint="Name files: directory/*.csv")
    if entry.is_odd:
        raise NoPermission(f'"{path}" is a symbolic link or a device')
    return entry
