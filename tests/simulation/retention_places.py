"""Operations of the world of retention on tables: they move, are dropped, brought back, and made.

Names are left out: nobody resolves any here. A drop has two versions, as the product's has: the first with a
draining name, on which writers go on, and the last without.

Walk: `retention_client.SHAPES` has them under their names.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tenure.base.errors import ObjectInUse, UndefinedObject
from tenure.catalog.changes.undrops import undrop
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    NameKey,
    Table,
    is_dropped,
    next_version,
    place_of,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.kv.transaction import Transaction
from tests.simulation.retention_process import PLACES, RetentionProcess, make_table
from tests.simulation.tracing import TracingTransaction

if TYPE_CHECKING:
    from tests.simulation.retention_client import RetentionClient

TABLES_MAX = 6


def move(client: "RetentionClient") -> None:
    database, schema = PLACES[client.pick(len(PLACES))]

    def change(table: Table) -> Table | None:
        return None if is_dropped(table) else replace(table, database=database, schema=schema)

    _alter(client, client.some_table(), change)


def drop(client: "RetentionClient") -> None:
    """Both versions; in between, others write on."""
    table = client.some_table()

    def begin(found: Table) -> Table | None:
        draining = (place_of(found),)
        return None if is_dropped(found) else replace(found, state=DescriptorState.DROPPED, draining=draining)

    _alter(client, table, begin)
    client.think()
    end_drop(client, table)


def end_drop(client: "RetentionClient", table: int | None = None) -> None:
    """The last version of a drop; whoever began it may be dead."""
    id = client.some_table() if table is None else table
    client.transact(lambda txn: end_drop_in(client.process, id, txn))


def end_drop_in(process: RetentionProcess, table: int, txn: Transaction) -> None:
    found = process.catalog.get(txn, table)
    if isinstance(found, Table) and is_dropped(found) and found.draining:
        process.catalog.put(txn, next_version(replace(found, draining=())))


def bring_back(client: "RetentionClient") -> None:
    """UNDROP of what may be half collected: the product refuses it by the descriptor's state."""
    table, catalog, seen = client.some_table(), client.process.catalog, client.trace.seen

    def run(txn: TracingTransaction) -> None:
        draft = Draft()
        try:
            undrop(draft, CatalogOf(txn, catalog), [table])
        except (ObjectInUse, UndefinedObject) as error:
            seen["undrop refused: collected"] += "being removed" in str(error)
            return
        for each in draft.declared.values():
            catalog.put(txn, next_version(each))
        seen["brought back"] += 1
        client.pause()

    client.transact(run)


def make(client: "RetentionClient") -> None:
    """A new table, public with its first version: under a protected schema it is covered from then on."""
    cluster, catalog = client.cluster, client.process.catalog
    if len(cluster.tables) >= TABLES_MAX:
        return
    id, place = max(cluster.tables) + 1, PLACES[client.pick(len(PLACES))]

    def run(txn: TracingTransaction) -> None:
        if catalog.get(txn, id) is None:
            catalog.put(txn, make_table(id, *place))

    client.transact(run)
    if id not in cluster.tables:
        cluster.tables.append(id)
        cluster.trace.based.update(cluster.user_heads())


def _alter(client: "RetentionClient", id: int, change: Callable[[Table], Table | None]) -> None:
    catalog = client.process.catalog

    def run(txn: TracingTransaction) -> None:
        found = catalog.get(txn, id)
        changed = change(found) if isinstance(found, Table) else None
        if changed is not None:
            catalog.put(txn, next_version(changed))

    client.transact(run)


class CatalogOf:
    """The catalog of a transaction, as changes of drafts ask it."""

    temporary = None

    def __init__(self, txn: TracingTransaction, catalog: Catalog) -> None:
        self._txn, self._catalog = txn, catalog

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self._catalog.get(self._txn, id)

    def id_at(self, place: NameKey) -> int | None:
        return None


SHAPES: dict[str, Callable[["RetentionClient"], None]] = {
    "move table": move,
    "drop table": drop,
    "end drop": end_drop,
    "bring back": bring_back,
    "make table": make,
}

WEIGHTS: dict[str, float] = {
    "move table": 1.5,
    "drop table": 0.7,
    "end drop": 0.4,
    "bring back": 0.8,
    "make table": 0.5,
}
"""In the mix of everything."""
