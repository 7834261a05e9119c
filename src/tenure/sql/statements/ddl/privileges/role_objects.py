"""The objects that a role owns or that name it: for DROP and RENAME of a role, DROP OWNED and REASSIGN OWNED.

Walk: `statements.ddl.privileges.roles`, `statements.ddl.privileges.role_names` and
`statements.ddl.privileges.owned` ask;
`catalog.descriptors.role_records` has one record for each, so that the catalog is not read.
"""

from collections.abc import Iterator

from tenure.catalog.accounts.column_privileges import column_names
from tenure.catalog.accounts.privileges import noun_of
from tenure.catalog.descriptors.definitions import AnyDescriptor, is_dropped
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.role_records import (
    EVERYWHERE,
    OWNED,
    WHOLE_OBJECT,
    ObjectPrivileges,
    RoleObject,
    named,
)
from tenure.sql.statements.ddl.definition import Definer


def owned_by(definer: Definer, role: str) -> list[AnyDescriptor]:
    """As the transaction has changed them so far."""
    stored = [each.object for each in _stored(definer, role) if each.kind == OWNED]
    found = (_descriptor(definer, id) for id in dict.fromkeys([*stored, *definer.draft.declared]))
    return [each for each in found if each is not None and each.owner == role]


def privileges_naming(definer: Definer, role: str) -> list[ObjectPrivileges]:
    keys = [("privileges", each.object, each.column) for each in _stored(definer, role)]
    drafted = [key for key in definer.draft.records if key[0] == "privileges"]
    found = (definer.record(key) for key in dict.fromkeys([*keys, *drafted]))
    return [each for each in found if isinstance(each, ObjectPrivileges) and role in named(each)]


def is_linked(descriptor: AnyDescriptor) -> bool:
    """Whether it follows its table."""
    return isinstance(descriptor, SequenceDescriptor) and descriptor.owned_by is not None


def mentions_of(definer: Definer, role: str) -> list[str]:
    """A line for each, as PostgreSQL lists them; objects that are dropped do not count."""
    return sorted(_lines(definer, role))


def _lines(definer: Definer, role: str) -> Iterator[str]:
    for each in owned_by(definer, role):
        yield f"owner of {noun_of(each)} {each.name}"
    for record in privileges_naming(definer, role):
        found = _descriptor(definer, record.object)
        if found is not None and record.column == WHOLE_OBJECT:
            yield f"privileges for {noun_of(found)} {found.name}"
        elif found is not None and record.column in (columns := column_names(found)):
            yield f"privileges for column {columns[record.column]} of {noun_of(found)} {found.name}"
    for defaults in definer.node.catalog.roles.all_defaults(definer.use.txn):
        if defaults.schema != EVERYWHERE and _descriptor(definer, defaults.schema) is None:
            continue
        if role == defaults.role or any(role in (each.grantee, each.grantor) for each in defaults.entries):
            yield f"default privileges on new objects belonging to role {defaults.role}"


def _stored(definer: Definer, role: str) -> list[RoleObject]:
    return list(definer.node.catalog.roles.objects(definer.use.txn, role))


def _descriptor(definer: Definer, id: int) -> AnyDescriptor | None:
    found = definer.draft.declared.get(id) or definer.use.descriptor(id)
    return None if found is None or is_dropped(found) else found
