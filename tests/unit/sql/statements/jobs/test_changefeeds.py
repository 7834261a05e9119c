"""CREATE CHANGEFEED as a statement: who may, where, and what is refused."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.lake_nodes import lake_node
from tests.unit.sql.sessions import Talk

DIRECTORY = "feeds"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with lake_node(tmp_path_factory.mktemp("changefeeds")) as node:
        talk = Talk(node)
        for statement in (
            "CREATE TABLE t (a int PRIMARY KEY)",
            "CREATE VIEW v AS SELECT * FROM t",
            "CREATE USER ann PASSWORD 'secret-secret'",
            "GRANT SELECT ON t TO ann",
        ):
            assert not talk.say(statement).sqlstate
        talk.close()
        yield node


@pytest.fixture
def talk(node: Node) -> Iterator[Talk]:
    talk = Talk(node)
    yield talk
    talk.close()


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("CREATE CHANGEFEED FOR nothing INTO 'x'", "42P01"),
        ("CREATE CHANGEFEED FOR v INTO 'x'", "42809"),
        ("CREATE CHANGEFEED FOR t, t INTO 'x'", "42601"),
        ("CREATE CHANGEFEED FOR t INTO", "42601"),
        ("CREATE CHANGEFEED t INTO 'x'", "42601"),
        ("CREATE CHANGEFEED FOR t INTO 'x' WITH", "42601"),
        ("CREATE CHANGEFEED FOR t INTO 'x' WITH diff, diff", "42601"),
        ("CREATE CHANGEFEED FOR t INTO 'x' WITH nonsense", "22023"),
        ("CREATE CHANGEFEED FOR t INTO 'x' WITH end_time = '-1h'", "22023"),
        ("CREATE CHANGEFEED FOR t INTO 'x' WITH cursor = '-100h'", "42P01"),
        ("CREATE CHANGEFEED FOR t INTO 'x' WITH cursor = '2999-01-01'", "22023"),
        ("CREATE CHANGEFEED FOR t INTO '../x'", "22023"),
        ("CREATE CHANGEFEED FOR t INTO '/etc'", "42501"),
        ("CREATE CHANGEFEED FOR t INTO 'x/*'", "22023"),
        ("ALTER CHANGEFEED 1 ADD t", "42704"),
    ],
)
def test_refusals(talk: Talk, text: str, sqlstate: str) -> None:
    assert talk.say(text).sqlstate == sqlstate


def test_it_cannot_run_in_a_block(talk: Talk) -> None:
    talk.say("BEGIN")
    assert talk.say("CREATE CHANGEFEED FOR t INTO 'x'").sqlstate == "25001"
    assert talk.say("CREATE CHANGEFEED FOR t INTO 'x'").sqlstate == "25P02"
    talk.say("ROLLBACK")


def test_temporary_tables_are_not_followed(talk: Talk) -> None:
    talk.say("CREATE TEMPORARY TABLE mine (a int PRIMARY KEY)")
    assert talk.say("CREATE CHANGEFEED FOR mine INTO 'x'").sqlstate == "0A000"


def test_the_privilege_is_needed_and_files_are_for_superusers(node: Node, talk: Talk) -> None:
    ann = Talk(node, user="ann")
    said = ann.say("CREATE CHANGEFEED FOR t INTO 'x'")
    assert (said.sqlstate, said.message) == ("42501", "permission denied for table t")
    talk.say("GRANT CHANGEFEED ON t TO ann")
    said = ann.say("CREATE CHANGEFEED FOR t INTO 'x'")
    assert (said.sqlstate, said.message) == ("42501", "permission denied to write a changefeed to files")
    ann.close()


def test_users_see_their_own_feeds(node: Node, talk: Talk) -> None:
    ((job,),) = talk.say(f"CREATE CHANGEFEED FOR TABLE t INTO '{DIRECTORY}' WITH resolved").rows
    assert [row[0] for row in talk.say("SHOW CHANGEFEED JOBS").rows] == [job]
    ann = Talk(node, user="ann")
    assert ann.say("SHOW CHANGEFEED JOBS").rows == ()
    assert ann.say(f"CANCEL JOB {job}").sqlstate == "42501"
    ann.close()
    assert not talk.say(f"CANCEL JOB {job} AND WAIT").sqlstate
    ((_, _, _, status, *_),) = talk.say("SHOW CHANGEFEED JOBS").rows
    assert status == "canceled"


def test_secrets_of_a_sink_are_not_shown(talk: Talk) -> None:
    location = "s3://bucket/x?AWS_ACCESS_KEY_ID=id&AWS_SECRET_ACCESS_KEY=canary"
    said = talk.say(f"CREATE CHANGEFEED FOR t INTO '{location}'")
    assert not said.sqlstate, said
    ((job,),) = said.rows
    shown = str(talk.say("SHOW CHANGEFEED JOBS").rows) + str(talk.say("SHOW JOBS").rows)
    assert "canary" not in shown
    assert not talk.say(f"CANCEL JOB {job}").sqlstate
