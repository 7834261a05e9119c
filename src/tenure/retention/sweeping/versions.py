"""The versions of one descriptor from a time on, as sweeps need them.

Walk: `publication` and `object_collection` -> `versions_of` -> `kv.store`.
"""

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.kv.keys import Span
from tenure.kv.store import Store

PAGE_ROWS = 1_000
"""Versions per engine call."""


def versions_of(
    store: Store, catalog: Catalog, id: int, *, since_at: Timestamp, until_at: Timestamp
) -> list[AnyDescriptor]:
    """The version that was current at `since_at`, and all later ones up to `until_at`."""
    former = catalog.get(store.snapshot(since_at), id)
    versions = [] if former is None else [former]
    key, through_at = catalog.key(id), since_at
    while through_at < until_at:
        page = store.history(Span(key, key + b"\0"), since_at=through_at, until_at=until_at, limit=PAGE_ROWS)
        versions += [catalog.decode(each.value) for each in page.revisions if each.value is not None]
        through_at = page.through_at
    return versions
