"""Name resolution for a session's statements: tables, views, types, functions that read the session.

It records every object and name that it looked up (`used`, `resolved`): they tell later whether a plan is
still valid.

The names in a view's query mean what they meant when the view was made (`ViewNames`). A source keeps the id
of its object and the names that its columns had: so a renamed table is still read, a renamed column is still
meant, and `SELECT *` gives the columns of then.

Walk: `sql.execution.planner` makes one per statement; the binder asks it; the plan cache keeps what it
looked at.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tenure.base.errors import (
    NotSupported,
    RetryError,
    TooComplex,
    UndefinedColumn,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedTable,
)
from tenure.catalog.accounts.privileges import CONNECT, SELECT, USAGE
from tenure.catalog.changes.offline_tables import refuse_offline, refuse_unwritable
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Contained,
    Database,
    DescriptorState,
    EnumType,
    NameKey,
    Schema,
    SchemaEntry,
    Table,
    TypeRef,
    View,
    ViewSource,
    is_dropped,
    visible,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.role_records import WHOLE_OBJECT
from tenure.catalog.name_resolution import InStore, find, schemas_of
from tenure.expr.functions.callback_functions import LIVENESS
from tenure.expr.tree.build import Typed, call
from tenure.expr.tree.expressions import sequences
from tenure.expr.tree.sequence_needs import sequence_needs
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.relations import NamedColumns, Relation, ViewQuery, missing_type
from tenure.sql.names import sequence_names
from tenure.sql.names.column_types import require_types
from tenure.sql.names.past_names import absence, refuse_temporary
from tenure.sql.names.sequence_relation import sequence_relation
from tenure.sql.session.answers import NotShort
from tenure.sql.session.block import Block
from tenure.sql.session.closed_tables import await_name, await_open
from tenure.sql.session.session_rights import StatementNeeds
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


DATABASE_PARTS = 3
"""A name of so many parts names its database."""

INLINE_LEVELS_MAX = 4
"""SELECTs of a statement that is planned on the door's loop: some 0.2 ms each."""

LEVELS_MAX = 2_000
"""SELECTs of a plan: about a second of planning, and some 20 MB."""


