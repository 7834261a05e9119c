"""Bulk work in a node: what a task is charged, and what it does where there is no room."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import OutOfMemory, QueryCanceled
from tenure.base.node_memory import TASK_BYTES_MAX, NodeMemory
from tenure.base.settings import COLUMNS_MEMORY, DEFINITIONS, DUCKDB_MEMORY, NODE_MEMORY, Settings
from tenure.base.task_memory import ROOM_SECONDS, TaskMemory
from tests.unit.base.test_memory import MIB, node_of


@pytest.fixture
def memory() -> NodeMemory:
    return node_of(Settings(DEFINITIONS, {NODE_MEMORY: 800 * MIB}))


def unchecked() -> None:
    pass


@pytest.mark.invariant("bulk-charged")
def test_a_task_is_charged_to_the_node_while_it_runs(memory: NodeMemory) -> None:
    tasks = TaskMemory(ManualEnv(), memory)
    assert tasks.task_bytes == 100 * MIB
    with tasks.reserved(unchecked):
        assert memory.bulk_work.held_bytes == memory.node.held_bytes == 100 * MIB
        with tasks.reserved(unchecked):
            assert memory.node.held_bytes == 200 * MIB
    assert memory.bulk_work.held_bytes == memory.node.held_bytes == 0


def test_a_task_of_a_large_node_has_a_bounded_share() -> None:
    memory = node_of(Settings(DEFINITIONS, {NODE_MEMORY: 100 << 30}))
    assert TaskMemory(ManualEnv(), memory).task_bytes == TASK_BYTES_MAX


def test_a_task_that_fails_gives_back_its_memory(memory: NodeMemory) -> None:
    released: list[int] = []
    tasks = TaskMemory(ManualEnv(), memory, (lambda: released.append(memory.node.held_bytes),))
    with pytest.raises(ZeroDivisionError), tasks.reserved(unchecked):
        _ = 1 // 0
    assert released == [100 * MIB], "libraries give back before the next one is let in"
    assert memory.node.held_bytes == 0
    assert memory.process.freed_bytes == 100 * MIB


def test_a_task_waits_until_there_is_room(memory: NodeMemory) -> None:
    env = ManualEnv()
    memory.node.take(750 * MIB)

    def check() -> None:
        if env.monotonic() >= 3.0:
            memory.node.release(200 * MIB)

    with TaskMemory(env, memory).reserved(check):
        assert 3.0 <= env.monotonic() < 4.0


def test_a_task_that_waits_can_be_told_to_stop(memory: NodeMemory) -> None:
    memory.node.take(750 * MIB)

    def check() -> None:
        raise QueryCanceled("stop")

    with pytest.raises(QueryCanceled), TaskMemory(ManualEnv(), memory).reserved(check):
        raise AssertionError("it runs")
    assert memory.node.held_bytes == 750 * MIB


def test_a_task_makes_progress_while_statements_hold_everything(memory: NodeMemory) -> None:
    """And statements are refused more meanwhile."""
    env = ManualEnv()
    session = memory.open_session("ann", 1)
    memory.node.take(780 * MIB)
    with TaskMemory(env, memory).reserved(unchecked):
        assert env.monotonic() >= ROOM_SECONDS
        with pytest.raises(OutOfMemory):
            session.charge(MIB)
    assert memory.node.held_bytes == 780 * MIB


def test_what_libraries_and_caches_hold_is_charged_as_measured(memory: NodeMemory) -> None:
    now = [0]
    memory.add_gauge("cache", lambda: now[0], limit=lambda: 700 * MIB, setting="sql.node_memory")
    now[0] = 780 * MIB
    memory.step()
    assert memory.node.held_bytes == memory.gauges[0].account.held_bytes == 780 * MIB
    with pytest.raises(OutOfMemory):
        memory.open_session("ann", 1).charge(30 * MIB)
    now[0] = MIB
    memory.step()
    assert memory.node.held_bytes == MIB


def test_analytical_queries_have_a_share_of_a_small_node() -> None:
    """Their settings are for larger ones: with both, DuckDB could take more than the node may."""
    limits = node_of(Settings(DEFINITIONS, {NODE_MEMORY: 600 * MIB})).limits
    assert (limits.duckdb(), limits.columns()) == (200 * MIB, 75 * MIB)
    limits = node_of(Settings(DEFINITIONS, {NODE_MEMORY: 100 << 30})).limits
    assert (limits.duckdb(), limits.columns()) == (DUCKDB_MEMORY.default, COLUMNS_MEMORY.default)
