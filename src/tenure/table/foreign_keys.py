"""Foreign keys: references between rows of two tables.

    referencing table  ── columns ──►  target table, by a unique index on target_columns
    ForeignKey                         Inbound

While a statement runs, the checks and actions that its writes require are noted in their order. `finish` then
processes them, in the order in which PostgreSQL fires its triggers: row by row, and for each row key by key
as they were declared.

    a row is gone or has another key     CASCADE, SET NULL, SET DEFAULT act on the rows that refer to it;
                                         the duties of these writes come before all the rest
                                         NO ACTION and RESTRICT check whether a row still refers to it
    a row refers to something new        it must exist

Referenced rows are looked up together (`table.references`), and checked in that order.

So rows may refer to each other, to themselves or in cycles, within one statement. A cascade ends because rows
that it has deleted or changed no longer refer to a deleted row. A NULL among the columns refers to nothing
(MATCH SIMPLE). NO ACTION lets another row take the key meanwhile, RESTRICT does not. A default that SET
DEFAULT sets may be the very key that is gone: so it is looked up once more.

The referenced row must still exist at the commit; its content may change meanwhile. So a transaction that
adds to an order and one that updates it do not conflict.

In a READ COMMITTED transaction each of these checks is a constraint of its own (`CommitProof.guard`). If the
rows that it depends on have changed before the commit, the check is made, or the action done, once more.

A foreign key is enforced from write_only on, on both sides; the target has its `Inbound` before.
One added NOT VALID is enforced for later writes.

Invariant (foreign-keys): after `finish`, every row that the statement wrote and every row that referred to
one it wrote refers to an existing row, or to nothing.

Checks of deferrable keys may be left to the end of the transaction (`table.deferred_references`).

Simplification: the columns of both sides have the same type, but for its modifiers.

Walk: `table.write` calls `written` per row and `finish` per statement -> `table.references` and
`table.read.find` on the other table -> a `RowWriter` of that table, which notes what it does here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from tenure.base.errors import ForeignKeyViolation, RestrictViolation
from tenure.base.interruptible import Check, interruptible, unchecked
from tenure.catalog.changes.offline_tables import refuse_unwritable
from tenure.catalog.descriptors.definitions import Action, ElementState, ForeignKey
from tenure.expr.types.datatype import Datum
from tenure.kv.records import replace
from tenure.kv.transaction import Transaction
from tenure.table.columns import Values, key_text
from tenure.table.new_keys import GUARDED_MAX
from tenure.table.read import exists, find
from tenure.table.references import Lookups, ReferenceLookup, together
from tenure.table.rows import Layout, Row

Tables: TypeAlias = Callable[[int], Layout]
"""The layout of another table by its id, in the version that the transaction uses."""


class RowWriter(Protocol):
    def update(self, txn: Transaction, old: Row, changes: Values) -> Row: ...
    def delete(self, txn: Transaction, row: Row) -> None: ...
    def default(self, column: int) -> Datum: ...


class WriterLocks(Protocol):
    """The locks that a writer takes in a READ COMMITTED transaction: `sql.execution.write_locks`."""

    def lock_new(self, txn: Transaction, keys: Sequence[bytes]) -> None:
        """Locks unique keys that are about to be looked for; the transaction then reads at a newer time."""
        ...

    def lock_read(self, txn: Transaction, keys: Sequence[bytes]) -> bool:
        """Locks rows that are about to be changed, and counts them as read; False if one has changed since it
        was read, and then the transaction reads at a newer time."""
        ...


class LostTarget(NamedTuple):
    """A target's row that no longer has the values by which it was referred to."""

    foreign_key: ForeignKey
    referencing: Layout
    target: Layout
    values: Values
    """The row before the write."""
    now: Values | None
    """The row after the write; None if it was deleted."""
    is_done: bool = False
    """Its action has been executed; it remains to check whether a row still refers to it."""

    @property
    def acts(self) -> bool:
        return not self.is_done and self.action not in (Action.NO_ACTION, Action.RESTRICT)

    @property
    def action(self) -> Action:
        return self.foreign_key.on_delete if self.now is None else self.foreign_key.on_update

    def key(self) -> tuple[Datum, ...]:
        return tuple(self.values[id] for id in self.foreign_key.target_columns)


class RowReference(NamedTuple):
    """A row with a new reference."""

    foreign_key: ForeignKey
    referencing: Layout
    row: Row
    """The row as written; another write of the statement may have changed it since."""
    value: bytes | None = None
    """The value under its key, if the writer provides it: while it is there, the row is unchanged."""


Owed = TypeVar("Owed", LostTarget, RowReference)


class Deferring(Protocol):
    """Takes checks that a transaction makes at its end: `table.deferred_references` has one."""

    def takes(self, layout: Layout, foreign_key: ForeignKey) -> bool: ...
    def note(self, owed: LostTarget | RowReference) -> None: ...


