"""Temporary tables belong to one session: others see nothing of them, and nothing of them is left."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tenure.base.timestamp import MAX_AT
from tenure.cluster.sessions.liveness import Liveness
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.keys import USER_TABLES, Span
from tenure.node import Node
from tenure.storage.engine import History
from tenure.table.temporary_rows import TemporaryObject
from tests.unit.sql.sessions import Said, Talk, running


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with running(tmp_path) as node:
        yield node


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    with running(tmp_path) as first, running(tmp_path) as second:
        yield first, second


def _said(talk: Talk, *lines: str) -> Said:
    for line in lines:
        answer = talk.say(line)
        assert answer.sqlstate == "", (line, answer)
    return answer


def _clean(node: Node) -> None:
    while node.temporary_rows.step() is not None:
        pass


def _revisions(node: Node) -> list[bytes]:
    """The keys of all revisions of users' tables, old ones and tombstones too."""
    keyspace = node.store.keyspace
    span = Span(keyspace.table_span(USER_TABLES).lo, keyspace.all().hi)
    found = node.store.engine.history(History(span.lo, span.hi, keyspace.guard(span), since_at=0))
    return [each.key for each in found.revisions]


def _lose_session(node: Node, other: Node) -> None:
    """The other node deletes the node's session; the node gets another one."""
    session, liveness = node.liveness.session(), node.liveness
    other.store.transact(lambda txn: other.cluster.sessions.release(txn, session.id))
    assert isinstance(liveness, Liveness)
    while not session.done.is_set() or liveness._session is session:
        liveness.step()
    node.leases.renew()


