"""clock.max_offset below the offset of a node's clock: refused where it is set, and reset without a node."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import ClockAhead, InvalidParameter
from tenure.base.settings import DEFINITIONS, MAX_OFFSET, Settings
from tenure.base.timestamp import micros_of
from tenure.cluster.settings import ClusterSettings
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.store_commands import reset_setting

AHEAD_MICROS = 300_000
TRUE_MICROS = 1_800_000_000_000_000


class Machine:
    """Its clock is ahead of the store's by so much."""

    def __init__(self) -> None:
        self.ahead_micros = AHEAD_MICROS
        self.env = ManualEnv(wall_micros=TRUE_MICROS + AHEAD_MICROS)
        self.engine = SqliteEngine(
            ":memory:", self.env, host_micros=lambda: self.env.wall_micros() - self.ahead_micros
        )
        self.store = Store(self.engine, self.env)
        self.settings = ClusterSettings(self.store, Settings(DEFINITIONS))

    def set(self, text: str) -> None:
        self.store.transact(lambda txn: self.settings.set(txn, MAX_OFFSET.name, text))
        self.settings.load()

    def reset(self) -> None:
        self.store.transact(lambda txn: self.settings.reset(txn, MAX_OFFSET.name))
        self.settings.load()


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_less_than_the_offset_measured_now_is_refused(machine: Machine) -> None:
    with pytest.raises(InvalidParameter) as refused:
        machine.set("200ms")
    assert str(refused.value) == (
        "this node's clock is 300.000 ms ahead of the store's: "
        'with "clock.max_offset" at 200ms it could not commit'
    )
    machine.set("400ms")
    assert machine.settings.current()[MAX_OFFSET] == 0.4


def test_a_reset_to_less_than_the_offset_is_refused(machine: Machine) -> None:
    machine.set("5s")
    machine.ahead_micros = 2_000_000
    with pytest.raises(InvalidParameter, match=r"2000\.000 ms ahead"):
        machine.reset()
    machine.set("6s")


def test_a_setting_by_which_nobody_can_commit_is_reset_without_a_node(machine: Machine) -> None:
    machine.set("310ms")
    machine.ahead_micros = 400_000
    with pytest.raises(ClockAhead):
        machine.reset()
    reset_setting(machine.engine, machine.env, MAX_OFFSET.name)
    machine.settings.load()
    assert machine.settings.current()[MAX_OFFSET] == 0.5
    machine.set("600ms")


def test_resetting_without_a_node_brings_no_time_of_the_machine_into_the_store(machine: Machine) -> None:
    machine.set("310ms")
    machine.env.advance(3600)
    machine.ahead_micros += 3_590_000_000
    reset_setting(machine.engine, machine.env, MAX_OFFSET.name)
    assert machine.engine.wall_micros() == TRUE_MICROS + 10_000_000
    assert micros_of(machine.engine.clock_at()) == machine.engine.wall_micros()
    machine.settings.load()
    assert machine.settings.current()[MAX_OFFSET] == 0.5
