"""Name resolution for a session's statements: tables, views, types, functions that read the session.

It records every object and name that it looked up (`used`, `resolved`): they tell later whether a plan is
still valid.

The names in a view's query mean what they meant when the view was made (`ViewNames`). A source keeps the id
of its object and the names that its columns had: so a renamed table is still read, a renamed column is still
meant, and `SELECT *` gives the columns of then.

Walk: `sql.execution.planner` makes one per statement; the binder asks it; the plan cache keeps what it
looked at.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tenure.base.errors import RetryError, TooComplex, UndefinedTable
from tenure.catalog.changes.offline_tables import refuse_offline
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    EnumType,
    NameKey,
    SchemaEntry,
    Table,
    TypeRef,
    View,
    ViewSource,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.name_resolution import InStore, find
from tenure.expr.functions.callback_functions import LIVENESS
from tenure.expr.tree.build import Typed, call
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.relations import NamedColumns, Relation, ViewQuery, missing_type
from tenure.sql.names import sequence_names
from tenure.sql.names.past_names import absence
from tenure.sql.names.sequence_relation import sequence_relation
from tenure.sql.session.answers import NotShort
from tenure.sql.session.block import Block
from tenure.sql.session.closed_tables import await_open
from tenure.sql.session.session_state import SessionState
from tenure.sql.text.parse import one

SESSION_FUNCTIONS = (
    "current_user",
    "current_role",
    "session_user",
    "user",
    "current_catalog",
    "current_schema",
)
"""Functions that SQL writes without parentheses."""


LIVENESS_NAME = "sql_liveness_is_alive"
LIVENESS_SCHEMAS = (["tenure_internal"], ["crdb_internal"])
"""The second is the spelling of the document on liveness."""

NOTHING: sequence_names.SequenceIds = {}


INLINE_LEVELS_MAX = 4
"""SELECTs of a statement that is planned on the door's loop: some 0.2 ms each."""

LEVELS_MAX = 2_000
"""SELECTs of a plan: about a second of planning, and some 20 MB."""


class SessionNames:
    def __init__(self, session: SessionState, block: Block) -> None:
        self._session = session
        self._block = block
        self.path = session.path
        self.used: dict[int, AnyDescriptor] = {}
        self.resolved: dict[tuple[str, ...], int | None] = {}

    # ── the catalog; lookups are recorded ──────────────────────────────────────────────────────

    def descriptor(self, id: int) -> AnyDescriptor | None:
        found = self._block.catalog.descriptor(id)
        if found is not None:
            self.used[id] = found
        return found

    def id_at(self, place: NameKey) -> int | None:
        return self._block.catalog.id_at(place)

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None:
        return self._block.catalog.schema_entry(database, name)

    def object(self, name: Sequence[str]) -> AnyDescriptor | None:
        """The object of a name; None only if the store does not have it either."""
        found = find(self, name, self.path)
        if found is None and self._block.past is None and not self._block.draft:
            self.confirm_absent(lambda known: find(known, name, self.path), ".".join(name))
        self.resolved[tuple(name)] = None if found is None else found.id
        return found

    def confirm_absent(self, look: Callable[[InStore], Any], name: str) -> None:
        """Called before a client is told that an object does not exist: if the store has it, the lease is
        behind."""
        block, services = self._block, self._session.services
        if block.past is not None or look(InStore(services.catalog, block.use.txn)) is None:
            return
        if self._session.is_inline:
            raise NotShort
        services.leases.renew()
        raise RetryError(f'"{name}" is newer than this node\'s schema lease')

    # ── for the binder ─────────────────────────────────────────────────────────────────────────

    def check_size(self, levels: int) -> None:
        if self._session.is_inline and levels > INLINE_LEVELS_MAX:
            raise NotShort
        if levels > LEVELS_MAX:
            raise TooComplex(
                f"the statement is made of more than {LEVELS_MAX} queries",
                hint="Views and WITH queries that are NOT MATERIALIZED count as often as they are read.",
            )
        self._session.interrupts.check_time()

    def relation(self, name: Sequence[str], position: int = 0) -> Relation:
        virtual = self._session.system_tables.table(name, self.path)
        if virtual is not None:
            return virtual
        found = self.object(name)
        match found:
            case Table():
                self.require_usable(found)
                return found
            case View():
                return view_query(found, self)
            case SequenceDescriptor():
                return sequence_relation(found)
        past = self._block.past
        if past is not None:
            raise absence(self._session.services, past, name, self.path, position)
        raise UndefinedTable(f'relation "{".".join(name)}" does not exist', position=position)

    def require_usable(self, table: Table) -> None:
        """Raises WrongState of a table that is offline, RetryError of one that was just being emptied."""
        self._check_online(table)
        await_open(self._session, self._block, table)

    def _check_online(self, table: Table) -> None:
        """Raises WrongState, if the store says so too: a job may have brought the table back just now."""
        if table.state is DescriptorState.OFFLINE and self._block.past is None:
            self.confirm_absent(lambda known: _is_online(known, table.id) or None, table.name)
        refuse_offline(table)

    def system_table(self, name: Sequence[str], position: int = 0) -> Relation:
        """A system table that a view reads."""
        virtual = self._session.system_tables.table(name, self.path)
        if virtual is None:
            raise UndefinedTable(f'relation "{".".join(name)}" does not exist', position=position)
        return virtual

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...] = (), *, is_array: bool) -> Type:
        found = self.object(name)
        if not isinstance(found, EnumType):
            raise missing_type(name)
        return self.enum_type(found.id, is_array=is_array)

    def enum_type(self, id: int, *, is_array: bool) -> Type:
        return self.type_of(TypeRef(self.enum(id).name, (), is_array=is_array, enum=id))

    def type_of(self, ref: TypeRef) -> Type:
        return type_of(ref, self.enum)

    def enum(self, id: int) -> EnumType:
        found = self.descriptor(id)
        assert isinstance(found, EnumType), f"type {id} is gone although something has it"
        return found

    def call(
        self, name: Sequence[str], arguments: Sequence[Typed], known: sequence_names.SequenceIds = NOTHING
    ) -> Typed | None:
        if name[-1] == LIVENESS_NAME and list(name[:-1]) in LIVENESS_SCHEMAS:
            return call(LIVENESS, *arguments)
        if list(name[:-1]) in ([], ["pg_catalog"]):
            of_sequences = sequence_names.bind(self, name[-1], arguments, known)
            if of_sequences is not None:
                return of_sequences
        if name[-1] in SESSION_FUNCTIONS and not arguments:
            return call(name[-1])
        return None


def _is_online(known: InStore, id: int) -> bool:
    found = known.descriptor(id)
    return found is not None and found.state is DescriptorState.PUBLIC


def view_query(view: View, names: SessionNames, former: ViewSource | None = None) -> ViewQuery:
    """A view as it is used; by another view, under the names that its columns had then."""
    parsed = one(view.query)
    assert parsed is not None, "a view has a query"
    columns = tuple(each.name for each in view.columns)
    if former is not None:
        columns = tuple(name for name, _ in former.columns)
    return ViewQuery(view.name, parsed.tree, ViewNames(view, names), columns, view.id, len(columns))


class ViewNames:
    def __init__(self, view: View, names: SessionNames) -> None:
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
