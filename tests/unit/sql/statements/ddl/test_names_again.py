"""Names that a transaction takes from one object and gives to another, while other nodes use them."""

from pathlib import Path
from threading import Event, Thread

import pytest

from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.node import Node
from tests.unit.schema_change.declared import inconsistent_names
from tests.unit.sql.sessions import Said, Saying, Talk, running


def say(talk: Talk, script: str) -> None:
    for line in script.strip().splitlines():
        said = talk.say(line)
        assert not said.sqlstate, (line, said)


def until_closed(node: Node, name: str) -> None:
    """Until a node knows that a name goes to another object."""
    for _ in range(600):
        assert node.leases.newest is not None
        found: list[AnyDescriptor] = list(node.leases.newest.descriptors())
        if any(each.closed_by for each in found if each.name == name):
            return
        node.store.env.sleep(0.05)
    raise AssertionError("the name was not closed")


KINDS = {
    "table": ("CREATE TABLE n (a int)", "DROP TABLE n", "CREATE TABLE n (b int)", "TABLE n"),
    "view": ("CREATE VIEW n AS SELECT 1 AS a", "DROP VIEW n", "CREATE VIEW n AS SELECT 2 AS b", "TABLE n"),
    "sequence": (
        "CREATE SEQUENCE n",
        "DROP SEQUENCE n",
        "CREATE SEQUENCE n START 7",
        "SELECT nextval('n') AS b",
    ),
    "type": (
        "CREATE TYPE n AS ENUM ('a')",
        "DROP TYPE n",
        "CREATE TYPE n AS ENUM ('b')",
        "SELECT 'b'::n AS b",
    ),
    "schema": (
        "CREATE SCHEMA n CREATE TABLE t (a int)",
        "DROP SCHEMA n CASCADE",
        "CREATE SCHEMA n CREATE TABLE t (b int)",
        "TABLE n.t",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.invariant("handed-over")
def test_an_object_is_dropped_and_made_again_in_one_transaction(two: tuple[Node, Node], kind: str) -> None:
    make, drop, again, look = KINDS[kind]
    talk, other = Talk(two[0]), Talk(two[1])
    say(talk, make)
    other.say(look)
    say(talk, f"BEGIN\n{drop}\nSAVEPOINT s\n{again}\nROLLBACK TO s\n{again}\nCOMMIT")
    for each in (talk, other):
        said = each.say(look)
        assert (said.sqlstate, said.columns) == ("", ("b",))


def test_what_is_made_and_dropped_again_leaves_the_name_free(two: tuple[Node, Node]) -> None:
    talk, other = Talk(two[0]), Talk(two[1])
    say(talk, "CREATE SCHEMA s\nBEGIN\nDROP SCHEMA s\nCREATE SCHEMA s\nDROP SCHEMA s")
    assert talk.say("CREATE TABLE s.t (a int)").sqlstate == "3F000"
    say(talk, "ROLLBACK\nBEGIN\nDROP SCHEMA s\nCREATE SCHEMA s\nDROP SCHEMA s\nCOMMIT")
    assert other.say("CREATE TABLE s.t (a int)").sqlstate == "3F000"
    say(other, "CREATE SCHEMA s")


def test_two_tables_change_their_names(two: tuple[Node, Node]) -> None:
    talk, other = Talk(two[0]), Talk(two[1])
    say(talk, "CREATE TABLE x (a int)\nCREATE TABLE y (b int)\nCREATE VIEW v AS SELECT a FROM x")
    swap = "ALTER TABLE x RENAME TO z\nALTER TABLE y RENAME TO x\nALTER TABLE z RENAME TO y"
    for columns in (("b",), ("a",)):
        other.say("SELECT * FROM x, y")
        say(talk, f"BEGIN\n{swap}\nINSERT INTO x VALUES (1)\nCOMMIT")
        assert other.say("TABLE x").columns == columns
    assert other.say("TABLE v").rows == (("1",),), "a view means the table, not its name"


@pytest.mark.parametrize("is_of_same_node", [False, True])
def test_who_looks_a_closed_name_up_waits_and_finds_the_new_object(
    two: tuple[Node, Node], is_of_same_node: bool
) -> None:
    first, second = two
    talk, holder = Talk(first), Talk(second)
    late, view, past = Talk(first if is_of_same_node else second), Talk(second), Talk(second)
    say(talk, "CREATE TABLE t (a int)\nINSERT INTO t VALUES (1)\nCREATE VIEW v AS SELECT a FROM t")
    late.say("INSERT INTO t VALUES (2)")  # a plan is kept of it
    before = past.say("SELECT cluster_logical_timestamp()").rows[0][0]
    say(holder, "BEGIN\nTABLE t")
    say(talk, "BEGIN\nALTER TABLE t RENAME TO old\nCREATE TABLE t (a int)")
    committing = Saying(talk, "COMMIT")
    until_closed(second, "t")
    until_closed(first, "t")
    waiting = Saying(late, "INSERT INTO t VALUES (2)")
    assert view.say("TABLE v").rows == (("1",), ("2",)), "by id the table is used as ever"
    assert len(past.say(f"SELECT * FROM t AS OF SYSTEM TIME {before}").rows) == 2
    assert committing.said is None and waiting.said is None
    say(holder, "COMMIT")
    assert committing.result().tag == "COMMIT"
    assert waiting.result().tag == "INSERT 0 1"
    assert late.say("TABLE t").rows == (("2",),)
    assert late.say("TABLE old").rows == (("1",), ("2",))


def test_a_commit_that_fails_leaves_the_name_as_it_was(two: tuple[Node, Node]) -> None:
    first, second = two
    talk, holder, late = Talk(first), Talk(second), Talk(second)
    say(talk, "CREATE TABLE t (a int PRIMARY KEY)\nCREATE TABLE u (a int)\nINSERT INTO u VALUES (1)")
    say(holder, "BEGIN\nTABLE t")
    say(talk, "BEGIN\nTABLE u\nINSERT INTO u VALUES (2)\nDROP TABLE t\nCREATE TABLE t (b int)")
    committing = Saying(talk, "COMMIT")
    until_closed(second, "t")
    waiting = Saying(late, "INSERT INTO t VALUES (5)")
    say(holder, "UPDATE u SET a = 3\nCOMMIT")
    assert committing.result().sqlstate == "40001"
    assert waiting.result().tag == "INSERT 0 1"
    assert talk.say("TABLE t") == Said("SELECT 1", (("5",),), ("a",))


def test_no_row_lands_in_the_wrong_table_while_it_is_made_again(two: tuple[Node, Node]) -> None:
    """Each table says which one it is; a row goes where its writer was told."""
    talk = Talk(two[0])
    say(talk, "CREATE TABLE log (number int, row text)\nCREATE TABLE t (row text, number int DEFAULT 0)")
    stop, told = Event(), set[tuple[str | None, ...]]()

    def write(name: str, node: Node) -> None:
        writer = Talk(node)
        count = 0
        while not stop.is_set():
            count += 1
            said = writer.say(f"INSERT INTO t VALUES ('{name}{count}') RETURNING number, row")
            if not said.sqlstate:
                told.update(said.rows)
            else:
                assert said.sqlstate == "40001", said
        writer.close()

    writers = [Thread(target=write, args=(f"w{at}-", two[at % 2])) for at in range(3)]
    for each in writers:
        each.start()
    number = 0
    while number < 4:
        talk.say("BEGIN")
        talk.say("INSERT INTO log SELECT number, row FROM t")
        talk.say("DROP TABLE t")
        talk.say(f"CREATE TABLE t (row text, number int DEFAULT {number + 1})")
        number += talk.say("COMMIT").tag == "COMMIT"
    stop.set()
    for each in writers:
        each.join(60)
    landed = talk.say("SELECT number, row FROM log UNION ALL SELECT number, row FROM t").rows
    assert len(landed) == len(set(landed))
    assert set(landed) == told
    assert {row[0] for row in landed} >= {"0", "1"}


def test_a_name_goes_round_on_three_nodes_at_once(tmp_path: Path) -> None:
    """A to B on one node, C to A on another, while a third uses all names: each row is where it was put."""
    with running(tmp_path) as first, running(tmp_path) as second, running(tmp_path) as third:
        talk = Talk(first)
        say(talk, "CREATE TABLE a (row text, n int DEFAULT 1)\nCREATE TABLE c (row text, n int DEFAULT 2)")
        stop, told = Event(), list[tuple[str | None, ...]]()

        def write() -> None:
            writer, count = Talk(third), 0
            while not stop.is_set():
                for name in ("a", "b", "c"):
                    count += 1
                    said = writer.say(f"INSERT INTO {name} VALUES ('{name}{count}') RETURNING n, row")
                    assert said.sqlstate in ("", "42P01", "40001"), said
                    told.extend(said.rows)
            writer.close()

        def rename(node: Node, former: str, name: str) -> None:
            renamer = Talk(node)
            while renamer.say(f"ALTER TABLE {former} RENAME TO {name}").sqlstate:
                assert not stop.is_set()
            renamer.close()

        writer = Thread(target=write)
        writer.start()
        for _ in range(3):
            renamers = [
                Thread(target=rename, args=args)
                for args in ((first, "a", "b"), (second, "c", "a"), (first, "b", "c"))
            ]
            for each in renamers:
                each.start()
            for each in renamers:
                each.join(60)
            assert inconsistent_names(first) == []
        stop.set()
        writer.join(60)
        landed = {name: talk.say(f"SELECT n, row FROM {name}").rows for name in ("a", "c")}
        assert [{row[0] for row in landed[name]} for name in ("a", "c")] == [{"2"}, {"1"}]
        assert sorted([*landed["a"], *landed["c"]]) == sorted(told)
