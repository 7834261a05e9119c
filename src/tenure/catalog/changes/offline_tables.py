"""Offline tables: a job fills them, and until it is done no other transaction reads or writes them.

A foreign key is checked from both sides. A row that refers to an offline table is checked against the table's
former rows: if the import commits first, the other transaction starts over. But a row that rows of an offline
table refer to, or may soon, cannot be deleted: so what the import has found there stays true.

Walk: `sql.names.session_names` and `table.foreign_keys` call `refuse_offline`.
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
