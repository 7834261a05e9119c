"""An INSERT that is a transaction of its own finds out at its commit that a key is taken: nobody can tell."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.errors import TenureError
from tenure.node import Node
from tenure.sql.session.answers import Answer, NotShort
from tests.unit.sql.talking import Speaker, a_node

TABLES = """
CREATE TABLE other (id INT PRIMARY KEY);
CREATE TABLE t (id SERIAL PRIMARY KEY, u INT UNIQUE, v INT CHECK (v > 0), o INT REFERENCES other)
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with a_node(Path(tmp_path_factory.mktemp("late"))) as node:
        for statement in TABLES.split(";"):
            Speaker(node).run(statement)
        yield node


@pytest.fixture
def one(node: Node) -> Iterator[Speaker]:
    speaker = Speaker(node)
    speaker.run("DELETE FROM t")
    speaker.run("ALTER SEQUENCE t_id_seq RESTART WITH 1")
    speaker.run("INSERT INTO t (id, u) VALUES (1, 10), (2, 20)")
    yield speaker
    speaker.close()


def _told(speaker: Speaker, text: str, *, inline: bool) -> tuple[str, str, str]:
    with pytest.raises(TenureError) as caught:
        speaker.run(text, inline=inline)
    return caught.value.sqlstate, str(caught.value), caught.value.detail


@pytest.mark.parametrize(
    ("statement", "constraint", "key"),
    [
        ("INSERT INTO t (id) VALUES (1)", "t_pkey", "(id)=(1)"),
        ("INSERT INTO t (id, u) VALUES (3, 20)", "t_u_key", "(u)=(20)"),
        ("INSERT INTO t (id, u) VALUES (2, 10)", "t_pkey", "(id)=(2)"),
        ("INSERT INTO t (id) VALUES (3), (2), (1)", "t_pkey", "(id)=(2)"),
        ("INSERT INTO t (id) VALUES (3), (3), (1)", "t_pkey", "(id)=(3)"),
        ("INSERT INTO t (id) VALUES (1) RETURNING id", "t_pkey", "(id)=(1)"),
        # What is wrong with a row, and comes later, is not what is told.
        ("INSERT INTO t (id) VALUES (1) RETURNING 1 / (id - 1)", "t_pkey", "(id)=(1)"),
        ("INSERT INTO t (id, v) VALUES (1, 1), (4, -1)", "t_pkey", "(id)=(1)"),
        ("INSERT INTO t (id, o) VALUES (1, 99)", "t_pkey", "(id)=(1)"),
        ("INSERT INTO t (id) VALUES (1), (3), (3)", "t_pkey", "(id)=(1)"),
    ],
)
@pytest.mark.parametrize("inline", [False, True])
def test_the_first_key_that_is_taken_is_told(
    one: Speaker, statement: str, constraint: str, key: str, inline: bool
) -> None:
    found = _told(one, statement, inline=inline)
    message = f'duplicate key value violates unique constraint "{constraint}"'
    assert found == ("23505", message, f"Key {key} already exists.")
    assert one.rows("SELECT id, u FROM t ORDER BY id") == [(1, 10), (2, 20)]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("INSERT INTO t (id, v) VALUES (3, 1), (4, -1), (1, 1)", "23514"),
        ("INSERT INTO t (id, o) VALUES (3, 99)", "23503"),
        ("INSERT INTO t (id) VALUES (3) RETURNING 1 / (id - 3)", "22012"),
    ],
)
def test_what_is_wrong_with_a_row_before_one_that_is_taken_is_told(
    one: Speaker, statement: str, sqlstate: str
) -> None:
    assert _told(one, statement, inline=True)[0] == sqlstate


def test_a_sequence_is_asked_once_for_a_row_that_is_taken(one: Speaker) -> None:
    assert _told(one, "INSERT INTO t (u) VALUES (30)", inline=False)[2] == "Key (id)=(1) already exists."
    assert _told(one, "INSERT INTO t (u) VALUES (30)", inline=False)[2] == "Key (id)=(2) already exists."
    assert one.rows("INSERT INTO t (u) VALUES (30) RETURNING id") == [(3,)]


@pytest.mark.parametrize("inline", [False, True])
def test_inside_a_block_the_statement_itself_fails(one: Speaker, inline: bool) -> None:
    one.run("BEGIN")
    assert _told(one, "INSERT INTO t (id) VALUES (1)", inline=inline)[0] == "23505"
    assert one.tag("ROLLBACK") == "ROLLBACK"


def test_of_several_statements_sent_together_the_one_that_is_wrong_fails(one: Speaker) -> None:
    session = one.session
    session.prepare("", "INSERT INTO t (id) VALUES (1)", ())
    session.bind("", "", ())
    with pytest.raises(TenureError) as caught:
        session.execute("", ends=False, inline=True)
    session.failed()
    assert caught.value.sqlstate == "23505"


def test_a_row_taken_while_the_commit_is_on_its_way_is_told_at_once(node: Node, one: Speaker) -> None:
    session, other = one.session, Speaker(node)
    session.prepare("", "INSERT INTO t (id) VALUES (6)", ())
    session.bind("", "", ())
    pending = session.execute("", ends=True, inline=True)
    assert not isinstance(pending, Answer)
    other.run("INSERT INTO t (id) VALUES (6)")
    with pytest.raises(TenureError) as caught:
        one.settled(pending)
    session.failed()
    assert caught.value.sqlstate == "23505"
    other.close()


def test_a_row_that_was_freed_while_the_commit_is_on_its_way_is_no_hindrance(
    node: Node, one: Speaker
) -> None:
    session, other = one.session, Speaker(node)
    session.prepare("", "INSERT INTO t (id, u) VALUES (1, 11)", ())
    session.bind("", "", ())
    pending = session.execute("", ends=True, inline=True)
    other.run("DELETE FROM t WHERE id = 1")
    try:
        one.settled(pending)
    except NotShort:
        pytest.fail("it need not be run again")
    assert one.rows("SELECT u FROM t WHERE id = 1") == [(11,)]
    other.close()
