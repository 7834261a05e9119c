"""Rows that follow from one object each, kept until the object changes.

    ObjectRows(kinds, make)      all(reader)          of every object of these kinds in the session's database
                                 of(reader, ids)      of some objects
                                 in_schemas, named    of those of a schema or a name

Rows are kept by the object that they were made of: as long as the catalog has the same version of it, they
are not made again. So reading a large catalog costs what has changed in it, besides the pass over its
objects.

Walk: the modules of `sql.tables.pg_catalog` make one per relation.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from tenure.catalog.accounts.privileges import LETTERS, WORDS, Entries
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.accounts.role_graph import RoleGraph
from tenure.catalog.descriptors.definitions import AnyDescriptor, Database
from tenure.catalog.descriptors.role_records import (
    OWNER,
    PUBLIC_ROLE,
    WHOLE_OBJECT,
    ObjectPrivileges,
)
from tenure.expr.types.datatype import Datum
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.objects import Objects, objects
from tenure.sql.tables.virtual import Rows
from tenure.sql.text.quoting import quoted

Row = tuple[Datum, ...]
CACHED_ROWS_MAX = 100_000
"""Rows of a relation that are kept: some 30 MB. When there are more, all are forgotten."""
_ACL_LETTERS = "arwdDxtXUCTcsAm"
"""The privileges of PostgreSQL in the order in which it writes them."""
_BITS = [(letter, WORDS[word]) for letter in _ACL_LETTERS for word, each in LETTERS.items() if each == letter]


class CatalogReader:
    """The catalog for one reading of a relation, as its transaction sees it."""

    def __init__(self, reader: TableReader) -> None:
        self.reader = reader
        self.database = reader.session.database
        self.objects: Objects = objects(reader)

    @cached_property
    def rights(self) -> Rights:
        return self.reader.session.rights(self.reader.block)

    @cached_property
    def roles(self) -> RoleGraph:
        return self.rights.graph

    @property
    def keeps(self) -> bool:
        """Whether others will read the same versions: not so of the past."""
        return self.reader.block.past is None

    def role_oid(self, name: str) -> int:
        role = self.roles.role(name)
        return 0 if role is None else role.id

    def privileges(self, object: int, column: int = WHOLE_OBJECT) -> ObjectPrivileges | None:
        return self.rights.stored(object, column)

    def acl(self, descriptor: AnyDescriptor, column: int = WHOLE_OBJECT) -> tuple[str, ...] | None:
        """NULL of an object whose privileges are those of its kind, as in PostgreSQL."""
        stored = self.privileges(descriptor.id, column)
        if stored is None:
            return None
        return acl_items(stored.entries, descriptor.owner)


def acl_items(entries: Entries, owner: str) -> tuple[str, ...]:
    """As aclitem is written: reader=rw*/ann."""
    names = {OWNER: owner, PUBLIC_ROLE: ""}
    return tuple(
        f"{_acl_name(names.get(each.grantee, each.grantee))}={_letters(each.privileges, each.grantable)}"
        f"/{_acl_name(names.get(each.grantor, each.grantor))}"
        for each in entries
    )


def _letters(privileges: int, grantable: int) -> str:
    return "".join(letter + "*" * bool(grantable & bit) for letter, bit in _BITS if privileges & bit)


def _acl_name(name: str) -> str:
    return quoted(name) if name else ""


def is_of_database(each: AnyDescriptor, database: int) -> bool:
    return each.id == database if isinstance(each, Database) else each.database == database


Make = Callable[[Any, CatalogReader], Iterable[Row]]
Basis = Callable[[Any, CatalogReader], tuple[object, ...]]


def _itself(each: AnyDescriptor, catalog: CatalogReader) -> tuple[object, ...]:
    return (each,)


class ObjectRows:
    def __init__(self, kinds: tuple[type, ...], make: Make, *, basis: Basis = _itself) -> None:
        """`basis`: everything that the rows follow from; they are made again when one of these is another."""
        self._kinds = kinds
        self._make = make
        self._basis = basis
        self._kept: dict[int, tuple[tuple[object, ...], tuple[Row, ...]]] = {}
        self._count = 0

    def all(self, reader: TableReader) -> Rows:
        catalog = CatalogReader(reader)
        return self._of(catalog, catalog.objects.by_id.values())

    def of(self, reader: TableReader, ids: Iterable[int]) -> Rows:
        catalog = CatalogReader(reader)
        found = (catalog.objects.by_id.get(id) for id in dict.fromkeys(ids))
        return self._of(catalog, (each for each in found if each is not None))

    def in_schemas(self, reader: TableReader, schemas: Sequence[Datum]) -> Rows:
        catalog = CatalogReader(reader)
        return self._of(catalog, _once(map(catalog.objects.by_id.in_schema, schemas)))

    def named(self, reader: TableReader, names: Sequence[Datum]) -> Rows:
        catalog = CatalogReader(reader)
        return self._of(catalog, _once(map(catalog.objects.by_id.named, names)))

    def _of(self, catalog: CatalogReader, candidates: Iterable[AnyDescriptor]) -> Iterator[Row]:
        for each in candidates:
            if isinstance(each, self._kinds) and is_of_database(each, catalog.database):
                yield from self._rows(each, catalog)

    def _rows(self, each: AnyDescriptor, catalog: CatalogReader) -> tuple[Row, ...]:
        basis = self._basis(each, catalog)
        kept = self._kept.get(each.id)
        if kept is not None and _are_same(kept[0], basis):
            return kept[1]
        rows = tuple(self._make(each, catalog))
        if catalog.keeps:
            self._keep(each.id, basis, rows)
        return rows

    def _keep(self, id: int, basis: tuple[object, ...], rows: tuple[Row, ...]) -> None:
        if self._count + len(rows) > CACHED_ROWS_MAX:
            self._kept.clear()
            self._count = 0
        former = self._kept.get(id)
        self._kept[id] = basis, rows
        self._count += len(rows) - (0 if former is None else len(former[1]))


def _once(groups: Iterable[Iterable[AnyDescriptor]]) -> Iterable[AnyDescriptor]:
    return {each.id: each for group in groups for each in group}.values()


def _are_same(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    return len(first) == len(second) and all(one is other for one, other in zip(first, second, strict=True))
