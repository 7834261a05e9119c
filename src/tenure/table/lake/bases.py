"""The bases that a node knows: the newest manifest of each index that it has read.

A node follows the manifests. An outdated manifest does no harm: a read whose rows have moved to the lake
meanwhile sees that by the cleaned mark, and reads the newest manifest from the store itself.

Walk: `composition.table_layer` hands one to the store and runs `follow` in a loop; `kv.bases` calls `of` and
`newer`.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from tenure.base.errors import BaseMoved, CorruptData
from tenure.kv.bases import Base
from tenure.kv.follower import Follower
from tenure.kv.keys import Keyspace
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.storage.engine import Revision
from tenure.storage.files import Files
from tenure.table.lake.manifests import Manifest, Manifests

if TYPE_CHECKING:
    from tenure.table.lake.base import LakeBase
    from tenure.table.lake.checked_files import CheckedFiles
    from tenure.table.lake.groups import DecodedGroups

SPACING_SECONDS = 0.1
"""The time between two looks for new manifests: an older one works as well for a while."""


class LakeBases:
    def __init__(self, store: Store, manifests: Manifests, files: Files, *, cache_bytes: int) -> None:
        self._store = store
        self._keyspace: Keyspace = store.keyspace
        self._manifests = manifests
        self.files = files
        self._cache_bytes = cache_bytes
        self._groups: DecodedGroups | None = None
        self._lock = store.env.lock()
        self._bases: dict[bytes, LakeBase] = {}
        self.far_tables: set[int] = set()
        """Indexes with a base in an object store: reading a row of one may take seconds."""
        self._follower = Follower(
            store, [manifests.span], self._load, self._apply, spacing_seconds=SPACING_SECONDS
        )

    @cached_property
    def checked(self) -> "CheckedFiles":
        """The files as readers of rows open them."""
        from tenure.table.lake.checked_files import CheckedFiles
        from tenure.table.lake.damage import damage_in

        return CheckedFiles(self.files, damage_in(self._store))

    def load(self) -> None:
        """Reads all manifests; from then on `follow` applies changes."""
        self._follower.load()

    def _load(self, snapshot: Snapshot) -> None:
        heads = {self._head(self._adopt(manifest).manifest) for manifest in self._manifests.all(snapshot)}
        with self._lock:
            for head in self._bases.keys() - heads:
                del self._bases[head]  # one that is newer than the snapshot comes again with the next changes

    def follow(self) -> float:
        """Waits for changes and applies them: a step for a loop."""
        self._follower.step()
        return 0.0

    def _apply(self, revisions: Sequence[Revision]) -> None:
        for key, _, value in revisions:
            if value is not None:
                self._adopt(self._manifests.decode(value))
            else:
                self._forget(key)

    def wake(self) -> None:
        self._follower.wake()

    def close(self) -> None:
        self._follower.close()

    def of(self, head: bytes) -> "LakeBase | None":
        return self._bases.get(head)

    def newer(self, head: bytes, base: Base | None) -> "LakeBase":
        table, index = self._keyspace.table_and_index(head)
        manifest = self._manifests.get(self._store.snapshot(), table, index)
        if manifest is None:
            raise BaseMoved("the index is gone")
        if getattr(base, "manifest", None) == manifest:
            raise CorruptData(
                f"the lake's files of table {table}, index {index} are not all there",
                hint="Is this the lake that belongs to the store? See --lake.",
            )
        return self._adopt(manifest)

    def bases(self) -> "list[LakeBase]":
        return list(self._bases.values())

    def _adopt(self, manifest: Manifest) -> "LakeBase":
        head = self._head(manifest)
        with self._lock:
            base = self._bases.get(head)
            if base is None or base.flushed_at <= manifest.flushed_at:
                base = self._bases[head] = self._base(manifest, head)
                if not self.files.is_local:
                    self.far_tables.add(manifest.table)
            return base

    def _head(self, manifest: Manifest) -> bytes:
        return self._keyspace.head(manifest.table, manifest.index)

    def _base(self, manifest: Manifest, head: bytes) -> "LakeBase":
        # Arrow is imported when there is something to read: a node without a base is smaller.
        from tenure.table.lake.base import LakeBase
        from tenure.table.lake.groups import DecodedGroups

        if self._groups is None:
            self._groups = DecodedGroups(self.checked, self._store.env, bytes_max=self._cache_bytes)
        return LakeBase(manifest, self._groups, head)

    def _forget(self, key: bytes) -> None:
        table, index = self._manifests.index_of(key)
        with self._lock:
            self._bases.pop(self._keyspace.head(table, index), None)
