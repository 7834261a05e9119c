"""Values of sequences that a block creates: they stay with its commit, and leave nothing after a rollback."""

import pytest

from tenure.kv.keys import SEQUENCE_VALUES
from tenure.node import Node
from tests.unit.sql.sessions import Talk


def stored(node: Node) -> int:
    """How many sequences have a value in the store, once the node has removed what was discarded."""
    while node.temporary_rows.step() is not None:
        pass
    span = node.store.keyspace.index_span(SEQUENCE_VALUES)
    assert node.temporary_rows.objects() == []
    return len(list(node.store.snapshot().scan(span)))


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE SEQUENCE s", "SELECT nextval('s')", "SELECT nextval('s')"],
        ["CREATE SEQUENCE s", "SELECT setval('s', 7)"],
        ["CREATE TABLE t (id serial PRIMARY KEY, a int)", "INSERT INTO t (a) VALUES (1), (2)"],
        [
            "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, a int)",
            "INSERT INTO t (a) VALUES (1)",
            "SELECT 1 / 0",
        ],
    ],
)
def test_a_rollback_leaves_no_value(node: Node, statements: list[str]) -> None:
    before, talk = stored(node), Talk(node)
    for statement in ["BEGIN", *statements, "ROLLBACK"]:
        talk.say(statement)
    assert stored(node) == before
    talk.close()


def test_what_a_savepoint_or_a_drop_took_back_leaves_no_value(node: Node) -> None:
    before, talk = stored(node), Talk(node)
    for statement in (
        "BEGIN",
        "SAVEPOINT a",
        "CREATE SEQUENCE gone",
        "SELECT nextval('gone')",
        "ROLLBACK TO a",
        "CREATE SEQUENCE dropped",
        "SELECT nextval('dropped')",
        "DROP SEQUENCE dropped",
        "CREATE SEQUENCE kept",
        "SELECT nextval('kept')",
        "COMMIT",
    ):
        said = talk.say(statement)
        assert not said.sqlstate, said
    assert stored(node) == before + 1
    assert talk.say("SELECT nextval('kept')").rows == (("2",),)
    talk.close()


def test_a_node_that_dies_before_the_commit_leaves_a_record_by_which_others_clean_up(node: Node) -> None:
    talk = Talk(node)
    for statement in ("BEGIN", "CREATE SEQUENCE open", "SELECT nextval('open')"):
        assert not talk.say(statement).sqlstate
    (record,) = node.temporary_rows.objects()
    assert record.session == node.liveness.session().id
    talk.say("ROLLBACK")
    stored(node)
    talk.close()


def test_values_go_on_after_a_savepoint_and_after_the_commit(node: Node) -> None:
    talk = Talk(node)
    for statement in ("BEGIN", "CREATE SEQUENCE onward", "SELECT nextval('onward')", "SAVEPOINT a"):
        assert not talk.say(statement).sqlstate
    assert talk.say("SELECT nextval('onward')").rows == (("2",),)
    talk.say("ROLLBACK TO a")
    assert talk.say("SELECT nextval('onward')").rows == (("3",),)
    assert not talk.say("COMMIT").sqlstate
    assert stored(node) >= 1
    assert talk.say("SELECT nextval('onward')").rows == (("4",),)
    talk.close()


def test_temporary_sequences_keep_their_records(node: Node) -> None:
    talk = Talk(node)
    for statement in ("BEGIN", "CREATE TEMP SEQUENCE fleeting", "SELECT nextval('fleeting')", "COMMIT"):
        assert not talk.say(statement).sqlstate
    assert len(node.temporary_rows.objects()) == 1
    assert talk.say("SELECT nextval('fleeting')").rows == (("2",),)
    talk.close()
