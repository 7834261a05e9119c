"""Values of sequences: blocks, limits, setting by hand, two nodes, many threads."""

import threading
from contextlib import AbstractContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import UserError
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import DescriptorState, Sequence, TypeRef, replace
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tenure.table.sequences import BLOCK_VALUES, Sequences, SessionSequences


def sequence(**more: object) -> Sequence:
    plain = Sequence(
        300,
        1,
        ZERO_AT,
        "s",
        "root",
        DescriptorState.PUBLIC,
        (),
        (),
        database=100,
        schema=101,
        value_type=TypeRef("int8"),
        start=1,
        increment=1,
        minimum=1,
        maximum=1000,
    )
    return replace(plain, **more)


@pytest.fixture
def sequences(store: Store) -> Sequences:
    return Sequences(store, store.keyspace)


def refusal(sqlstate: str) -> AbstractContextManager[pytest.ExceptionInfo[UserError]]:
    return pytest.raises(UserError, check=lambda error: error.sqlstate == sqlstate)


def test_values_come_one_after_another_over_many_blocks(sequences: Sequences) -> None:
    count = 3 * BLOCK_VALUES + 1
    assert [sequences.next(sequence()) for _ in range(count)] == [*range(1, count + 1)]


def test_a_block_is_one_commit(store: Store, sequences: Sequences) -> None:
    sequences.next(sequence())
    before = store.snapshot().at
    for _ in range(BLOCK_VALUES - 1):
        sequences.next(sequence())
    span = store.keyspace.table_span(25)
    assert store.history(span, since_at=before).revisions == []
    sequences.next(sequence())
    assert len(store.history(span, since_at=before).revisions) == 1


def test_descending_by_threes(sequences: Sequences) -> None:
    down = sequence(start=-1, increment=-3, minimum=-8, maximum=-1)
    assert [sequences.next(down) for _ in range(3)] == [-1, -4, -7]
    with refusal("2200H") as caught:
        sequences.next(down)
    assert str(caught.value) == 'nextval: reached minimum value of sequence "s" (-8)'


def test_past_the_last_value_there_is_none(sequences: Sequences) -> None:
    short = sequence(maximum=2)
    assert [sequences.next(short), sequences.next(short)] == [1, 2]
    for _ in range(2):
        with refusal("2200H") as caught:
            sequences.next(short)
        assert str(caught.value) == 'nextval: reached maximum value of sequence "s" (2)'


def test_one_that_cycles_starts_over_at_its_minimum(sequences: Sequences) -> None:
    round_ = sequence(start=2, maximum=3, is_cycle=True)
    assert [sequences.next(round_) for _ in range(6)] == [2, 3, 1, 2, 3, 1]
    down = sequence(id=301, start=2, increment=-1, maximum=3, is_cycle=True)
    assert [sequences.next(down) for _ in range(4)] == [2, 1, 3, 2]


def test_setval_drops_the_block(sequences: Sequences) -> None:
    sequences.next(sequence())
    assert sequences.set(sequence(), 100) == 100
    assert sequences.next(sequence()) == 101
    sequences.set(sequence(), 50, is_called=False)
    assert sequences.next(sequence()) == 50


def test_setval_out_of_bounds(sequences: Sequences) -> None:
    with refusal("22003") as caught:
        sequences.set(sequence(), 0)
    assert str(caught.value) == 'setval: value 0 is out of bounds for sequence "s" (1..1000)'


def test_restart_begins_at_the_start_or_where_told(sequences: Sequences) -> None:
    mine = sequence(start=7)
    assert sequences.next(mine) == 7
    sequences.restart(mine)
    assert sequences.next(mine) == 7
    sequences.restart(mine, 20)
    assert sequences.next(mine) == 20


