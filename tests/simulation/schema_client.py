"""What clients do in the world of schema changes: rows by name, under leases, while tables change.

    bind ──► database, schema and table by name ──► rows ──► commit
                                                └──► a change declared ──► the changer's commit

What its rows are meant to be is recorded beside each transaction; the history says which of them landed.

Walk: `schema_nodes.SchemaNode` spawns these; `workload.Client` draws their operations by weight.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tenure.base.errors import JobFailed, OutcomeUnknown, RetryError, StoreError, TenureError
from tenure.base.timestamp import from_micros
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, DescriptorState, NameKey, Schema, Table
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.historical import HistoricalUse
from tenure.changefeed.leased_schema import LeasedSchema
from tenure.expr.types.datatype import Datum
from tenure.schema_change.job import KIND
from tenure.table import read
from tenure.table.rows import Layout, Row
from tenure.table.write import TableWriter
from tests.simulation import (
    clean_changes,
    conversion_shapes,
    emptying,
    kept_shapes,
    right_shapes,
    schema_changes,
    schema_lock_shapes,
    wait_shapes,
)
from tests.simulation.expiring_trace import TracingExpiring
from tests.simulation.hub import Hub
from tests.simulation.kept_shapes import KeptPlan
from tests.simulation.schema_changes import (
    ADDING,
    ID,
    OF_CATALOG,
    OF_TABLE,
    PLAIN_KINDS,
    SCHEMAS,
    TABLES,
    TWO_CHANGES,
    U,
    W,
    no_tables,
)
from tests.simulation.schema_knobs import SchemaKnobs
from tests.simulation.schema_trace import Declared, Effect, SchemaTrace, UseRecord
from tests.simulation.workload import Client

if TYPE_CHECKING:
    from tests.simulation.schema_processes import SchemaProcess

ATTEMPTS = 5
LOOKS_MAX = 4


class SchemaClient(Client):
    """A client of one process, which uses the process's parts as a statement would."""

    knobs: SchemaKnobs

    def __init__(self, process: "SchemaProcess", name: str, weights: Mapping[str, float]) -> None:
        hub: Hub = process.cluster.hub
        shapes = {shape: _of(self, run) for shape, run in SHAPES.items()}
        super().__init__(hub, process.cluster.knobs, process.store, name, shapes=shapes, weights=weights)
        self.process = process
        self.is_leaving = False
        self.is_committing = False
        self.kept: dict[str, KeptPlan] = {}
        """By a table's name: what was planned for it last."""
        self.watcher = 0
        """The job in whose name it watches tables, once it does."""
        self.feeds: dict[int, LeasedSchema] = {}

    @property
    def schema_trace(self) -> SchemaTrace:
        return self.process.trace

    def _operate(self) -> None:
        if not self.is_leaving:
            super()._operate()

    # ── transactions ───────────────────────────────────────────────────────────────────────────

    def using(self, run: Callable[[CatalogUse], object]) -> None:
        """Runs a function under the newest lease and commits; again, from the start, on RetryError."""
        for left in reversed(range(ATTEMPTS)):
            try:
                with self.bound() as use:
                    run(use)
                    self.commit(use)
                    return
            except RetryError:
                if left == 0 or self.is_calm():
                    raise
            self.hub.sleep(0.3 * self.tape.draw(f"{self.name}.again"), "again")

    def is_calm(self) -> bool:
        """Whether the faults are over: what is under way then ends, and nothing is begun again."""
        return self.hub.t >= self.knobs.faults_end

    @contextmanager
    def bound(self) -> Iterator[CatalogUse]:
        use = self.process.leases.bind(self.store.begin(), statement=self.operation)
        try:
            yield use
        finally:
            use.close()

    def commit(self, use: CatalogUse) -> None:
        self.is_committing = True
        try:
            if not use.draft:
                use.commit()
                return
            self.record(use).bases = dict(use.draft.made_from)
            timeout = 2.0 if self.maybe(0.2) else None
            self.process.changer.commit(use, timeout=timeout)
        finally:
            self.is_committing = False

    def record(self, use: CatalogUse) -> UseRecord:
        return self.process.leases.record(use)

    # ── names ──────────────────────────────────────────────────────────────────────────────────

    def some_schema(self, use: CatalogUse) -> Schema | None:
        """A schema by its name, as the leased database knows it."""
        use.descriptor(DEFAULT_DATABASE)
        name = SCHEMAS[self.pick(len(SCHEMAS))] if self.maybe(0.4) else SCHEMAS[0]
        entry = use.schema_entry(DEFAULT_DATABASE, name)
        if entry is None or entry.state is not DescriptorState.PUBLIC:
            return None
        schema = use.descriptor(entry.id)
        return schema if isinstance(schema, Schema) and schema.name == name else None

    def some_table(self, use: CatalogUse) -> Table | None:
        """A table by its name; of those that are not there, some are looked for in vain."""
        for _ in range(LOOKS_MAX):
            table = self._look_up(use)
            if table is not None:
                return table
        return None

    def _look_up(self, use: CatalogUse) -> Table | None:
        schema = self.some_schema(use)
        if schema is None:
            return None
        place = NameKey(DEFAULT_DATABASE, schema.id, TABLES[self.pick(len(TABLES))])
        id = use.id_at(place)
        if id is None:
            if self.process.catalog.id_at(use.txn, place) is not None:
                raise RetryError("the name is newer than the lease")
            return None
        table = use.descriptor(id)
        if (
            not isinstance(table, Table)
            or table.state is not DescriptorState.PUBLIC
            or place in table.draining
        ):
            return None
        emptying.require_open(table)
        self.record(use).named[place] = id
        return table

    def some_kind(self, kinds: Sequence[str]) -> str:
        return kinds[self.pick(len(kinds))]

    # ── rows ───────────────────────────────────────────────────────────────────────────────────

    def layout(self, table: Table) -> Layout:
        return self.process.layouts.of(table)

    def write(self, use: CatalogUse, table: Table, *, rows: int = 1) -> None:
        """Inserts, changes or deletes some rows."""
        layout, writer = self.layout(table), self.writer(table)
        for _ in range(rows):
            key = self.pick(self.knobs.keys)
            row = read.get(use.txn, layout, (key,))
            self.pause()
            if row is None:
                values = {ID: key, **self.values(layout)}
                writer.insert(use.txn, values)
                self.note(use, table, key, values, is_insert=True)
            elif self.maybe(0.3):
                writer.delete(use.txn, row)
                self.note(use, table, key, None)
            else:
                values = self.values(layout)
                writer.update(use.txn, row, values)
                self.note(use, table, key, values)
        writer.finish(use.txn)

    def writer(self, table: Table) -> TableWriter:
        return TableWriter(self.layout(table), no_tables, self.process.context())

    def note(
        self,
        use: CatalogUse,
        table: Table,
        key: int,
        values: dict[int, Datum] | None,
        *,
        is_insert: bool = False,
    ) -> None:
        given = None if values is None else dict(values)
        self.record(use).effects.append(Effect(table.id, key, given, is_insert))

    def values(self, layout: Layout) -> dict[int, Datum]:
        values: dict[int, Datum] = {U: self.pick(6), W: None if self.maybe(0.2) else self.pick(3)}
        for id in layout.public:
            if id > W and self.maybe(0.4):
                values[id] = self.pick(5)
        return values


