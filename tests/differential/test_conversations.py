"""The same messages to Tenure and to PostgreSQL get the same answers: known ones, and generated ones."""

from collections.abc import Iterator

import pytest

from tests.differential.conversations import conversation
from tests.differential.wire_scripts import SCRIPTS
from tests.differential.wire_sides import SocketSide, TwoSides, two_sides
from tests.postgres_server import Server
from tests.unit.pgwire.wire import SYNC, bind, execute, parse, query

SEED, CONVERSATIONS, LENGTH = 18, 400, 12


@pytest.fixture(scope="module")
def sides(postgres: Server) -> Iterator[TwoSides]:
    with two_sides(postgres) as sides:
        yield sides


@pytest.mark.parametrize("name", SCRIPTS)
def test_known_conversations_get_the_answers_of_postgresql(sides: TwoSides, name: str) -> None:
    ours, theirs = sides.compare(SCRIPTS[name])
    assert ours == theirs


@pytest.mark.parametrize("part", range(4))
def test_generated_conversations_get_the_answers_of_postgresql(sides: TwoSides, part: int) -> None:
    for number in range(part, CONVERSATIONS, 4):
        said = conversation(f"{SEED}/{number}", LENGTH)
        ours, theirs = sides.compare(said.pieces)
        assert ours == theirs, "\n".join(said.script)


def test_a_portal_that_was_canceled_cannot_be_run_again(sides: TwoSides) -> None:
    ours, theirs = (_canceled(each) for each in sides.by_socket())
    assert ours == theirs
    assert ours[0][0] == "E ERROR/ERROR 57014 canceling statement due to user request"


def _canceled(side: SocketSide) -> list[list[str]]:
    try:
        side.ask(query("BEGIN"))
        side.ask(parse("SELECT pg_sleep(60)"), bind(portal="p"), bind(portal="untouched"), SYNC)
        side.ask(query("SAVEPOINT a"))
        return [
            side.ask_and_cancel(execute(0, "p")),
            side.ask(execute(0, "p"), SYNC),
            side.ask(query("ROLLBACK TO a")),
            side.ask(execute(0, "p"), SYNC),
            side.ask(query("ROLLBACK TO a")),
            side.ask_and_cancel(execute(0, "untouched")),
            side.ask(query("MOVE 1 IN untouched")),
            side.ask(query("COMMIT")),
            side.ask(execute(0, "p"), SYNC),
        ]
    finally:
        side.close()


def test_both_ends_of_a_connection_are_known(sides: TwoSides) -> None:
    ours, theirs = (_ends(each) for each in sides.by_socket())
    assert ours == theirs == "D [b'127.0.0.1', b'127.0.0.1', b't', b't']"


def _ends(side: SocketSide) -> str:
    try:
        ports = "inet_server_port() > 1, inet_client_port() > 1"
        return side.ask(query(f"SELECT inet_server_addr(), inet_client_addr(), {ports}"))[1]
    finally:
        side.close()