class ForeignKeys:
    """The pending checks and actions of a statement, for the foreign keys of all tables it writes."""

    def __init__(
        self,
        tables: Tables,
        writer: Callable[[Layout, "ForeignKeys"], RowWriter],
        *,
        acts: bool = True,
        locks: WriterLocks | None = None,
        deferral: Deferring | None = None,
    ) -> None:
        """Without `acts`, rows that refer to what is gone are an error for every action. `deferral` takes the
        checks that are left to the end of the transaction.
        """
        self._deferral = deferral
        self._tables = tables
        self._writer = writer
        self._acts = acts
        self._locks = locks
        self._owed: list[LostTarget | RowReference] = []

    def written(self, layout: Layout, old: Row | None, new: Row | None, value: bytes | None = None) -> None:
        """Notes the duties of a row's write. `value` is the value under its key, if that is known."""
        if old is not None:
            self._owed += self._lost_by(layout, old, new)
        if new is not None:
            for foreign_key in enforced(layout):
                if old is None or old.key != new.key or _differ(old, new, foreign_key.columns):
                    self._owed.append(RowReference(foreign_key, layout, new, value))

    def owe(self, owed: Iterable[LostTarget | RowReference]) -> None:
        """Notes duties that an earlier statement has left."""
        self._owed += owed

    def finish(self, txn: Transaction, check: Check = unchecked) -> None:
        if not self._owed:
            return
        # A chain of cascades may be long: it is kept here, not on Python's stack.
        waiting = [self._pending()]
        while waiting:
            owed = next(waiting[-1], None)
            if owed is None:
                waiting.pop()
                continue
            check()
            self._settle(txn, owed, check)
            if self._owed:
                waiting.append(self._pending())

    def _pending(self) -> Iterator[LostTarget | list[RowReference]]:
        """The pending duties, consecutive references together."""
        owed, self._owed = self._owed, []
        for are_references, run in groupby(owed, lambda each: isinstance(each, RowReference)):
            if are_references:
                yield [each for each in run if isinstance(each, RowReference)]
            else:
                yield from (each for each in run if isinstance(each, LostTarget))

    def _settle(self, txn: Transaction, owed: LostTarget | list[RowReference], check: Check) -> None:
        if isinstance(owed, list):
            self._check_references(txn, owed if self._deferral is None else self._left(owed), check)
        elif owed.acts:
            self._act(txn, owed, check)
        elif self._deferral is None or owed.action is not Action.NO_ACTION or self._left([owed]):
            before = txn.proof.mark()
            _check_lost(txn, owed)
            if self._locks is not None:
                txn.proof.guard(before, partial(self._look_again, txn, owed))

    def _look_again(self, txn: Transaction, lost: LostTarget) -> None:
        """Rows that may refer to a lost target have come since the statement: for the commit."""
        self._deferral = None  # nothing is left to a later moment any more
        before, foreign_key = txn.proof.mark(), lost.foreign_key
        if lost.acts and exists(txn, lost.target, foreign_key.target_columns, lost.key()):
            # A later statement has brought the key back; then rows may refer to it.
            txn.proof.guard(before, partial(self._look_again, txn, lost))
            return
        self._owed.append(lost)
        self.finish(txn)

    def _left(self, owed: list[Owed]) -> list[Owed]:
        """Those that are not left to the end of the transaction."""
        left, deferral = [], self._deferral
        assert deferral is not None
        for each in owed:
            if deferral.takes(each.referencing, each.foreign_key):
                deferral.note(each)
            else:
                left.append(each)
        return left

    def _check_references(self, txn: Transaction, references: list[RowReference], check: Check) -> None:
        before, missing = txn.proof.mark(), None
        lookups = self._lookups(txn, references)
        asked: dict[tuple[int, bytes | None], ReferenceLookup] = {}
        if self._locks is not None:
            lookups = _noted(lookups, asked)
        try:
            for lookup in interruptible(together(txn, lookups, check), check):
                error = lookup.error(txn)
                if error is not None:
                    missing = lookup.key
                    raise error
        finally:
            txn.proof.relax(before, without=missing)
        if 0 < len(asked) <= GUARDED_MAX:
            txn.proof.guard(before, partial(_look_for_targets, txn, list(asked.values())))

    def _lookups(self, txn: Transaction, references: list[RowReference]) -> Iterator[ReferenceLookup]:
        by_key: dict[tuple[int, int], Lookups] = {}
        for (table, _), of_row in groupby(references, lambda each: (each.referencing.table.id, each.row.key)):
            row = None
            for reference in of_row:
                foreign_key, layout = reference.foreign_key, reference.referencing
                row = row or _now(txn, reference)
                if row is None:  # it was deleted again before the statement ended
                    break
                lookups = by_key.get((table, foreign_key.id))
                if lookups is None:
                    target = self._tables(foreign_key.target)
                    if target.table.is_read_only:
                        refuse_unwritable(target.table)
                    lookups = Lookups(layout, foreign_key, target)
                    by_key[table, foreign_key.id] = lookups
                yield from lookups.of(row)

    def _lost_by(self, layout: Layout, old: Row, new: Row | None) -> Iterator[LostTarget]:
        for inbound in layout.table.inbound:
            referencing = layout if inbound.table == layout.table.id else self._tables(inbound.table)
            foreign_key = referencing.foreign_key(inbound.constraint)
            if foreign_key is None or not _is_enforced(foreign_key):
                continue
            columns = foreign_key.target_columns
            has_changed = new is None or _look_different(old, new, columns)
            if has_changed and all(old.values[id] is not None for id in columns):
                refuse_unwritable(referencing.table)
                if not self._acts:
                    foreign_key = replace(foreign_key, on_delete=Action.NO_ACTION, on_update=Action.NO_ACTION)
                yield LostTarget(
                    foreign_key, referencing, layout, old.values, None if new is None else new.values
                )

    def _act(self, txn: Transaction, lost: LostTarget, check: Check) -> None:
        writer = self._writer(lost.referencing, self)
        rows = self._referring(txn, lost, check)
        for row in interruptible(rows, check):
            if lost.action is Action.CASCADE and lost.now is None:
                writer.delete(txn, row)
            else:
                writer.update(txn, row, _changes(lost, writer))
        if lost.action is Action.SET_DEFAULT:
            self._owed.append(lost._replace(is_done=True))

    def _referring(self, txn: Transaction, lost: LostTarget, check: Check) -> list[Row]:
        columns = lost.foreign_key.columns
        while True:
            before = txn.proof.mark()
            rows = list(interruptible(find(txn, lost.referencing, columns, lost.key()), check))
            if self._locks is None:
                return rows
            txn.proof.guard(before, partial(self._look_again, txn, lost))
            if self._locks.lock_read(txn, [row.key for row in rows]):
                return rows
            txn.proof.forget(before)  # what was found too early


