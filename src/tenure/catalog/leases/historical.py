"""The catalog as of a fixed time: for reads of the past, which need no lease.

A version that was current at a time stays so for ever, so a read at a fixed timestamp may use it without a
lease and without a deadline. Where the node's newest lease already has the version that was current then, the
store is not read; otherwise it is read at that time.

    modified_at <= at <= L      the leased version was current at `at`
    else                        read at `at`

A writer never needs this: it binds to a lease first and takes its `read_at` after that, so its reads are
never older than its lease.

Invariant (I18): a read at T uses the version that was current at T.

Walk: `sql.session.block` makes a `HistoricalUse` for AS OF SYSTEM TIME; it has the lookups of a use of the
present catalog.
"""

from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.kv.snapshot import Snapshot


class HistoricalUse:
    def __init__(
        self, catalog: Catalog, leased: CatalogView | None, snapshot: Snapshot, role: str = ""
    ) -> None:
        """`role` is who has logged in to read."""
        self.role = role
        self._catalog = catalog
        self._leased = leased
        self._found: dict[int, AnyDescriptor] = {}
        self.snapshot = snapshot

    def used(self) -> list[AnyDescriptor]:
        """The descriptors that were looked up so far; may be called from any thread."""
        return list(self._found.copy().values())

    def descriptor(self, id: int) -> AnyDescriptor | None:
        found = self._found.get(id) or self._current(id)
        if found is not None:
            self._found[id] = found
        return found

    def _current(self, id: int) -> AnyDescriptor | None:
        if self._leased is not None and self.snapshot.at <= self._leased.at:
            leased = self._leased.descriptor(id)
            if leased is not None and leased.modified_at <= self.snapshot.at:
                return leased
        return self._catalog.get(self.snapshot, id)

    def id_at(self, place: NameKey) -> int | None:
        return self._catalog.id_at(self.snapshot, place)

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None:
        return self._catalog.schema_entry(self.snapshot, database, name)
