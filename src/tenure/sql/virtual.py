"""System tables: relations whose rows are made when they are asked for.

    system.*            the records below SQL, with the columns of the design documents
    tenure_internal.*   what a node knows and computes
    pg_catalog.*, information_schema.*   what clients ask about the catalog

Each is a `Definition`: columns and a function that gives rows for one execution. Their schemas cannot be
shadowed: `pg_catalog` is looked through first, as in PostgreSQL.

Walk: `sql.names` asks `table` while binding; the rows executor asks `rows` when it runs.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tenure.expr.datatype import Datum
from tenure.sql import sequence_relation
from tenure.sql.plan import Output
from tenure.sql.relations import VirtualTable

if TYPE_CHECKING:
    from tenure.sql.execution import Execution
    from tenure.sql.names import SessionNames

Rows = Iterable[tuple[Datum, ...]]


class Definition(NamedTuple):
    schema: str
    name: str
    columns: tuple[Output, ...]
    rows: "Callable[[Execution], Rows]"


class VirtualTables:
    def __init__(
        self, definitions: Iterable[Definition], *, implicit: Sequence[str] = ("pg_catalog",)
    ) -> None:
        self._by_key = {f"{each.schema}.{each.name}": each for each in definitions}
        self._schemas = {each.schema for each in self._by_key.values()}
        self._implicit = implicit

    def table(self, name: Sequence[str], names: "SessionNames") -> VirtualTable | None:
        """A system table by its name, unqualified only where its schema is searched by itself."""
        if len(name) > 1:
            keys = [f"{name[-2]}.{name[-1]}"] if name[-2] in self._schemas else []
        else:
            keys = [f"{schema}.{name[0]}" for schema in self._implicit]
            keys += [f"{schema}.{name[0]}" for schema in names.path.names() if schema in self._schemas]
        for key in keys:
            found = self._by_key.get(key)
            if found is not None:
                return VirtualTable(found.name, found.columns, key)
        return None

    def has_schema(self, name: str) -> bool:
        return name in self._schemas

    def rows(self, key: str, execution: "Execution") -> Rows:
        if key.startswith(sequence_relation.KEY):
            return sequence_relation.rows(key, execution)
        return self._by_key[key].rows(execution)

    def all(self) -> Iterable[Definition]:
        return self._by_key.values()
