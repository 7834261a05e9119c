"""Which tables have an index of a given name: an index has no entry in the namespace, only in its table.

    (schema, index name) ─► ids of tables

It is built on first use, by a pass over all tables, and updated with each version of the cache from then on:
a statement that names an index in a large catalog must not search all of it.

The results are candidates. An outdated copy may name a table that no longer has the index; callers look at
the tables themselves.

Walk: `catalog.leases.catalog_cache` makes `IndexHolders`, and calls `moved` for each new version.
"""

from collections.abc import Iterable

from tenure.catalog.descriptors.definitions import AnyDescriptor, Table

Name = tuple[int, str]


class IndexHolders:
    def __init__(self, descriptors: Iterable[AnyDescriptor]) -> None:
        self._names_of: dict[int, frozenset[Name]] = {}
        self._holders: dict[Name, frozenset[int]] = {}
        for each in descriptors:
            self.moved(each.id, each)

    def of(self, schema: int, name: str) -> frozenset[int]:
        return self._holders.get((schema, name), frozenset())

    def moved(self, id: int, descriptor: AnyDescriptor | None) -> None:
        """Notes the current version of a descriptor; None if it is gone."""
        names: frozenset[Name] = frozenset()
        if isinstance(descriptor, Table):
            names = frozenset((descriptor.schema, each.name) for each in descriptor.indexes)
        before = self._names_of.pop(id, frozenset())
        if names:
            self._names_of[id] = names
        for name in names - before:
            self._holders[name] = self.of(*name) | {id}
        for name in before - names:
            left = self.of(*name) - {id}
            if left:
                self._holders[name] = left
            else:
                del self._holders[name]