def test_the_state_is_the_last_value_given_on_this_node(store: Store, sequences: Sequences) -> None:
    assert sequences.state(store.snapshot(), sequence()) == (1, False)
    sequences.next(sequence())
    sequences.next(sequence())
    assert sequences.state(store.snapshot(), sequence()) == (2, True)
    sequences.set(sequence(), 9, is_called=False)
    assert sequences.state(store.snapshot(), sequence()) == (9, False)
    other = Sequences(store, store.keyspace)
    sequences.next(sequence())
    assert other.state(store.snapshot(), sequence()) == (9 + BLOCK_VALUES - 1, True)


def test_alter_sequence_takes_effect_with_the_next_value(sequences: Sequences) -> None:
    sequences.next(sequence())
    by_ten = sequence(increment=10)
    assert sequences.next(by_ten) == BLOCK_VALUES + 10


def test_cache_makes_blocks_larger(store: Store, sequences: Sequences) -> None:
    sequences.next(sequence(cache=100))
    assert Sequences(store, store.keyspace).next(sequence(cache=100)) == 101


def test_another_node_follows_a_setval_with_its_next_block(store: Store, sequences: Sequences) -> None:
    """As PostgreSQL's sessions do with CACHE above 1."""
    other = Sequences(store, store.keyspace)
    assert other.next(sequence()) == 1
    sequences.set(sequence(), 500)
    rest = [other.next(sequence()) for _ in range(BLOCK_VALUES - 1)]
    assert rest == [*range(2, BLOCK_VALUES + 1)]
    assert other.next(sequence()) == 501


def test_a_rollback_leaves_a_gap(store: Store, sequences: Sequences) -> None:
    txn = store.begin()
    sequences.next(sequence())
    txn.rollback()
    assert sequences.next(sequence()) == 2


@pytest.mark.invariant("sequence-once")
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 80)), max_size=8), st.sampled_from([1, 3, -2]))
def test_no_value_is_given_twice_whichever_node_asks(asked: list[tuple[int, int]], increment: int) -> None:
    engine = SqliteEngine(MEMORY, env := ManualEnv())
    store = Store(engine, env)
    nodes = [Sequences(store, store.keyspace) for _ in range(3)]
    wide = sequence(increment=increment, start=0, minimum=-(10**6), maximum=10**6)
    given = [nodes[node].next(wide) for node, count in asked for _ in range(count)]
    assert len(set(given)) == len(given)
    engine.close()


@pytest.mark.invariant("sequence-once")
def test_threads_get_different_values() -> None:
    env = SystemEnv()
    engine = SqliteEngine(MEMORY, env)
    store = Store(engine, env)
    sequences, given = Sequences(store, store.keyspace), []

    def ask() -> None:
        for _ in range(200):
            given.append(sequences.next(sequence(maximum=10**6)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(given) == [*range(1, 801)]
    store.close()
    engine.close()


# ── sessions ───────────────────────────────────────────────────────────────────────────────────


def session(sequences: Sequences) -> SessionSequences:
    known = {300: sequence(), 301: sequence(id=301, name="u", start=70)}
    return SessionSequences(sequences, known.__getitem__)


def test_currval_and_lastval_are_the_sessions_own(sequences: Sequences) -> None:
    mine, yours = session(sequences), session(sequences)
    assert (mine.next(300), yours.next(300), mine.next(301)) == (1, 2, 70)
    assert (mine.current(300), yours.current(300), mine.current(301)) == (1, 2, 70)
    assert (mine.last(), yours.last()) == (70, 2)
    mine.set(300, 40, True)
    assert (mine.current(300), mine.last()) == (40, 70)
    mine.set(300, 50, False)
    assert (mine.current(300), mine.next(300)) == (40, 50)


def test_before_nextval_there_is_neither(sequences: Sequences) -> None:
    fresh = session(sequences)
    with refusal("55000") as caught:
        fresh.current(300)
    assert str(caught.value) == 'currval of sequence "s" is not yet defined in this session'
    with refusal("55000") as caught:
        fresh.last()
    assert str(caught.value) == "lastval is not yet defined in this session"
    fresh.next(300)
    fresh.discard()
    with refusal("55000"):
        fresh.last()