def _of(client: SchemaClient, run: Callable[[SchemaClient], None]) -> Callable[[Client], None]:
    return lambda _: run(client)


# ── reading and writing ──────────────────────────────────────────────────────────────────────────


def write(client: SchemaClient) -> None:
    def run(use: CatalogUse) -> None:
        table = client.some_table(use)
        if table is not None:
            client.write(use, table, rows=1 + client.pick(3))
            client.pause()

    client.using(run)


def write_two(client: SchemaClient) -> None:
    """Rows of two tables, the second looked up after a while."""

    def run(use: CatalogUse) -> None:
        for _ in range(2):
            table = client.some_table(use)
            if table is not None:
                client.write(use, table)
            client.think()

    client.using(run)


def look(client: SchemaClient) -> None:
    """Reads a table whole, and again along each of its indexes: both must be the same rows."""
    wrong: list[str] = []

    def run(use: CatalogUse) -> None:
        wrong.clear()
        table = client.some_table(use)
        if table is None:
            return
        layout = client.layout(table)
        rows = {row.key: row for row in read.rows(use.txn, layout)}
        for index in layout.indexes.values():
            if index.is_public and not index.is_primary:
                client.pause()
                along = {row.key: row for row in read.scan(use.txn, layout, index.id)}
                if not _same(layout, rows, along):
                    wrong.append(f'table {table.id} v{table.version} differs along "{index.name}"')

    client.using(run)
    for message in wrong:
        client.schema_trace.wrong("index", f"{client.name}: {message}")


