"""Foreign keys that a transaction checks at its end: DEFERRABLE ones, as declared or as SET CONSTRAINTS says.

    a statement's end ──► noted: the row that refers, or the key that is gone
    COMMIT, or SET CONSTRAINTS ... IMMEDIATE ──► looked at as they are then

What is noted is a place to look at, not a verdict: a row that is gone by then, or refers to something else,
is no trouble. So a savepoint need not take anything back, except for what SET CONSTRAINTS has said since
(docs/decisions/0099).
Actions (CASCADE, SET NULL, SET DEFAULT) and RESTRICT are never deferred, as in PostgreSQL.

Invariant (deferred-references): after `check`, every row and key that was noted holds its foreign key.

Walk: `table.foreign_keys` calls `takes` and `note`; `sql.execution.deferred_checks` calls `check`;
`sql.statements.session.constraint_modes` calls `change`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, NoReturn

from tenure.base.interruptible import Check, unchecked
from tenure.catalog.descriptors.definitions import Action, Deferral, ForeignKey
from tenure.expr.types.datatype import Datum
from tenure.kv.records import replace
from tenure.kv.transaction import Transaction
from tenure.table.foreign_keys import ForeignKeys, LostTarget, RowReference
from tenure.table.rows import Layout, Row

KeyId = tuple[int, int]
"""A foreign key: its table and its own id."""


class ModeChange(NamedTuple):
    """A SET CONSTRAINTS."""

    keys: Collection[KeyId] | None
    """None: all of them."""
    is_deferred: bool
    savepoints: tuple[object, ...] = ()
    """Those there were: going back to one of them takes it back."""

    def concerns(self, key: KeyId) -> bool:
        return self.keys is None or key in self.keys


class _Row(NamedTuple):
    """A row that refers to something."""

    foreign_key: KeyId
    key: bytes


class _Gone(NamedTuple):
    """A key that rows may refer to, and that a row does not have any more."""

    foreign_key: KeyId
    target: int
    values: tuple[Datum, ...]


class DeferredReferences:
    """What the statements of one transaction have left to its end."""

    def __init__(self) -> None:
        self._noted: dict[_Row | _Gone, None] = {}
        self._changes: list[ModeChange] = []

    def __bool__(self) -> bool:
        return bool(self._noted)

    def takes(self, layout: Layout, foreign_key: ForeignKey) -> bool:
        """Whether the transaction checks it at its end."""
        if foreign_key.deferral is Deferral.NEVER:
            return False
        is_deferred = foreign_key.deferral is Deferral.AT_FIRST
        for each in self._changes:
            if each.concerns((layout.table.id, foreign_key.id)):
                is_deferred = each.is_deferred
        return is_deferred

    def note(self, owed: LostTarget | RowReference) -> None:
        key = (owed.referencing.table.id, owed.foreign_key.id)
        if isinstance(owed, RowReference):
            self._noted[_Row(key, owed.row.key)] = None
        else:
            self._noted[_Gone(key, owed.target.table.id, owed.key())] = None

    def change(self, change: ModeChange) -> None:
        self._changes.append(change)

    def back_to(self, savepoint: object) -> None:
        """Takes back what SET CONSTRAINTS has said since."""
        self._changes = [
            each for each in self._changes if not any(other is savepoint for other in each.savepoints)
        ]

    def check(
        self,
        txn: Transaction,
        tables: Callable[[int], Layout | None],
        check: Check = unchecked,
        *,
        of: ModeChange | None = None,
        looks_again: bool = False,
    ) -> None:
        """Checks what is noted, or that of some keys; raises ForeignKeyViolation. `tables` gives None for a
        table that is gone. With `looks_again`, in READ COMMITTED, a commit that finds something changed since
        looks once more instead of failing.
        """
        noted = [each for each in self._noted if of is None or of.concerns(each.foreign_key)]
        keys = ForeignKeys(_required(tables), _no_writer, locks=_NoLocks() if looks_again else None)
        keys.owe(_owed(noted, tables))
        keys.finish(txn, check)
        for each in noted:
            del self._noted[each]


def _owed(
    noted: list[_Row | _Gone], tables: Callable[[int], Layout | None]
) -> Iterator[LostTarget | RowReference]:
    for each in noted:
        layout = tables(each.foreign_key[0])
        foreign_key = None if layout is None else layout.foreign_key(each.foreign_key[1])
        if layout is None or foreign_key is None:
            continue  # it was dropped meanwhile
        if isinstance(each, _Row):
            if each.key.startswith(layout.primary.head):  # or else TRUNCATE has removed the row
                yield RowReference(foreign_key, layout, Row(each.key, {}))
            continue
        target = tables(each.target)
        if target is not None:
            checked = replace(foreign_key, on_delete=Action.NO_ACTION)
            values = dict(zip(foreign_key.target_columns, each.values, strict=True))
            yield LostTarget(checked, layout, target, values, None)


def _required(tables: Callable[[int], Layout | None]) -> Callable[[int], Layout]:
    def find(id: int) -> Layout:
        found = tables(id)
        assert found is not None, "the target of a foreign key that is there is there"
        return found

    return find


class _NoLocks:
    """Checks change no rows, so they lock none."""

    def lock_new(self, txn: Transaction, keys: Sequence[bytes]) -> None:
        raise AssertionError("a check adds nothing")

    def lock_read(self, txn: Transaction, keys: Sequence[bytes]) -> bool:
        raise AssertionError("a check changes nothing")


def _no_writer(layout: Layout, keys: ForeignKeys) -> NoReturn:
    raise AssertionError("a check changes nothing")
