"""The privileges that new objects get by ALTER DEFAULT PRIVILEGES of their owners.

Walk: `sql.statements.ddl.definition` calls `give_defaults` after each statement.
"""

from collections.abc import Iterator

from tenure.catalog.accounts.privileges import initial, kind_of, normal
from tenure.catalog.descriptors.definitions import AnyDescriptor, Contained, place_of
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.role_records import (
    EVERYWHERE,
    WHOLE_OBJECT,
    DefaultPrivileges,
    ObjectPrivileges,
    RoleRecords,
    key_of,
)
from tenure.kv.transaction import Transaction


def give_defaults(
    records: RoleRecords, txn: Transaction, draft: Draft, before: Draft, *, temporary: int
) -> None:
    """Gives the objects that a statement has made the privileges that their owners' new objects get.

    Not those of the schema `temporary`, which are the session's own.
    """
    for id, descriptor in draft.new_descriptors().items():
        if id in before.declared or ("privileges", id, WHOLE_OBJECT) in draft.records:
            continue
        if place_of(descriptor).schema == temporary:
            continue
        defaults = list(_defaults_of(records, txn, descriptor))
        if not defaults:
            continue
        elsewhere = [each.entries for each in defaults if each.schema == EVERYWHERE]
        entries = elsewhere[0] if elsewhere else initial(kind_of(descriptor))
        inside = [entry for each in defaults if each.schema != EVERYWHERE for entry in each.entries]
        privileges = ObjectPrivileges(id, WHOLE_OBJECT, normal((*entries, *inside), descriptor.owner))
        draft.set_record(key_of(privileges), privileges, former=None)


def _defaults_of(
    records: RoleRecords, txn: Transaction, descriptor: AnyDescriptor
) -> Iterator[DefaultPrivileges]:
    schema = descriptor.schema if isinstance(descriptor, Contained) else EVERYWHERE
    for each in records.defaults(txn, descriptor.owner):
        if each.kind == kind_of(descriptor) and each.schema in (EVERYWHERE, schema):
            yield each