def _same(layout: Layout, rows: dict[bytes, Row], along: dict[bytes, Row]) -> bool:
    return {key: read.visible(layout, row) for key, row in rows.items()} == {
        key: read.visible(layout, row) for key, row in along.items()
    }


def linger(client: SchemaClient) -> None:
    """Stays open long after its first use, and then writes under what it was given."""

    def run(use: CatalogUse) -> None:
        table = client.some_table(use)
        if table is None:
            return
        if client.maybe(0.5):
            client.write(use, table)
        seconds = client.knobs.linger_seconds * client.tape.draw(f"{client.name}.linger")
        client.hub.sleep(seconds if client.hub.t < client.knobs.faults_end else 0.1, "linger")
        again = use.descriptor(table.id)
        if isinstance(again, Table):
            client.write(use, again)

    client.using(run)


def look_back(client: SchemaClient) -> None:
    """Reads as of an earlier time, under no lease: by the schema of that time."""
    process = client.process
    if isinstance(process.leases, TracingExpiring):
        return  # there is no copy of the catalog that it could be answered from
    seconds = 3.0 * client.tape.draw(f"{client.name}.past")
    at = max(1, client.store.engine.clock_at() - from_micros(int(seconds * 1_000_000)))
    past = HistoricalUse(process.catalog, process.leases.newest, client.store.snapshot(at))
    database = past.descriptor(DEFAULT_DATABASE)
    for name in TABLES:
        id = past.id_at(NameKey(DEFAULT_DATABASE, 101, name)) if database is not None else None
        found = None if id is None else past.descriptor(id)
        value = client.schema_trace.value_at(process.catalog.key(id), at) if id is not None else None
        expected = None if value is None else process.catalog.decode(value)
        if found != expected:
            client.schema_trace.wrong("I18", f"{client.name}: descriptor {id} as of {at} is another")


# ── changing ─────────────────────────────────────────────────────────────────────────────────────

Step = Callable[[CatalogUse, Declared], bool]


def _change(client: SchemaClient, kind: str, step: Step) -> None:
    """Declares and commits, until it is done, refused or fails."""

    def run(use: CatalogUse) -> None:
        declared = Declared(client.record(use), kind)
        client.schema_trace.declared.append(declared)
        try:
            is_wanted = step(use, declared)
            if is_wanted:
                client.pause()
                client.commit(use)
            declared.outcome = "done" if is_wanted else "nothing"
        except JobFailed:
            declared.outcome = "failed"
            raise
        except (OutcomeUnknown, StoreError):
            declared.outcome = "unknown"
            raise
        except TenureError as error:
            declared.outcome = "retry" if isinstance(error, RetryError) else "refused"
            declared.sqlstate = error.sqlstate
            raise
        finally:
            declared.ended = client.schema_trace.tick()

    for left in reversed(range(ATTEMPTS)):
        try:
            with client.bound() as use:
                run(use)
                return
        except RetryError:
            if left == 0 or client.is_calm():
                raise
        client.hub.sleep(0.3 * client.tape.draw(f"{client.name}.again"), "again")


def change_table(kind: str, client: SchemaClient) -> None:
    def step(use: CatalogUse, declared: Declared) -> bool:
        table = client.some_table(use)
        return table is not None and OF_TABLE[kind](client, use, table, declared)

    _change(client, kind, step)


def change_catalog(kind: str, client: SchemaClient) -> None:
    _change(client, kind, lambda use, declared: CHANGES[kind](client, use, declared))


