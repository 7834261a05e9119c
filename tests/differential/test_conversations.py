"""The same messages to Tenure and to PostgreSQL get the same answers: known ones, and generated ones."""

from collections.abc import Iterator

import pytest

from tests.differential.conversations import conversation
from tests.differential.wire_scripts import SCRIPTS
from tests.differential.wire_sides import TwoSides, two_sides
from tests.postgres_server import Server

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
