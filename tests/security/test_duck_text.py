"""S15: DuckDB is given no name of the user's as SQL, and texts only as literals that it reads back."""

import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.duck.duck_types import NotShared, quoted
from tenure.sql.duck.rendering import render
from tenure.sql.text.parse import one
from tests.security.test_names import HOSTILE
from tests.unit.sql.schema import KnownNames
from tests.unit.table.trees import CONTEXT

NAMES = KnownNames()
DATABASE = duckdb.connect(":memory:")
LITERAL = re.compile(r"'(?:[^']|'')*'")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_read_back_as_it_is(text: str) -> None:
    assert _read_back(text) == text


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_is_read_back_as_it_is(text: str) -> None:
    assert _read_back(text) == text


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_it_cannot_read_is_not_given_to_it(text: str) -> None:
    with pytest.raises(NotShared):
        quoted(text)


@pytest.mark.parametrize("word", HOSTILE)
def test_names_are_numbers_and_texts_are_literals(word: str) -> None:
    name, value = '"' + word.replace('"', '""') + '"', "'" + word.replace("'", "''") + "'"
    statement = one(
        f"SELECT name AS {name}, count(*) FROM people AS {name} WHERE name <> {value} GROUP BY name"
    )
    assert statement is not None
    query = with_access(bind_query(statement.tree, NAMES, Parameters(())))
    rendered = render(query, query.plan, CONTEXT, NAMES.enum)
    assert rendered is not None
    text = " ".join([rendered.select, *(sql for _, sql in rendered.withs)])
    assert quoted(word) in text
    rest = LITERAL.sub("", text)
    assert "people" not in rest
    assert "victims" not in rest
    assert word.strip() == "" or word == "DROP" or word not in rest
    assert ";" not in rest
    assert "--" not in rest


def _read_back(text: str) -> object:
    found = DATABASE.execute(f"SELECT {quoted(text)}").fetchone()
    return None if found is None else found[0]
