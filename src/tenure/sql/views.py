"""Views: their stored text bound where they are used, and what a new one has to remember.

A view's text is kept as it was written, and its `sources` say what each name in it meant then: which
table, and which of its columns had which name. So a renamed table or column stays readable through
the view, and a column that was added later is no part of its `*`.

    seen(view, around)                  a View of the catalog as the binder wants it
    Recording(names)                    as names, and remembers what was asked for
      .sources(), depends(query)        what a View keeps

Walk: `SessionNames.relation` calls `seen`; CREATE VIEW binds its query with a `Recording`.
"""

from collections.abc import Sequence
from typing import Protocol

from tenure.catalog.descriptors import AnyDescriptor, Depends, EnumType, Source, Table, TypeRef, View, visible
from tenure.expr.build import Typed
from tenure.expr.datatype import Type
from tenure.expr.types import type_of
from tenure.sql.access_columns import whole
from tenure.sql.parse import one
from tenure.sql.plan import Plan, Query, Scan, walk
from tenure.sql.relations import NamedColumns, Names, Relation, ViewQuery


class Catalog(Names, Protocol):
    """Names that also know descriptors by their ids."""

    def descriptor(self, id: int) -> AnyDescriptor | None: ...


def seen(view: View, around: Catalog) -> ViewQuery:
    """The view under the names that its columns have now."""
    statement = one(view.query)
    assert statement is not None, f'view "{view.name}" has no text'
    columns = tuple(each.name for each in view.columns)
    return ViewQuery(view.name, statement.tree, ViewNames(view, around), columns, view.id)


class ViewNames:
    """What the names in a view's text mean: what they meant when it was made."""

    def __init__(self, view: View, around: Catalog) -> None:
        self._sources = {each.name: each for each in view.sources}
        self._around = around

    def relation(self, name: Sequence[str], position: int) -> Relation:
        source = self._sources.get(tuple(name))
        found = None if source is None else self._around.descriptor(source.id)
        if source is None or found is None:
            return self._around.relation(name, position)
        if isinstance(found, View):
            return self._view(found, source)
        assert isinstance(found, Table), f'"{found.name}" is read by a view and is no table'
        return NamedColumns(found, source.columns)

    def _view(self, view: View, source: Source) -> ViewQuery:
        former = {number: name for name, number in source.columns}
        columns = tuple(former.get(number, each.name) for number, each in enumerate(view.columns, 1))
        return seen(view, self._around)._replace(columns=columns, shown=len(source.columns))

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...], *, is_array: bool) -> Type:
        source = self._sources.get(tuple(name))
        found = None if source is None else self._around.descriptor(source.id)
        if isinstance(found, EnumType):
            return type_of(TypeRef(found.name, is_array=is_array, enum=found.id), self.enum)
        return self._around.type_named(name, modifiers, is_array=is_array)

    def enum(self, id: int) -> EnumType:
        return self._around.enum(id)

    def call(self, name: Sequence[str], arguments: Sequence[Typed]) -> Typed | None:
        return self._around.call(name, arguments)


class Recording:
    """Passes questions on, and keeps what was asked."""

    def __init__(self, around: Names) -> None:
        self._around = around
        self._found: dict[tuple[str, ...], Source] = {}

    def relation(self, name: Sequence[str], position: int) -> Relation:
        found = self._around.relation(name, position)
        if isinstance(found, Table):
            columns = tuple((each.name, each.id) for each in visible(found.columns) if not each.is_hidden)
            self._found[tuple(name)] = Source(tuple(name), found.id, columns)
        elif isinstance(found, ViewQuery) and found.id:
            columns = tuple((each, number) for number, each in enumerate(found.columns, 1))
            self._found[tuple(name)] = Source(tuple(name), found.id, columns)
        return found

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...], *, is_array: bool) -> Type:
        found = self._around.type_named(name, modifiers, is_array=is_array)
        if found.ref.enum:
            self._found[tuple(name)] = Source(tuple(name), found.ref.enum, ())
        return found

    def enum(self, id: int) -> EnumType:
        return self._around.enum(id)

    def call(self, name: Sequence[str], arguments: Sequence[Typed]) -> Typed | None:
        return self._around.call(name, arguments)

    def sources(self) -> tuple[Source, ...]:
        return tuple(self._found.values())

    def depends(self, query: Query) -> tuple[Depends, ...]:
        """What the bound query cannot be without: of tables the columns it reads, of views all.

        Types that its text does not name are those of columns, which stay as long as the columns do.
        """
        named = {each.id: {id for _, id in each.columns} for each in self._found.values()}
        read: dict[int, set[int]] = {id: set() for id in named}
        for plan in (query.plan, *(each.plan for each in query.nested), *query.shared):
            for scan in _scans(plan):
                if scan.table.id in read:
                    read[scan.table.id].update(scan.columns)
        views = {each.id for each in self._found.values() if not self._is_table(each.name)}
        return tuple(Depends(id, tuple(sorted(named[id] if id in views else read[id]))) for id in read)

    def _is_table(self, name: tuple[str, ...]) -> bool:
        return bool(self._found[name].columns) and isinstance(self._around.relation(name, 0), Table)


def _scans(plan: Plan) -> list[Scan]:
    """Its scans, with no more columns than are read."""
    return [each for each in walk(whole(plan)) if isinstance(each, Scan)]
