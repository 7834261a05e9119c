"""The values that errors of constraints show: only to those who may read them.

    DETAIL: Key (a)=(1) already exists.           with SELECT on the table, or on the columns of the key
    DETAIL: Key is not present in table "u".      without
    DETAIL: Failing row contains (1, null).       with SELECT on the table, otherwise no detail

A user who may change a column and not read the row would otherwise learn its other values from an error.

Walk: `sql.execution.session_transactions` calls `hide_values` for an error before a client is told.
"""

import re
from collections.abc import Callable, Iterable

from tenure.base.errors import ConstraintViolation, ForeignKeyViolation, UniqueViolation
from tenure.catalog.accounts.privileges import SELECT
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.descriptors.definitions import AnyDescriptor, ForeignKey, Table

_KEY = re.compile(r"^Key \(.*\)=\(.*\) is ", re.DOTALL)
_NOT_PRESENT = " is not present in table "

Find = Callable[[int], AnyDescriptor | None]


def hide_values(error: ConstraintViolation, rights: Rights, find: Find) -> None:
    """`find` gives descriptors by their ids, as the session sees them."""
    if rights.is_superuser or not error.detail:
        return
    table = find(error.table_id)
    match error:
        case ForeignKeyViolation():
            if not _may_read_reference(rights, table, error, find):
                error.detail = _KEY.sub("Key is ", error.detail)
        case UniqueViolation():
            if not _may_read(rights, table, _key(table, error.constraint)):
                error.detail = ""
        case _:
            if not isinstance(table, Table) or not rights.has(table, SELECT):
                error.detail = ""


def _may_read(rights: Rights, table: AnyDescriptor | None, columns: Iterable[int]) -> bool:
    ids = list(columns)
    if not isinstance(table, Table):
        return False
    if not ids:
        return rights.has(table, SELECT)
    return all(rights.has_on_column(table, SELECT, each) for each in ids)


def _key(table: AnyDescriptor | None, constraint: str) -> list[int]:
    """The columns of a unique index; none if it is not known any more."""
    indexes = table.indexes if isinstance(table, Table) else ()
    return [part.column for each in indexes if each.name == constraint for part in each.parts]


def _may_read_reference(
    rights: Rights, table: AnyDescriptor | None, error: ForeignKeyViolation, find: Find
) -> bool:
    """Of the row that refers to nothing, or of the one that others refer to."""
    keys = table.foreign_keys if isinstance(table, Table) else ()
    found: ForeignKey | None = next((each for each in keys if each.name == error.constraint), None)
    if found is None:
        return _may_read(rights, table, ())
    if _NOT_PRESENT in error.detail:
        return _may_read(rights, table, found.columns)
    return _may_read(rights, find(found.target), found.target_columns)
