"""`tenure_internal.grants`: who was granted what, for SHOW GRANTS.

One row for each privilege of each entry, also of those that an object has from the start. Users see what was
granted to or by the roles whose privileges they have, and to everybody; superusers see all.

Walk: `sql.tables.all` collects `definitions`; SHOW GRANTS queries the table.
"""

from collections.abc import Iterator

from tenure.catalog.accounts.column_privileges import column_names
from tenure.catalog.accounts.privileges import Entries, noun_of, words_of
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Contained,
    Database,
    EnumType,
    Schema,
    Table,
    View,
)
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.catalog.descriptors.role_records import PUBLIC_ROLE
from tenure.expr.types.datatype import Datum
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.objects import Objects, objects
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define

KINDS: tuple[type[AnyDescriptor], ...] = (Database, Schema, Table, View, Sequence_, EnumType)


def _grants(reader: TableReader) -> Rows:
    rights, descriptors = reader.session.rights(reader.block), objects(reader)
    for kind in KINDS:
        for each in descriptors.of(kind):
            place = _place(descriptors, each)
            yield from _rows(rights, place, each, None, rights.entries(each))
            for column, name in column_names(each).items():
                yield from _rows(rights, place, each, name, rights.entries(each, column))


def _place(descriptors: Objects, each: AnyDescriptor) -> tuple[str, str | None]:
    match each:
        case Database():
            return each.name, None
        case Schema():
            return descriptors.database_of(each), each.name
    assert isinstance(each, Contained)
    return descriptors.database_of(each), descriptors.schema_of(each)


def _rows(
    rights: Rights, place: tuple[str, str | None], each: AnyDescriptor, column: str | None, entries: Entries
) -> Iterator[tuple[Datum, ...]]:
    kind = noun_of(each) if column is None else "column"
    for entry in entries:
        grantee, grantor = entry.grantee or each.owner, entry.grantor or each.owner
        if grantee != PUBLIC_ROLE and not rights.has_rights_of(grantee) and not rights.has_rights_of(grantor):
            continue
        for word in words_of(entry.privileges):
            is_grantable = grantee == each.owner or word in words_of(entry.grantable)
            yield (*place, each.name, kind, column, each.id, grantor, grantee, word, is_grantable)


def definitions() -> list[VirtualDefinition]:
    return [
        define(
            "tenure_internal.grants",
            _grants,
            "The privileges on objects and columns, one row for each.",
            ("database_name", "text not null", "The database."),
            ("schema_name", "text", "The schema; NULL for a database."),
            ("object_name", "text not null", "The object that the privilege is on."),
            ("object_type", "text not null", "Its kind."),
            ("column_name", "text", "The column, if it was granted on one."),
            ("object_id", "int8 not null", "The descriptor's id."),
            ("grantor", "text not null", "The role that granted it."),
            ("grantee", "text not null", "The role that has it; `public` is everybody."),
            ("privilege_type", "text not null", "The privilege."),
            ("is_grantable", "bool not null", "Whether the grantee may grant it to others."),
        )
    ]
