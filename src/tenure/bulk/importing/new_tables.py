"""The tables that a dump creates, with their objects: they exist only in the job until it is done.

    the job's payload ──► rows go into spans of unused ids ──► one commit: descriptors, names,
                                                                        bases, values of sequences

So there is nothing to revert if it fails, and nobody ever sees a part of it. Names are checked when the
statement runs, and once more in that commit.

Invariant (dump-whole): either all of a dump is there, or nothing.

Walk: `importing.job` makes `NewTables` for a payload that creates objects; existing tables are taken offline
instead.
"""

from tenure.base.errors import UndefinedSchema
from tenure.bulk.importing.records import ImportPayload
from tenure.bulk.lakes import Lake
from tenure.catalog.changes.publisher import Publisher, Settled
from tenure.catalog.descriptors.definitions import AnyDescriptor, Schema, is_dropped
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.cluster.jobs.runs import Run
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.pipeline.remote_handles import TableVersion, version_of
from tenure.table.sequences import Sequences


class NewTables:
    def __init__(self, lake: Lake, publisher: Publisher, run: Run, payload: ImportPayload) -> None:
        self._lake = lake
        self._publisher = publisher
        self._run = run
        self._new = {each.id: each for each in payload.made}
        self._values = payload.values

    def prepare(self) -> Snapshot:
        """Returns the store as of now: nobody writes the tables at any time."""
        return self._lake.store.snapshot()

    def version(self, snapshot: Snapshot, table: int) -> TableVersion:
        found = version_of(table, self._new.get)
        assert found is not None, "the dump makes what it has rows for"
        return found

    def descriptor(self, snapshot: Snapshot, id: int) -> AnyDescriptor | None:
        return self._new.get(id)

    def settled(self) -> Settled:
        """The proof for `bring_back`; waits if it must."""
        self._check_places()
        waiter = LeaseWaiter(self._run.job.created_at, check=self._run.check)
        return self._publisher.settle(self._publisher.affected(self._new.values()), waiter)

    def _check_places(self) -> None:
        """Raises UndefinedSchema if a schema was dropped since the statement ran."""
        snapshot = self._lake.store.snapshot()
        for each in self._new.values():
            parent = getattr(each, "schema", getattr(each, "database", 0))
            found = self._new.get(parent) or self._lake.catalog.get(snapshot, parent)
            if found is None or is_dropped(found):
                kind = "database" if isinstance(each, Schema) else "schema"
                raise UndefinedSchema(f'the {kind} that "{each.name}" was to be made in has been dropped')

    def bring_back(self, txn: Transaction, settled: Settled) -> None:
        """Makes everything public, in the caller's transaction."""
        self._publisher.publish(txn, list(self._new.values()), settled)
        sequences = Sequences(self._lake.store, self._lake.store.keyspace)
        for each in self._values:
            sequences.begin(txn, each.sequence, each.value, is_called=each.is_called)

    def give_up(self) -> None:
        """There is nothing to revert."""
