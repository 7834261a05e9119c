"""The enums of a temporary table's columns: other sessions may have dropped them, and it cannot be used then.

Its rows cannot be decoded without the type. The table can still be dropped.

Walk: `sql.names.session_names` asks when a temporary table is named, `statements.ddl.definition` when one was
changed.
"""

from collections.abc import Callable, Iterable

from tenure.base.errors import UndefinedObject
from tenure.catalog.descriptors.definitions import AnyDescriptor, Column, Table, is_dropped


def require_types(
    table: Table, columns: Iterable[Column], find: Callable[[int], AnyDescriptor | None]
) -> None:
    """Raises UndefinedObject (42704) if the type of one of the columns is gone."""
    for column in columns:
        found = find(column.type.enum) if column.type.enum else None
        if column.type.enum and (found is None or is_dropped(found)):
            raise UndefinedObject(
                f'type "{column.type.name}" does not exist',
                detail=f'It was dropped; column "{column.name}" of table "{table.name}" has it.',
                hint="Drop the table, and make it again.",
            )
