"""Texts as tokens: every character is one, and a long text can be left."""

import pytest

from tenure.base.errors import InvalidName, QueryCanceled
from tenure.base.interruptible import checked_by
from tenure.sql.names.sequence_names import path_of
from tenure.sql.text.parse import tokens


@pytest.mark.parametrize("character", "{}~|")
def test_characters_without_a_meaning_to_statements_are_tokens(character: str) -> None:
    (token,) = tokens(character)
    assert (token.text, token.start, token.end) == (character, 0, 1)
    with pytest.raises(InvalidName):
        path_of(f"a{character}b")


def test_a_text_of_many_tokens_can_be_left() -> None:
    def cancel() -> None:
        raise QueryCanceled("canceled")

    with pytest.raises(QueryCanceled), checked_by(cancel):
        tokens("a " * 10_000)
