"""Clients that keep what they have planned, read at a glance, and insert in each of the ways there are.

    kept plan    descriptors of an earlier transaction, pinned all at once under the same lease
    glance       one read without any pin, believed only if the lease was good afterwards
    insert       looked for first, looked for at the commit, or with what is in the way left or changed

Walk: `schema_client.SHAPES` has them under their names; `kept_predicates` judges what was believed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tenure.base.errors import UniqueViolation
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table
from tenure.catalog.descriptors.equal_versions import logical_of
from tenure.catalog.leases.catalog_use import CatalogUse, Lease
from tenure.expr.types.datatype import Datum
from tenure.table.rows import Row
from tenure.table.write import TableWriter
from tests.simulation.schema_changes import ID, U
from tests.simulation.schema_trace import Believed

if TYPE_CHECKING:
    from tests.simulation.schema_client import SchemaClient


class KeptPlan(NamedTuple):
    """What a plan was made of, as `sql.execution.plan_cache` keeps it."""

    lease: Lease
    uses: dict[int, AnyDescriptor]
    table: Table


REPEATED_MAX = 6
"""How often a client runs one statement after the other: a plan is worth keeping only for that."""


def write_kept(client: "SchemaClient") -> None:
    """Writes rows again and again, by a plan that one of the first transactions made."""

    def run(use: CatalogUse) -> None:
        table = _planned(client, use)
        if table is not None:
            client.write(use, table)

    for _ in range(1 + client.pick(REPEATED_MAX)):
        client.using(run)
        client.pause()


def _planned(client: "SchemaClient", use: CatalogUse) -> Table | None:
    """The table of a kept plan if that is still good; else of one made now, which is kept."""
    kept = _some_kept(client)
    if kept is not None:
        client.pause()
        if use.lease is kept.lease and use.take_known(kept.uses):
            client.trace.seen["kept plan used"] += 1
            return kept.table
        if all(_is_same(use.descriptor(id), planned) for id, planned in kept.uses.items()):
            return kept.table
    table = client.some_table(use)
    if table is not None and use.lease is not None:
        client.kept[table.name] = KeptPlan(use.lease, dict(use._found), table)
    return table


def _some_kept(client: "SchemaClient", lease: Lease | None = None) -> KeptPlan | None:
    """Any plan, or one that was made under this lease."""
    plans = [kept for kept in client.kept.values() if lease is None or kept.lease is lease]
    return plans[client.pick(len(plans))] if plans else None


def _is_same(found: AnyDescriptor | None, planned: AnyDescriptor) -> bool:
    return found is not None and logical_of(found) == logical_of(planned)


def glance(client: "SchemaClient") -> None:
    """Looks rows up by their keys, again and again, under no pin, as a prepared statement does."""
    for _ in range(1 + client.pick(REPEATED_MAX)):
        _glance_once(client)
        client.pause()


def _glance_once(client: "SchemaClient") -> None:
    leases = client.process.leases
    lease = leases.peek()
    kept = None if lease is None else _some_kept(client, lease)
    if kept is None or lease is None:
        client.using(lambda use: _planned(client, use))  # so that there is a plan of this lease next time
        return
    key = client.layout(kept.table).key({ID: client.pick(client.knobs.keys)})
    if client.maybe(0.2) and not client.is_calm():
        client.hub.sleep(client.knobs.linger_seconds * client.tape.draw(f"{client.name}.linger"), "linger")
    found = client.store.look(key)
    if found is None or not leases.was_good(lease, tuple(kept.uses), found.clock_at):
        client.trace.seen["glance not believed"] += 1
        return
    client.trace.seen["glance believed"] += 1
    client.schema_trace.believe(Believed(tuple(kept.uses.values()), lease.session.id, found.clock_at))
    value = found.revisions[0].value if found.revisions else None
    if value != client.trace.value_at(key, found.clock_at):
        client.schema_trace.wrong("I2", f"{client.name}: a glance at {found.clock_at} saw another row")


# ── inserting ────────────────────────────────────────────────────────────────────────────────────


def insert_late(client: "SchemaClient") -> None:
    """Rows that must be new, of which nobody looks before the commit whether they are."""

    def run(use: CatalogUse, table: Table, writer: TableWriter, values: dict[int, Datum]) -> None:
        list(writer.insert_all(use.txn, [values], late=True))
        _note_new(client, use, table, values)

    _insert(client, run)


def insert_or_nothing(client: "SchemaClient") -> None:
    """ON CONFLICT DO NOTHING: whatever is in the way, on an index that is only being built too."""
    refused: list[str] = []

    def run(use: CatalogUse, table: Table, writer: TableWriter, values: dict[int, Datum]) -> None:
        try:
            row = writer.upsert(use.txn, values, lambda there, proposed: None)
        except UniqueViolation as error:
            refused.append(str(error))
            raise
        if row is not None:
            _note_new(client, use, table, values)
        else:
            client.trace.seen["insert left what was there"] += 1

    try:
        _insert(client, run)
    finally:
        for message in refused:
            client.schema_trace.wrong("rows", f"{client.name}: ON CONFLICT DO NOTHING was refused: {message}")


def insert_or_change(client: "SchemaClient") -> None:
    """ON CONFLICT DO UPDATE: the row that is in the way is changed, whichever index it is in the way on."""

    def run(use: CatalogUse, table: Table, writer: TableWriter, values: dict[int, Datum]) -> None:
        changed: list[int] = []

        def resolve(there: Row, proposed: Row) -> dict[int, Datum]:
            key = there.values[ID]
            assert isinstance(key, int)
            changed.append(key)
            return {U: values[U]}

        writer.upsert(use.txn, values, resolve)
        if changed:
            client.note(use, table, changed[0], {U: values[U]})
        else:
            _note_new(client, use, table, values)

    _insert(client, run)


Insert = Callable[[CatalogUse, Table, TableWriter, dict[int, Datum]], None]


def _insert(client: "SchemaClient", insert: Insert) -> None:
    def run(use: CatalogUse) -> None:
        table = client.some_table(use)
        if table is None:
            return
        writer = client.writer(table)
        for _ in range(1 + client.pick(2)):
            insert(use, table, writer, _new_values(client, table))
            client.pause()
        writer.finish(use.txn)

    client.using(run)


def _new_values(client: "SchemaClient", table: Table) -> dict[int, Datum]:
    """Of a row whose key, or whose other values, may be there already."""
    return {ID: client.pick(client.knobs.keys), **client.values(client.layout(table))}


def _note_new(client: "SchemaClient", use: CatalogUse, table: Table, values: dict[int, Datum]) -> None:
    key = values[ID]
    assert isinstance(key, int)
    client.note(use, table, key, values, is_insert=True)


SHAPES: dict[str, Callable[["SchemaClient"], None]] = {
    "write kept": write_kept,
    "glance": glance,
    "insert late": insert_late,
    "insert or nothing": insert_or_nothing,
    "insert or change": insert_or_change,
}

WEIGHTS: dict[str, float] = {
    "write kept": 0.7,
    "glance": 0.7,
    "insert late": 0.5,
    "insert or nothing": 1.0,
    "insert or change": 0.5,
}
"""In the mix of everything."""

PROFILES: dict[str, dict[str, float]] = {
    "kept plans": {
        "write kept": 6.0,
        "glance": 6.0,
        "add index": 3.0,
        "drop index": 2.0,
        "rows and a change": 1.0,
    },
    "glances": {"glance": 8.0, "write": 1.0, "add index": 4.0, "drop index": 3.0},
    "inserts": {
        "insert or nothing": 6.0,
        "insert or change": 2.0,
        "insert late": 3.0,
        "write": 3.0,
        "add index": 4.0,
        "drop index": 2.0,
    },
}
