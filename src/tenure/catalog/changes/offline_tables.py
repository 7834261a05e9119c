"""Offline tables: a job fills them, and until it is done no other transaction reads or writes them.

A table that is reset is closed for writing only. Until it is done, no row of another table gets a reference
to it: the row that it refers to may be about to go.

A foreign key is checked from both sides. A row that refers to an offline table is checked against the table's
former rows: if the import commits first, the other transaction starts over. But a row that rows of an offline
table refer to, or may soon, cannot be deleted: so what the import has found there stays true.

Walk: `sql.names.session_names` calls `refuse_offline`; `table.write` and `table.foreign_keys` call
`refuse_unwritable`.
"""

from tenure.base.errors import WrongState
from tenure.catalog.descriptors.definitions import DescriptorState, Table


def refuse_offline(table: Table) -> None:
    if table.state is DescriptorState.OFFLINE:
        raise WrongState(
            f'table "{table.name}" is being imported into',
            detail=f"Job {table.job} has taken it offline.",
            hint=f"SHOW JOB WHEN COMPLETE {table.job} waits for it, CANCEL JOB {table.job} ends it.",
        )


def refuse_unwritable(table: Table) -> None:
    """Refuses a write of its rows, or one that depends on them."""
    refuse_offline(table)
    if table.is_read_only:
        raise WrongState(
            f'table "{table.name}" is being reset',
            detail=f"Job {table.job} has closed it for writing.",
            hint=f"SHOW JOB WHEN COMPLETE {table.job} waits for it, CANCEL JOB {table.job} ends it.",
        )