@pytest.mark.invariant("temporary-own")
def test_sessions_share_neither_temporary_tables_nor_plans_of_them(node: Node) -> None:
    one, two = Talk(node), Talk(node)
    _said(one, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (0)", "SELECT * FROM t")
    for talk, value in ((one, 1), (two, 2)):
        assert _said(talk, "SELECT * FROM t").rows == (("0",),)
        _said(talk, "CREATE TEMP TABLE t (a int)", f"INSERT INTO t VALUES ({value})")
    assert _said(one, "SELECT * FROM t").rows == (("1",),)
    assert _said(two, "SELECT * FROM t").rows == (("2",),)
    assert _said(Talk(node), "SELECT * FROM t").rows == (("0",),)
    schema = _said(one, "SELECT (current_schemas(true))[1]").rows[0][0]
    assert _said(one, f"SELECT * FROM {schema}.t").rows == (("1",),)
    assert two.say(f"SELECT * FROM {schema}.t").sqlstate == "42P01"
    assert two.say(f"INSERT INTO {schema}.t VALUES (9)").sqlstate == "42P01"
    assert two.say(f"DROP TABLE {schema}.t").sqlstate == "3F000"
    assert two.say(f"CREATE TABLE {schema}.u (a int)").sqlstate == "3F000"
    assert schema not in {row[0] for row in _said(two, "SHOW TABLES").rows}
    assert (schema, "t", "table", "root") in _said(one, "SHOW TABLES").rows


@pytest.mark.invariant("temporary-gone")
def test_nothing_is_left_of_temporary_tables_when_their_session_ends(node: Node) -> None:
    talk = Talk(node)
    _said(
        talk,
        "CREATE TEMP TABLE t (id serial PRIMARY KEY, v text)",
        "INSERT INTO t (v) SELECT 'x' FROM generate_series(1, 100)",
        "UPDATE t SET v = 'y'",
        "CREATE INDEX ON t (v)",
        "DELETE FROM t WHERE id < 10",
        "TRUNCATE t",
        "INSERT INTO t (v) VALUES ('last')",
        "BEGIN",
        "CREATE TEMP TABLE u (id serial)",
        "INSERT INTO u DEFAULT VALUES",
        "ROLLBACK",
        "BEGIN",
        "CREATE TEMP TABLE u (a int)",
        "INSERT INTO u VALUES (1)",
        "DROP TABLE u",
        "COMMIT",
    )
    _clean(node)
    assert _said(talk, "SELECT v FROM t").rows == (("last",),)
    assert len({node.store.keyspace.table_and_index(key[:10]) for key in _revisions(node)}) == 2
    talk.close()
    _clean(node)
    assert _revisions(node) == []
    assert node.temporary_rows.objects() == []
    assert _said(Talk(node), "SELECT count(*) FROM system.descriptor WHERE id > 101").rows == (("0",),)


def test_dropped_and_discarded_tables_leave_nothing_while_their_session_goes_on(node: Node) -> None:
    talk = Talk(node)
    for ending in ("DROP TABLE t", "DISCARD TEMP", "DISCARD ALL"):
        _said(talk, "CREATE TEMP TABLE t (id serial)", "INSERT INTO t DEFAULT VALUES", ending)
        _clean(node)
        assert _revisions(node) == []
        assert node.temporary_rows.objects() == []


@pytest.mark.invariant("temporary-told")
def test_a_session_that_outlives_its_node_session_is_told_that_its_tables_are_lost(
    pair: tuple[Node, Node],
) -> None:
    node, other = pair
    talk, neighbour = Talk(node), Talk(other)
    _said(talk, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (0)")
    _said(neighbour, "CREATE TEMP TABLE t (a int)", "INSERT INTO t VALUES (2)")
    _said(talk, "CREATE TEMP TABLE t (a int)", "INSERT INTO t VALUES (1)")
    _lose_session(node, other)
    answer = talk.say("INSERT INTO t VALUES (3)")
    assert (answer.sqlstate, '"t"' in answer.message) == ("55000", True)
    assert _said(talk, "SELECT * FROM t").rows == (("0",),)
    other.temporary_rows.sweep()
    assert [each.session for each in other.temporary_rows.objects()] == [other.liveness.session().id]
    assert _said(neighbour, "SELECT * FROM t").rows == (("2",),)
    _said(talk, "CREATE TEMP TABLE t (a int)", "INSERT INTO t VALUES (4)")
    assert _said(talk, "SELECT * FROM t").rows == (("4",),)


def test_a_block_that_loses_its_tables_half_way_commits_nothing(pair: tuple[Node, Node]) -> None:
    node, other = pair
    talk = Talk(node)
    _said(talk, "CREATE TABLE p (a int)", "CREATE TEMP TABLE t (a int)", "BEGIN", "INSERT INTO t VALUES (1)")
    _said(talk, "INSERT INTO p VALUES (1)")
    _lose_session(node, other)
    assert talk.say("COMMIT").sqlstate == "40001"
    assert talk.say("SELECT * FROM p").sqlstate == "55000"
    assert _said(talk, "SELECT * FROM p").rows == ()
    other.temporary_rows.sweep()
    assert other.temporary_rows.objects() == []


@pytest.mark.invariant("temporary-alive")
def test_a_sweep_removes_what_the_dead_have_left_and_nothing_else(pair: tuple[Node, Node]) -> None:
    node, other = pair
    talk = Talk(other)
    _said(talk, "CREATE TEMP TABLE t (a int)", "INSERT INTO t VALUES (1)")
    node.store.transact(lambda txn: node.temporary_rows.note(txn, SessionId(99, MAX_AT - 1), 5000))
    key = node.store.keyspace.key(5000, (1,))
    node.store.transact(lambda txn: txn.put(key, b"left"))
    node.temporary_rows.sweep()
    assert [each.session for each in node.temporary_rows.objects()] == [other.liveness.session().id]
    assert key not in _revisions(node)
    assert _said(talk, "SELECT * FROM t").rows == (("1",),)


@pytest.mark.invariant("temporary-atomic")
def test_a_commit_that_fails_leaves_the_temporary_tables_as_they_were(node: Node) -> None:
    talk, rival = Talk(node), Talk(node)
    _said(talk, "CREATE TABLE p (a int PRIMARY KEY)", "INSERT INTO p VALUES (1)")
    _said(talk, "CREATE TEMP TABLE t (a int)", "INSERT INTO t VALUES (1)")
    _said(talk, "BEGIN", "SELECT sum(a) FROM p", "ALTER TABLE t ADD COLUMN b int DEFAULT 2")
    _said(talk, "CREATE TEMP TABLE u (a int)", "INSERT INTO p VALUES (3)")
    _said(rival, "INSERT INTO p VALUES (2)")
    assert talk.say("COMMIT").sqlstate == "40001"
    assert _said(talk, "SELECT * FROM t").rows == (("1",),)
    assert talk.say("SELECT * FROM u").sqlstate == "42P01"
    _clean(node)
    assert all(isinstance(each, TemporaryObject) for each in node.temporary_rows.objects())
    assert len(node.temporary_rows.objects()) == 1


def test_changes_of_temporary_tables_reach_no_catalog_and_no_other_node(pair: tuple[Node, Node]) -> None:
    node, other = pair
    talk = Talk(node)
    _said(talk, "CREATE TABLE p (a int)")
    lease_at = other.leases.newest_at()
    _said(talk, "CREATE TEMP TABLE t (a int)", "ALTER TABLE t ADD COLUMN b int", "DROP TABLE t")
    assert other.leases.newest_at() == lease_at
    assert _said(Talk(other), "SELECT count(*) FROM system.descriptor WHERE id > 101").rows == (("1",),)


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("CREATE TEMP TABLE e (a int DEFAULT nextval('numbers'))", "0A000"),
        ("CREATE TABLE e (a int DEFAULT nextval('own'))", "0A000"),
        ("SELECT * FROM t AS OF SYSTEM TIME '-1s'", "0A000"),
        ("ALTER TABLE t CONFIGURE ZONE USING gc.ttlseconds = 10", "0A000"),
        ("CREATE SNAPSHOT s FOR TABLE t", "0A000"),
        ("RUN GC NOW FOR TABLE t", "0A000"),
        ("IMPORT INTO t CSV DATA ('x.csv')", "0A000"),
        ("EXPORT INTO CSV 'x' FROM SELECT * FROM t", "0A000"),
        ("CREATE SCHEMA pg_temp_77", "42939"),
    ],
)
def test_what_temporary_tables_cannot_do_is_refused(node: Node, statement: str, sqlstate: str) -> None:
    talk = Talk(node)
    _said(talk, "CREATE TYPE mood AS ENUM ('glad')", "CREATE SEQUENCE numbers", "CREATE TABLE t (a int)")
    _said(talk, "CREATE TEMP SEQUENCE own", "CREATE TEMP TABLE t (a int)")
    answer = talk.say(statement)
    assert answer.sqlstate == sqlstate, answer
    _said(talk, "INSERT INTO t VALUES (1)")


