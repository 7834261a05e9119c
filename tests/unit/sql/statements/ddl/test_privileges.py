"""Privileges on every path: the same roles, objects and statements as PostgreSQL, and further ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.errors import InsufficientPrivilege
from tenure.node import Node
from tests.unit.sql.sessions import ROLE, Oracle, Said, Talk, running
from tests.unit.sql.statements.ddl.test_roles import do, refused, value

SETUP = """
CREATE ROLE role_owner
CREATE ROLE role_reader
CREATE ROLE role_writer
CREATE ROLE role_club
CREATE ROLE role_member
CREATE ROLE role_outside NOINHERIT
CREATE ROLE role_creator
CREATE ROLE role_nobody
CREATE ROLE role_columns
GRANT role_club TO role_member
GRANT role_club TO role_outside
CREATE SCHEMA app AUTHORIZATION role_owner
CREATE TABLE app.t (a int PRIMARY KEY, b int)
CREATE TABLE app.u (a int PRIMARY KEY)
CREATE SEQUENCE app.s
CREATE TYPE app.mood AS ENUM ('sad', 'ok')
ALTER TABLE app.t OWNER TO role_owner
ALTER TABLE app.u OWNER TO role_owner
ALTER SEQUENCE app.s OWNER TO role_owner
ALTER TYPE app.mood OWNER TO role_owner
CREATE VIEW app.v AS SELECT a FROM app.t
ALTER VIEW app.v OWNER TO role_owner
CREATE VIEW app.w AS SELECT a FROM app.t
ALTER VIEW app.w OWNER TO role_nobody
GRANT USAGE ON SCHEMA app TO role_reader, role_writer, role_club, role_creator
GRANT SELECT ON app.t, app.s, app.w TO role_reader
GRANT INSERT, UPDATE, DELETE, TRUNCATE ON app.t TO role_writer
GRANT USAGE ON app.s TO role_writer
GRANT SELECT ON app.v TO role_club
GRANT CREATE ON SCHEMA app TO role_creator
GRANT REFERENCES ON app.u TO role_creator
GRANT UPDATE ON app.s TO role_creator
GRANT SELECT ON app.t TO role_club WITH GRANT OPTION
REVOKE USAGE ON TYPE app.mood FROM PUBLIC
GRANT USAGE ON TYPE app.mood TO role_writer
GRANT USAGE, CREATE ON SCHEMA app TO role_columns
GRANT SELECT (a), INSERT (a), UPDATE (b) ON app.t TO role_columns
GRANT REFERENCES (a) ON app.u TO role_columns
GRANT SELECT (a) ON app.v TO role_columns WITH GRANT OPTION
""".strip().splitlines()

ROLES = ("owner", "reader", "writer", "club", "member", "outside", "creator", "nobody", "columns")

STATEMENTS = """
SELECT * FROM app.t
SELECT count(*) FROM app.v
SELECT * FROM app.w
SELECT last_value FROM app.s
SELECT * FROM app.missing
WITH x AS (SELECT a FROM app.t) SELECT 1 FROM x
SELECT (SELECT max(a) FROM app.t)
SELECT nextval('app.s')
SELECT setval('app.s', 5)
INSERT INTO app.t VALUES (1, 1)
INSERT INTO app.t VALUES (1, 1) RETURNING a
INSERT INTO app.t VALUES (1, 1) ON CONFLICT (a) DO NOTHING
INSERT INTO app.t VALUES (1, 1) ON CONFLICT (a) DO UPDATE SET b = 2
INSERT INTO app.t SELECT a, a FROM app.u
UPDATE app.t SET b = 1
UPDATE app.t SET b = b + 1
UPDATE app.t SET b = 1 WHERE a = 1
DELETE FROM app.t
DELETE FROM app.t WHERE a = 1
TRUNCATE app.t
EXPLAIN SELECT * FROM app.t
EXPLAIN INSERT INTO app.t VALUES (1, 1)
CREATE TABLE app.new (a int)
CREATE TABLE app.new (a int REFERENCES app.u)
CREATE TABLE app.copy AS SELECT a FROM app.t
CREATE VIEW app.x AS SELECT 1 AS a
CREATE SEQUENCE app.z
CREATE TYPE app.kind AS ENUM ('a')
CREATE INDEX ON app.t (b)
ALTER TABLE app.t ADD COLUMN c int
ALTER TABLE app.t RENAME TO t2
ALTER TABLE app.t OWNER TO role_nobody
ALTER SEQUENCE app.s INCREMENT BY 2
ALTER TYPE app.mood RENAME TO temper
ALTER SCHEMA app RENAME TO app2
COMMENT ON TABLE app.t IS 'x'
DROP TABLE app.t
DROP TABLE app.t CASCADE
DROP VIEW app.v
DROP SEQUENCE app.s
DROP TYPE app.mood
DROP SCHEMA app CASCADE
CREATE SCHEMA mine
CREATE ROLE role_other
DROP ROLE role_reader
GRANT role_club TO role_nobody
GRANT SELECT ON app.t TO role_nobody
GRANT SELECT, INSERT ON app.t TO role_nobody
GRANT USAGE ON SCHEMA app TO role_nobody
REVOKE SELECT ON app.t FROM role_reader
REVOKE ALL ON ALL TABLES IN SCHEMA app FROM role_reader
SET ROLE role_owner
SELECT a FROM app.t
SELECT b FROM app.t
SELECT count(*) FROM app.t
SELECT count(b) FROM app.t
SELECT 1 FROM app.t WHERE b = 1
SELECT 1 FROM app.t ORDER BY b
SELECT 1 FROM app.t GROUP BY b
SELECT x.a FROM app.t x JOIN app.t y USING (a)
SELECT 1 FROM app.t x JOIN app.t y USING (b)
SELECT 1 FROM app.t x NATURAL JOIN app.t y
SELECT x.* FROM app.t x
SELECT (SELECT x.b) FROM app.t x
SELECT s.a FROM (SELECT * FROM app.t) s
SELECT s.a FROM (SELECT a FROM app.t) s
SELECT 1 FROM app.t x, LATERAL (SELECT x.a) y
SELECT row_number() OVER (PARTITION BY b) FROM app.t
SELECT a FROM app.v
SELECT 1 FROM app.v
SELECT a FROM app.t FOR UPDATE
SELECT a FROM app.v FOR UPDATE
SELECT a FROM app.t FOR SHARE
INSERT INTO app.t (a) VALUES (1)
INSERT INTO app.t (b) VALUES (1)
INSERT INTO app.t VALUES (1)
INSERT INTO app.t (a) VALUES (1) RETURNING a
INSERT INTO app.t (a) VALUES (1) RETURNING b
INSERT INTO app.t (a) VALUES (1) RETURNING *
INSERT INTO app.t (a) VALUES (1) RETURNING 1
INSERT INTO app.t (a) VALUES (1) ON CONFLICT DO NOTHING
INSERT INTO app.t (a) VALUES (1) ON CONFLICT (a) DO NOTHING
INSERT INTO app.t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 2
INSERT INTO app.t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = excluded.b
INSERT INTO app.t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = t.b
INSERT INTO app.t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2
INSERT INTO app.t (a) VALUES (1) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING
INSERT INTO app.t (a) SELECT a FROM app.t
UPDATE app.t SET a = 1
UPDATE app.t SET a = DEFAULT
UPDATE app.t SET b = a
UPDATE app.t SET b = 1 WHERE b = 1
UPDATE app.t SET b = 1 RETURNING a
UPDATE app.t SET b = 1 RETURNING old.b
UPDATE app.t SET b = 1 FROM app.v WHERE v.a = 1
UPDATE app.t SET b = 1 FROM app.u WHERE u.a = 1
DELETE FROM app.t USING app.v WHERE v.a = 1
COPY app.t (a) TO STDOUT
COPY (SELECT b FROM app.t) TO STDOUT
EXPLAIN SELECT b FROM app.t
EXPLAIN UPDATE app.t SET b = 1
CREATE TABLE app.copy AS SELECT b FROM app.t
CREATE TABLE app.new (a int REFERENCES app.u (a))
CREATE TABLE app.new (a int REFERENCES app.t (a))
CREATE TABLE app.new (m app.mood)
CREATE TABLE app.new AS SELECT 'ok'::app.mood AS m
CREATE VIEW app.x AS SELECT 'ok'::app.mood AS m
ALTER TABLE app.t ADD COLUMN c app.mood
SELECT 'ok'::app.mood
GRANT SELECT (a) ON app.t TO role_nobody
GRANT SELECT (b) ON app.t TO role_nobody
GRANT SELECT (missing) ON app.t TO role_nobody
GRANT DELETE (a) ON app.t TO role_nobody
GRANT ALL (a) ON app.v TO role_nobody
GRANT SELECT (a), UPDATE (a) ON app.v TO role_nobody
REVOKE SELECT (a) ON app.t FROM role_columns
REVOKE SELECT ON app.t FROM role_columns
GRANT USAGE ON TYPE app.mood TO role_nobody
GRANT USAGE ON TYPE app.missing TO role_nobody
GRANT SELECT ON TYPE app.mood TO role_nobody
GRANT USAGE (a) ON SCHEMA app TO role_nobody
REVOKE USAGE ON TYPE app.mood FROM role_writer
ALTER DEFAULT PRIVILEGES GRANT SELECT (a) ON TABLES TO role_nobody
ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC
""".strip().splitlines()


def named(statement: str) -> str:
    return statement.replace("role_", ROLE)


def said_as(session: Talk | Oracle, role: str, statement: str) -> Said:
    session.say("BEGIN")
    begun = session.say(f"SET LOCAL ROLE {ROLE}{role}")
    assert begun.sqlstate == "", begun
    said = session.say(named(statement))
    session.say("ROLLBACK")
    return said


@pytest.fixture(scope="module")
def sides(node: Node, oracle: Oracle) -> Iterator[tuple[Talk, Oracle]]:
    talk = Talk(node)
    for each in SETUP:
        ours, theirs = talk.say(named(each)), oracle.say(named(each))
        assert (ours.sqlstate, theirs.sqlstate) == ("", ""), (each, ours, theirs)
    yield talk, oracle
    talk.close()
    dropped(oracle)


def dropped(oracle: Oracle) -> None:
    """Everything that the setup has made is gone from PostgreSQL."""
    oracle.say("DROP SCHEMA app CASCADE")
    for role in ROLES:
        oracle.say(f"DROP OWNED BY {ROLE}{role}")
        oracle.say(f"DROP ROLE {ROLE}{role}")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_role_is_let_or_refused_as_by_postgresql(sides: tuple[Talk, Oracle], statement: str) -> None:
    talk, oracle = sides
    ours = {role: said_as(talk, role, statement).sqlstate for role in ROLES}
    theirs = {role: said_as(oracle, role, statement).sqlstate for role in ROLES}
    assert ours == theirs


@pytest.fixture
def ann(nodes: Node) -> Iterator[tuple[Talk, Talk]]:
    """The superuser with a table, and a user without any right to it."""
    root = Talk(nodes)
    do(root, "CREATE USER ann", "CREATE TABLE t (a int PRIMARY KEY, b int)", "INSERT INTO t VALUES (1, 2)")
    user = Talk(nodes, user="ann")
    yield root, user
    user.close()
    root.close()


PATHS = [
    "SELECT * FROM t WHERE a = 1",
    "SELECT b FROM t AS OF SYSTEM TIME '-1us'",
    "CREATE TABLE IF NOT EXISTS hers.c AS SELECT * FROM t AS OF SYSTEM TIME '-1us'",
    "INSERT INTO hers.own SELECT a FROM t AS OF SYSTEM TIME '-1us'",
    "EXPLAIN SELECT * FROM t",
    "EXPLAIN ANALYZE SELECT * FROM t",
    "COPY t TO STDOUT",
    "COPY (SELECT b FROM t) TO STDOUT",
    "COPY t FROM STDIN",
    "SELECT * FROM t FOR UPDATE",
    "UPSERT INTO t VALUES (1, 3)",
    "EXECUTE q",
    "ALTER TABLE t CONFIGURE ZONE USING gc.ttlseconds = 5",
    "CREATE SNAPSHOT mine FOR TABLE t",
    "EXPORT INTO CSV 'x' FROM TABLE t",
    "RUN GC NOW FOR TABLE t",
    "SELECT * FROM system.descriptor",
]


@pytest.mark.parametrize("statement", PATHS)
def test_no_path_leads_to_a_table_without_rights(ann: tuple[Talk, Talk], statement: str) -> None:
    root, user = ann
    do(root, "CREATE SCHEMA hers AUTHORIZATION ann")
    do(user, "CREATE TABLE hers.own (a int)", "PREPARE q AS SELECT * FROM t")
    assert refused(user, statement) == "42501"


def test_a_cursor_is_not_opened_without_rights(ann: tuple[Talk, Talk]) -> None:
    _, user = ann
    do(user, "BEGIN")
    assert refused(user, "DECLARE c CURSOR FOR SELECT * FROM t") == "42501"


@pytest.mark.invariant("needs-newest")
def test_a_revoke_counts_for_prepared_statements_open_blocks_and_the_past(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "GRANT SELECT ON t TO ann")
    do(user, "PREPARE q AS SELECT b FROM t WHERE a = 1", "EXECUTE q")
    session = user.session
    session.prepare("point", "SELECT b FROM t WHERE a = 1", ())
    session.bind("", "point", ())
    session.execute("", ends=True)
    do(user, "BEGIN", "SELECT * FROM t")
    do(root, "REVOKE SELECT ON t FROM ann")
    assert refused(user, "SELECT * FROM t") == "42501"
    do(user, "ROLLBACK")
    assert refused(user, "EXECUTE q") == "42501"
    assert refused(user, "SELECT b FROM t AS OF SYSTEM TIME '-1us'") == "42501"
    session.bind("", "point", (), inline=True)
    with pytest.raises(InsufficientPrivilege):
        session.execute("", ends=True, inline=True)
    session.failed()


def test_a_revoke_on_one_node_counts_on_the_other_when_it_returns(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        root = Talk(here)
        do(root, "CREATE USER ann", "CREATE TABLE t (a int PRIMARY KEY)")
        user = Talk(there, user="ann")
        for _ in range(5):
            do(root, "GRANT SELECT ON t TO ann")
            do(user, "SELECT * FROM t", "BEGIN", "SELECT * FROM t")
            do(root, "REVOKE SELECT ON t FROM ann")
            assert refused(user, "SELECT * FROM t") == "42501"
            do(user, "ROLLBACK")
        user.close()
        root.close()


def test_a_grant_is_no_new_version_and_ends_no_plan(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    version = value(root, "SELECT version FROM tenure_internal.tables WHERE table_name = 't'")
    do(root, "GRANT ALL ON t TO ann", "REVOKE INSERT ON t FROM ann")
    assert value(root, "SELECT version FROM tenure_internal.tables WHERE table_name = 't'") == version
    do(user, "SELECT * FROM t", "UPDATE t SET b = 3")


def test_a_draft_that_is_older_than_a_grant_does_not_take_it_back(nodes: Node) -> None:
    root, other = Talk(nodes), Talk(nodes)
    do(root, "CREATE USER ann", "CREATE TABLE t (a int PRIMARY KEY)")
    do(other, "BEGIN", "ALTER TABLE t ADD COLUMN b int")
    do(root, "GRANT SELECT ON t TO ann")
    do(other, "COMMIT")
    user = Talk(nodes, user="ann")
    do(user, "SELECT b FROM t")
    for each in (user, other, root):
        each.close()


def test_what_a_block_grants_counts_in_it_at_once_and_not_after_its_rollback(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "BEGIN", "GRANT SELECT ON t TO ann", "SET LOCAL ROLE ann", "SELECT * FROM t")
    assert refused(user, "SELECT * FROM t") == "42501"
    do(root, "ROLLBACK")
    assert refused(user, "SELECT * FROM t") == "42501"


def test_a_role_that_was_granted_something_is_not_dropped(ann: tuple[Talk, Talk]) -> None:
    root, _ = ann
    do(root, "CREATE ROLE reader", "GRANT SELECT ON t TO reader")
    said = root.say("DROP ROLE reader")
    assert (said.sqlstate, said.detail) == ("2BP01", "privileges for table t")
    do(root, "REVOKE ALL ON t FROM reader", "DROP ROLE reader")


def test_nobody_but_its_owner_creates_in_public(ann: tuple[Talk, Talk]) -> None:
    """CVE-2018-1058: a user leaves an object in public that others find by their search path."""
    root, user = ann
    for trap in (
        "TABLE trap (a int)",
        "VIEW trap AS SELECT 1 AS a",
        "SEQUENCE trap",
        "TYPE trap AS ENUM ('a')",
    ):
        assert refused(user, f"CREATE {trap}") == "42501"
    assert refused(user, "CREATE SCHEMA pg_catalog") in ("42939", "42501")
    assert refused(user, "CREATE TABLE pg_catalog.trap (a int)") == "42501"
    do(root, "CREATE SCHEMA hidden", "CREATE TABLE hidden.t (a int)", "GRANT ALL ON hidden.t TO ann")
    assert refused(user, "SELECT * FROM hidden.t") == "42501"
    do(user, "SET search_path = hidden, public")
    assert refused(user, "SELECT * FROM t") == "42501"
    do(root, "GRANT SELECT ON t TO ann")
    assert user.say("SELECT b FROM t").rows == (("2",),), "a schema that may not be used is passed over"


def test_the_host_gives_a_database_and_the_user_divides_it(nodes: Node) -> None:
    """The scenario of the document: schemas for the user's apps, rights for each app on its own."""
    host = Talk(nodes)
    do(host, "CREATE USER the_user", "CREATE ROLE app1 LOGIN", "CREATE ROLE app2 LOGIN")
    do(host, "CREATE DATABASE hosted", "REVOKE CONNECT ON DATABASE hosted FROM PUBLIC")
    do(host, "GRANT CONNECT, CREATE ON DATABASE hosted TO the_user")
    do(host, "GRANT CONNECT ON DATABASE hosted TO app1, app2")
    user = Talk(nodes, database="hosted", user="the_user")
    for app in ("app1", "app2"):
        do(user, f"CREATE SCHEMA {app}", f"CREATE TABLE {app}.items (a int PRIMARY KEY)")
        do(user, f"GRANT USAGE ON SCHEMA {app} TO {app}", f"GRANT ALL ON ALL TABLES IN SCHEMA {app} TO {app}")
    assert refused(user, "CREATE TABLE public.x (a int)") == "42501"
    one = Talk(nodes, database="hosted", user="app1")
    do(one, "INSERT INTO items VALUES (1)", "SELECT * FROM app1.items")
    assert refused(one, "SELECT * FROM app2.items") == "42501"
    assert refused(one, "CREATE TABLE app1.more (a int)") == "42501"
    assert refused(one, "DROP TABLE app1.items") == "42501"
    do(host, "REVOKE CONNECT ON DATABASE hosted FROM app1")
    with pytest.raises(InsufficientPrivilege, match="permission denied for database hosted"):
        Talk(nodes, database="hosted", user="app1")
    for each in (one, user, host):
        each.close()


