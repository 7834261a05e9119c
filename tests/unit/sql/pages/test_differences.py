"""docs/reference/differences.md says what is so: each claim has an example that is answered so."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.differential.differences import is_listed, listed
from tests.unit.sql.pages.refusals import ANSWERED, NOT_SUPPORTED, OTHERWISE_REFUSED, SCHEMA, WITHOUT_EXAMPLE
from tests.unit.sql.sessions import Said, Talk, running

LISTED_BEFORE = NOT_SUPPORTED.index("CREATE TABLE ch () INHERITS (t)")
"""What comes before is named on the page in the words of the refusal; the rest in prose."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running(Path(tmp_path_factory.mktemp("differences"))) as node:
        yield node


@pytest.fixture(scope="module")
def talk(node: Node) -> Talk:
    talk = Talk(node)
    for statement in SCHEMA:
        said = talk.say(statement)
        assert not said.sqlstate, said
    return talk


@pytest.fixture(scope="module")
def refusals(talk: Talk) -> dict[str, Said]:
    return {each: talk.say(each) for each in (*NOT_SUPPORTED, *OTHERWISE_REFUSED)}


def test_every_example_is_refused_with_its_code(refusals: dict[str, Said]) -> None:
    expected = dict.fromkeys(NOT_SUPPORTED, "0A000") | OTHERWISE_REFUSED
    assert {text: said.sqlstate for text, said in refusals.items()} == expected


def test_every_refusal_that_the_page_quotes_has_an_example(refusals: dict[str, Said]) -> None:
    messages = [said.message for said in refusals.values()]
    missing = {each.pattern for each in listed() if not any(map(each.search, messages))}
    explained = {each.pattern for each in listed() if any(map(each.fullmatch, WITHOUT_EXAMPLE))}
    assert missing - explained == set()


def test_the_page_quotes_what_the_examples_say(refusals: dict[str, Said]) -> None:
    said = [refusals[each] for each in NOT_SUPPORTED[:LISTED_BEFORE]]
    assert [each.message for each in said if not is_listed(each.message)] == []


def test_what_the_page_calls_possible_is(talk: Talk, refusals: dict[str, Said]) -> None:
    assert {each: talk.say(each).sqlstate for each in ANSWERED} == dict.fromkeys(ANSWERED, "")


def test_a_zone_that_the_session_uses_otherwise_is_refused(node: Node) -> None:
    talk = Talk(node)
    talk.say("SET TIME ZONE 'Asia/Kolkata'")
    said = talk.say("SELECT now() AT TIME ZONE 'IST'")
    assert said.sqlstate == "0A000" and is_listed(said.message)
    talk.close()


def test_a_cursor_without_scroll_goes_forward_only(node: Node) -> None:
    talk = Talk(node)
    talk.say("BEGIN")
    talk.say("DECLARE c CURSOR FOR SELECT 1")
    assert talk.say("FETCH BACKWARD FROM c").sqlstate == "55000"
    talk.say("ROLLBACK")
    talk.close()


def test_a_primary_key_that_a_block_has_dropped_keeps_equal_keys_out_until_commit(nodes: Node) -> None:
    talk = Talk(nodes)
    talk.say("CREATE TABLE keyed (id int PRIMARY KEY)")
    talk.say("INSERT INTO keyed VALUES (1)")
    talk.say("BEGIN")
    assert talk.say("ALTER TABLE keyed DROP CONSTRAINT keyed_pkey").sqlstate == ""
    assert talk.say("INSERT INTO keyed VALUES (2)").sqlstate == ""
    assert talk.say("INSERT INTO keyed VALUES (1)").sqlstate == "0A000"
    talk.say("ROLLBACK")
    assert talk.say("INSERT INTO keyed VALUES (1)").sqlstate == "23505"
    for statement in ("BEGIN", "ALTER TABLE keyed DROP CONSTRAINT keyed_pkey", "COMMIT"):
        assert talk.say(statement).sqlstate == ""
    assert talk.say("INSERT INTO keyed VALUES (1)").sqlstate == ""
    talk.close()