def change_twice(client: SchemaClient) -> None:
    """Two changes in one transaction: of one table, or of two."""

    def step(use: CatalogUse, declared: Declared) -> bool:
        tables = [client.some_table(use) for _ in range(2)]
        if client.maybe(0.5):
            tables[1] = tables[0]
        is_any = False
        for table in tables:
            if table is not None:
                kind = client.some_kind(PLAIN_KINDS)
                is_any = OF_TABLE[kind](client, use, table, declared) or is_any
        return is_any

    _change(client, TWO_CHANGES, step)


def change_with_rows(client: SchemaClient) -> None:
    """A change and rows in one transaction: rows before it, after it under the own copy, or both."""

    def step(use: CatalogUse, declared: Declared) -> bool:
        table = client.some_table(use)
        if table is None:
            return False
        when = client.pick(3)
        if when != 1:
            client.write(use, table, rows=1 + client.pick(2))
        kind = client.some_kind(ADDING if client.maybe(0.8) else PLAIN_KINDS)
        is_any = OF_TABLE[kind](client, use, table, declared)
        own = use.descriptor(table.id)
        if when and isinstance(own, Table):
            client.pause()
            client.write(use, own)
        return is_any or bool(client.record(use).effects)

    _change(client, "rows and a change", step)


def change_elsewhere(client: SchemaClient) -> None:
    """Uses one table and changes another: two of these wait for each other."""

    def step(use: CatalogUse, declared: Declared) -> bool:
        used, changed = client.some_table(use), client.some_table(use)
        if used is None or changed is None or used.id == changed.id:
            return False
        client.write(use, used)
        client.hub.sleep(
            client.knobs.linger_seconds * client.tape.draw(f"{client.name}.linger") / 4, "linger"
        )
        return OF_TABLE[client.some_kind(ADDING)](client, use, changed, declared)

    _change(client, "rows here, a change there", step)


def clean_and_constrain(client: SchemaClient) -> None:
    step = partial(clean_changes.clean_and_constrain, client)
    _change(client, clean_changes.KIND, step)


def recreate(client: SchemaClient) -> None:
    """Drops a table and makes one of the same name, with rows, as soon as that is to be had."""
    change_table("drop", client)
    change_catalog("create", client)


def create_with_rows(client: SchemaClient) -> None:
    def step(use: CatalogUse, declared: Declared) -> bool:
        if not schema_changes.create(client, use, declared):
            return False
        for table in list(use.draft.descriptors.values()):
            if isinstance(table, Table):
                client.write(use, table, rows=2)
        return True

    _change(client, "create", step)


def cancel(client: SchemaClient) -> None:
    """Cancels a change that is under way."""
    found = client.process.jobs.open(client.store.snapshot())
    jobs = [control.id for control in found if control.kind == KIND]
    if jobs:
        job = jobs[client.pick(len(jobs))]
        client.store.transact(lambda txn: client.process.jobs.request_cancel(txn, job))
        client.trace.seen["change canceled"] += 1


CHANGES: dict[str, Callable[[SchemaClient, CatalogUse, Declared], bool]] = {
    **OF_CATALOG,
    **right_shapes.CHANGES,
    **conversion_shapes.CHANGES,
}

SHAPES: dict[str, Callable[[SchemaClient], None]] = {
    "write": write,
    "write two": write_two,
    "look": look,
    "linger": linger,
    "look back": look_back,
    **{kind: partial(change_table, kind) for kind in OF_TABLE},
    **{kind: partial(change_catalog, kind) for kind in OF_CATALOG},
    "create with rows": create_with_rows,
    "two changes": change_twice,
    "rows and a change": change_with_rows,
    clean_changes.KIND: clean_and_constrain,
    "change elsewhere": change_elsewhere,
    "watch a table": schema_lock_shapes.watch_table,
    "follow": schema_lock_shapes.follow,
    "recreate": recreate,
    "cancel": cancel,
    **kept_shapes.SHAPES,
    **wait_shapes.SHAPES,
    **{kind: partial(change_catalog, kind) for kind in right_shapes.CHANGES},
    **{kind: partial(change_catalog, kind) for kind in conversion_shapes.CHANGES},
    **right_shapes.SHAPES,
    **conversion_shapes.SHAPES,
}
