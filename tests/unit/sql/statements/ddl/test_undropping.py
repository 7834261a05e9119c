"""UNDROP: what is back, what is not and is told, and when it is refused."""

from collections.abc import Iterator

import pytest

from tenure.catalog.descriptors.definitions import DescriptorState, Table, next_version, replace
from tenure.kv.transaction import Transaction
from tenure.node import Node
from tests.unit.schema_change.declared import inconsistent_names
from tests.unit.sql.sessions import Said, Saying, Talk


@pytest.fixture
def talk(nodes: Node) -> Iterator[Talk]:
    talk = Talk(nodes)
    yield talk
    talk.close()
    assert inconsistent_names(nodes) == []


def say(talk: Talk, script: str) -> list[Said]:
    found = []
    for line in script.strip().splitlines():
        said = talk.say(line)
        assert not said.sqlstate, (line, said)
        found.append(said)
    return found


def rows(talk: Talk, query: str) -> list[tuple[str | None, ...]]:
    return list(say(talk, query)[0].rows)


TABLE = """
CREATE TYPE mood AS ENUM ('fine')
CREATE TABLE p (id int PRIMARY KEY)
CREATE TABLE t (id serial PRIMARY KEY, p int REFERENCES p, m mood DEFAULT 'fine' CHECK (id > 0))
CREATE INDEX t_p ON t (p)
CREATE TABLE c (t int REFERENCES t)
CREATE VIEW v AS SELECT id, m FROM t
CREATE VIEW w AS SELECT id FROM v
COMMENT ON TABLE t IS 'mine'
ALTER TABLE t CONFIGURE ZONE USING gc.ttlseconds = 9000
INSERT INTO p VALUES (1)
INSERT INTO t (p) VALUES (1), (1)
"""


def test_a_table_is_back_with_all_that_was_its_own(talk: Talk) -> None:
    say(talk, TABLE)
    oid = rows(talk, "SELECT 't'::regclass::oid")
    say(talk, "DROP TABLE t CASCADE")
    said = talk.say("UNDROP TABLE t")
    assert said.tag == "UNDROP TABLE"
    assert [each[2].splitlines() for each in said.notices] == [
        ["constraint t_p_fkey on table public.t", "constraint c_t_fkey on table public.c"]
    ]
    assert rows(talk, "SELECT 't'::regclass::oid") == oid
    assert rows(talk, "INSERT INTO t (p) VALUES (5) RETURNING id, m") == [("3", "fine")]
    assert rows(talk, "SELECT id FROM t WHERE p = 1") == [("1",), ("2",)]
    assert rows(talk, "TABLE w") == [("1",), ("2",), ("3",)]
    assert rows(talk, "SHOW ZONE CONFIGURATION FROM TABLE t")[0][2] == "9000"
    assert ("public", "t", "table", "root", "mine") in rows(talk, "SHOW TABLES WITH COMMENT")
    assert talk.say("INSERT INTO t (id, p) VALUES (-1, 1)").sqlstate == "23514"
    assert talk.say("DROP TYPE mood").sqlstate == "2BP01"
    assert talk.say("DROP TABLE t").sqlstate == "2BP01", "its views depend on it again"
    say(talk, "ALTER TABLE c ADD FOREIGN KEY (t) REFERENCES t")


def test_history_is_read_before_and_after_and_between_it_does_not_exist(talk: Talk) -> None:
    say(talk, "CREATE TABLE t (a int)\nINSERT INTO t VALUES (1)")
    before = rows(talk, "SELECT cluster_logical_timestamp()")[0][0]
    say(talk, "DROP TABLE t")
    between = rows(talk, "SELECT cluster_logical_timestamp()")[0][0]
    say(talk, "UNDROP TABLE t\nINSERT INTO t VALUES (2)")
    assert rows(talk, f"SELECT * FROM t AS OF SYSTEM TIME {before}") == [("1",)]
    assert talk.say(f"SELECT * FROM t AS OF SYSTEM TIME {between}").sqlstate == "42P01"
    assert rows(talk, "TABLE t") == [("1",), ("2",)]


