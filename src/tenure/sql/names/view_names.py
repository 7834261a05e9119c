"""The names in a view's query: what they meant when the view was made, whatever is called so by now.

A source keeps the id of its object and the names that its columns had. So a renamed table is still read,
a renamed column is still meant, and `SELECT *` gives the columns of then.

Walk: `sql.names.session_names` -> `view_query` -> the binder asks a `ViewNames` while it binds the query.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tenure.base.errors import UndefinedTable
from tenure.catalog.descriptors.definitions import EnumType, Table, View, ViewSource
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.expr.tree.build import Typed
from tenure.expr.types.datatype import Type
from tenure.sql.bind.relations import NamedColumns, Relation, ViewQuery
from tenure.sql.tables.sequence_relation import sequence_relation
from tenure.sql.text.parse import one

if TYPE_CHECKING:
    from tenure.sql.names.session_names import SessionNames


def view_query(view: View, names: "SessionNames", former: ViewSource | None = None) -> ViewQuery:
    """A view as it is used; by another view, under the names that its columns had then."""
    parsed = one(view.query)
    assert parsed is not None, "a view has a query"
    columns = tuple(each.name for each in view.columns)
    if former is not None:
        columns = tuple(name for name, _ in former.columns)
    return ViewQuery(view.name, parsed.tree, ViewNames(view, names), columns, view.id, len(columns))


class ViewNames:
    def __init__(self, view: View, names: "SessionNames") -> None:
        self._names = names
        self._sources = {each.name: each for each in view.sources}

    def relation(self, name: Sequence[str], position: int) -> Relation:
        source = self._sources.get(tuple(name))
        if source is None:
            return self._names.system_table(name, position)
        found = self._names.descriptor(source.id)
        match found:
            case Table():
                self._names.require_usable(found)
                return NamedColumns(found, source.columns)
            case View():
                return view_query(found, self._names, source)
            case SequenceDescriptor():
                return sequence_relation(found)
        raise UndefinedTable(f'relation "{".".join(name)}" does not exist')

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...], *, is_array: bool) -> Type:
        source = self._sources.get(tuple(name))
        if source is None:
            return self._names.type_named(name, modifiers, is_array=is_array)
        return self._names.enum_type(source.id, is_array=is_array)

    def check_size(self, levels: int) -> None:
        self._names.check_size(levels)

    def enum(self, id: int) -> EnumType:
        return self._names.enum(id)

    def call(self, name: Sequence[str], arguments: Sequence[Typed]) -> Typed | None:
        known = {written: each.id for written, each in self._sources.items()}
        return self._names.call(name, arguments, known)
