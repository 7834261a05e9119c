"""Which objects are in a schema, and which have a name: found without a pass over the catalog.

    schema ─► ids       name ─► ids: of objects, and of the tables that have an index or constraint so named

As `index_holders`, it is built on first use and updated with each version of the cache from then on, and its
answers are candidates: callers look at the objects themselves.

Walk: `catalog.leases.catalog_cache` makes `SchemaContents`, and calls `moved` for each new version.
"""

from collections import defaultdict
from collections.abc import Iterable

from tenure.catalog.descriptors.definitions import AnyDescriptor, Database, Schema, Table

Places = frozenset[tuple[str, int | str]]


class SchemaContents:
    def __init__(self, descriptors: Iterable[AnyDescriptor]) -> None:
        self._places: dict[int, Places] = {}
        self._ids: defaultdict[tuple[str, int | str], set[int]] = defaultdict(set)
        for each in descriptors:
            self.moved(each.id, each)

    def of_schema(self, schema: int) -> list[int]:
        """The objects of a schema; of a database, its schemas."""
        return sorted(self._ids.get(("parent", schema), ()))

    def named(self, name: str) -> list[int]:
        return sorted(self._ids.get(("name", name), ()))

    def moved(self, id: int, descriptor: AnyDescriptor | None) -> None:
        """Notes the current version of a descriptor; None if it is gone."""
        places, before = _places(descriptor), self._places.pop(id, frozenset())
        if places:
            self._places[id] = places
        for place in places - before:
            self._ids[place].add(id)
        for place in before - places:
            self._ids[place].discard(id)
            if not self._ids[place]:
                del self._ids[place]


def _places(descriptor: AnyDescriptor | None) -> Places:
    match descriptor:
        case None:
            return frozenset()
        case Database():
            parent = 0
        case Schema():
            parent = descriptor.database
        case _:
            parent = descriptor.schema
    names = {descriptor.name}
    if isinstance(descriptor, Table):
        parts = (descriptor.indexes, descriptor.checks, descriptor.foreign_keys)
        names.update(each.name for part in parts for each in part)
    return frozenset([("parent", parent), *(("name", name) for name in names)])
