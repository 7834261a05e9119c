"""Mistakes about savepoints and cursors, each as somebody might really have made it.

Walk: `mutants.MUTANTS` takes `ALL`; `view_shapes` meets them.
"""

from typing import Any

from tenure.kv.buffer import Buffer, BufferView
from tenure.kv.commit_proof import CommitProof
from tenure.kv.reads import NOTHING_READ, RefreshSpans
from tenure.kv.transaction import Transaction
from tenure.kv.view import ReadView

# Functions are kept before anything is swapped.
_back_to = Transaction.back_to
_mark = Transaction.mark
_restore = Buffer._restore


def back_to_forgets_reads(self: Transaction, savepoint: Any) -> None:
    """What was read after the savepoint goes with what was written."""
    _back_to(self, savepoint)
    self._reads.forget(self.__dict__.get("_reads_at", {}).get(savepoint, NOTHING_READ))


def mark_with_reads(self: Transaction) -> Any:
    savepoint = _mark(self)
    self.__dict__.setdefault("_reads_at", {})[savepoint] = self._reads.mark()
    return savepoint


def back_to_start_starts_over(self: Transaction, savepoint: Any) -> None:
    """Before the first statement nothing was read: so a new transaction will do."""
    _back_to(self, savepoint)
    if savepoint is None:
        self._reads.forget(NOTHING_READ)
        self._store.ahead.clear()
        self._store.at = None


def proved_at_the_transaction_s_time(self: CommitProof) -> None:
    if self.reads.apart:
        self.reads.holding(self._store.read_at())


def counted_as_the_transaction_s_own(self: RefreshSpans, at: int) -> RefreshSpans:
    return self


def nothing_counted(self: RefreshSpans, at: int) -> RefreshSpans:
    return RefreshSpans(self._keyspace)


def later_writes_seen(self: Buffer, key: bytes, former: Any) -> None:
    return None


def going_back_seen(self: Buffer, formers: Any) -> None:
    """Only writes are noted for views: what is taken back changes them."""
    newest, self._newest_view = self._newest_view, None
    _restore(self, formers)
    self._newest_view = newest


def own_notes_only(self: BufferView) -> Any:
    """Without the notes of views that were opened later."""
    yield self


def scan_of_the_present(self: ReadView, span: Any) -> dict[bytes, bytes | None]:
    return self._child_commits.within(span, self.read_at) | self._writes._buffer.within(span)


ALL: tuple[tuple[Any, ...], ...] = (
    (
        "reads forgotten at rollback to savepoint",
        ((Transaction, "back_to", back_to_forgets_reads), (Transaction, "mark", mark_with_reads)),
        "savepoints",
    ),
    (
        "a leading savepoint starts the transaction over",
        ((Transaction, "back_to", back_to_start_starts_over),),
        "savepoints",
    ),
    (
        "cursor proved at its transaction's own time",
        ((CommitProof, "check_views", proved_at_the_transaction_s_time),),
        "cursors",
    ),
    (
        "cursor's reads counted as read now",
        ((RefreshSpans, "of_views", counted_as_the_transaction_s_own),),
        "cursors",
    ),
    ("cursor's reads not counted", ((RefreshSpans, "of_views", nothing_counted),), "cursors"),
    ("cursor sees later writes", ((Buffer, "_note", later_writes_seen),), "cursors"),
    ("cursor's scan sees later writes", ((ReadView, "_laid_over", scan_of_the_present),), "cursors"),
    ("cursor sees what is taken back", ((Buffer, "_restore", going_back_seen),), "cursors"),
    ("cursor sees past a later cursor", ((BufferView, "_onward", own_notes_only),), "cursors"),
)
