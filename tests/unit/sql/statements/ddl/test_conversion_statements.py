"""Databases that become schemas, and tables that move to another database."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.schema_change.declared import inconsistent_names
from tests.unit.sql.sessions import Talk

WORLD = """
CREATE DATABASE x
CREATE DATABASE y
CREATE DATABASE c
CREATE TYPE x.mood AS ENUM ('fine')
CREATE TABLE x.t (id serial PRIMARY KEY, m x.mood DEFAULT 'fine')
CREATE INDEX t_m ON x.t (m)
CREATE VIEW x.v AS SELECT id, m FROM x.t
CREATE TABLE y.u (id int PRIMARY KEY)
INSERT INTO x.t DEFAULT VALUES
"""


@pytest.fixture
def talk(nodes: Node) -> Iterator[Talk]:
    talk = Talk(nodes)
    say(talk, WORLD)
    yield talk
    talk.close()
    assert inconsistent_names(nodes) == []


def say(talk: Talk, script: str) -> None:
    for line in script.strip().splitlines():
        said = talk.say(line)
        assert not said.sqlstate, (line, said)


def rows(talk: Talk, query: str) -> list[tuple[str | None, ...]]:
    said = talk.say(query)
    assert not said.sqlstate, (query, said)
    return list(said.rows)


CONVERT = "ALTER DATABASE x CONVERT TO SCHEMA WITH PARENT c"


def test_objects_keep_their_ids_rows_and_references(talk: Talk) -> None:
    ids = "SELECT name, id FROM system.namespace WHERE name IN ('t', 'v', 'mood', 't_id_seq') ORDER BY 1"
    before = rows(talk, ids)
    assert talk.say(CONVERT).tag == "ALTER DATABASE"
    assert rows(talk, ids) == before
    assert rows(talk, "INSERT INTO c.x.t DEFAULT VALUES RETURNING id > 1, m") == [("t", "fine")]
    assert len(rows(talk, "TABLE c.x.v")) == 2
    assert talk.say("TABLE x.t").sqlstate == "42P01"
    assert talk.say("DROP TABLE c.x.t").sqlstate == "2BP01", "its view depends on it"
    assert rows(talk, "SHOW CREATE SCHEMA c.x") == [("x", "CREATE SCHEMA x;")]
    assert talk.say("UNDROP DATABASE x").sqlstate == "55000"
    say(talk, "CREATE DATABASE x")


def test_history_is_read_under_the_name_of_then(talk: Talk) -> None:
    before = rows(talk, "SELECT cluster_logical_timestamp()")[0][0]
    say(talk, CONVERT)
    say(talk, "DELETE FROM c.x.t")
    assert len(rows(talk, f"SELECT * FROM x.t AS OF SYSTEM TIME {before}")) == 1
    assert talk.say(f"SELECT * FROM c.x.t AS OF SYSTEM TIME {before}").sqlstate == "42P01"


def test_in_a_block_it_is_used_at_once_and_rolled_back_whole(talk: Talk) -> None:
    say(talk, f"BEGIN\n{CONVERT}\nINSERT INTO c.x.t VALUES (7)\nROLLBACK")
    assert len(rows(talk, "TABLE x.t")) == 1
    say(talk, f"BEGIN\nSAVEPOINT s\n{CONVERT}\nROLLBACK TO s\nCOMMIT\nTABLE x.t")
    say(talk, f"BEGIN\n{CONVERT}\nINSERT INTO c.x.t VALUES (7)\nCOMMIT")
    assert len(rows(talk, "TABLE c.x.v")) == 2


@pytest.mark.parametrize(
    ("setup", "seconds"),
    [
        ("", "14400"),
        ("ALTER DATABASE x CONFIGURE ZONE USING gc.ttlseconds = 90000", "90000"),
        ("ALTER SCHEMA x.public CONFIGURE ZONE USING gc.ttlseconds = 80000", "80000"),
        ("ALTER DATABASE c CONFIGURE ZONE USING gc.ttlseconds = 60", "14400"),
    ],
)
def test_the_ttl_in_force_is_kept(talk: Talk, setup: str, seconds: str) -> None:
    if setup:
        say(talk, setup)
    say(talk, CONVERT)
    assert rows(talk, "SHOW ZONE CONFIGURATION FROM TABLE c.x.t")[0][2] == seconds


def test_references_between_databases_become_references_between_schemas(talk: Talk) -> None:
    say(
        talk,
        """