class SessionNames:
    def __init__(self, session: SessionState, block: Block) -> None:
        self._session = session
        self._block = block
        self.path = session.path
        self.needs = StatementNeeds()
        """The privileges that the statement needs: those who run it ask for them first."""
        self.used: dict[int, AnyDescriptor] = {}
        self.resolved: dict[tuple[str, ...], int | None] = {}
        self._named: int | None = None
        """What the last name stood for: its descriptor is looked up next, and not by its id alone."""

    # ── the catalog; lookups are recorded ──────────────────────────────────────────────────────

    def descriptor(self, id: int) -> AnyDescriptor | None:
        found = self._block.catalog.descriptor(id)
        if found is not None:
            self.used[id] = found
            if found.closed_by and id == self._named:
                await_name(self._session, self._block, found)
        return found

    def id_at(self, place: NameKey) -> int | None:
        self._named = self._block.catalog.id_at(place)
        return self._named

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None:
        entry = self._block.catalog.schema_entry(database, name)
        self._named = None if entry is None else entry.id
        return entry

    def object(self, name: Sequence[str]) -> AnyDescriptor | None:
        """The object of a name; None only if the store does not have it either."""
        if len(name) > 1:
            self.check_schemas(name[:-1])
        found = find(self, name, self.path)
        if found is None and len(name) < DATABASE_PARTS:
            self.require_database()
        if found is None and self._block.past is None and not self._block.draft:
            self.confirm_absent(lambda catalog: find(catalog, name, self.path), ".".join(name))
        self.resolved[tuple(name)] = None if found is None else found.id
        if isinstance(found, Contained) and not self.is_temporary(found):
            self.needs.add(found.schema, USAGE)
            if found.database != self._session.database:
                self.needs.add(found.database, CONNECT)
        return found

    def require_database(self) -> None:
        """Raises UndefinedDatabase (3D000) if the session's database was dropped or converted."""
        database = self.descriptor(self._session.database)
        if not isinstance(database, Database) or not is_dropped(database):
            return
        schema = self.descriptor(database.converted_to) if database.converted_to else None
        hint = "Connect to another database."
        if isinstance(schema, Schema):
            parent = self.descriptor(schema.database)
            assert parent is not None, "a schema is in a database"
            hint = f'It is schema "{schema.name}" of database "{parent.name}" now: connect to that.'
        raise UndefinedDatabase(f'database "{database.name}" does not exist', hint=hint)

    def check_schemas(self, qualifier: Sequence[str]) -> None:
        """Somebody who may not use a schema, or another database, is not told what is in it."""
        rights = self._session.rights(self._block)
        if not rights.is_superuser:
            for schema in schemas_of(self, qualifier, self.path):
                if schema.id != self._session.temporary.schema_id:
                    self.require_connect(schema)
                    rights.require(schema, USAGE)

    def require_connect(self, schema: Schema) -> None:
        """Raises InsufficientPrivilege (42501) if it is in a database that the user may not connect to. The
        session's own is not asked for again: it was at the start."""
        database = self.descriptor(schema.database)
        if database is not None and database.id != self._session.database:
            self._session.rights(self._block).require(database, CONNECT)

    def is_temporary(self, descriptor: AnyDescriptor) -> bool:
        """Whether it is the session's own, so that nobody has to be asked."""
        return getattr(descriptor, "schema", None) == self._session.temporary.schema_id

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
        """To be read: needs SELECT."""
        return self.target(name, position, SELECT)

    def target(self, name: Sequence[str], position: int, privilege: int) -> Relation:
        """To be written, or read: needs this privilege."""
        virtual = self._session.system_tables.table(name, self.path)
        if virtual is not None:
            return virtual
        if self._block.past is not None:
            refuse_temporary(self._block.past, self._session.temporary.current, name, self.path)
        found = self.object(name)
        if found is not None and not self.is_temporary(found):
            self.needs.add(found.id, privilege)
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

    def present(self, id: int, name: str) -> AnyDescriptor | None:
        """What a view or table uses; None if it was dropped: others do so although temporary ones use it."""
        found = self.descriptor(id)
        if found is not None and not is_dropped(found):
            return found
        self.confirm_absent(lambda catalog: _if_there(catalog, id), name)
        return None

    def named(self) -> list[AnyDescriptor]:
        """The objects that the statement itself names, not those that its views read."""
        ids = dict.fromkeys(id for id in self.resolved.values() if id is not None)
        return [found for id in ids if (found := self.descriptor(id)) is not None]

    def require_permanent(self, statement: str) -> None:
        """Raises NotSupported if a temporary object was looked up: no job of the node could find it."""
        temporary = self._session.temporary.schema_id
        for each in self.used.values() if temporary else ():
            if getattr(each, "schema", 0) == temporary:
                raise NotSupported(f'{statement} is not supported for temporary table "{each.name}"')

    def require_usable(self, table: Table) -> None:
        """Raises WrongState of a table that is offline, RetryError of one that was just being emptied."""
        if self.is_temporary(table):
            require_types(table, visible(table.columns), lambda id: self.present(id, table.name))
        self._check_online(table)
        await_open(self._session, self._block, table)

    def _check_online(self, table: Table) -> None:
        """Raises WrongState, if the store says so too: a job may have brought the table back just now."""
        if table.state is DescriptorState.OFFLINE and self._block.past is None:
            self.confirm_absent(lambda catalog: _is_online(catalog, table.id) or None, table.name)
        refuse_offline(table)

    def check_writable(self, table: Table) -> None:
        """The same for a table that is closed for writing."""
        if table.is_read_only:
            self.confirm_absent(lambda catalog: _is_writable(catalog, table.id) or None, table.name)
        refuse_unwritable(table)

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
        if not isinstance(found, EnumType):
            raise UndefinedObject(
                f"type with OID {id} does not exist"
            )  # dropped, and a temporary view has it
        return found

    def require(self, id: int, privilege: int, column: int = WHOLE_OBJECT, *, view: int = 0) -> None:
        if self.needs.include(id, view=view):
            self.needs.add(id, privilege, view=view, column=column)

    def call(
        self,
        name: Sequence[str],
        arguments: Sequence[Typed],
        sequence_ids: sequence_names.SequenceIds = NOTHING,
        view: int = 0,
    ) -> Typed | None:
        if name[-1] == LIVENESS_NAME and list(name[:-1]) in LIVENESS_SCHEMAS:
            return call(LIVENESS, *arguments)
        if list(name[:-1]) in ([], ["pg_catalog"]):
            of_sequences = sequence_names.bind(self, name[-1], arguments, sequence_ids)
            if of_sequences is not None:
                self.require_sequences(sequence_needs(of_sequences.node), view=view)
                return of_sequences
        if name[-1] in SESSION_FUNCTIONS and not arguments:
            return call(name[-1])
        return None

    def require_sequences(self, needs: Iterable[tuple[int, int]], *, view: int = 0) -> None:
        """Sequences that are called, each with a privilege."""
        for id, privilege in needs:
            sequence = self.descriptor(id)
            if sequence is None or not self.is_temporary(sequence):
                self.needs.add(id, privilege, view=view)


