"""The objects of the catalog as a transaction sees them.

    the lease's catalog, as names are resolved in it  +  temporary objects  +  the transaction's own draft
    AS OF SYSTEM TIME: the catalog of then

Objects are looked up one by one where their ids, names or schemas are known, and listed only by those who
want all. Neither pins anything: what is only shown may be changed by others meanwhile.

Walk: the catalog's tables of tenure_internal and those of `sql.tables.pg_catalog` ask for `objects`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, ValuesView
from typing import TypeAlias, TypeVar

from tenure.catalog.accounts.privileges import CONNECT
from tenure.catalog.descriptors.definitions import AnyDescriptor, Contained, Database, Schema, is_dropped
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.catalog.name_resolution import PG_TEMP
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import TableReader
from tenure.sql.text.quoting import quoted

D = TypeVar("D", bound=AnyDescriptor)
Shows: TypeAlias = Callable[[AnyDescriptor], bool]


class Objects:
    """The objects that this transaction sees, by id."""

    def __init__(self, by_id: "VisibleObjects", shows: Shows) -> None:
        self.by_id = by_id
        self.shows = shows
        self._names: dict[int, str] = {}
        """Of the databases and schemas that were asked for: a listing asks for the same ones for each row."""

    def of(self, kind: type[D]) -> list[D]:
        """Those of one kind that are shown to the user, in the order of their names."""
        found = [each for each in self.by_id.values() if isinstance(each, kind) and self.shows(each)]
        return sorted(found, key=lambda each: (self._schema_name(each), each.name, each.id))

    def _schema_name(self, each: AnyDescriptor) -> tuple[str, str]:
        if isinstance(each, Database):
            return ("", "")
        database = self._name(each.database)
        return (database, "") if isinstance(each, Schema) else (database, self._name(each.schema))

    def _name(self, id: int) -> str:
        name = self._names.get(id)
        if name is None:
            found = self.by_id.get(id)
            name = self._names[id] = "" if found is None else found.name
        return name

    def database_of(self, each: Contained | Schema) -> str:
        return self._name(each.database)

    def schema_of(self, each: Contained) -> str:
        return self._name(each.schema)

    def qualified(self, each: Contained) -> str:
        """Its name with its schema's, as SQL writes it; `pg_temp` for a temporary object."""
        schema = self.schema_of(each)
        return f"{quoted(PG_TEMP if schema.startswith(PG_TEMP) else schema)}.{quoted(each.name)}"


class VisibleObjects(Mapping[int, AnyDescriptor]):
    """Those that are not dropped. Listing them decodes the whole catalog; looking one up does not."""

    def __init__(self, block: Block) -> None:
        self._block = block
        is_now = block.past is None
        lease = block.use.lease if is_now else None
        self._version: CatalogView | None = None if lease is None else lease.version
        self._draft: Mapping[int, AnyDescriptor] = block.use.draft.descriptors if is_now else {}
        temporary = block.use.temporary if is_now else None
        self._temporary: Mapping[int, AnyDescriptor] = {} if temporary is None else temporary.by_id
        self._shown_types = {} if temporary is None else temporary.shown_types()
        self._all: dict[int, AnyDescriptor] | None = None

    def __getitem__(self, id: int) -> AnyDescriptor:
        version = self._version
        if version is None:
            return self._listed()[id]
        found = self._draft.get(id) or version.descriptor(id) or self._temporary.get(id)
        if found is None or is_dropped(found):
            return self._shown_types[id]
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self._listed())

    def __len__(self) -> int:
        return len(self._listed())

    def values(self) -> ValuesView[AnyDescriptor]:
        return self._listed().values()

    def in_schema(self, schema: int) -> Iterator[AnyDescriptor]:
        """The objects of a schema, or the schemas of a database; others may come with them."""
        version = self._version
        return self._current(self._listed().values() if version is None else version.in_schema(schema))

    def named(self, name: str) -> Iterator[AnyDescriptor]:
        """The objects of a name, and tables with such a part; others may come with them."""
        version = self._version
        return self._current(self._listed().values() if version is None else version.named(name))

    def _current(self, candidates: Iterable[AnyDescriptor]) -> Iterator[AnyDescriptor]:
        if not self._draft and not self._temporary:
            return (each for each in candidates if not is_dropped(each))
        ids = dict.fromkeys((*(each.id for each in candidates), *self._draft, *self._temporary))
        return (each for id in ids if (each := self.get(id)) is not None)

    def _listed(self) -> dict[int, AnyDescriptor]:
        if self._all is None:
            found = {each.id: each for each in self._block.descriptors()}
            found.update(self._draft)
            self._all = {id: each for id, each in found.items() if not is_dropped(each)}
        return self._all


def objects(reader: TableReader) -> Objects:
    visible = VisibleObjects(reader.block)
    return Objects(visible, _shows(reader, visible))


def _shows(reader: TableReader, visible: VisibleObjects) -> Shows:
    """Whether the user may see that an object is there: not in databases that it may not connect to."""
    session, rights = reader.session, reader.session.rights(reader.block)
    may_connect = {session.database: True}

    def is_shown(each: AnyDescriptor) -> bool:
        if rights.is_superuser or isinstance(each, Database):
            return True
        if each.database not in may_connect:
            database = visible.get(each.database)
            may_connect[each.database] = database is not None and rights.has(database, CONNECT)
        return may_connect[each.database]

    return is_shown
