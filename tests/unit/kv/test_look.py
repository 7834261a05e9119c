"""One key as it is now: what the store alone can tell, and what it cannot."""

from tenure.kv.store import Store
from tenure.kv.thresholds import clean
from tests.unit.kv.rows import HEAD, row, write


def _mark_cleaned(store: Store) -> None:
    """All is in the lake by now, but nothing has been removed from the store yet."""
    store.transact(lambda txn: clean(txn, store.keyspace, HEAD, txn.read_at, limit=0))


def test_a_row_above_the_mark_is_the_truth(store: Store) -> None:
    write(store, a=b"1")
    _mark_cleaned(store)
    write(store, a=b"2")
    found = store.look(row("a"))
    assert found is not None and found.revisions[0].value == b"2"


def test_a_row_below_the_mark_is_not_believed(store: Store) -> None:
    write(store, a=b"1")
    _mark_cleaned(store)
    assert store.look(row("a")) is None


def test_a_row_that_is_absent_is_so_only_where_nothing_was_cleaned(store: Store) -> None:
    found = store.look(row("a"))
    assert found is not None and not found.revisions
    write(store, b=b"1")
    _mark_cleaned(store)
    assert store.look(row("a")) is None