def test_a_plain_user_reads_own_temporary_views_which_nobody_else_has(node: Node) -> None:
    _said(Talk(node), "CREATE ROLE plain LOGIN")
    plain, other = Talk(node, user="plain"), Talk(node)
    _said(plain, "CREATE TEMP TABLE hidden (a int)", "INSERT INTO hidden VALUES (5)")
    _said(plain, "CREATE TEMP VIEW shown AS SELECT a + 1 AS b FROM hidden")
    _said(plain, "CREATE VIEW doubled AS SELECT 2 * b AS c FROM shown")
    assert _said(plain, "SELECT c FROM doubled").rows == (("12",),)
    assert other.say("SELECT * FROM doubled").sqlstate == "42P01"
    assert other.say("SELECT * FROM shown").sqlstate == "42P01"


def test_temporary_views_are_lost_with_the_node_session(pair: tuple[Node, Node]) -> None:
    node, other = pair
    talk = Talk(node)
    _said(talk, "CREATE TEMP VIEW v AS SELECT 1 AS a")
    _lose_session(node, other)
    answer = talk.say("SELECT * FROM v")
    assert (answer.sqlstate, '"v"' in answer.message) == ("55000", True)
    assert talk.say("SELECT * FROM v").sqlstate == "42P01"


def test_clients_fill_read_and_copy_temporary_tables(node: Node) -> None:
    assert node.front is not None
    where = f"host={node.front.host} port={node.front.port} user=root dbname=defaultdb"
    with psycopg.connect(where) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        cursor.execute("INSERT INTO t VALUES (1, 'permanent')")
        connection.commit()
        connection.autocommit = True
        for _ in range(8):  # prepared after some: the short way of point lookups
            row = cursor.execute("SELECT v FROM t WHERE id = %s", (1,)).fetchone()
            assert row == ("permanent",)
        cursor.execute("CREATE TEMP TABLE t (id int PRIMARY KEY, v text)")
        with cursor.copy("COPY t FROM STDIN") as copy:
            copy.write(b"1\ttemporary\n2\tb\n")
        for _ in range(8):
            row = cursor.execute("SELECT v FROM t WHERE id = %s", (1,)).fetchone()
            assert row == ("temporary",)
        cursor.execute("ALTER TABLE t RENAME COLUMN v TO w")
        cursor.execute("ALTER TABLE t ADD COLUMN v text DEFAULT 'new'")
        assert cursor.execute("SELECT v FROM t WHERE id = %s", (1,)).fetchone() == ("new",)
        with cursor.copy("COPY (SELECT * FROM t ORDER BY id) TO STDOUT") as copied:
            assert b"".join(copied) == b"1\ttemporary\tnew\n2\tb\tnew\n"
        plan = "\n".join(row[0] for row in cursor.execute("EXPLAIN SELECT * FROM t WHERE id = 1"))
        assert "t_pkey" in plan or "t" in plan
        cursor.execute("DROP TABLE t")
        assert cursor.execute("SELECT v FROM t WHERE id = %s", (1,)).fetchone() == ("permanent",)


def test_show_create_writes_what_makes_a_temporary_table_again(node: Node) -> None:
    talk = Talk(node)
    _said(talk, "CREATE TEMP TABLE t (a int PRIMARY KEY)")
    text = _said(talk, "SHOW CREATE TABLE t").rows[0][-1]
    assert text is not None and text.startswith("CREATE TABLE pg_temp.t")
    _said(talk, "DROP TABLE t", text, "SELECT * FROM pg_temp.t")