def test_a_schema_is_back_with_what_went_with_it(talk: Talk) -> None:
    say(
        talk,
        """
CREATE SCHEMA s CREATE TABLE a (id int PRIMARY KEY) CREATE TABLE b (a int REFERENCES a) CREATE SEQUENCE q
CREATE TYPE s.mood AS ENUM ('fine')
CREATE TABLE s.early (a int)
CREATE TABLE outside (m s.mood, n int)
CREATE VIEW v AS SELECT a FROM s.b
INSERT INTO s.a VALUES (1)
SELECT nextval('s.q')
DROP TABLE s.early
DROP SCHEMA s CASCADE
""",
    )
    said = talk.say("UNDROP TABLE s.a")
    assert (said.sqlstate, said.hint) == (
        "42P01",
        'One was dropped with schema "s", which must be brought back before.',
    )
    said = talk.say("UNDROP SCHEMA s")
    assert [each[2] for each in said.notices] == ["the use of type mood by table public.outside"]
    assert talk.say("INSERT INTO s.b VALUES (7)").sqlstate == "23503", "both tables went and came together"
    say(talk, "INSERT INTO s.b VALUES (1)")
    assert talk.say("DELETE FROM s.a").sqlstate == "23503"
    assert rows(talk, "TABLE v") == [("1",)]
    assert rows(talk, "SELECT nextval('s.q')")[0][0] != "1"
    assert talk.say("TABLE s.early").sqlstate == "42P01", "it was dropped before"
    say(talk, "UNDROP TABLE s.early\nTABLE s.early")


def test_a_database_is_back_with_its_schemas(talk: Talk) -> None:
    say(
        talk,
        "CREATE DATABASE d\nCREATE SCHEMA d.s CREATE TABLE t (a serial)\nINSERT INTO d.s.t DEFAULT VALUES",
    )
    say(talk, "DROP DATABASE d\nUNDROP DATABASE d")
    assert rows(talk, "TABLE d.s.t") == [("1",)]
    say(talk, "DROP SCHEMA d.s CASCADE\nUNDROP SCHEMA d.s")
    assert rows(talk, "INSERT INTO d.s.t DEFAULT VALUES RETURNING a > 1") == [("t",)]


def test_of_several_the_last_one_comes_back_once_the_name_is_free(talk: Talk) -> None:
    say(
        talk,
        "CREATE TABLE t (a int)\nDROP TABLE t\nCREATE TABLE t (b int)\nDROP TABLE t\nCREATE TABLE t (c int)",
    )
    said = talk.say("UNDROP TABLE t")
    assert (said.sqlstate, said.hint) == (
        "42P07",
        "Rename what has the name now, then say UNDROP TABLE again.",
    )
    say(talk, "ALTER TABLE t RENAME TO third\nUNDROP TABLE t")
    assert talk.say("TABLE t").columns == ("b",)
    say(talk, "ALTER TABLE t RENAME TO second\nUNDROP TABLE t")
    assert talk.say("TABLE t").columns == ("a",)


def test_in_a_block_it_is_used_and_given_up_again(talk: Talk) -> None:
    say(talk, "CREATE TABLE t (a int PRIMARY KEY)\nINSERT INTO t VALUES (1)\nDROP TABLE t")
    say(talk, "BEGIN\nUNDROP TABLE t\nINSERT INTO t VALUES (2)\nROLLBACK")
    assert talk.say("TABLE t").sqlstate == "42P01"
    say(
        talk,
        "BEGIN\nUNDROP TABLE t\nINSERT INTO t VALUES (2)\nSAVEPOINT s\nDROP TABLE t\nROLLBACK TO s\nCOMMIT",
    )
    assert rows(talk, "TABLE t") == [("1",), ("2",)]
    say(talk, "BEGIN\nDROP TABLE t")
    assert talk.say("UNDROP TABLE t").sqlstate == "55006"
    say(talk, "ROLLBACK\nBEGIN\nDROP TABLE t\nCOMMIT\nBEGIN\nUNDROP TABLE t\nDROP TABLE t\nCOMMIT")
    assert talk.say("TABLE t").sqlstate == "42P01"


