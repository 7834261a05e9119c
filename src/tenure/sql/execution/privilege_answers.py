"""Answers has_table_privilege() and its like: by the rights that statements are checked by.

They are those of the newest lease with the transaction's own changes, as everywhere. What is named and does
not exist is an error, as in PostgreSQL; an oid that is not there gives NULL. System tables and schemas can be
read by all, but those that are for superusers.

Walk: `sql.execution.session_facts` -> `answer` -> `sql.names.session_names`, `catalog.accounts.rights`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.errors import (
    InvalidParameter,
    UndefinedColumn,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from tenure.catalog.accounts.column_privileges import column_names
from tenure.catalog.accounts.privileges import OF_KIND, SELECT, USAGE, WORDS, kind_of
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Database,
    NameKey,
    Schema,
    Table,
    is_dropped,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.role_records import PUBLIC_ROLE, WHOLE_OBJECT
from tenure.catalog.name_resolution import schemas_of
from tenure.expr.functions.privilege_functions import OF_COLUMNS, OF_OBJECTS, OF_ROLES
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import TYPE_OIDS
from tenure.sql.names import regs
from tenure.sql.names.object_numbers import CATALOG_SCHEMA, INFORMATION_SCHEMA, attribute_numbers, enum_of
from tenure.sql.names.sequence_names import path_of
from tenure.sql.names.session_names import SessionNames
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState

WITH_OPTION = " WITH GRANT OPTION"
WITH_ADMIN = (WITH_OPTION, " WITH ADMIN OPTION")


class SystemObject(NamedTuple):
    """One that has no descriptor: everybody has the same rights to it."""

    privileges: int


NOTHING, READABLE, USABLE = SystemObject(0), SystemObject(SELECT), SystemObject(USAGE)


class PrivilegeWord(NamedTuple):
    """One of the privileges in the text."""

    privilege: int
    with_option: bool


def answer(session: SessionState, block: Block, name: str, arguments: tuple[Datum, ...]) -> bool | None:
    count = {OF_ROLES: 2, OF_COLUMNS: 3}.get(name, 2)
    rights = session.rights(block)
    if len(arguments) > count:
        rights = _rights_of(rights, arguments[0])
    arguments = arguments[-count:]
    if name == OF_ROLES:
        return _has_role(rights, *arguments)
    kind = OF_OBJECTS.get(name, "table")
    found = _Finder(session, block).find(kind, arguments[0])
    words = _words(arguments[-1], "column" if name in (OF_COLUMNS, "has_any_column_privilege") else kind)
    if found is None:
        return None
    if isinstance(found, SystemObject):
        return rights.is_superuser or any(
            found.privileges & each.privilege and not each.with_option for each in words
        )
    columns: tuple[int, ...] = ()
    if name == OF_COLUMNS:
        column = _column(found, arguments[1])
        if column is None:
            return None
        columns = (column,)
    elif name == "has_any_column_privilege":
        columns = tuple(column_names(found))
    return any(_has(rights, found, each, column) for each in words for column in (WHOLE_OBJECT, *columns))


def _has(rights: Rights, found: AnyDescriptor, word: PrivilegeWord, column: int) -> bool:
    if word.with_option:
        return bool(rights.grantable(found, column) & word.privilege)
    if column == WHOLE_OBJECT:
        return rights.has(found, word.privilege)
    return bool(rights.held_on_column(found, column) & word.privilege)


def _rights_of(rights: Rights, user: Datum) -> Rights:
    """Of a role by its name or oid; of nobody, for an oid that is none."""
    if isinstance(user, int):
        role = rights.graph.by_id(user)
        return rights.of("" if role is None else role.name)
    if user != PUBLIC_ROLE and rights.graph.role(user) is None:
        raise UndefinedObject(f'role "{user}" does not exist')
    return rights.of(user)


def _has_role(rights: Rights, role: Datum, text: str) -> bool:
    graph = rights.graph
    found = graph.by_id(role) if isinstance(role, int) else graph.role(role)
    if found is None and not isinstance(role, int):
        raise UndefinedObject(f'role "{role}" does not exist')
    name = "" if found is None else found.name
    answers = [_is(rights, name, _normal(each)) for each in text.split(",")]
    return any(answers)


def _is(rights: Rights, role: str, word: str) -> bool:
    graph = rights.graph
    for option in WITH_ADMIN:
        if word.endswith(option) and word.removesuffix(option) in ("USAGE", "MEMBER", "SET"):
            return graph.may_administer(rights.role, role)
    match word:
        case "USAGE":
            return rights.has_rights_of(role)
        case "MEMBER":
            return rights.is_superuser or graph.is_member(rights.role, role)
        case "SET":
            return graph.may_become(rights.role, role)
    raise _unrecognized(word)


def _words(text: str, kind: str) -> list[PrivilegeWord]:
    return [_one(_normal(each), kind) for each in text.split(",")]


def _one(word: str, kind: str) -> PrivilegeWord:
    plain = word.removesuffix(WITH_OPTION)
    bit = WORDS.get("TEMPORARY" if plain == "TEMP" else plain, 0)
    if not bit & OF_KIND[kind]:
        raise _unrecognized(word)
    return PrivilegeWord(bit, word != plain)


def _normal(text: str) -> str:
    return " ".join(text.upper().split())


def _unrecognized(word: str) -> InvalidParameter:
    return InvalidParameter(f'unrecognized privilege type: "{word}"')


def _column(found: AnyDescriptor, column: Datum) -> int | None:
    """By its name, or by its number, for which there may be none."""
    named = column_names(found)
    if isinstance(column, int):
        numbers = attribute_numbers(found) if isinstance(found, Table) else {id: id for id in named}
        return next((id for id in named if numbers[id] == column), None)
    for id, name in named.items():
        if name == column:
            return id
    raise UndefinedColumn(f'column "{column}" of relation "{found.name}" does not exist')


class _Finder:
    def __init__(self, session: SessionState, block: Block) -> None:
        self._session = session
        self._block = block
        self._names = SessionNames(session, block)

    def find(self, kind: str, sought: Datum) -> AnyDescriptor | SystemObject | None:
        if isinstance(sought, int):
            return self._by_oid(kind, sought)
        match kind:
            case "database":
                return self._database(sought)
            case "schema":
                return self._schema(sought)
            case "type":
                return self._by_oid(kind, regs.find(self._session, self._block, "regtype", sought).oid)
        return self._relation(kind, path_of(sought))

    def _by_oid(self, kind: str, oid: int) -> AnyDescriptor | SystemObject | None:
        system = self._system_object(kind, oid)
        if system is not None:
            return system
        found = self._names.descriptor(enum_of(oid) or 0 if kind == "type" else oid)
        if found is None or is_dropped(found):
            return None
        is_fit = kind_of(found) in ("table", "sequence") if kind == "table" else kind_of(found) == kind
        return found if is_fit else None

    def _system_object(self, kind: str, oid: int) -> SystemObject | None:
        match kind:
            case "type":
                return USABLE if any(oid in pair for pair in TYPE_OIDS.values()) else None
            case "schema":
                return USABLE if oid in (CATALOG_SCHEMA, INFORMATION_SCHEMA) else None
            case "table":
                name = self._session.system_tables.name_of(oid)
                return None if name is None else self._system_table(name.split("."))
        return None

    def _system_table(self, path: Sequence[str]) -> SystemObject | None:
        tables = self._session.system_tables
        virtual = tables.table(path, self._names.path)
        if virtual is None:
            return None
        return NOTHING if tables.is_restricted(virtual.key) else READABLE

    def _database(self, name: str) -> AnyDescriptor:
        id = self._names.id_at(NameKey(0, 0, name))
        found = None if id is None else self._names.descriptor(id)
        if not isinstance(found, Database) or is_dropped(found):
            raise UndefinedDatabase(f'database "{name}" does not exist')
        return found

    def _schema(self, name: str) -> AnyDescriptor | SystemObject:
        if self._session.system_tables.has_schema(name):
            return USABLE
        entry = self._names.schema_entry(self._session.database, name)
        found = None if entry is None else self._names.descriptor(entry.id)
        if not isinstance(found, Schema) or is_dropped(found):
            raise UndefinedSchema(f'schema "{name}" does not exist')
        return found

    def _relation(self, kind: str, path: tuple[str, ...]) -> AnyDescriptor | SystemObject:
        system = self._system_table(path)
        if system is not None:
            return system
        found = self._names.object(path)
        if found is None and path[:-1] and not schemas_of(self._names, path[:-1], self._names.path):
            raise UndefinedSchema(f'schema "{".".join(path[:-1])}" does not exist')
        if found is None or kind_of(found) not in ("table", "sequence"):
            raise UndefinedTable(f'relation "{".".join(path)}" does not exist')
        if kind == "sequence" and not isinstance(found, SequenceDescriptor):
            raise WrongObjectType(f'"{path[-1]}" is not a sequence')
        return found
