"""TRUNCATE swaps in empty indexes: as PostgreSQL answers, alone and with another node, while others write."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tenure.catalog.descriptors.definitions import Table
from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Saying, Talk, compare, running

SCRIPTS = {
    "rows before and after": """
CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c text)
CREATE INDEX t_c ON t (c)
INSERT INTO t SELECT g, g + 100, 'c' || g FROM generate_series(1, 20) g
BEGIN
INSERT INTO t VALUES (21, 121, 'c21')
UPDATE t SET c = 'x' WHERE a < 5
TRUNCATE t
SELECT count(*) FROM t
SELECT a FROM t WHERE a = 3
SELECT a FROM t WHERE c = 'c7'
INSERT INTO t VALUES (3, 107, 'again')
like: INSERT INTO t VALUES (4, 107, 'taken')
ROLLBACK
SELECT count(*), min(c), max(c) FROM t
BEGIN
DELETE FROM t WHERE a = 1
TRUNCATE TABLE t
INSERT INTO t VALUES (3, 107, 'again'), (4, 108, 'c7')
UPDATE t SET b = 1 WHERE a = 4
COMMIT
SELECT * FROM t ORDER BY a
SELECT a FROM t WHERE b = 107
SELECT a FROM t WHERE c = 'c7'
INSERT INTO t VALUES (5, 107, 'taken')
TRUNCATE t
SELECT count(*) FROM t
INSERT INTO t VALUES (5, 107, 'free')
TABLE t
""",
    "savepoints": """
CREATE TABLE t (a int PRIMARY KEY, b int)
INSERT INTO t VALUES (1, 1), (2, 2)
BEGIN
INSERT INTO t VALUES (3, 3)
SAVEPOINT s
UPDATE t SET b = 20 WHERE a = 2
TRUNCATE t
INSERT INTO t VALUES (2, 200), (9, 9)
SELECT * FROM t ORDER BY a
ROLLBACK TO s
SELECT * FROM t ORDER BY a
TRUNCATE t
SAVEPOINT r
INSERT INTO t VALUES (4, 4)
ROLLBACK TO r
INSERT INTO t VALUES (5, 5)
COMMIT
SELECT * FROM t ORDER BY a
BEGIN
TRUNCATE t
INSERT INTO t VALUES (1, 1)
SAVEPOINT s
TRUNCATE t
INSERT INTO t VALUES (2, 2)
RELEASE s
COMMIT
SELECT * FROM t
""",
    "foreign keys": """
CREATE TABLE p (a int PRIMARY KEY, v int)
CREATE TABLE c (a int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, c int REFERENCES c)
INSERT INTO p VALUES (1, 1), (2, 2)
INSERT INTO c VALUES (1, 1, NULL), (2, 2, 1)
TRUNCATE p
TRUNCATE p, c
INSERT INTO c VALUES (1, 1, NULL)
INSERT INTO p VALUES (1, 1)
INSERT INTO c VALUES (1, 1, 1)
TRUNCATE p CASCADE
SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM c)
INSERT INTO p VALUES (1, 1), (2, 2)
INSERT INTO c VALUES (1, 1, 1)
BEGIN
TRUNCATE c
DELETE FROM p WHERE a = 1
INSERT INTO c VALUES (7, 2, 7)
DELETE FROM p WHERE a = 2
SELECT * FROM c
ROLLBACK
BEGIN
TRUNCATE c, p
INSERT INTO p VALUES (5, 5)
INSERT INTO c VALUES (5, 5, NULL)
COMMIT
INSERT INTO c VALUES (6, 1, NULL)
DELETE FROM p
TABLE c
""",
    "changes of the same table": """
