"""The objects that information_schema shows to a user: owned by it, or with a privilege for it.

Walk: the modules of `sql.tables.information_schema` make one per reading.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from tenure.catalog.accounts.column_privileges import column_names
from tenure.catalog.accounts.privileges import OF_KIND
from tenure.catalog.descriptors.definitions import AnyDescriptor, Schema, Table, View
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.expr.types.datatype import Datum
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.definition_text import Definitions
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader

D = TypeVar("D", Schema, Table, View, Sequence_)


class VisibleCatalog(CatalogReader):
    def __init__(self, reader: TableReader) -> None:
        super().__init__(reader)
        self.catalog_name = reader.session.database_name
        self.definitions = Definitions(self)

    def of(self, kind: type[D], names: Sequence[Datum] | None = None) -> Iterator[D]:
        """Those of one kind, or of these names."""
        by_id = self.objects.by_id
        if names is None:
            found: list[AnyDescriptor] = list(by_id.values())
        else:
            found = list({each.id: each for name in names for each in by_id.named(name)}.values())
        for each in found:
            if isinstance(each, kind) and each.database == self.database and self.shows(each):
                yield each

    def shows(self, each: AnyDescriptor) -> bool:
        rights = self.rights
        if rights.owns(each) or rights.held(each):
            return True
        return any(rights.held_on_column(each, column) for column in column_names(each))

    def shows_column(self, each: Table | View, column: int) -> bool:
        return self.rights.owns(each) or self.rights.has_on_column(each, OF_KIND["column"], column)

    def schema_name(self, each: Table | View | Sequence_) -> str:
        return self.objects.schema_of(each)


def yes_or_no(value: bool) -> str:
    return "YES" if value else "NO"
