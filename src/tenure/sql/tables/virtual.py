"""System tables: relations whose rows are made when they are asked for.

    system.*            the records below SQL, with the columns of the design documents
    tenure_internal.*   what a node knows and computes
    pg_catalog.*, information_schema.*   what clients ask about the catalog

Each is a `VirtualDefinition`: columns and a function that gives rows for one reader. Their schemas cannot
be shadowed: `pg_catalog` is looked through first, as in PostgreSQL. They are visible from every database.

The records themselves, which contain data of all users, are for superusers only. Other tables leave out the
rows that their reader may not see.

A table may be asked by some of its columns (`lookups`): a query with a condition on one of them makes only
the rows that it finds, not all.

Invariant (records-restricted): a table of the records below SQL gives rows to superusers alone.

Walk: `sql.names.session_names` asks `table` while binding; the rows executor asks `rows` when it runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tenure.base.errors import InsufficientPrivilege
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
FindRows = Callable[[TableReader, Sequence[Datum]], Rows]
"""Gives at least the rows that have one of the values; the query's own condition is asked of each."""
NO_LOOKUPS: Mapping[str, FindRows] = {}
Answer = Callable[[str, tuple[Datum, ...]], Datum]
"""Called with the name of a function about the catalog, and its arguments."""
Answers = Callable[[TableReader], Answer]


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
    lookups: Mapping[str, FindRows] = NO_LOOKUPS
    """By the name of a column: gives the rows that have one of the values there. The best first."""
    oid: int = 0
    """Its number in pg_class; 0 of one that is not there."""


NOT_NULL = " not null"
TABLE_OID = OutputColumn("tableoid", type_of(TypeRef("oid")))
"""Of a relation of pg_class: the rows of such a one end with its own oid."""


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
        answers: Answers,
    ) -> None:
        self._by_key = {f"{each.schema}.{each.name}": each for each in definitions}
        self._schemas = {each.schema for each in self._by_key.values()}
        self._sequences = sequences
        self._implicit = implicit
        self._answers = answers
        self._by_oid = {each.oid: each for each in self._by_key.values() if each.oid}

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
                return _as_relation(found, key)
        return None

    def has_schema(self, name: str) -> bool:
        return name in self._schemas

    def is_restricted(self, key: str) -> bool:
        return self._by_key[key].is_restricted

    def rows(self, key: str, reader: TableReader, sought: tuple[int, Sequence[Datum]] | None = None) -> Rows:
        if key.startswith(sequence_relation.KEY):
            return self._sequence_row(key, reader)
        definition = self._by_key[key]
        if definition.is_restricted and not is_superuser(reader):
            raise InsufficientPrivilege(
                f"permission denied for table {definition.name}",
                hint=f"{key} is for superusers; SHOW statements tell what others may know.",
            )
        if sought is None:
            return definition.rows(reader)
        column, values = sought
        return definition.lookups[definition.columns[column].name](reader, values)

    def answers(self, reader: TableReader) -> Answer:
        return self._answers(reader)

    def oid(self, key: str) -> int:
        return self._by_key[key].oid

    def name_of(self, oid: int) -> str | None:
        found = self._by_oid.get(oid)
        if found is None:
            return None
        return found.name if found.schema in self._implicit else f"{found.schema}.{found.name}"

    def _sequence_row(self, key: str, reader: TableReader) -> Rows:
        sequence = reader.block.descriptor(int(key.removeprefix(sequence_relation.KEY)))
        assert isinstance(sequence, SequenceDescriptor), (
            "the sequence was there when the statement was planned"
        )
        last_value, is_called = self._sequences.state(reader.block.source, sequence)
        yield last_value, 0, is_called

    def columns(self, key: str) -> list[str]:
        return [each.name for each in self._by_key[key].columns]


def _as_relation(definition: VirtualDefinition, key: str) -> VirtualTable:
    columns, lookups = definition.columns, _lookup_places(definition)
    if not definition.oid:
        return VirtualTable(definition.name, columns, key, lookups)
    hidden = frozenset([len(columns)])
    return VirtualTable(definition.name, (*columns, TABLE_OID), key, lookups, hidden)


def _lookup_places(definition: VirtualDefinition) -> tuple[int, ...]:
    names = [each.name for each in definition.columns]
    return tuple(map(names.index, definition.lookups))


def is_superuser(reader: TableReader) -> bool:
    """Whether the session's user is one now, also where the statement reads the past."""
    return reader.session.rights(reader.block).is_superuser
