"""LOCK TABLE, and snapshots that transactions share."""

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Talk, compare

SCRIPTS = {
    "the_modes_of_reading_and_writing_are_taken": """
CREATE TABLE t (a int)
CREATE VIEW v AS SELECT a FROM t
BEGIN
LOCK TABLE t IN ACCESS SHARE MODE
LOCK t IN ROW SHARE MODE NOWAIT
LOCK TABLE ONLY public.t, v IN ROW EXCLUSIVE MODE
0A000: LOCK TABLE t
theirs: LOCK TABLE t
ROLLBACK
""",
    "a_lock_needs_a_block": """
CREATE TABLE t (a int)
LOCK TABLE t IN ACCESS SHARE MODE
""",
    "what_cannot_be_locked_is_refused": """
CREATE SEQUENCE s
BEGIN
like: LOCK TABLE s IN ACCESS SHARE MODE
ROLLBACK
BEGIN
like: LOCK TABLE nothing IN ACCESS SHARE MODE
ROLLBACK
""",
    "a_lock_needs_a_privilege": """
CREATE ROLE role_reader
CREATE TABLE t (a int)
CREATE TABLE closed (a int)
GRANT SELECT ON t TO role_reader
theirs: GRANT USAGE ON SCHEMA public TO role_reader
SET ROLE role_reader
BEGIN
LOCK TABLE t IN ACCESS SHARE MODE
like: LOCK TABLE t IN ROW EXCLUSIVE MODE
ROLLBACK
BEGIN
like: LOCK TABLE closed IN ACCESS SHARE MODE
ROLLBACK
RESET ROLE
DROP TABLE t
DROP TABLE closed
theirs: DROP OWNED BY role_reader
DROP ROLE role_reader
""",
    "a_snapshot_that_is_none_is_refused": """
BEGIN ISOLATION LEVEL REPEATABLE READ
like: SET TRANSACTION SNAPSHOT '-10s'
ROLLBACK
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_lock_is_answered_as_by_postgresql(node: Node, oracle: Oracle, name: str) -> None:
    compare(node, oracle, SCRIPTS[name])


def test_a_transaction_reads_the_snapshot_of_another(node: Node) -> None:
    first, second, writer = (Talk(node) for _ in range(3))
    writer.say("CREATE TABLE shared (a int)")
    writer.say("INSERT INTO shared VALUES (1)")
    first.say("BEGIN READ ONLY")
    ((snapshot,),) = first.say("SELECT pg_export_snapshot()").rows
    writer.say("INSERT INTO shared VALUES (2)")
    second.say("BEGIN")
    assert second.say(f"SET TRANSACTION SNAPSHOT '{snapshot}'").tag == "SET"
    count = "SELECT count(*) FROM shared"
    assert [each.say(count).rows for each in (first, second, writer)] == [(("1",),), (("1",),), (("2",),)]
    assert second.say("INSERT INTO shared VALUES (3)").sqlstate == "25006"
    for each in (first, second, writer):
        each.close()
