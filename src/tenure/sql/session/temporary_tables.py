"""The temporary tables of a SQL session: kept from transaction to transaction, and given up at its end.

    first CREATE TEMP ──► schema pg_temp_n ──► COMMIT: `TemporaryObjects` of then ──► end: rows are removed
                                                  └─► the node loses its session: lost, the client is told

Each transaction of the session starts with the objects of the last one (`attach`), and hands on its own when
it has committed (`keep`). What a rollback undoes was in the transaction's draft alone.

The rows belong to the node's session in the store. When that is lost, other nodes remove them: the first
statement after that fails (55000), and says which tables are lost. It must not go on without them: a name
might mean a permanent table now.

Invariant (temporary-told): no statement runs after temporary tables were lost before the client was told.

Walk: `sql.session.block` calls `attach`, `end_transaction` and `keep`; `statements.ddl.definition` asks for
`schema`; DISCARD and the end of the session call `discard` and `close`.
"""

from collections.abc import Callable

from tenure.base.errors import NotSupported, TemporaryTablesLost
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.changes.drops import drop_objects
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    Schema,
    Table,
    View,
    is_dropped,
)
from tenure.catalog.descriptors.drafts import Draft, OnCommit
from tenure.catalog.descriptors.temporary_objects import TemporaryObjects, former_indexes, no_objects
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.cluster.sessions.session_records import SessionId
from tenure.table.temporary_rows import TemporaryRows


class TemporaryTables:
    def __init__(self, rows: TemporaryRows, number: int, fresh_id: Callable[[], int]) -> None:
        self._rows = rows
        self._number = number
        self._fresh_id = fresh_id
        self.current: TemporaryObjects | None = None
        """None as long as the session has never had any."""
        self._lost: list[str] = []

    @property
    def schema_id(self) -> int:
        """The id of its schema; 0 if it has none."""
        return 0 if self.current is None else self.current.schema.id

    def attach(self, use: CatalogUse) -> None:
        """Lets a transaction use the objects. Raises TemporaryTablesLost, once, if they are lost."""
        current = self.current
        if current is not None and (use.lease is None or use.lease.session.id != current.session):
            self.lose()
        if self._lost:
            names, self._lost = self._lost, []
            raise TemporaryTablesLost(
                f"the temporary tables of this session are lost: {', '.join(names)}",
                detail="This node lost its session in the store, and the rows with it.",
                hint="Make them again.",
            )
        use.temporary = self.current

    def schema(self, use: CatalogUse, *, database: int, owner: str) -> Schema:
        """The schema of the session's temporary objects; made when it is first asked for."""
        if use.temporary is None:
            use.temporary = self.current = self._new_schema(use, database, owner)
        return use.temporary.schema

    def _new_schema(self, use: CatalogUse, database: int, owner: str) -> TemporaryObjects:
        if use.lease is None:
            raise NotSupported(
                "temporary tables are not supported before the cluster is finalized",
                hint="SET CLUSTER SETTING version",
            )
        name, public = f"pg_temp_{self._number}", DescriptorState.PUBLIC
        schema = Schema(self._fresh_id(), 1, ZERO_AT, name, owner, public, (), (), database=database)
        return no_objects(schema, use.lease.session.id)

    def track(self, use: CatalogUse, before: Draft, on_end: list[Callable[[], None]]) -> None:
        """After a statement: what it has made is removed at the end of the transaction, if it is not kept.

        A sequence may have given values by then, which a rollback does not undo.
        """
        temporary = use.temporary
        if temporary is None or not use.draft:
            return
        new = use.draft.new_descriptors()
        ids = [id for id in new.keys() - before.declared.keys() if temporary.has(new[id])]
        if ids:
            on_end.append(lambda: self._settle(temporary.session, ids))

    def _settle(self, session: SessionId, ids: list[int]) -> None:
        kept = {} if self.current is None else self.current.by_id
        self._rows.discard(session, [id for id in ids if id not in kept])

    # ── the end of a transaction ───────────────────────────────────────────────────────────────

    def end_transaction(self, use: CatalogUse) -> None:
        """Before a commit: does what ON COMMIT says, and records the new objects."""
        temporary = use.temporary
        if temporary is None:
            return
        self._apply_on_commit(use, temporary)
        for id, each in use.draft.new_descriptors().items():
            if temporary.has(each):
                self._rows.note(use.txn, temporary.session, id)

    def _apply_on_commit(self, use: CatalogUse, temporary: TemporaryObjects) -> None:
        actions = {
            id: action
            for id, action in {**temporary.on_commit, **use.draft.on_commit}.items()
            if _is_there(use.descriptor(id))
        }
        for id in actions:
            table = use.descriptor(id)
            assert isinstance(table, Table), "ON COMMIT belongs to tables"
            span = self._rows.keyspace.table_span(id)
            if not use.txn.written(span):
                continue
            for inbound in table.inbound:
                if inbound.table not in actions:
                    raise NotSupported(
                        "unsupported ON COMMIT and foreign key combination",
                        detail=f'A table without ON COMMIT refers to "{table.name}".',
                    )
            use.txn.forget_writes(span)
        dropped = [id for id, action in actions.items() if action is OnCommit.DROP]
        if dropped:
            drop_objects(use.draft, use, dropped, is_cascade=True)

    def keep(self, use: CatalogUse) -> None:
        """After a commit: the objects are those of the transaction from now on."""
        before, after = self.current, use.temporary
        if before is None or after is None or before is after:
            return
        self.current = after
        self._rows.discard(before.session, [id for id in before.by_id if id not in after.by_id])
        for table, index in former_indexes(before, after):
            self._rows.discard_index(table, index)

    def lose(self) -> None:
        """The objects are gone, or it is not known how they are: the next statement says so."""
        current, self.current = self.current, None
        if current is not None:
            self._lost = [f'"{each.name}"' for each in current.objects() if isinstance(each, Table | View)]
            self._rows.discard(current.session, [each.id for each in current.objects()])

    # ── the end of the session ─────────────────────────────────────────────────────────────────

    def discard(self, use: CatalogUse | None = None) -> None:
        """DISCARD TEMP; inside of a transaction, which `use` is, it may still be rolled back."""
        current = self.current
        if use is not None and use.temporary is not None:
            self._drop_all(use, use.temporary)
        elif current is not None:
            self._rows.discard(current.session, [each.id for each in current.objects()])
            self.current = no_objects(current.schema, current.session)

    def _drop_all(self, use: CatalogUse, temporary: TemporaryObjects) -> None:
        found = {**temporary.by_id, **use.draft.descriptors}
        left = [id for id, each in found.items() if temporary.has(each) and _is_there(each)]
        drop_objects(use.draft, use, left, is_cascade=True)
        for id in left:
            use.txn.forget_writes(self._rows.keyspace.table_span(id))

    def close(self) -> None:
        self.discard()
        self.current = None


def _is_there(descriptor: AnyDescriptor | None) -> bool:
    return descriptor is not None and not is_dropped(descriptor)