def _noted(
    lookups: Iterator[ReferenceLookup], asked: dict[tuple[int, bytes | None], ReferenceLookup]
) -> Iterator[ReferenceLookup]:
    """Notes one lookup of each target, for a transaction that may have to look again."""
    for lookup in lookups:
        number = len(asked) if lookup.key is None else lookup.of.foreign_key.id
        asked.setdefault((number, lookup.key), lookup)
        yield lookup


def _look_for_targets(txn: Transaction, lookups: Sequence[ReferenceLookup]) -> None:
    """Referenced rows may have gone since the statement: for the commit."""
    before = txn.proof.mark()
    for lookup in together(txn, lookups):
        error = lookup.error(txn)
        if error is not None and lookup.is_used(txn):
            raise error
    txn.proof.guard(before, partial(_look_for_targets, txn, lookups))


def _now(txn: Transaction, reference: RowReference) -> Row | None:
    stored = txn.get(reference.row.key)
    if stored is None or stored is reference.value:
        return None if stored is None else reference.row
    layout = reference.referencing
    return layout.row(layout.primary, reference.row.key, stored)


def _changes(lost: LostTarget, writer: RowWriter) -> Values:
    columns = lost.foreign_key.columns
    if lost.action is Action.SET_NULL:
        return dict.fromkeys(columns)
    if lost.action is Action.SET_DEFAULT:
        return {id: writer.default(id) for id in columns}
    assert lost.now is not None, "a deleted row has no new values to hand on"
    return dict(zip(columns, (lost.now[id] for id in lost.foreign_key.target_columns), strict=True))


def _check_lost(txn: Transaction, lost: LostTarget) -> None:
    foreign_key, target, referencing = lost.foreign_key, lost.target, lost.referencing
    is_restrict = lost.action is Action.RESTRICT
    if not is_restrict and exists(txn, target, foreign_key.target_columns, lost.key()):
        return
    if not exists(txn, referencing, foreign_key.columns, lost.key()):
        return
    name = referencing.table.name
    key = key_text(target.columns, foreign_key.target_columns, lost.values)
    raise (RestrictViolation if is_restrict else ForeignKeyViolation)(
        f'update or delete on table "{target.table.name}" violates '
        f'{"RESTRICT setting of " if is_restrict else ""}foreign key constraint "{foreign_key.name}" '
        f'on table "{name}"',
        detail=f'Key {key} is {"" if is_restrict else "still "}referenced from table "{name}".',
        table=referencing.table,
        constraint=foreign_key.name,
    )


def enforced(layout: Layout) -> Iterator[ForeignKey]:
    return filter(_is_enforced, layout.table.foreign_keys)


def _is_enforced(foreign_key: ForeignKey) -> bool:
    return foreign_key.state is not ElementState.DELETE_ONLY


def _differ(old: Row, new: Row, columns: tuple[int, ...]) -> bool:
    return any(old.values[id] != new.values[id] for id in columns)


def _look_different(old: Row, new: Row, columns: tuple[int, ...]) -> bool:
    """Also for equal values: a cascade hands on -0 for 0 and 1.00 for 1.0, as in PostgreSQL."""
    return any(repr(old.values[id]) != repr(new.values[id]) for id in columns)
