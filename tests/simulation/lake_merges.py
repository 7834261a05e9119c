"""Merges of the simulated lake: what becomes of a base and all that the store has up to a time.

It stands for the kernels of `pipeline.merge`, over lists of revisions instead of files of columns. Which past
files are taken in, and which revisions are needed, is decided by the product's own functions.

Walk: `lake_world`, `retention_jobs` and the model of `tests/unit/retention` make a `Merge`, and publish its
`replaced`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.kv.store import Store
from tenure.table.lake.keep import Keep
from tenure.table.lake.manifests import AS_PUBLISHED, File, FileShape, Manifests, WrittenFile, no_base
from tenure.table.lake.past_files import groups_due, needless
from tenure.table.lake.publishing import ManifestEdit
from tests.simulation.lake_files import FileRow, SimBase, SimFiles


class Pacing(Protocol):
    """Who merges: it reads some keys at a time, and others come in between."""

    def pick(self, count: int) -> int: ...

    def pause(self) -> None: ...


class Merge:
    def __init__(
        self,
        store: Store,
        manifests: Manifests,
        files: SimFiles,
        index: tuple[int, int],
        keep: Keep,
        pacing: Pacing,
        seen: Counter[str],
    ) -> None:
        snapshot = store.snapshot()
        self.at = snapshot.at
        self.began_with = manifests.get(snapshot, *index) or no_base(*index)
        self._keep = keep
        self._seen = seen
        self._tree = files.tree
        self._base = SimBase(self.began_with, files)
        self._live = {row.key: row for row in self._base.rows(self.began_with.live)}
        self._ended: list[FileRow] = []
        self._is_changed = not self.began_with.live
        span, since_at = store.keyspace.index_span(*index), self.began_with.flushed_at
        for page in snapshot.revisions(span, since_at=since_at, limit=1 + pacing.pick(3)):
            for revision in page:
                self.add(revision.key, revision.at, revision.value)
            pacing.pause()

    def add(self, key: bytes, at: Timestamp, value: bytes | None) -> None:
        """A newer revision: what was there of its key ends."""
        former = self._live.pop(key, None)
        if former is not None:
            self._ended.append(former._replace(until=at))
        if value is not None:
            self._live[key] = FileRow(key, at, MAX_AT, value)
        self._is_changed = True

    def replaced(self, *, takes_all: bool = False, rewrites: frozenset[str] = frozenset()) -> ManifestEdit:
        """The edit of the manifest; `rewrites` names past files that are written again in any case."""
        gone = list(needless(self.began_with, self._keep))
        past = [self._written(rows) for rows in [needed(self._ended, self._keep)] if rows]
        left = [file for file in self.began_with.past if file not in gone]
        groups = [tuple(left)] if takes_all and left else groups_due(self.began_with.live, left)
        grouped = {file.name for group in groups for file in group}
        groups += [(file,) for file in left if file.name in rewrites - grouped]
        for group in groups:
            gone += group
            rows = needed(self._base.rows(group), self._keep)
            self._judge(rows)
            past += [self._written(rows)] if rows else []
            self._seen["past files merged"] += 1
        live: tuple[WrittenFile, ...] = ()
        if self._is_changed:
            gone += self.began_with.live
            live = tuple(self._written(rows) for rows in [tuple(self._live.values())] if rows)
        return ManifestEdit(tuple(file.name for file in gone), live, tuple(past))

    def _judge(self, rows: Iterable[FileRow]) -> None:
        """The oracle of what may stay: a revision that some readable time shows."""
        for row in rows:
            is_shown = any(row.at <= point < row.until for point in self._keep.points)
            if row.until - 1 < self._keep.threshold and not is_shown:
                self._tree.kept_in_vain.append(row)

    def _written(self, rows: Sequence[FileRow]) -> WrittenFile:
        at, until = [row.at for row in rows], [row.until for row in rows]
        is_published = AS_PUBLISHED in (*at, *until)
        dated = [each for each in at if each != AS_PUBLISHED]
        file = File(
            self._tree.add(tuple(rows)),
            b"",
            b"\xff",
            len(rows),
            1,
            b"",
            0,
            AS_PUBLISHED if is_published else 0,
            min(dated) if dated else AS_PUBLISHED,
            AS_PUBLISHED if AS_PUBLISHED in until else max(until),
        )
        return WrittenFile(file, FileShape(()))


def needed(rows: Iterable[FileRow], keep: Keep) -> tuple[FileRow, ...]:
    """Without those that no readable time shows; one that an import ends is visible until it is published."""
    return tuple(row for row in rows if row.until == AS_PUBLISHED or keep.needs(row.at, row.until))
