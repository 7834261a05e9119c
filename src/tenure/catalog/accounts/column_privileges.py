"""Privileges of columns: they have records of their own, by the column's id.

A renamed column keeps its id, and so what was granted on it. A column of another type is a new one that takes
the place of the old: it gets the same privileges when it is declared (`follow_replacements`), so that they
are there when it becomes visible. The record of a column that is gone is deleted with it
(`RoleRecords.forget_columns`).

Walk: `catalog.accounts.rights` and `sql.statements.ddl.privileges.grants` ask for `column_names`,
`sql.statements.ddl.definition` calls `follow_replacements` after each statement.
"""

from tenure.catalog.descriptors.definitions import AnyDescriptor, Table, View, visible
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.role_records import ObjectPrivileges, RoleRecords, key_of
from tenure.kv.records import replace
from tenure.kv.transaction import Transaction


def column_names(descriptor: AnyDescriptor) -> dict[int, str]:
    """The columns that privileges can be granted on: those of a view are counted from 1."""
    match descriptor:
        case Table():
            return {each.id: each.name for each in visible(descriptor.columns) if not each.is_hidden}
        case View():
            return {number: each.name for number, each in enumerate(descriptor.columns, 1)}
    return {}


def follow_replacements(records: RoleRecords, txn: Transaction, draft: Draft, before: Draft) -> None:
    """Gives columns that a statement has declared as replacements what was granted on those they replace."""
    for id, table in draft.declared.items():
        if not isinstance(table, Table) or before.declared.get(id) is table:
            continue
        for column in table.columns:
            stored = _stored(records, txn, draft, id, column.replaces) if column.replaces else None
            if stored is not None:
                copied = replace(stored, column=column.id)
                draft.set_record(key_of(copied), copied, former=None)


def _stored(
    records: RoleRecords, txn: Transaction, draft: Draft, table: int, column: int
) -> ObjectPrivileges | None:
    change = draft.records.get(("privileges", table, column))
    if change is None:
        return records.privileges(txn, table, column)
    assert change.record is None or isinstance(change.record, ObjectPrivileges)
    return change.record
