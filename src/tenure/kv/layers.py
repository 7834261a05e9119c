"""The layers over the store for a transaction: its own writes, its parents', and its children's commits.

    own writes  over  the open parents' writes  over  children's commits  over  the store at read_at

A child that reads committed rows only does not see its parents' writes, but still may not write their keys.
Those are found by going up from layers to layers: a child refers to its parent's layers, not to the parent
itself.

Walk: `kv.transaction` keeps one -> `kv.buffer`, `kv.committed_children`; its children go up through it.
"""

from typing import Optional

from tenure.base.timestamp import Timestamp
from tenure.kv.buffer import Buffer
from tenure.kv.committed_children import ChildCommits
from tenure.kv.keys import Span
from tenure.storage.engine import Write


class Layers:
    __slots__ = ("_buffer", "_parent", "_seen_parent", "_writes", "child_commits", "has_parent")

    def __init__(self, buffer: Buffer, parent: Optional["Layers"], committed_only: bool) -> None:
        self._buffer = buffer
        self._writes = buffer.writes
        self._parent = parent
        self.has_parent = parent is not None
        self._seen_parent = None if committed_only else parent
        self.child_commits: ChildCommits | None = None
        """The commits of children; None for most transactions."""

    def written(self, key: bytes) -> Write | None:
        """The uncommitted write of a key, by this transaction or a parent whose writes it sees."""
        write = self._writes.get(key)
        if write is None and self._seen_parent is not None:
            return self._seen_parent.written(key)
        return write if write is None or write.key_stamp is None else None

    def within(self, span: Span, read_at: Timestamp | None) -> dict[bytes, bytes | None]:
        """All layers over the store within a span: later entries win."""
        # A parent's buffered write will be committed after all commits of children.
        if self.child_commits is None:
            return self._uncommitted(span)
        return self.child_commits.within(span, read_at) | self._uncommitted(span)

    def _uncommitted(self, span: Span) -> dict[bytes, bytes | None]:
        if self._seen_parent is None:
            return self._buffer.within(span)
        return self._seen_parent._uncommitted(span) | self._buffer.within(span)

    def has_written(self, key: bytes) -> bool:
        """Whether this transaction or any parent has written a key."""
        return key in self._writes or self.parent_has_written(key)

    def parent_has_written(self, key: bytes) -> bool:
        return self._parent is not None and self._parent.has_written(key)

    def excused(self) -> tuple[Timestamp, ...]:
        """The commit timestamps of children, and of theirs."""
        return () if self.child_commits is None else tuple(self.child_commits.excused)

    def copy_child_commits(self) -> ChildCommits:
        return ChildCommits() if self.child_commits is None else self.child_commits.copy()

    def land(self, commit_at: Timestamp) -> None:
        """Its own writes are committed: its parent sees them from now on."""
        assert self._parent is not None
        self._parent._child_commits().add(self._writes.values(), commit_at)

    def end(self) -> None:
        """Hands its children's commits on to the parent."""
        if self._parent is not None and self.child_commits is not None:
            self._parent._child_commits().take_in(self.child_commits)

    def _child_commits(self) -> ChildCommits:
        if self.child_commits is None:
            self.child_commits = ChildCommits()
        return self.child_commits
