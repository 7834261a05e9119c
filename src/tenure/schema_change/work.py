"""The work between two versions: filling, proving, emptying, in short transactions.

Each piece of work is a sequence of bounded batches and can be stopped after any of them; `Resume`
keeps how far it is. Every batch reads its rows again in its own transaction, so newer writes win.

An index of many rows is not filled here but by a merge in the lake: see `schema_change.walk`.

Walk: `schema_change.walk` has a `Worker` do what `stages.work_before` names; it calls `table.backfill` and
`table.completion`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from tenure.base.errors import CommitTooLarge, CorruptData, NotSupported, RetryError
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, Table
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.elements import advance, is_finished
from tenure.expr.tree.compiled import Context
from tenure.kv.keys import Keyspace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.schema_change.stages import Work, WorkKind, arriving_again, as_it_will_be, work_before
from tenure.storage.engine import head_of, heads_of
from tenure.table.backfill import (
    BATCH_ROWS_MIN,
    FillBatch,
    Pace,
    backfill_column,
    backfill_index,
    remove_index,
)
from tenure.table.completion import complete_rows, written_keys
from tenure.table.read import at
from tenure.table.rows import Layout, Layouts
from tenure.table.sequences import SessionSequences
from tenure.table.validate import Offence, validate_check, validate_foreign_key, validate_unique

T = TypeVar("T")

Source = Transaction | Snapshot


class Transact(Protocol):
    """Runs a function in a transaction and commits it, again on conflict."""

    def __call__(self, run: Callable[[Transaction], T]) -> T: ...


class Worker:
    def __init__(
        self, keyspace: Keyspace, catalog: Catalog, layouts: Layouts, context: Callable[[], Context]
    ) -> None:
        self._keyspace = keyspace
        self._catalog = catalog
        self._layouts = layouts
        self._context = context
        self._declared: Mapping[int, AnyDescriptor] = {}
        self._parent: Transaction | None = None

    def over(self, declared: Mapping[int, AnyDescriptor]) -> "Worker":
        """The same, with descriptors that are not stored yet: those that a transaction has created."""
        worker = Worker(self._keyspace, self._catalog, self._layouts, self._context)
        worker._declared = declared
        return worker

    def _expression_context(self) -> Context:
        context = self._context()
        if not isinstance(context.sequences, SessionSequences):
            return context
        return replace(context, sequences=context.sequences.over(self._declared))

    def beside(self, parent: Transaction) -> "Worker":
        """The same for children of a transaction: they leave out the rows that it has written itself."""
        worker = self.over(self._declared)
        worker._parent = parent
        return worker

    def do(self, work: Work, table: Table, source: Source, transact: Transact) -> Iterator[bytes | None]:
        """Does a piece of work, yielding after each batch the start of the next one; None at the end."""
        return self.resume(work, table, source, transact, b"")

    def resume(
        self, work: Work, table: Table, source: Source, transact: Transact, start: bytes
    ) -> Iterator[bytes | None]:
        layout = self._layout(source, table)
        following: bytes | None = start
        pace = Pace()
        while following is not None:
            try:
                batch = self._batch(work, layout, source, transact, following, pace)
            except CommitTooLarge:
                if pace.rows <= BATCH_ROWS_MIN:
                    raise
                pace.slower()  # its rows are large: fewer of them
                pace.slower()
                continue
            following = batch.resume
            yield following

    def _batch(
        self, work: Work, layout: Layout, source: Source, transact: Transact, start: bytes, pace: Pace
    ) -> FillBatch:
        context = self._expression_context()
        run, rows_max = pace.paced(transact), pace.rows
        match work.kind:
            case WorkKind.FILL_COLUMN:
                tables = self._tables(source)
                return backfill_column(
                    run, source, layout, work.element, tables, context, resume=start, rows_max=rows_max
                )
            case WorkKind.FILL_INDEX:
                return backfill_index(
                    *(run, source, layout, work.element, context),
                    without=self._without(layout),
                    resume=start,
                    rows_max=rows_max,
                )
            case WorkKind.EMPTY_INDEX:
                return remove_index(
                    run, self._keyspace, work.table, work.element, resume=start, rows_max=rows_max
                )
            case _:
                self._prove(work, layout, source, context)
                return FillBatch(0, None)

    def complete_stages(
        self, txn: Transaction, declared: Table, is_left: Callable[[Work], bool] = lambda _: False
    ) -> None:
        """Does all the work between the stages in one transaction; what `is_left` names is not done."""
        stage: AnyDescriptor = declared
        while isinstance(stage, Table) and not is_finished(stage):
            for work in work_before(stage):
                for _ in () if is_left(work) else self.do(work, stage, txn, lambda run: run(txn)):
                    pass
            stage = advance(stage)

    def has_written(self, txn: Transaction, table: int) -> bool:
        """Whether a transaction has rows of its own in a table."""
        return bool(txn.written(self._keyspace.table_span(table)))

    def complete(self, txn: Transaction, declared: Table) -> None:
        """Brings new elements up to date with the rows that a transaction has written itself.

        It wrote them before it declared the elements, or without knowing them; its children left them out.
        """
        layout = self._layout(txn, as_it_will_be(declared))
        complete_rows(txn, layout, self._tables(txn), self._expression_context())

    def complete_own(self, txn: Transaction, draft: Draft) -> None:
        """The same for tables that this transaction has created or emptied: none of their rows is committed.

        Which rows are older than which element is not known, so all are checked.
        """
        for table in draft.of_own_rows().values():
            if isinstance(table, Table) and draft.needs_completion(table.id):
                self._complete_new(txn, table)
            elif isinstance(table, Table):
                self._check_in_place(txn, table)

    def _check_in_place(self, txn: Transaction, table: Table) -> None:
        """A statement that was planned before its table was emptied may have written to a former index."""
        heads = {self._keyspace.head(table.id, index.id) for index in table.indexes}
        if not heads.issuperset(heads_of(txn.written(self._keyspace.table_span(table.id)))):
            raise RetryError(f'rows of "{table.name}" were written as if it had not been truncated')

    def _complete_new(self, txn: Transaction, declared: Table) -> None:
        layout = self._layout(txn, declared)
        self._check_not_rewritten(txn, layout)
        if not written_keys(txn, layout):
            return
        arriving = arriving_again(declared)
        for work in work_before(arriving):
            for _ in self.do(work, arriving, txn, lambda run: run(txn)):
                pass

    def _check_not_rewritten(self, txn: Transaction, layout: Layout) -> None:
        """Changing the type or primary key of a table that has rows already would lose them."""
        table = layout.table
        heads = {index.head for index in layout.indexes.values()}
        for key in txn.written(self._keyspace.table_span(table.id)):
            row = at(txn, layout, key) if head_of(key) == layout.primary.head else None
            is_lost = head_of(key) not in heads and txn.get(key) is not None
            # A column that replaced another still has the other's value.
            if is_lost or (row is not None and row.unknown and row.absent):
                raise NotSupported(
                    f'"{table.name}" cannot be rewritten in the transaction that has made and filled it',
                    hint="Change the type or the primary key before the first row, or after COMMIT.",
                )

    def _prove(self, work: Work, layout: Layout, source: Source, context: Context) -> None:
        offence = self._offence(work, layout, source, context)
        if offence is not None:
            raise offence.error

    def _offence(self, work: Work, layout: Layout, source: Source, context: Context) -> Offence | None:
        without = self._without(layout)
        match work.kind:
            case WorkKind.PROVE_UNIQUE:
                return validate_unique(source, layout, work.element, context, without=without)
            case WorkKind.PROVE_CHECK:
                return validate_check(source, layout, work.element, context, without=without)
            case _:
                key = layout.foreign_key(work.element)
                assert key is not None, "the foreign key is gone"
                target = self._tables(source)(key.target)
                return validate_foreign_key(source, layout, key.id, target, without=without)

    def _without(self, layout: Layout) -> frozenset[bytes]:
        """The keys of rows that the parent transaction has written: it completes those itself."""
        return frozenset() if self._parent is None else frozenset(written_keys(self._parent, layout))

    def _tables(self, source: Source) -> Callable[[int], Layout]:
        def layout_of(id: int) -> Layout:
            table = self._find(source, id)
            assert isinstance(table, Table), "a foreign key refers to something that is no table"
            return self._layout(source, table)

        return layout_of

    def _find(self, source: Source, id: int) -> AnyDescriptor | None:
        return self._declared.get(id) or self._catalog.get(source, id)

    def _layout(self, source: Source, table: Table) -> Layout:
        def enum(id: int) -> EnumType:
            found = self._find(source, id)
            if not isinstance(found, EnumType):
                raise CorruptData(f"descriptor {id} is not an enum")
            return found

        return self._layouts.of(table, enum)
