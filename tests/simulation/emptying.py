"""TRUNCATE in the world of schema changes: a table gets new, empty indexes while others use it.

What others write is there before that and goes with it, or comes after it and stays: the model of the rows
forgets all rows of the table with the transaction that emptied it, and the oracle compares.

Walk: `schema_changes.OF_TABLE` has `truncate`; `schema_client` calls `require_open` for each table it finds.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from tenure.base.errors import RetryError
from tenure.catalog.changes import table_changes
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table
from tenure.catalog.leases.catalog_use import CatalogUse
from tests.simulation.schema_trace import Declared, Effect

if TYPE_CHECKING:
    from tests.simulation.schema_client import SchemaClient

KIND = "truncate"

PROFILES = {
    "emptying": {
        "write": 6.0,
        "linger": 1.0,
        "look": 1.0,
        KIND: 3.0,
        "rows and a change": 1.0,
        "two changes": 1.0,
        "add index": 0.5,
        "cancel": 0.3,
    }
}


def truncate(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    table_changes.empty(use.draft, use, table.id)
    use.txn.forget_writes(client.store.keyspace.table_span(table.id))
    client.record(use).effects.append(Effect(table.id, 0, None, is_insert=False, is_of_all=True))
    if client.maybe(0.5):
        own = use.descriptor(table.id)
        assert isinstance(own, Table)
        client.write(use, own)
    return True


def require_open(table: Table) -> None:
    """As `sql.session.closed_tables` does, without the wait: the client tries again after a while."""
    if table.is_closed:
        raise RetryError(f'"{table.name}" is being emptied')


def left_behind(versions: Iterable[AnyDescriptor]) -> set[int]:
    """The indexes that a table had when it was emptied, of all its versions: their entries stay."""
    left: set[int] = set()
    for former, version in pairwise(each for each in versions if isinstance(each, Table)):
        ids = {index.id for index in former.indexes}
        if not ids.intersection(index.id for index in version.indexes):
            left |= ids
    return left