CREATE TABLE t (a int PRIMARY KEY, b int, c int)
CREATE TABLE u (a int PRIMARY KEY)
INSERT INTO t VALUES (1, 1, 1), (2, 1, NULL)
INSERT INTO u VALUES (1)
BEGIN
ALTER TABLE t ADD COLUMN d int NOT NULL DEFAULT 7
TRUNCATE t
CREATE UNIQUE INDEX t_b ON t (b)
ALTER TABLE t ALTER c SET NOT NULL, ADD CHECK (c > 0), DROP COLUMN d
INSERT INTO t VALUES (1, 1, 1)
ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES u
COMMIT
INSERT INTO t VALUES (2, 1, 1)
INSERT INTO t VALUES (2, 2, 1)
INSERT INTO t VALUES (2, NULL, NULL)
INSERT INTO t VALUES (2, NULL, 0)
DELETE FROM u
BEGIN
TRUNCATE t
ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (b)
INSERT INTO t VALUES (1, 1, 1)
COMMIT
TABLE t
BEGIN
TRUNCATE t
ALTER TABLE t ALTER a TYPE text
ALTER TABLE t RENAME TO s
INSERT INTO s VALUES ('one', 1, 1)
COMMIT
TABLE s
BEGIN
TRUNCATE s
DROP TABLE s
COMMIT
SELECT * FROM s
BEGIN
CREATE TABLE n (a int UNIQUE)
INSERT INTO n VALUES (1)
TRUNCATE n
INSERT INTO n VALUES (1)
COMMIT
TABLE n
""",
    "rows in the way of what comes after": """
CREATE TABLE t (a int PRIMARY KEY, b int)
INSERT INTO t VALUES (1, 1)
BEGIN
TRUNCATE t
INSERT INTO t VALUES (1, 1), (2, 1)
ours: CREATE UNIQUE INDEX t_b ON t (b)
theirs: ROLLBACK
23505: COMMIT
TABLE t
""",
    "no primary key, sequences, a view": """
CREATE TABLE t (a serial, b text)
CREATE VIEW v AS SELECT b FROM t
INSERT INTO t (b) VALUES ('a'), ('b'), ('b')
TRUNCATE t
INSERT INTO t (b) VALUES ('c')
TABLE t
TRUNCATE t RESTART IDENTITY
INSERT INTO t (b) VALUES ('d')
TABLE t
TABLE v
TRUNCATE v
TRUNCATE nope
""",
    "a reference to what was emptied": """
