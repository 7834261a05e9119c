"""Deferrable foreign keys are checked at COMMIT, or when SET CONSTRAINTS says so, as PostgreSQL has it."""

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Talk, compare

TABLES = """
CREATE TABLE teams (id int PRIMARY KEY, lead int)
CREATE TABLE people (id int PRIMARY KEY, team int CONSTRAINT of_team REFERENCES teams INITIALLY DEFERRED)
ALTER TABLE teams ADD CONSTRAINT led_by FOREIGN KEY (lead) REFERENCES people DEFERRABLE
CREATE TABLE notes (id int PRIMARY KEY, person int CONSTRAINT by_person REFERENCES people)
"""

SCRIPTS = {
    "a row may refer to one that comes later in the transaction": """
        BEGIN
        INSERT INTO people VALUES (1, 10)
        INSERT INTO teams VALUES (10, 1)
        COMMIT
        SELECT * FROM people
    """,
    "the commit fails if it has not come": """
        BEGIN
        INSERT INTO people VALUES (1, 10)
        SELECT count(*) FROM people
        COMMIT
        SELECT count(*) FROM people
    """,
    "without a block it is checked with the statement": """
        INSERT INTO people VALUES (1, 10)
        SELECT count(*) FROM people
    """,
    "a row that is gone or changed by then is no trouble": """
        INSERT INTO teams VALUES (3, NULL)
        BEGIN
        INSERT INTO people VALUES (1, 10), (2, 11), (3, 12)
        DELETE FROM people WHERE id = 1
        UPDATE people SET team = 3 WHERE id = 2
        UPDATE people SET team = NULL WHERE id = 3
        COMMIT
        SELECT * FROM people ORDER BY id
    """,
    "a target may go and come back": """
        INSERT INTO teams VALUES (10, NULL)
        INSERT INTO people VALUES (1, 10)
        BEGIN
        DELETE FROM teams
        SELECT count(*) FROM teams
        INSERT INTO teams VALUES (10, NULL)
        COMMIT
        BEGIN
        UPDATE teams SET id = 11
        COMMIT
        SELECT id FROM teams
    """,
    "a savepoint takes the row back": """
        BEGIN
        SAVEPOINT s
        INSERT INTO people VALUES (1, 10)
        ROLLBACK TO s
        COMMIT
    """,
    "set constraints immediate checks what is left": """
        BEGIN
        INSERT INTO people VALUES (1, 10)
        SAVEPOINT s
        SET CONSTRAINTS ALL IMMEDIATE
        ROLLBACK TO s
        INSERT INTO teams VALUES (10, NULL)
        SET CONSTRAINTS of_team IMMEDIATE
        INSERT INTO people VALUES (2, 20)
        ROLLBACK
    """,
    "set constraints deferred counts for the transaction": """
        BEGIN
        INSERT INTO teams VALUES (1, 7)
        ROLLBACK
        BEGIN
        SET CONSTRAINTS led_by DEFERRED
        INSERT INTO teams VALUES (1, 7)
        INSERT INTO people VALUES (7, 1)
        COMMIT
        BEGIN
        INSERT INTO teams VALUES (2, 8)
        ROLLBACK
    """,
    "a savepoint takes set constraints back": """
        BEGIN
        SAVEPOINT s
        SET CONSTRAINTS ALL DEFERRED
        ROLLBACK TO s
        INSERT INTO teams VALUES (1, 7)
        ROLLBACK
    """,
    "names that are not there or not deferrable are refused": """
        SET CONSTRAINTS ALL DEFERRED
        BEGIN
        SET CONSTRAINTS nothing DEFERRED
        ROLLBACK
        BEGIN
        SET CONSTRAINTS by_person DEFERRED
        ROLLBACK
        BEGIN
        SET CONSTRAINTS public.led_by, of_team DEFERRED
        ROLLBACK
        BEGIN
        SET CONSTRAINTS nowhere.led_by DEFERRED
        ROLLBACK
    """,
    "other keys are checked with the statement as before": """
        BEGIN
        SET CONSTRAINTS ALL DEFERRED
        INSERT INTO notes VALUES (1, 1)
        ROLLBACK
    """,
    "the catalogs say what is deferrable": """
        SELECT conname, condeferrable, condeferred FROM pg_constraint WHERE contype = 'f' ORDER BY conname
        SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' ORDER BY conname
    """,
}


@pytest.mark.invariant("deferred-references")
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=list(SCRIPTS))
def test_as_postgresql(node: Node, oracle: Oracle, script: str) -> None:
    compare(node, oracle, TABLES + script)


def test_a_dropped_or_emptied_table_leaves_nothing_to_check(node: Node) -> None:
    talk = Talk(node)
    talk.say("DROP TABLE IF EXISTS notes, people, teams CASCADE")
    for text in TABLES.strip().splitlines()[:2]:
        assert not talk.say(text).sqlstate
    for text in ("DROP TABLE people", "TRUNCATE people", "ALTER TABLE people DROP CONSTRAINT of_team"):
        talk.say("BEGIN")
        talk.say("INSERT INTO people VALUES (1, 10)")
        assert not talk.say(text).sqlstate
        assert talk.say("COMMIT").tag == "COMMIT", text
        talk.say("DROP TABLE IF EXISTS people")
        talk.say(TABLES.strip().splitlines()[1])
    talk.close()


@pytest.mark.parametrize("isolation", ["SERIALIZABLE", "READ COMMITTED"])
def test_a_target_that_another_has_removed_meanwhile_fails_the_commit(node: Node, isolation: str) -> None:
    first, second = Talk(node), Talk(node)
    first.say("DROP TABLE IF EXISTS notes, people, teams CASCADE")
    for text in TABLES.strip().splitlines()[:2]:
        first.say(text)
    first.say("INSERT INTO teams VALUES (1, NULL), (2, NULL)")
    first.say(f"BEGIN ISOLATION LEVEL {isolation}")
    assert first.say("INSERT INTO people VALUES (1, 1)").tag == "INSERT 0 1"
    second.say("DELETE FROM teams WHERE id = 1")
    assert first.say("COMMIT").sqlstate in ("23503", "40001")
    assert second.say("SELECT count(*) FROM people").rows == (("0",),)
    for each in (first, second):
        each.close()


@pytest.mark.parametrize("isolation", ["SERIALIZABLE", "READ COMMITTED"])
def test_a_row_that_comes_to_refer_to_a_removed_target_is_found(node: Node, isolation: str) -> None:
    first, second = Talk(node), Talk(node)
    first.say("DROP TABLE IF EXISTS notes, people, teams CASCADE")
    for text in TABLES.strip().splitlines()[:2]:
        first.say(text)
    first.say("INSERT INTO teams VALUES (1, NULL)")
    first.say(f"BEGIN ISOLATION LEVEL {isolation}")
    assert first.say("DELETE FROM teams").tag == "DELETE 1"
    second.say("INSERT INTO people VALUES (1, 1)")
    assert first.say("COMMIT").sqlstate in ("23503", "40001")
    assert second.say("SELECT count(*) FROM teams").rows == (("1",),)
    for each in (first, second):
        each.close()
