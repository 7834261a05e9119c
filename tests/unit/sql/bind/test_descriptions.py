"""Columns, parameters and errors of statements, compared with PostgreSQL's own Describe."""

from collections.abc import Iterator

import pytest

from tests.postgres_server import Server
from tests.unit.sql.bind import statements
from tests.unit.sql.bind.descriptions import Described, Describer, Fault, ours

THEMES = [name for name in vars(statements) if name.isupper() and name != "REFUSED"]


@pytest.fixture(scope="module")
def describer(postgres: Server) -> Iterator[Describer]:
    describer = Describer(postgres)
    yield describer
    describer.connection.close()


def lines_of(name: str) -> list[str]:
    text: str = getattr(statements, name)
    return text.strip().splitlines()


@pytest.mark.parametrize("theme", THEMES)
def test_a_statement_is_described_as_postgres_describes_it(describer: Describer, theme: str) -> None:
    wrong = {
        text: (answer, theirs)
        for text in lines_of(theme)
        if (answer := ours(text)) != (theirs := describer.theirs(text))
    }
    assert wrong == {}


@pytest.mark.parametrize("text", lines_of("REFUSED"))
def test_what_is_not_supported_is_refused_by_name(text: str) -> None:
    answer = ours(text)
    assert isinstance(answer, Fault)
    assert answer.sqlstate == "0A000"


def test_positions_count_characters_not_bytes(describer: Describer) -> None:
    text = "SELECT 'äöü€𝄞' || nope FROM people"
    assert ours(text) == describer.theirs(text)


def test_positions_before_wide_characters_stay() -> None:
    answer = ours("SELECT nope, 'ä' FROM people")
    assert isinstance(answer, Fault)
    assert answer.position == 8


def test_a_table_may_be_called_by_its_schema_where_it_stands_without(describer: Describer) -> None:
    text = "SELECT bound.people.id FROM people"
    assert ours(text) == describer.theirs(text)
    assert isinstance(ours(text), Described)