def _is_online(catalog: InStore, id: int) -> bool:
    found = catalog.descriptor(id)
    return found is not None and found.state is DescriptorState.PUBLIC


def _if_there(catalog: InStore, id: int) -> AnyDescriptor | None:
    found = catalog.descriptor(id)
    return None if found is None or is_dropped(found) else found


def _is_writable(catalog: InStore, id: int) -> bool:
    found = catalog.descriptor(id)
    return isinstance(found, Table) and not found.is_read_only


def view_query(view: View, names: SessionNames, former: ViewSource | None = None) -> ViewQuery:
    """A view as it is used; by another view, under the names that its columns had then."""
    parsed = one(view.query)
    assert parsed is not None, "a view has a query"
    columns = tuple(each.name for each in view.columns)
    if former is not None:
        columns = tuple(name for name, _ in former.columns)
    return ViewQuery(view.name, parsed.tree, ViewNames(view, names), columns, view.id, len(columns))


def require_columns(table: Table, source: ViewSource, read: Sequence[int]) -> None:
    """Raises UndefinedColumn (42703) if one that a view reads is gone: its query would mean others."""
    there = {each.id for each in visible(table.columns)}
    for name, id in source.columns:
        if id in read and id not in there:
            raise UndefinedColumn(
                f'column "{name}" of relation "{table.name}" does not exist',
                detail="It was dropped, or got another type, after the temporary view was made.",
                hint="Make the view again.",
            )


def _missing_relation(name: Sequence[str]) -> UndefinedTable:
    return UndefinedTable(f'relation "{".".join(name)}" does not exist')


class ViewNames:
    def __init__(self, view: View, names: SessionNames) -> None:
        self._names = names
        self._view = view.id
        self._sources = {each.name: each for each in view.sources}
        self._depends = {each.id: each.columns for each in view.depends}
        if names.is_temporary(view):
            names.needs.note_owner(view.id, view.owner)

    def relation(self, name: Sequence[str], position: int) -> Relation:
        source = self._sources.get(tuple(name))
        if source is None:
            return self._names.system_table(name, position)
        found = self._present(source)
        if found is not None and not self._names.is_temporary(found):
            self._names.needs.add(source.id, SELECT, view=self._view)
        match found:
            case Table():
                self._names.require_usable(found)
                require_columns(found, source, self._depends.get(source.id, ()))
                return NamedColumns(found, source.columns)
            case View():
                return view_query(found, self._names, source)
            case SequenceDescriptor():
                return sequence_relation(found)
        raise _missing_relation(name)

    def _present(self, source: ViewSource) -> AnyDescriptor | None:
        return self._names.present(source.id, ".".join(source.name))

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...], *, is_array: bool) -> Type:
        source = self._sources.get(tuple(name))
        if source is None:
            return self._names.type_named(name, modifiers, is_array=is_array)
        if self._present(source) is None:
            raise missing_type(name)
        return self._names.enum_type(source.id, is_array=is_array)

    def check_size(self, levels: int) -> None:
        self._names.check_size(levels)

    def enum(self, id: int) -> EnumType:
        return self._names.enum(id)

    def require(self, id: int, privilege: int, column: int = WHOLE_OBJECT) -> None:
        self._names.require(id, privilege, column, view=self._view)

    def call(self, name: Sequence[str], arguments: Sequence[Typed]) -> Typed | None:
        sequence_ids = {written: each.id for written, each in self._sources.items()}
        result = self._names.call(name, arguments, sequence_ids, self._view)
        called = set() if result is None else {*sequences(result.node)}
        for source in self._sources.values():
            if source.id in called and self._present(source) is None:
                raise _missing_relation(source.name)
        return result