def test_new_objects_get_the_default_privileges_of_their_owner(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "CREATE ROLE bob", "CREATE SCHEMA s", "GRANT USAGE ON SCHEMA s TO ann")
    do(root, "ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO ann")
    do(root, "ALTER DEFAULT PRIVILEGES GRANT UPDATE ON TABLES TO bob WITH GRANT OPTION")
    do(root, "CREATE TABLE s.x (a int)", "CREATE TABLE other (a int)", "CREATE VIEW s.w AS SELECT a FROM s.x")
    do(user, "SELECT * FROM s.x", "SELECT * FROM s.w")
    assert refused(user, "SELECT * FROM other") == "42501"
    do(root, "SET ROLE bob", "UPDATE other SET a = 1", "GRANT UPDATE ON other TO ann", "RESET ROLE")
    do(user, "UPDATE other SET a = 1")
    assert refused(user, "ALTER DEFAULT PRIVILEGES FOR ROLE root GRANT ALL ON TABLES TO ann") == "42501"
    assert refused(root, "DROP ROLE bob") == "2BP01"
    do(
        root,
        "ALTER DEFAULT PRIVILEGES IN SCHEMA s REVOKE SELECT ON TABLES FROM ann",
        "CREATE TABLE s.y (a int)",
    )
    assert refused(user, "SELECT * FROM s.y") == "42501"
    do(root, "DROP OWNED BY bob", "DROP ROLE bob")
    assert refused(user, "UPDATE other SET a = 1") == "42501", "what bob had granted went with him"