CREATE TABLE p (a int PRIMARY KEY)
CREATE TABLE c (a int PRIMARY KEY, p int)
INSERT INTO p VALUES (1), (2)
INSERT INTO c VALUES (1, 1)
BEGIN
TRUNCATE p
ours: ALTER TABLE c ADD CONSTRAINT fk FOREIGN KEY (p) REFERENCES p
theirs: ROLLBACK
23503: COMMIT
TABLE p
BEGIN
TRUNCATE p
INSERT INTO p VALUES (1)
ALTER TABLE c ADD CONSTRAINT fk FOREIGN KEY (p) REFERENCES p
COMMIT
INSERT INTO c VALUES (2, 2)
DELETE FROM p
""",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_truncate_answers_as_postgres(script: str, nodes: Node, oracle: Oracle) -> None:
    compare(nodes, oracle, SCRIPTS[script])


# ── others at the same time ────────────────────────────────────────────────────────────────────


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    with running(tmp_path) as first, running(tmp_path) as second:
        talk = Talk(first)
        assert not talk.say("CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE)").sqlstate
        assert not talk.say("CREATE TABLE u (a int PRIMARY KEY)").sqlstate
        assert not talk.say("CREATE VIEW v AS SELECT * FROM t").sqlstate
        assert not talk.say("INSERT INTO t VALUES (1, 1), (2, 2)").sqlstate
        talk.close()
        yield first, second


def until_closed(node: Node, name: str = "t") -> None:
    """Until a node knows that a table is being emptied."""
    for _ in range(600):
        assert node.leases.newest is not None
        found = [each for each in node.leases.newest.descriptors() if isinstance(each, Table)]
        if any(each.is_closed for each in found if each.name == name):
            return
        node.store.env.sleep(0.05)
    raise AssertionError("the table was not closed")


def rows(node: Node, query: str) -> tuple[tuple[str | None, ...], ...]:
    talk = Talk(node)
    try:
        said = talk.say(query)
        assert not said.sqlstate, said
        return said.rows
    finally:
        talk.close()


@pytest.mark.parametrize("is_of_same_node", [False, True])
def test_a_writer_that_came_first_is_waited_for_and_its_rows_are_gone(
    two: tuple[Node, Node], is_of_same_node: bool
) -> None:
    first, second = two
    writer = Talk(first if is_of_same_node else second)
    writer.say("BEGIN")
    writer.say("INSERT INTO t VALUES (3, 3)")
    truncating = Saying(Talk(first), "TRUNCATE t")
    until_closed(second)
    assert truncating.said is None
    assert writer.say("INSERT INTO t VALUES (4, 4)").tag == "INSERT 0 1"
    assert writer.say("COMMIT").tag == "COMMIT"
    assert truncating.result().tag == "TRUNCATE TABLE"
    for node in two:
        assert rows(node, "SELECT * FROM t") == ()


def test_a_reader_that_came_first_sees_all_rows_to_its_end(two: tuple[Node, Node]) -> None:
    first, second = two
    reader = Talk(second)
    reader.say("BEGIN")
    assert reader.say("SELECT count(*) FROM t").rows == (("2",),)
    truncating = Saying(Talk(first), "TRUNCATE t")
    until_closed(second)
    assert reader.say("SELECT a FROM t WHERE b = 2").rows == (("2",),)
    assert reader.say("COMMIT").tag == "COMMIT"
    assert truncating.result().tag == "TRUNCATE TABLE"


@pytest.mark.parametrize(
    "statement", ["INSERT INTO t VALUES (3, 2)", "SELECT a FROM t WHERE a = 1", "TABLE t", "TABLE v"]
)
@pytest.mark.parametrize("is_of_same_node", [False, True])
def test_a_statement_that_comes_later_waits_and_meets_the_new_indexes(
    two: tuple[Node, Node], statement: str, is_of_same_node: bool
) -> None:
    first, second = two
    late = Talk(first if is_of_same_node else second)
    if not statement.startswith("INSERT"):
        late.say(statement)  # a plan is kept of it
    holder = Talk(second)
    holder.say("BEGIN")
    holder.say("TABLE t")
    truncating = Saying(Talk(first), "TRUNCATE t")
    until_closed(second)
    until_closed(first)
    waiting = Saying(late, statement)
    holder.say("COMMIT")
    assert truncating.result().tag == "TRUNCATE TABLE"
    said = waiting.result()
    is_insert = statement.startswith("INSERT")
    assert (said.tag, said.rows) == ("INSERT 0 1" if is_insert else "SELECT 0", ())
    expected = (("3", "2"),) if is_insert else ()
    for node in two:
        assert rows(node, "TABLE t") == expected


def test_a_block_that_meets_a_table_being_emptied_starts_over(two: tuple[Node, Node]) -> None:
    first, second = two
    block, holder = Talk(second), Talk(second)
    block.say("BEGIN")
    block.say("INSERT INTO u VALUES (1)")
    holder.say("BEGIN")
    holder.say("TABLE t")
    truncating = Saying(Talk(first), "TRUNCATE t")
    until_closed(second)
    waiting = Saying(block, "INSERT INTO t VALUES (3, 3)")
    holder.say("COMMIT")
    assert waiting.result().sqlstate == "40001"
    assert truncating.result().tag == "TRUNCATE TABLE"
    assert rows(second, "TABLE u") == ()


def test_a_row_that_an_emptied_table_refers_to_is_deleted_after_it(two: tuple[Node, Node]) -> None:
    first, second = two
    talk = Talk(first)
    talk.say("INSERT INTO u VALUES (1), (2)")
    talk.say("ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES u")
    deleting, holder = Talk(second), Talk(second)
    holder.say("BEGIN")
    holder.say("TABLE t")
    truncating = Saying(talk, "TRUNCATE t")
    until_closed(second)
    waiting = Saying(deleting, "DELETE FROM u WHERE a = 1")
    holder.say("COMMIT")
    assert truncating.result().tag == "TRUNCATE TABLE"
    assert waiting.result().tag == "DELETE 1"


def test_a_table_is_open_again_when_the_block_that_emptied_it_fails(two: tuple[Node, Node]) -> None:
    first, second = two
    talk, other = Talk(first), Talk(second)
    for statement in ("BEGIN", "SELECT * FROM u", "TRUNCATE t", "INSERT INTO u VALUES (1)"):
        assert not talk.say(statement).sqlstate
    other.say("INSERT INTO u VALUES (1)")
    assert talk.say("COMMIT").sqlstate == "40001"
    for node in two:
        assert rows(node, "SELECT * FROM t ORDER BY a") == (("1", "1"), ("2", "2"))
    assert other.say("INSERT INTO t VALUES (3, 3)").tag == "INSERT 0 1"
    assert talk.say("TRUNCATE t").tag == "TRUNCATE TABLE"


def test_the_past_has_the_rows_from_before(two: tuple[Node, Node]) -> None:
    talk = Talk(two[0])
    ((before_at,),) = talk.say("SELECT cluster_logical_timestamp()").rows
    talk.say("TRUNCATE t")
    talk.say("INSERT INTO t VALUES (7, 7)")
    ((after_at,),) = talk.say("SELECT cluster_logical_timestamp()").rows
    talk.say("TRUNCATE t")
    for node in two:
        assert rows(node, f"SELECT a FROM t AS OF SYSTEM TIME {before_at} ORDER BY a") == (("1",), ("2",))
        assert rows(node, f"SELECT a FROM t AS OF SYSTEM TIME {after_at} WHERE b = 7") == (("7",),)
        assert rows(node, "SELECT a FROM t") == ()


MOVES, WRITERS, INSERTS = 6, 3, 40


@pytest.mark.invariant("emptied-alone")
def test_rows_that_are_moved_away_while_others_insert_are_neither_lost_nor_doubled(
    two: tuple[Node, Node],
) -> None:
    """A block that copies all rows and truncates takes exactly those that were there."""
    first, second = two
    Talk(first).say("TRUNCATE t")
    acknowledged: list[int] = []

    def insert(number: int) -> None:
        talk = Talk(two[number % 2])
        for step in range(INSERTS):
            key = number * 1000 + step
            if not talk.say(f"INSERT INTO t VALUES ({key}, {key})").sqlstate:
                acknowledged.append(key)
        talk.close()

    threads = [Thread(target=insert, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    moving = Talk(first)
    moved = 0
    while moved < MOVES or any(thread.is_alive() for thread in threads):
        for statement in ("BEGIN", "INSERT INTO u SELECT a FROM t", "TRUNCATE t"):
            moving.say(statement)
        moved += moving.say("COMMIT").tag == "COMMIT"
    for thread in threads:
        thread.join()
    left = [int(a or 0) for (a,) in rows(second, "SELECT a FROM t")]
    taken = [int(a or 0) for (a,) in rows(second, "SELECT a FROM u")]
    assert sorted(left + taken) == sorted(acknowledged)
    assert taken


# ── what it costs, and what is left behind ─────────────────────────────────────────────────────


def test_a_table_of_more_rows_than_a_commit_may_write_is_truncated(node: Node) -> None:
    talk = Talk(node)
    talk.say("CREATE TABLE large (a int PRIMARY KEY, b int)")
    talk.say("INSERT INTO large SELECT g, g FROM generate_series(1, 1500) g")
    talk.say("SET CLUSTER SETTING kv.transaction.max_rows = 1000")
    try:
        assert talk.say("DELETE FROM large").sqlstate == "54000"
        assert talk.say("TRUNCATE large").tag == "TRUNCATE TABLE"
    finally:
        talk.say("RESET CLUSTER SETTING kv.transaction.max_rows")
    assert rows(node, "SELECT count(*) FROM large") == (("0",),)


def test_a_block_that_fills_empties_and_fills_again_writes_the_last_rows_only(node: Node) -> None:
    talk = Talk(node)
    talk.say("CREATE TABLE refilled (a int PRIMARY KEY)")
    talk.say("SET CLUSTER SETTING kv.transaction.max_rows = 1000")
    try:
        talk.say("BEGIN")
        for _ in range(3):
            assert talk.say("TRUNCATE refilled").tag == "TRUNCATE TABLE"
            filled = talk.say("INSERT INTO refilled SELECT g FROM generate_series(1, 900) g")
            assert filled.tag == "INSERT 0 900"
        assert talk.say("COMMIT").tag == "COMMIT"
    finally:
        talk.say("RESET CLUSTER SETTING kv.transaction.max_rows")
    assert rows(node, "SELECT count(*) FROM refilled") == (("900",),)
