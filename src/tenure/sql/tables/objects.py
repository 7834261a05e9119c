"""All objects of the catalog as a transaction sees them.

    the lease's catalog, as names are resolved in it  +  the transaction's own draft
    AS OF SYSTEM TIME: the catalog of then

Listing pins nothing: what is only shown may be changed by others meanwhile.

Walk: the catalog's tables of tenure_internal ask for `objects`.
"""

from typing import TypeVar

from tenure.catalog.descriptors.definitions import AnyDescriptor, Contained, Database, DescriptorState, Schema
from tenure.sql.session.session_state import TableReader
from tenure.sql.text.quoting import quoted

D = TypeVar("D", bound=AnyDescriptor)


class Objects:
    """The objects that this transaction sees, by id."""

    def __init__(self, by_id: dict[int, AnyDescriptor]) -> None:
        self.by_id = by_id

    def of(self, kind: type[D]) -> list[D]:
        """Those of one kind, in the order of their names."""
        found = [each for each in self.by_id.values() if isinstance(each, kind)]
        return sorted(found, key=lambda each: (self._schema_name(each), each.name, each.id))

    def _schema_name(self, each: AnyDescriptor) -> tuple[str, str]:
        if isinstance(each, Database):
            return ("", "")
        database = self._name(each.database)
        return (database, "") if isinstance(each, Schema) else (database, self._name(each.schema))

    def _name(self, id: int) -> str:
        found = self.by_id.get(id)
        return "" if found is None else found.name

    def database_of(self, each: Contained | Schema) -> str:
        return self._name(each.database)

    def schema_of(self, each: Contained) -> str:
        return self._name(each.schema)

    def qualified(self, each: Contained) -> str:
        """Its name with its schema's, as SQL writes it."""
        return f"{quoted(self.schema_of(each))}.{quoted(each.name)}"


def objects(reader: TableReader) -> Objects:
    found = {each.id: each for each in reader.block.descriptors()}
    if reader.block.past is None:
        found.update(reader.block.use.draft.descriptors)
    return Objects({id: each for id, each in found.items() if each.state is not DescriptorState.DROPPED})
