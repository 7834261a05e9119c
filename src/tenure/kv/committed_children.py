"""The commits of a transaction's children, and of theirs, while it is open.

    the parent reads  =  own writes  over  children's commits  over  the store at read_at

A child's revision is shown as long as the parent reads at a time before it; at a later `read_at` the store
itself shows it, or a later revision.

Invariant (I8): the parent's validation excuses exactly its descendants' commit timestamps.

Walk: `kv.layers` adds a child's commit here; `kv.view` keeps a copy of one moment.
"""

from collections.abc import Iterable

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Span
from tenure.storage.engine import Revision, Write, stamped


class ChildCommits:
    __slots__ = ("_is_shared", "excused", "revisions")

    def __init__(self) -> None:
        self.revisions: dict[bytes, Revision] = {}
        """The newest revision of each key."""
        self.excused: list[Timestamp] = []
        """The descendants' commit timestamps."""
        self._is_shared = False
        """Whether a copy has the same mapping, so that it must not be changed in place."""

    def __bool__(self) -> bool:
        return bool(self.revisions)

    def get(self, key: bytes, read_at: Timestamp | None) -> Revision | None:
        """The revision over the store for a read at that time."""
        revision = self.revisions.get(key)
        return revision if revision is not None and self._shows(revision, read_at) else None

    def within(self, span: Span, read_at: Timestamp | None) -> dict[bytes, bytes | None]:
        lo, hi = span
        return {
            key: revision.value
            for key, revision in self.revisions.items()
            if lo <= key < hi and self._shows(revision, read_at)
        }

    def _shows(self, revision: Revision, read_at: Timestamp | None) -> bool:
        return read_at is not None and revision.at > read_at

    def copy(self) -> "ChildCommits":
        """The commits so far; the mapping itself is copied only when another commit is added."""
        copy = ChildCommits()
        copy.revisions, copy.excused = self.revisions, list(self.excused)
        copy._is_shared = self._is_shared = True
        return copy

    def add(self, writes: Iterable[Write], commit_at: Timestamp) -> None:
        """Adds the writes of a transaction that was committed."""
        self.excused.append(commit_at)
        self._keep([Revision(*stamped(write, commit_at)) for write in writes])

    def take_in(self, child: "ChildCommits") -> None:
        self.excused += child.excused
        self._keep(child.revisions.values())

    def _keep(self, revisions: Iterable[Revision]) -> None:
        if self._is_shared:
            self.revisions, self._is_shared = dict(self.revisions), False
        for revision in revisions:
            former = self.revisions.get(revision.key)
            if former is None or former.at < revision.at:
                self.revisions[revision.key] = revision
