"""A transaction holds a row and waits in COMMIT for another's use of a table, which waits for the row."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tenure.base.env import SystemEnv
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tests.unit.sql.sessions import Saying, Talk

CHANGE = "ALTER TABLE changed ADD COLUMN c int DEFAULT 7"


@pytest.fixture(params=["one node", "two nodes"])
def talks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Talk]]:
    """Sessions, of two nodes in turn or of one."""
    with ExitStack() as stack:
        nodes = []
        for _ in range(2 if request.param == "two nodes" else 1):
            options = NodeOptions(f"sqlite:{tmp_path}/store.db", listen=Listen(port=0))
            nodes.append(Node(options, SystemEnv()))
            stack.callback(nodes[-1].stop)
        while len(nodes) > 1 and any(each.cluster.neighbours.is_alone() for each in nodes):
            pass
        opened: list[Talk] = []

        def talk() -> Talk:
            opened.append(Talk(nodes[len(opened) % len(nodes)]))
            stack.callback(opened[-1].close)
            return opened[-1]

        first = talk()
        for statement in (
            "CREATE TABLE locked (id int PRIMARY KEY, v int)",
            "CREATE TABLE changed (id int PRIMARY KEY, v int)",
            "INSERT INTO locked VALUES (1, 0), (2, 0)",
            "INSERT INTO changed VALUES (1, 0)",
            "SET CLUSTER SETTING lease.holder_grace = '60s'",
        ):
            assert not first.say(statement).sqlstate
        talk()  # the next one is of the first node again
        yield talk


def begin_change(changer: Talk) -> None:
    assert changer.say("UPDATE locked SET v = 1 WHERE id = 1").sqlstate == ""
    assert changer.say(CHANGE).sqlstate == ""


@pytest.mark.invariant("I9")
def test_a_user_that_is_younger_than_the_change_gives_way_with_40p01(talks: Callable[[], Talk]) -> None:
    changer, user = talks(), talks()
    changer.say("BEGIN")
    begin_change(changer)
    user.say("BEGIN")
    assert user.say("SELECT v FROM changed").rows == (("0",),)
    committing = Saying(changer, "COMMIT")
    waiting = Saying(user, "UPDATE locked SET v = 2 WHERE id = 1")
    assert waiting.result().sqlstate == "40P01"
    user.say("ROLLBACK")
    assert committing.result().tag == "COMMIT"
    assert user.say("SELECT c FROM changed").rows == (("7",),)
    assert user.say("SELECT v FROM locked WHERE id = 1").rows == (("1",),)


@pytest.mark.invariant("I9")
def test_a_change_that_is_younger_than_its_user_gives_way_with_40p01(talks: Callable[[], Talk]) -> None:
    changer, user = talks(), talks()
    user.say("BEGIN")
    assert user.say("SELECT v FROM changed").rows == (("0",),)
    changer.say("BEGIN")
    begin_change(changer)
    committing = Saying(changer, "COMMIT")
    waiting = Saying(user, "UPDATE locked SET v = 2 WHERE id = 1")
    assert committing.result().sqlstate == "40P01"
    assert waiting.result().tag == "UPDATE 1"
    assert user.say("COMMIT").tag == "COMMIT"
    assert user.say("SELECT c FROM changed").sqlstate == "42703"
    assert user.say("SELECT v FROM locked WHERE id = 1").rows == (("2",),)


def test_a_cycle_is_found_through_a_third_transaction_that_waits_for_a_lock(
    talks: Callable[[], Talk],
) -> None:
    changer, user, between = talks(), talks(), talks()
    changer.say("BEGIN")
    begin_change(changer)
    between.say("BEGIN")
    assert between.say("UPDATE locked SET v = 3 WHERE id = 2").tag == "UPDATE 1"
    user.say("BEGIN")
    assert user.say("SELECT v FROM changed").rows == (("0",),)
    third = Saying(between, "UPDATE locked SET v = 3 WHERE id = 1")
    committing = Saying(changer, "COMMIT")
    waiting = Saying(user, "UPDATE locked SET v = 2 WHERE id = 2")
    assert waiting.result().sqlstate == "40P01"
    user.say("ROLLBACK")
    assert committing.result().tag == "COMMIT"
    third.result()


def test_a_change_does_not_wait_for_a_user_that_waits_for_the_lock_of_a_third(
    talks: Callable[[], Talk],
) -> None:
    changer, user, owner = talks(), talks(), talks()
    owner.say("BEGIN")
    assert owner.say("UPDATE locked SET v = 3 WHERE id = 2").tag == "UPDATE 1"
    user.say("BEGIN")
    assert user.say("SELECT v FROM changed").rows == (("0",),)
    waiting = Saying(user, "UPDATE locked SET v = 2 WHERE id = 2")
    assert changer.say(CHANGE).tag == "ALTER TABLE"
    assert owner.say("ROLLBACK").tag == "ROLLBACK"
    assert waiting.result().sqlstate == "40001"


def test_a_block_that_waits_for_its_job_has_released_its_rows(talks: Callable[[], Talk]) -> None:
    """It has written nothing, so that its change is left to a job; the job waits for the user."""
    changer, user = talks(), talks()
    changer.say("BEGIN")
    assert changer.say("SELECT v FROM locked WHERE id = 1 FOR UPDATE").rows == (("0",),)
    assert changer.say(CHANGE).sqlstate == ""
    user.say("BEGIN")
    assert user.say("SELECT v FROM changed").rows == (("0",),)
    committing = Saying(changer, "COMMIT")
    assert user.say("UPDATE locked SET v = 2 WHERE id = 1").tag == "UPDATE 1"
    assert user.say("COMMIT").tag == "COMMIT"
    assert committing.result().tag == "COMMIT"
    assert user.say("SELECT c FROM changed").rows == (("7",),)


def test_no_record_of_a_wait_is_left(talks: Callable[[], Talk]) -> None:
    test_a_user_that_is_younger_than_the_change_gives_way_with_40p01(talks)
    assert talks().say("SHOW BLOCKERS").rows == ()
