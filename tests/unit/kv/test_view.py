"""Views: what a transaction reads as of one moment of it, and how that is proved."""

import random

import pytest

from tenure.base.errors import BelowMark, RetryError
from tenure.kv.snapshot import PAGE_ROWS
from tenure.kv.store import Store
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tenure.kv.view import ReadView
from tests.unit.kv.rows import HEAD, KEYS, TABLE, between, named, number_rows, row, write


def _given_up(txn: Transaction) -> bool:
    """Whether its commit is refused because something that it read has changed."""
    txn.put(row("own"), b"1")
    try:
        txn.commit()
    except RetryError:
        return True
    return False


# ── what it shows ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("view")
def test_a_view_shows_the_writes_up_to_its_opening_and_none_later(store: Store) -> None:
    write(store, a=b"0", b=b"0", c=b"0")
    txn = store.begin()
    txn.put(row("a"), b"1")
    txn.delete(row("b"))
    view = txn.view()
    txn.put(row("a"), b"2")
    txn.put(row("b"), b"2")
    txn.delete(row("c"))
    txn.put(row("d"), b"2")
    assert named(view.scan(TABLE)) == [("a", b"1"), ("c", b"0")]
    assert [view.get(row(name)) for name in "abcd"] == [b"1", None, b"0", None]
    assert view.read_span(TABLE) == {row("a"): b"1", row("b"): None}
    assert named(txn.scan(TABLE)) == [("a", b"2"), ("b", b"2"), ("d", b"2")]


@pytest.mark.invariant("view")
def test_pages_read_later_are_of_the_opening_too(store: Store) -> None:
    number_rows(store, 3 * PAGE_ROWS, b"old")
    txn = store.begin()
    rows = txn.view().scan(TABLE)
    next(rows)
    for number in range(3 * PAGE_ROWS):
        txn.put(row(number), b"new")
    txn.put(row(3 * PAGE_ROWS), b"new")
    rest = list(rows)
    assert len(rest) == 3 * PAGE_ROWS - 1
    assert {value for _, value in rest} == {b"old"}


