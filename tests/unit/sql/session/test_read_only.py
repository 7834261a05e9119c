"""Read only: in a block and outside of one, however it was asked for, as PostgreSQL has it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.unit.sql.served import Served, serving
from tests.unit.sql.sessions import Oracle, Talk, compare

SCHEMA = """
like: DEALLOCATE ALL
CREATE TABLE t (id int PRIMARY KEY, a int)
CREATE SEQUENCE s
CREATE VIEW v AS SELECT * FROM t
INSERT INTO t VALUES (1, 1), (2, 2)
PREPARE put AS INSERT INTO t VALUES (50, 50)
"""

WRITES = """
like: INSERT INTO t VALUES (3, 3)
like: INSERT INTO t VALUES (1, 1) ON CONFLICT DO NOTHING
like: UPDATE t SET a = 5
like: UPDATE t SET a = 5 WHERE false
like: DELETE FROM t
like: EXECUTE put
like: EXPLAIN ANALYZE INSERT INTO t VALUES (3, 3)
like: SELECT * FROM t FOR UPDATE
like: SELECT * FROM t FOR SHARE
like: SELECT nextval('s')
like: SELECT setval('s', 7)
like: TRUNCATE t
like: CREATE TABLE u (id int)
like: CREATE TABLE u AS SELECT 1 AS x
like: SELECT 1 AS x INTO u
like: CREATE TABLE IF NOT EXISTS t (id int)
like: CREATE INDEX ON t (a)
like: CREATE UNIQUE INDEX i ON t (a)
like: CREATE VIEW w AS SELECT 1 AS x
like: CREATE SEQUENCE r
like: CREATE SCHEMA sc
like: CREATE TYPE mood AS ENUM ('sad')
like: CREATE ROLE role_x
like: ALTER TABLE t ADD COLUMN b int
like: ALTER TABLE t RENAME TO tt
like: ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)
like: ALTER SEQUENCE s RESTART
like: ALTER ROLE postgres PASSWORD 'x'
like: DROP TABLE t
like: DROP TABLE IF EXISTS nothing
like: DROP VIEW v
like: DROP SEQUENCE s
like: COMMENT ON TABLE t IS 'x'
"""

READS = """
SELECT * FROM t ORDER BY id
SELECT count(*) FROM v
EXPLAIN (COSTS off) SELECT 1
SELECT pg_advisory_lock(4)
SELECT pg_advisory_unlock(4)
SELECT currval('s')
PREPARE p AS SELECT 1 AS x
EXECUTE p
SET application_name = 'x'
ANALYZE
"""


def script(*parts: str) -> str:
    return "\n".join(part.strip("\n") for part in parts)


def in_a_block(begin: str) -> str:
    """Each writing statement in a block of its own, which fails."""
    return script(*(f"{begin}\n{each}\nROLLBACK" for each in WRITES.strip().splitlines()))


BEGINNINGS = {
    "BEGIN READ ONLY": "BEGIN READ ONLY",
    "asyncpg": "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
    "SET TRANSACTION": "BEGIN\nSET TRANSACTION READ ONLY",
    "by name": "BEGIN\nSET transaction_read_only = on",
    "LOCAL": "BEGIN\nSET LOCAL transaction_read_only TO 'on'",
    "after a query": "BEGIN\nSELECT count(*) FROM t\nSET TRANSACTION READ ONLY",
    "set_config": "BEGIN\nSELECT set_config('transaction_read_only', 'on', true)",
    "in a savepoint": "BEGIN\nSAVEPOINT x\nSET TRANSACTION READ ONLY",
}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=list(BEGINNINGS))
def test_a_block_that_only_reads_writes_nothing(node: Node, oracle: Oracle, begin: str) -> None:
    compare(node, oracle, script(SCHEMA, in_a_block(begin), "SELECT * FROM t ORDER BY id"))


DEFAULTS = {
    "the variable": "SET default_transaction_read_only = on",
    "JDBC": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "psycopg2": "SET default_transaction_read_only TO 'on'",
    "set_config": "SELECT set_config('default_transaction_read_only', 'on', false)",
}


@pytest.mark.parametrize("ask", DEFAULTS.values(), ids=list(DEFAULTS))
def test_a_default_counts_for_single_statements_too(node: Node, oracle: Oracle, ask: str) -> None:
    compare(
        node,
        oracle,
        script(
            SCHEMA,
            "SELECT nextval('s')",
            ask,
            WRITES,
            READS.replace("EXPLAIN (COSTS off) SELECT 1\n", "").replace("ANALYZE\n", "like: ANALYZE\n"),
            in_a_block("BEGIN"),
            """
