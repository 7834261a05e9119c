"""Savepoints: what was written since goes, what was read stays read."""

import random

import pytest

from tenure.base.errors import CommitTooLarge, RetryError
from tenure.kv.buffer import Buffer, BufferMark, CommitLimits, _kept_size
from tenure.kv.store import Store
from tenure.storage.engine import Removal, Removes, Write
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import TABLE, named, row, write


def test_going_back_undoes_what_was_written_since(store: Store) -> None:
    write(store, c=b"0")
    txn = store.begin()
    txn.put(row("a"), b"1")
    savepoint = txn.mark()
    txn.put(row("a"), b"2")
    txn.put(row("b"), b"2")
    txn.delete(row("c"))
    txn.back_to(savepoint)
    assert named(txn.scan(TABLE)) == [("a", b"1"), ("c", b"0")]
    txn.commit()
    assert named(store.begin().scan(TABLE)) == [("a", b"1"), ("c", b"0")]


def test_a_savepoint_can_be_gone_back_to_again(store: Store) -> None:
    txn = store.begin()
    savepoint = txn.mark()
    for value in (b"1", b"2"):
        txn.put(row("a"), value)
        txn.back_to(savepoint)
        assert txn.get(row("a")) is None


def test_going_back_to_an_earlier_savepoint_undoes_the_later_ones(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"0")
    first = txn.mark()
    txn.put(row("a"), b"1")
    second = txn.mark()
    txn.put(row("a"), b"2")
    txn.back_to(first)
    assert txn.get(row("a")) == b"0"
    with pytest.raises(AssertionError):
        txn.back_to(second)


def test_releasing_keeps_what_was_written(store: Store) -> None:
    txn = store.begin()
    first = txn.mark()
    txn.put(row("a"), b"1")
    second = txn.mark()
    txn.put(row("a"), b"2")
    txn.put(row("b"), b"2")
    txn.release(second)
    assert named(txn.scan(TABLE)) == [("a", b"2"), ("b", b"2")]
    txn.back_to(first)
    assert named(txn.scan(TABLE)) == []


def test_what_was_read_after_a_savepoint_is_still_validated(store: Store) -> None:
    txn = store.begin()
    savepoint = txn.mark()
    txn.get(row("a"))
    txn.back_to(savepoint)
    txn.put(row("b"), b"1")
    write(store, a=b"1")
    with pytest.raises(RetryError):
        txn.commit()


def test_removals_are_undone_too(store: Store, engine: BreakingEngine) -> None:
    txn = store.begin()
    savepoint = txn.mark()
    txn.remove(Removal(*TABLE, Removes.SUPERSEDED, 1, 1))
    txn.back_to(savepoint)
    txn.commit()
    assert engine.groups == []


def test_going_back_makes_room_again() -> None:
    buffer = Buffer(CommitLimits(rows_max=2, bytes_max=10))
    savepoint = buffer.mark()
    for _ in range(3):
        buffer.write(Write(b"a", b"1234"))
        buffer.write(Write(b"b", b"1234"))
        for refused in (Write(b"a", b"12345"), Write(b"c", None)):
            with pytest.raises(CommitTooLarge):
                buffer.write(refused)
        buffer.back_to(savepoint)


@pytest.mark.parametrize("seed", range(20))
def test_savepoints_behave_like_copies_of_a_dict(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    txn = store.begin()
    model: dict[str, bytes] = {}
    copies: list[tuple[BufferMark, dict[str, bytes]]] = []
    for step in range(200):
        match rng.randrange(8):
            case 0:
                copies.append((txn.mark(), dict(model)))
            case 1 if copies:
                del copies[rng.randrange(len(copies)) + 1 :]
                txn.back_to(copies[-1][0])
                model = dict(copies[-1][1])
            case 2 if copies:
                position = rng.randrange(len(copies))
                txn.release(copies[position][0])
                del copies[position:]
            case 3 | 4:
                name = rng.choice("abcdefgh")
                txn.delete(row(name))
                model.pop(name, None)
            case _:
                name, value = rng.choice("abcdefgh"), b"%d" % step
                txn.put(row(name), value)
                model[name] = value
        assert named(txn.scan(TABLE)) == sorted(model.items())


def test_writes_of_a_span_are_forgotten_up_to_a_savepoint(store: Store) -> None:
    write(store, a=b"0", c=b"0")
    txn = store.begin()
    txn.put(row("a"), b"1")
    txn.put(row("b"), b"1")
    savepoint = txn.mark()
    txn.delete(row("c"))
    txn.put(row("b"), b"2")
    txn.forget_writes(TABLE)
    assert named(txn.scan(TABLE)) == [("a", b"0"), ("c", b"0")]
    assert not txn.has_writes
    txn.put(row("d"), b"3")
    txn.back_to(savepoint)
    assert named(txn.scan(TABLE)) == [("a", b"1"), ("b", b"1"), ("c", b"0")]
    txn.forget_writes(TABLE)
    txn.put(row("b"), b"4")
    txn.release(savepoint)
    txn.commit()
    assert named(store.begin().scan(TABLE)) == [("a", b"0"), ("b", b"4"), ("c", b"0")]


def test_what_is_forgotten_makes_room() -> None:
    buffer = Buffer(CommitLimits(rows_max=2, bytes_max=100))
    for _ in range(3):
        buffer.write(Write(row("a"), b"x" * 20))
        buffer.write(Write(row("b"), b"x" * 20))
        buffer.forget(TABLE)
    assert buffer.writes == {} and buffer.within(TABLE) == {}


def test_a_view_keeps_what_is_forgotten_later(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1")
    view = txn.view()
    txn.forget_writes(TABLE)
    txn.put(row("b"), b"2")
    assert named(view.scan(TABLE)) == [("a", b"1")]
    assert named(txn.scan(TABLE)) == [("b", b"2")]


def test_what_a_buffer_holds_is_told_as_it_grows_and_shrinks() -> None:
    told: list[int] = []
    buffer = Buffer(CommitLimits(rows_max=10_000, bytes_max=1 << 30))
    buffer.account_to(told.append)
    value = bytes(200_000)
    for number in range(10):
        buffer.write(Write(row(str(number)), value))
    assert 1_700_000 < told[-1] < 2_100_000
    savepoint = buffer.mark()
    for number in range(10):
        buffer.write(Write(row(str(number)), value))
    assert told[-1] > 3_600_000, "what the keys were is kept"
    buffer.back_to(savepoint)
    assert told[-1] < 2_100_000
    assert buffer._undo_bytes == 0


def test_what_savepoints_keep_is_counted_right_whatever_is_done() -> None:
    random_steps = random.Random(7)
    buffer = Buffer(CommitLimits(rows_max=10_000, bytes_max=1 << 30))
    marks: list[BufferMark] = []
    for _ in range(3000):
        match random_steps.randrange(6):
            case 0:
                marks.append(buffer.mark())
            case 1 if marks:
                del marks[random_steps.randrange(len(marks)) + 1 :]
                buffer.back_to(marks[-1])
            case 2 if marks:
                buffer.release(marks.pop())
            case _:
                buffer.write(Write(row(str(random_steps.randrange(20))), bytes(random_steps.randrange(100))))
        kept = [former for layer in buffer._undo for former in layer.values()]
        assert buffer._undo_bytes == sum(map(_kept_size, kept))
