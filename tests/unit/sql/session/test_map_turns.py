"""Statements that change one database's map go one after the other on a node."""

from pathlib import Path
from threading import Event, Thread

import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import QueryCanceled
from tenure.schema_change.changer import SchemaChanger
from tenure.sql.session.map_turns import MapTurns
from tests.unit.sql.sessions import Talk, running

CLIENTS, PER_CLIENT = 6, 5


def unchecked() -> None:
    pass


@pytest.mark.invariant("map-turns")
def test_schemas_that_many_clients_create_cost_one_attempt_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[object] = []
    commit = SchemaChanger.commit

    def counted(changer: SchemaChanger, use: object, **options: object) -> object:
        attempts.append(use)
        return commit(changer, use, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(SchemaChanger, "commit", counted)
    with running(tmp_path) as node:
        talks = [Talk(node) for _ in range(CLIENTS)]
        said: list[str] = []

        def create(client: int) -> None:
            for number in range(PER_CLIENT):
                said.append(talks[client].say(f"CREATE SCHEMA s{client}_{number}").tag)

        threads = [Thread(target=create, args=(client,)) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for talk in talks:
            talk.close()
    assert said == ["CREATE SCHEMA"] * CLIENTS * PER_CLIENT
    assert len(attempts) == CLIENTS * PER_CLIENT


def test_turns_come_in_the_order_of_their_requests() -> None:
    turns, order, threads = MapTurns(SystemEnv()), list[int](), list[Thread]()

    def take(number: int, queued: Event) -> None:
        with turns.take(1, queued.set):
            order.append(number)

    with turns.take(1, unchecked):
        for number in range(3):
            queued = Event()
            threads.append(Thread(target=take, args=(number, queued)))
            threads[-1].start()
            assert queued.wait(20)  # it is asked while it waits
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2]


def test_databases_have_turns_of_their_own() -> None:
    turns = MapTurns(SystemEnv())
    with turns.take(1, unchecked), turns.take(2, unchecked):
        pass


def test_a_canceled_wait_gives_up_its_turn() -> None:
    turns = MapTurns(SystemEnv())

    def canceled() -> None:
        raise QueryCanceled("canceling statement due to user request")

    with turns.take(1, unchecked), pytest.raises(QueryCanceled), turns.take(1, canceled):
        raise AssertionError("it was not its turn")
    with turns.take(1, unchecked):
        pass