@pytest.mark.invariant("view")
def test_going_back_to_a_savepoint_does_not_change_a_view(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1")
    early = txn.mark()
    txn.put(row("a"), b"2")
    txn.put(row("b"), b"2")
    view = txn.view()
    txn.put(row("b"), b"3")
    txn.back_to(early)
    assert named(view.scan(TABLE)) == [("a", b"2"), ("b", b"2")]
    txn.back_to(None)
    assert named(view.scan(TABLE)) == [("a", b"2"), ("b", b"2")]
    assert named(txn.scan(TABLE)) == []


@pytest.mark.invariant("view")
def test_any_number_of_views_show_what_was_there_when_each_was_opened(store: Store) -> None:
    rng = random.Random(11)
    for _ in range(60):
        txn = store.begin()
        expected: dict[bytes, bytes] = dict(txn.scan(TABLE))
        views: list[tuple[ReadView, dict[bytes, bytes]]] = []
        places = []
        for step in range(60):
            key = row(rng.randrange(12))
            match rng.randrange(8):
                case 0 | 1 | 2:
                    txn.put(key, b"%d" % step)
                    expected[key] = b"%d" % step
                case 3:
                    txn.delete(key)
                    expected.pop(key, None)
                case 4:
                    views.append((txn.view(), dict(expected)))
                case 5:
                    places.append((txn.mark(), dict(expected)))
                case 6 if places:
                    chosen = rng.randrange(len(places))
                    del places[chosen + 1 :]
                    txn.back_to(places[chosen][0])
                    expected = dict(places[chosen][1])
                case _ if views:
                    views.pop(rng.randrange(len(views)))
            for view, then in views:
                assert dict(view.scan(TABLE)) == then
                assert view.get(key) == then.get(key)
        txn.commit()


def test_a_view_that_nobody_has_any_more_costs_later_writes_nothing(store: Store) -> None:
    txn = store.begin()
    view = txn.view()
    txn.put(row("a"), b"1")
    assert txn.buffer._newest_view is not None
    del view
    txn.put(row("b"), b"1")
    assert txn.buffer._newest_view is None


def test_views_opened_at_one_moment_share_what_they_keep(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1")
    views = [txn.view() for _ in range(3)]
    assert len({id(each._writes) for each in views}) == 1
    txn.put(row("a"), b"2")
    assert [each.get(row("a")) for each in views] == [b"1"] * 3
    assert txn.view().get(row("a")) == b"2"


def test_a_view_tells_what_its_transaction_has_changed_since(store: Store) -> None:
    write(store, a=b"0", b=b"0")
    txn = store.begin()
    txn.put(row("b"), b"1")
    view = txn.view()
    place = txn.mark()
    txn.put(row("a"), b"0")
    assert (view.has_changed(row("a")), view.has_changed(row("b"))) == (True, False)
    txn.back_to(place)
    assert not view.has_changed(row("a"))


@pytest.mark.invariant("view")
def test_a_view_shows_what_children_had_committed_and_none_later(store: Store) -> None:
    txn = store.begin()
    txn.get(row("a"))
    first = txn.child()
    first.put(row("a"), b"1")
    first.commit()
    view = txn.view()
    second = txn.child()
    second.put(row("a"), b"2")
    second.put(row("b"), b"2")
    second.commit()
    txn.refresh()
    assert named(view.scan(TABLE)) == [("a", b"1")]
    assert view.get(row("b")) is None
    assert named(txn.scan(TABLE)) == [("a", b"2"), ("b", b"2")]


def test_what_a_view_reads_ahead_is_of_its_opening(store: Store) -> None:
    write(store, a=b"0", b=b"0")
    txn = store.begin()
    view = txn.view()
    write(store, a=b"1")
    txn.refresh()
    view.read_ahead([row("a"), row("b")])
    assert [view.get(row("a")), view.get(row("b"))] == [b"0", b"0"]
    assert _given_up(txn)


def test_a_view_is_over_with_its_transaction(store: Store) -> None:
    txn = store.begin()
    view = txn.view()
    txn.rollback()
    with pytest.raises(AssertionError, match="over"):
        view.get(row("a"))
    with pytest.raises(AssertionError, match="over"):
        list(view.scan(TABLE))


# ── what it proves ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I2")
def test_what_a_view_read_is_validated(store: Store) -> None:
    write(store, a=b"0")
    for read in (lambda view: view.get(row("a")), lambda view: list(view.scan(between("a", "c")))):
        txn = store.begin()
        read(txn.view())
        write(store, a=b"1")
        assert _given_up(txn)


@pytest.mark.invariant("I2")
def test_a_view_keeps_its_time_when_the_transaction_s_own_moves_up(store: Store) -> None:
    write(store, a=b"0", b=b"0")
    txn = store.begin()
    view = txn.view()
    write(store, a=b"1", b=b"1")
    txn.refresh()
    assert txn.get(row("a")) == b"1"
    assert view.get(row("b")) == b"0"
    assert _given_up(txn)


@pytest.mark.invariant("I2")
def test_a_phantom_between_a_view_s_time_and_the_transaction_s_is_found(store: Store) -> None:
    write(store, a=b"0")
    txn = store.begin()
    view = txn.view()
    write(store, b=b"phantom")
    txn.refresh()
    assert named(view.scan(between("a", "c"))) == [("a", b"0")]
    assert _given_up(txn)


@pytest.mark.invariant("I2")
def test_an_old_read_of_a_view_keeps_the_time_from_moving_up_again(store: Store) -> None:
    write(store, a=b"0")
    txn = store.begin()
    view = txn.view()
    write(store, a=b"1")
    txn.refresh()
    view.get(row("a"))
    with pytest.raises(RetryError):
        txn.refresh()


@pytest.mark.invariant("I2")
def test_a_transaction_that_only_reads_proves_what_its_views_read_at_other_times(store: Store) -> None:
    write(store, a=b"0", b=b"0")
    txn = store.begin()
    view = txn.view()
    write(store, a=b"1", b=b"1")
    txn.refresh()
    txn.get(row("a"))
    assert txn.proof.has_one_time
    view.get(row("b"))
    assert not txn.proof.has_one_time
    with pytest.raises(RetryError):
        txn.commit()


def test_old_reads_that_still_hold_do_not_stand_in_the_way(store: Store) -> None:
    write(store, a=b"0", b=b"0")
    txn = store.begin()
    view = txn.view()
    write(store, c=b"1")
    txn.refresh()
    view.get(row("a"))
    write(store, c=b"2")
    txn.refresh()
    assert txn.proof.has_one_time
    list(view.scan(between("a", "c")))
    assert not _given_up(txn)


@pytest.mark.invariant("I2")
def test_old_reads_that_were_proved_once_are_proved_on_from_there(store: Store) -> None:
    write(store, a=b"0", b=b"0")
    txn = store.begin()
    view = txn.view()
    write(store, c=b"1")
    txn.refresh()
    view.get(row("a"))
    txn.refresh()
    write(store, a=b"1")
    assert _given_up(txn)


@pytest.mark.invariant("I2")
def test_a_statement_that_reads_again_does_not_forget_what_a_view_read(store: Store) -> None:
    write(store, a=b"0", b=b"0")
    txn = store.begin()
    view = txn.view()
    write(store, c=b"1")
    txn.refresh()
    view.get(row("a"))
    before = txn.proof.mark()
    txn.refresh()
    txn.get(row("b"))
    txn.proof.forget(before)
    write(store, b=b"1")
    txn.refresh()
    write(store, a=b"1")
    assert _given_up(txn)


def test_a_view_below_the_threshold_is_refused_as_retryable(store: Store) -> None:
    write(store, a=b"0")
    txn = store.begin()
    view = txn.view()
    later_at = write(store, b=b"1")
    store.transact(lambda other: publish_threshold(other, KEYS, HEAD, later_at))
    with pytest.raises(BelowMark):
        view.get(row("a"))
    with pytest.raises(BelowMark):
        list(view.scan(TABLE))


@pytest.mark.invariant("I8")
def test_a_childs_commit_after_the_opening_is_excused(store: Store) -> None:
    write(store, a=b"0")
    txn = store.begin()
    view = txn.view()
    child = txn.child()
    child.put(row("a"), b"1")
    child.commit()
    txn.refresh()
    assert view.get(row("a")) == b"0"
    assert not _given_up(txn)


# ── savepoints ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I2")
def test_going_back_to_the_start_keeps_what_was_read_and_when(store: Store) -> None:
    write(store, a=b"0")
    txn = store.begin()
    read_at = txn.read_at
    txn.get(row("a"))
    txn.put(row("b"), b"1")
    txn.back_to(None)
    assert (txn.read_at, txn.has_writes) == (read_at, False)
    write(store, a=b"1")
    assert txn.get(row("a")) == b"0"
    assert _given_up(txn)


def test_going_back_over_many_keys_leaves_none_behind(store: Store) -> None:
    txn = store.begin()
    place = txn.mark()
    for number in range(20_000):
        txn.put(row(number), b"1")
    kept = row(-1)
    txn.back_to(place)
    txn.put(kept, b"1")
    assert [key for key, _ in txn.scan(TABLE)] == [kept]
    assert txn.buffer._order == [kept]
