"""System tables: relations whose rows are made when they are asked for.

    system.*            the records below SQL, with the columns of the design documents
    tenure_internal.*   what a node knows and computes
    pg_catalog.*, information_schema.*   what clients ask about the catalog

Each is a `VirtualDefinition`: columns and a function that gives rows for one reader. Their schemas cannot
be shadowed: `pg_catalog` is looked through first, as in PostgreSQL. They are visible from every database.

The records themselves, which contain data of all users, are for superusers only. Other tables leave out the
rows that their reader may not see.

Invariant (records-restricted): a table of the records below SQL gives rows to superusers alone.

Walk: `sql.names.session_names` asks `table` while binding; the rows executor asks `rows` when it runs.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tenure.base.errors import InsufficientPrivilege
from tenure.catalog.accounts import rights
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.catalog.name_resolution import Path
from tenure.expr.types.datatype import Datum
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.relations import VirtualTable
from tenure.sql.names import sequence_relation
from tenure.sql.plans.plan import OutputColumn
from tenure.sql.session.session_state import TableReader
from tenure.table.sequences import Sequences

Rows = Iterable[tuple[Datum, ...]]


class VirtualDefinition(NamedTuple):
    schema: str
    name: str
    columns: tuple[OutputColumn, ...]
    rows: Callable[[TableReader], Rows]
    about: str = ""
    notes: tuple[str, ...] = ()
    """A description of each column."""
    required: tuple[str, ...] = ()
    """The columns that are never null."""
    key: tuple[str, ...] = ()
    is_restricted: bool = False
    """For superusers alone."""


NOT_NULL = " not null"


def define(
    name: str,
    rows: Callable[[TableReader], Rows],
    about: str,
    *columns: tuple[str, str, str],
    key: Sequence[str] = (),
    is_restricted: bool = False,
) -> VirtualDefinition:
    """A system table by its qualified name; a column is its name, its type as text, and what it tells."""
    schema, _, plain = name.partition(".")
    return VirtualDefinition(
        schema,
        plain,
        tuple(OutputColumn(each, type_of(_ref(kind))) for each, kind, _ in columns),
        rows,
        about,
        tuple(note for _, _, note in columns),
        tuple(each for each, kind, _ in columns if kind.endswith(NOT_NULL)),
        tuple(key),
        is_restricted,
    )


def _ref(text: str) -> TypeRef:
    name = text.removesuffix(NOT_NULL)
    return TypeRef(name.removesuffix("[]"), is_array=name.endswith("[]"))


class VirtualTables:
    def __init__(
        self,
        definitions: Iterable[VirtualDefinition],
        sequences: Sequences,
        *,
        implicit: Sequence[str] = ("pg_catalog",),
    ) -> None:
        self._by_key = {f"{each.schema}.{each.name}": each for each in definitions}
        self._schemas = {each.schema for each in self._by_key.values()}
        self._sequences = sequences
        self._implicit = implicit

    def table(self, name: Sequence[str], path: Path) -> VirtualTable | None:
        """A system table by its name, unqualified only where its schema is searched by itself."""
        if len(name) > 1:
            keys = [f"{name[-2]}.{name[-1]}"] if name[-2] in self._schemas else []
        else:
            keys = [f"{schema}.{name[0]}" for schema in self._implicit]
            keys += [f"{schema}.{name[0]}" for schema in path.names() if schema in self._schemas]
        for key in keys:
            found = self._by_key.get(key)
            if found is not None:
                return VirtualTable(found.name, found.columns, key)
        return None

    def has_schema(self, name: str) -> bool:
        return name in self._schemas

    def rows(self, key: str, reader: TableReader) -> Rows:
        if key.startswith(sequence_relation.KEY):
            return self._sequence_row(key, reader)
        definition = self._by_key[key]
        if definition.is_restricted and not is_superuser(reader):
            raise InsufficientPrivilege(
                f"permission denied for table {definition.name}",
                hint=f"{key} is for superusers; SHOW statements tell what others may know.",
            )
        return definition.rows(reader)

    def _sequence_row(self, key: str, reader: TableReader) -> Rows:
        sequence = reader.block.descriptor(int(key.removeprefix(sequence_relation.KEY)))
        assert isinstance(sequence, SequenceDescriptor), (
            "the sequence was there when the statement was planned"
        )
        last_value, is_called = self._sequences.state(reader.block.source, sequence)
        yield last_value, 0, is_called

    def columns(self, key: str) -> list[str]:
        return [each.name for each in self._by_key[key].columns]


def is_superuser(reader: TableReader) -> bool:
    """Whether the session's user is one now, also where the statement reads the past."""
    session, block = reader.session, reader.block
    return rights.is_superuser(session.role(block.source if block.past is None else None))