SET CLUSTER SETTING sql.cross_database_references = on
ALTER TABLE y.u ADD COLUMN t int REFERENCES x.t
CREATE VIEW y.w AS SELECT id FROM x.v
SET CLUSTER SETTING sql.cross_database_references = off
""",
    )
    said = talk.say(CONVERT)
    assert said.sqlstate == "55000"
    assert "refers to" in said.message
    assert talk.say("ALTER DATABASE y, x CONVERT TO SCHEMA WITH PARENT c").tag == "ALTER DATABASE"
    assert rows(talk, "TABLE tenure_internal.cross_database_references") == []
    assert talk.say("INSERT INTO c.y.u VALUES (1, 99)").sqlstate == "23503"
    assert rows(talk, "TABLE c.y.w") == [("1",)]


def test_references_to_the_parent_are_no_obstacle(talk: Talk) -> None:
    say(
        talk,
        "SET CLUSTER SETTING sql.cross_database_references = on\nCREATE TABLE c.r (t int REFERENCES x.t)",
    )
    say(talk, f"SET CLUSTER SETTING sql.cross_database_references = off\n{CONVERT}")
    assert talk.say("INSERT INTO c.r VALUES (9)").sqlstate == "23503"


@pytest.mark.parametrize(
    ("setup", "statement", "sqlstate"),
    [
        ("CREATE SCHEMA x.more", CONVERT, "55000"),
        ("CREATE SCHEMA c.x", CONVERT, "42P06"),
        ("", "ALTER DATABASE x CONVERT TO SCHEMA WITH PARENT x", "42P17"),
        ("", "ALTER DATABASE x CONVERT TO SCHEMA WITH PARENT nope", "3D000"),
        ("", "ALTER DATABASE nope CONVERT TO SCHEMA WITH PARENT c", "3D000"),
        ("", "ALTER DATABASE defaultdb CONVERT TO SCHEMA WITH PARENT c", "55006"),
        ("", "ALTER DATABASE system CONVERT TO SCHEMA WITH PARENT c", "2BP01"),
        ("", "ALTER DATABASE x CONVERT TO SCHEMA WITH PARENT system", "2BP01"),
        ("CREATE DATABASE pg_x", "ALTER DATABASE pg_x CONVERT TO SCHEMA WITH PARENT c", "42939"),
        ("", "ALTER DATABASE x CONVERT TO SCHEMA", "42601"),
        ("", "ALTER DATABASE x, CONVERT TO SCHEMA WITH PARENT c", "42601"),
        ("CREATE TABLE y.t (a int)", "ALTER TABLE x.t RENAME TO y.public.t", "42P07"),
        ("", "ALTER TABLE x.t RENAME TO y.nope.t", "3F000"),
        ("", "ALTER TABLE x.t RENAME TO y.t.u.v", "42601"),
        ("", "ALTER TABLE x.t RENAME TO y.public.t", "0A000"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    talk: Talk, setup: str, statement: str, sqlstate: str
) -> None:
    if setup:
        say(talk, setup)
    assert talk.say(statement).sqlstate == sqlstate
    say(talk, "TABLE x.t")


def test_only_owners_of_all_databases_convert(talk: Talk, nodes: Node) -> None:
    say(talk, "CREATE USER ann\nALTER DATABASE x OWNER TO ann")
    ann = Talk(nodes, user="ann")
    said = ann.say(CONVERT)
    assert (said.sqlstate, said.message) == ("42501", "must be owner of database c")
    say(talk, "ALTER DATABASE c OWNER TO ann")
    said = ann.say(CONVERT)
    assert said.tag == "ALTER DATABASE", said
    ann.close()


def test_privileges_on_the_tables_and_on_public_stay(talk: Talk, nodes: Node) -> None:
    say(talk, "CREATE USER ann\nCREATE USER bob\nGRANT SELECT ON x.t TO ann, bob")
    inside = Talk(nodes, database="x")
    say(inside, "REVOKE USAGE ON SCHEMA public FROM PUBLIC\nGRANT USAGE ON SCHEMA public TO ann")
    inside.close()
    say(talk, CONVERT)
    ann, bob = Talk(nodes, user="ann"), Talk(nodes, user="bob")
    assert ann.say("TABLE c.x.t").sqlstate == ""
    assert bob.say("TABLE c.x.t").sqlstate == "42501"
    ann.close()
    bob.close()


def test_more_than_one_commit_holds_is_refused(talk: Talk) -> None:
    for number in range(5):
        say(talk, f"CREATE TABLE x.t{number} (a int)\nCOMMENT ON TABLE x.t{number} IS '{'long' * 5_000}'")
    say(talk, "SET CLUSTER SETTING kv.transaction.max_bytes = '65536'")
    assert talk.say(CONVERT).sqlstate == "54000"
    say(talk, f"RESET CLUSTER SETTING kv.transaction.max_bytes\n{CONVERT}")
    assert len(rows(talk, "SHOW TABLES FROM c.x")) == 8


def test_a_table_moves_to_another_database(talk: Talk) -> None:
    say(
        talk,
        "CREATE SCHEMA y.s\nCREATE TABLE x.lone (a serial, b int UNIQUE)\nINSERT INTO x.lone (b) VALUES (5)",
    )
    oid = rows(talk, "SELECT id FROM system.namespace WHERE name = 'lone'")
    assert talk.say("ALTER TABLE x.lone RENAME TO y.s.moved").tag == "ALTER TABLE"
    assert rows(talk, "SELECT id FROM system.namespace WHERE name = 'moved'") == oid
    assert rows(talk, "INSERT INTO y.s.moved (b) VALUES (6) RETURNING a > 1") == [("t",)]
    assert talk.say("INSERT INTO y.s.moved (b) VALUES (5)").sqlstate == "23505"
    assert talk.say("TABLE x.lone").sqlstate == "42P01"
    said = talk.say("ALTER TABLE IF EXISTS x.lone RENAME TO y.s.lone")
    assert said.notices == (("00000", 'relation "lone" does not exist, skipping', ""),)
    say(
        talk,
        "ALTER TABLE y.s.moved RENAME TO y.public.moved\nALTER TABLE y.public.moved RENAME TO y.public.again",
    )
    say(talk, "TABLE y.again")


def test_nobody_gets_in_by_a_conversion(talk: Talk, nodes: Node) -> None:
    script = """
CREATE USER insider
CREATE USER outsider
REVOKE CONNECT ON DATABASE x FROM PUBLIC
GRANT CONNECT ON DATABASE x TO insider
GRANT SELECT ON x.t TO insider, outsider
"""
    say(talk, script + CONVERT)
    insider, outsider = Talk(nodes, "c", "insider"), Talk(nodes, "c", "outsider")
    assert len(rows(insider, "TABLE x.t")) == 1
    assert outsider.say("TABLE x.t").sqlstate == "42501"
    insider.close()
    outsider.close()


def test_default_privileges_of_the_database_are_those_of_the_schema(talk: Talk, nodes: Node) -> None:
    say(talk, "CREATE USER reader")
    inside = Talk(nodes, "x")
    say(inside, "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader")
    inside.close()
    say(talk, CONVERT + "\nCREATE TABLE c.x.later (a int)")
    reader = Talk(nodes, "c", "reader")
    assert rows(reader, "TABLE x.later") == []
    reader.close()