def test_what_a_role_owns_is_given_to_another_or_dropped(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "CREATE ROLE bob", "GRANT CREATE ON DATABASE defaultdb TO ann")
    do(
        user,
        "CREATE SCHEMA s",
        "CREATE TABLE s.x (a serial PRIMARY KEY)",
        "CREATE VIEW s.v AS SELECT a FROM s.x",
    )
    assert refused(user, "DROP OWNED BY root") == "2BP01"
    assert refused(user, "DROP OWNED BY bob") == "42501"
    assert refused(user, "REASSIGN OWNED BY ann TO bob") == "42501"
    do(root, "REASSIGN OWNED BY ann TO bob")
    assert refused(user, "SELECT * FROM s.x") == "42501"
    assert root.say("DROP ROLE bob").detail.count("owner of") == 4
    do(root, "BEGIN", "DROP OWNED BY bob", "ROLLBACK", "SELECT * FROM s.x")
    do(root, "CREATE VIEW over AS SELECT a FROM s.x")
    assert refused(root, "DROP OWNED BY bob") == "2BP01"
    do(root, "DROP OWNED BY bob CASCADE", "DROP ROLE bob")
    assert refused(root, "SELECT * FROM over") == "42P01"


def test_two_grants_on_one_object_do_not_lose_each_other(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        one, other = Talk(here), Talk(there)
        do(one, "CREATE ROLE a", "CREATE ROLE b", "CREATE TABLE t (x int)")
        do(one, "BEGIN", "GRANT SELECT ON t TO a")
        do(other, "GRANT SELECT ON t TO b")
        assert refused(one, "COMMIT") == "40001"
        do(one, "GRANT SELECT ON t TO a", "SET ROLE b", "SELECT * FROM t", "SET ROLE a", "SELECT * FROM t")
        one.close()
        other.close()


def test_temporary_objects_are_the_sessions_own(ann: tuple[Talk, Talk]) -> None:
    _, user = ann
    do(user, "CREATE TEMP TABLE mine (a serial PRIMARY KEY)", "INSERT INTO mine DEFAULT VALUES")
    do(user, "CREATE TEMP SEQUENCE own", "SELECT nextval('own')", "SELECT * FROM pg_temp.mine")
    do(user, "ALTER TABLE mine ADD COLUMN b int", "TRUNCATE mine", "DROP TABLE mine")
