"""A thread that is stopped at any wait of its commit leaves the line moving for the others."""

import pytest

from tenure.base.env import Event, ManualEnv
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.kv.rows import row, write


class Stopped(BaseException):
    pass


class StoppingEnv(ManualEnv):
    """Its next timed wait is broken off, as a signal or a shutdown would."""

    def __init__(self) -> None:
        super().__init__()
        self.stops_next = False

    def event(self) -> Event:
        return _StoppingEvent(self, super().event())


class _StoppingEvent:
    def __init__(self, env: StoppingEnv, event: Event) -> None:
        self._env = env
        self._event = event
        self.set, self.clear, self.is_set = event.set, event.clear, event.is_set

    def wait(self, timeout: float | None = None) -> bool:
        if self._env.stops_next:
            self._env.stops_next = False
            raise Stopped
        return self._event.wait(timeout)


@pytest.mark.invariant("I5")
def test_a_leader_stopped_while_it_gathers_lets_the_next_one_lead() -> None:
    env = StoppingEnv()
    engine = SqliteEngine(MEMORY, env)
    store = Store(engine, env)
    store._committer._expected = 3  # as many were under way when the last group ended: it gathers for them
    env.stops_next = True
    with pytest.raises(Stopped):
        write(store, a=b"1")
    assert not store._committer._led, "nobody leads, and everybody would wait"
    write(store, b=b"1")
    assert [store.begin().get(row(name)) for name in "ab"] == [None, b"1"]
    store.close()
    engine.close()
