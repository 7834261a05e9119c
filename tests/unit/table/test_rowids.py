"""Row ids: each once, in order, and never far ahead of the clock."""

from tenure.base.clock import Clock
from tenure.base.env import ManualEnv
from tenure.table.rowids import INSTANCE_BITS, LEAD_MICROS_MAX, TICK_MICROS, RowIds


def _row_ids(env: ManualEnv, instance: int = 3) -> RowIds:
    return RowIds(env, Clock(env), lambda: instance)


def test_ids_taken_together_and_alone_are_in_order_and_of_their_instance() -> None:
    ids = _row_ids(ManualEnv())
    taken = [ids(), *ids.take(1_000), ids(), *ids.take(2), ids()]
    assert taken == sorted(set(taken))
    assert {each & ((1 << INSTANCE_BITS) - 1) for each in taken} == {3}


def test_ids_follow_the_clock() -> None:
    env = ManualEnv()
    ids = _row_ids(env)
    ids()
    env.advance(5)
    assert ids.take(2)[0] >> INSTANCE_BITS == env.wall_micros() // TICK_MICROS


def test_who_takes_very_many_waits_until_the_clock_has_come_close() -> None:
    """A process that takes over the instance id starts from its clock."""
    env = ManualEnv()
    ids = _row_ids(env)
    began_micros = env.wall_micros()
    last = [ids.take(10_000)[-1] for _ in range(12)][-1] >> INSTANCE_BITS
    assert last * TICK_MICROS - env.wall_micros() <= LEAD_MICROS_MAX
    assert last * TICK_MICROS - began_micros >= 12 * 10_000 * TICK_MICROS - TICK_MICROS