def test_what_is_being_collected_stays_away_and_so_does_its_schema(nodes: Node, talk: Talk) -> None:
    say(talk, "CREATE SCHEMA s CREATE TABLE t (a int) CREATE TABLE u (a int)")
    id = int(rows(talk, "SELECT 's.t'::regclass::oid")[0][0] or 0)
    say(talk, "DROP SCHEMA s CASCADE")

    def collect(txn: Transaction) -> None:
        table = nodes.catalog.get(txn, id)
        assert isinstance(table, Table)
        nodes.catalog.put(txn, next_version(replace(table, state=DescriptorState.COLLECTED)))

    nodes.store.transact(collect)
    nodes.leases.renew()
    said = talk.say("UNDROP SCHEMA s")
    assert (said.sqlstate, said.message) == (
        "42704",
        '"t" cannot be brought back: its data is being removed',
    )
    nodes.store.transact(lambda txn: nodes.catalog.delete(txn, id))
    nodes.leases.renew()
    said = talk.say("UNDROP SCHEMA s")
    assert (said.sqlstate, said.message) == (
        "42704",
        "schema s cannot be brought back: table t is collected",
    )


def test_only_owners_bring_back(talk: Talk, nodes: Node) -> None:
    say(talk, "CREATE USER ann\nCREATE TABLE t (a int)\nDROP TABLE t")
    ann = Talk(nodes, user="ann")
    assert ann.say("UNDROP TABLE t").sqlstate == "42501"
    ann.close()


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("UNDROP TABLE nope", "42P01"),
        ("UNDROP TABLE nope.nope", "42P01"),
        ("UNDROP SCHEMA nope", "3F000"),
        ("UNDROP SCHEMA nope.nope", "3D000"),
        ("UNDROP DATABASE nope", "3D000"),
        ("UNDROP VIEW v", "42601"),
        ("UNDROP DATABASE a.b", "42601"),
        ("UNDROP TABLE a, b", "42601"),
        ("UNDROP", "42601"),
    ],
)
def test_what_is_not_dropped_is_not_found(talk: Talk, statement: str, sqlstate: str) -> None:
    assert talk.say(statement).sqlstate == sqlstate


def test_while_the_drop_drains_it_waits_for_it(two: tuple[Node, Node]) -> None:
    first, second = two
    talk, holder, late = Talk(first), Talk(second), Talk(first)
    say(talk, "CREATE TABLE t (a int)\nINSERT INTO t VALUES (1)")
    say(holder, "BEGIN\nTABLE t")
    dropping = Saying(talk, "DROP TABLE t")
    for _ in range(600):
        stored = [each for each in first.catalog.list(first.store.snapshot()) if each.name == "t"]
        if stored[0].draining:
            break
        first.store.env.sleep(0.05)
    coming = Saying(late, "UNDROP TABLE t")
    assert dropping.said is None and coming.said is None
    say(holder, "COMMIT")
    assert dropping.result().tag == "DROP TABLE"
    assert coming.result().tag == "UNDROP TABLE"
    for node in two:
        assert rows(Talk(node), "TABLE t") == [("1",)]


OWNED = """
CREATE ROLE before LOGIN
CREATE SCHEMA s AUTHORIZATION before
CREATE TABLE s.t (id serial PRIMARY KEY)
ALTER TABLE s.t OWNER TO before
CREATE VIEW s.v AS SELECT id FROM s.t
ALTER VIEW s.v OWNER TO before
"""