BEGIN READ WRITE
INSERT INTO t VALUES (4, 4)
COMMIT
BEGIN
SET TRANSACTION READ WRITE
INSERT INTO t VALUES (5, 5)
COMMIT
like: INSERT INTO t VALUES (6, 6)
SET default_transaction_read_only = off
INSERT INTO t VALUES (7, 7)
SELECT * FROM t ORDER BY id
""",
        ),
    )


def test_shows_tell_the_truth(node: Node, oracle: Oracle) -> None:
    shows = "\n".join(
        f"SHOW {name}\nSELECT current_setting('{name}')"
        for name in ("transaction_read_only", "transaction_deferrable", "transaction_isolation")
    )
    compare(
        node,
        oracle,
        script(
            "SET default_transaction_isolation = 'serializable'",
            shows,
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ,"
            " READ ONLY, DEFERRABLE",
            "SHOW default_transaction_read_only",
            "SHOW default_transaction_deferrable",
            "SHOW default_transaction_isolation",
            shows,
            "BEGIN",
            shows,
            "SET default_transaction_read_only = off",
            "SET default_transaction_isolation = 'read committed'",
            shows,
            "COMMIT",
            shows,
            "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, NOT DEFERRABLE",
            shows,
            "SAVEPOINT x",
            shows,
            "COMMIT AND CHAIN",
            shows,
            "ROLLBACK",
            shows,
            "START TRANSACTION READ WRITE",
            shows,
            "SAVEPOINT x",
            "SET TRANSACTION READ ONLY",
            shows,
            "ROLLBACK TO x",
            shows,
            "COMMIT",
            "SET transaction_read_only = on",
            shows,
            "BEGIN",
            "SET TRANSACTION READ ONLY",
            "RESET ALL",
            shows,
            "COMMIT",
            "SET default_transaction_isolation = 'serializable'",  # where the two differ
            shows,
        ),
    )


def test_what_cannot_be_set_any_more_says_so(node: Node, oracle: Oracle) -> None:
    compare(
        node,
        oracle,
        """
CREATE TABLE t (id int PRIMARY KEY)
SET default_transaction_isolation = 'serializable'
BEGIN READ ONLY
SELECT * FROM t
SET TRANSACTION READ WRITE
ROLLBACK
BEGIN READ ONLY
SELECT * FROM t
SET transaction_read_only = off
ROLLBACK
BEGIN READ ONLY
SAVEPOINT x
SET TRANSACTION READ WRITE
ROLLBACK
BEGIN
SAVEPOINT x
SET TRANSACTION READ ONLY
ROLLBACK TO x
INSERT INTO t VALUES (1)
COMMIT
BEGIN
SELECT * FROM t
SET TRANSACTION ISOLATION LEVEL READ COMMITTED
ROLLBACK
BEGIN
SELECT * FROM t
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
SET TRANSACTION READ ONLY
SET TRANSACTION DEFERRABLE
ROLLBACK
BEGIN
SAVEPOINT x
SET TRANSACTION ISOLATION LEVEL READ COMMITTED
ROLLBACK
BEGIN
SAVEPOINT x
SET TRANSACTION NOT DEFERRABLE
ROLLBACK
SET TRANSACTION READ ONLY
BEGIN READ ONLY
BEGIN READ WRITE
ROLLBACK
like: RESET transaction_read_only
like: SET transaction_read_only = 'perhaps'
SELECT * FROM t
""",
    )


def test_our_own_statements_write_nothing_either(node: Node) -> None:
    talk = Talk(node)
    talk.say("CREATE TABLE own (id int)")
    talk.say("SET default_transaction_read_only = on")
    for statement in (
        "SET CLUSTER SETTING sql.query_memory = 100000000",
        "RESET CLUSTER SETTING sql.query_memory",
        "IMPORT INTO own CSV DATA ('nothing.csv')",
        "IMPORT PGDUMP 'nothing.sql'",
        "CANCEL JOB 1",
        "PAUSE JOBS (SELECT 1::int8)",
        "CREATE DATABASE another",
        "DROP DATABASE IF EXISTS another",
    ):
        assert talk.say(statement).sqlstate == "25006", statement
    for statement in ("SHOW JOBS", "SHOW ALL CLUSTER SETTINGS", "SHOW SESSIONS", "SHOW CREATE TABLE own"):
        assert talk.say(statement).sqlstate == "", statement
    talk.close()


def test_a_block_that_reads_the_past_says_that_it_only_reads(node: Node) -> None:
    talk = Talk(node)
    talk.say("BEGIN AS OF SYSTEM TIME '-1ms'")
    assert talk.say("SHOW transaction_read_only").rows == (("on",),)
    assert talk.say("SET TRANSACTION READ WRITE").sqlstate == "25001"
    talk.say("ROLLBACK")
    assert talk.say("SHOW transaction_read_only").rows == (("off",),)
    talk.close()


# ── over the wire ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(Path(tmp_path_factory.mktemp("read_only"))) as served:
        served.tag("CREATE TABLE t (id int PRIMARY KEY)")
        yield served


def test_a_client_that_asks_for_it_when_it_connects(served: Served) -> None:
    with served.connect(options="-c default_transaction_read_only=on") as client:
        assert client.info.parameter_status("default_transaction_read_only") == "on"
        with pytest.raises(Exception, match="read-only transaction"):
            client.execute("INSERT INTO t VALUES (1)")
        with (
            pytest.raises(Exception, match="read-only transaction"),
            client.cursor().copy("COPY t FROM STDIN") as copy,
        ):
            copy.write_row((1,))
        client.execute("SET default_transaction_read_only = off")
        client.execute("INSERT INTO t VALUES (1)")


def test_psycopg_read_only(served: Served) -> None:
    with served.connect() as client:
        client.autocommit = False
        client.read_only = True
        with pytest.raises(Exception, match="read-only transaction"):
            client.execute("INSERT INTO t VALUES (2)")
        client.rollback()
        client.read_only = False
        client.execute("INSERT INTO t VALUES (2)")


def test_clients_that_look_for_a_node_that_writes(served: Served) -> None:
    with served.connect(target_session_attrs="read-write") as client:
        assert client.execute("SHOW transaction_read_only").fetchall() == [("off",)]
    with pytest.raises(Exception, match=r"read-write|read-only"):
        served.connect(target_session_attrs="read-write", options="-c default_transaction_read_only=on")