@pytest.mark.parametrize("by", ["root", "after"])
def test_what_is_back_belongs_to_its_role_under_the_name_that_this_has_now(
    talk: Talk, nodes: Node, by: str
) -> None:
    say(talk, OWNED + "DROP SCHEMA s CASCADE\nALTER ROLE before RENAME TO after\nCREATE ROLE before LOGIN")
    assert Talk(nodes, user="before").say("UNDROP SCHEMA s").sqlstate == "42501"
    say(talk, "GRANT CREATE ON DATABASE defaultdb TO after")
    say(Talk(nodes, user=by), "UNDROP SCHEMA s")
    owners = "SELECT relowner::regrole::text FROM pg_class WHERE relname IN ('t', 'v', 't_id_seq')"
    assert rows(talk, owners) == [("after",)] * 3
    assert rows(talk, "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 's'") == [("after",)]
    say(
        Talk(nodes, user="after"), "INSERT INTO s.t DEFAULT VALUES\nSELECT * FROM s.v\nDROP TABLE s.t CASCADE"
    )


def test_what_belonged_to_a_dropped_role_is_back_when_a_superuser_gives_it_to_another(
    talk: Talk, nodes: Node
) -> None:
    say(talk, OWNED + "DROP SCHEMA s CASCADE\nDROP ROLE before")
    said = talk.say("UNDROP SCHEMA s")
    assert (said.sqlstate, said.message) == ("42704", 'role "before", which owned schema s, was dropped')
    say(talk, "CREATE ROLE before LOGIN")
    assert Talk(nodes, user="before").say("UNDROP SCHEMA s").sqlstate == "42501"
    say(talk, "UNDROP SCHEMA s")
    say(Talk(nodes, user="before"), "INSERT INTO s.t DEFAULT VALUES")


def test_what_a_dropped_role_was_granted_is_not_back_for_another_of_its_name(talk: Talk, nodes: Node) -> None:
    say(talk, "CREATE ROLE reader LOGIN\nCREATE ROLE writer\nCREATE TABLE t (a int, b int)")
    say(talk, "GRANT SELECT ON t TO reader\nGRANT UPDATE (b) ON t TO reader\nGRANT INSERT ON t TO writer")
    say(talk, "DROP TABLE t\nDROP ROLE reader\nALTER ROLE writer RENAME TO author\nCREATE ROLE reader LOGIN")
    say(talk, "UNDROP TABLE t")
    reader = Talk(nodes, user="reader")
    assert reader.say("SELECT * FROM t").sqlstate == "42501"
    assert reader.say("UPDATE t SET b = 1").sqlstate == "42501"
    assert rows(talk, "SELECT has_table_privilege('author', 't', 'INSERT')") == [("t",)]


def test_what_comes_back_needs_the_right_to_create_it(talk: Talk, nodes: Node) -> None:
    script = """
CREATE USER guest
CREATE SCHEMA s
GRANT USAGE, CREATE ON SCHEMA s TO guest
GRANT CREATE ON DATABASE defaultdb TO guest
CREATE DATABASE d OWNER guest
"""
    say(talk, script)
    guest = Talk(nodes, user="guest")
    say(guest, "CREATE TABLE s.t (a int)\nCREATE SCHEMA mine\nDROP SCHEMA mine\nDROP DATABASE d")
    say(talk, "REVOKE CREATE ON SCHEMA s FROM guest\nREVOKE CREATE ON DATABASE defaultdb FROM guest")
    say(talk, "DROP TABLE s.t")
    for each in ("TABLE s.t", "SCHEMA mine", "DATABASE d"):
        assert guest.say(f"UNDROP {each}").sqlstate == "42501"
    say(talk, "REVOKE USAGE ON SCHEMA s FROM guest")
    assert guest.say("UNDROP TABLE s.missing").sqlstate == "42501"
    say(talk, "GRANT USAGE, CREATE ON SCHEMA s TO guest\nGRANT CREATE ON DATABASE defaultdb TO guest")
    say(guest, "UNDROP TABLE s.t\nUNDROP SCHEMA mine")
    guest.close()
