"""Cursors and portals give the rows of their opening, by either executor; compared with PostgreSQL."""

from collections.abc import Iterator

import pytest

from tenure.kv.keys import USER_TABLES
from tenure.node import Node
from tenure.sql.session.answers import Answer
from tenure.sql.session.block import Block
from tests.unit.sql.sessions import Oracle, Talk, compare

SETUP = """
CREATE TABLE t (k int PRIMARY KEY, v int)
INSERT INTO t SELECT i, i * 10 FROM generate_series(1, 6) i
CREATE TABLE big (k int PRIMARY KEY, v int, w text)
CREATE INDEX big_v ON big (v)
INSERT INTO big SELECT i, i % 100, 'old' FROM generate_series(1, 6000) i
"""

SUM = "SELECT count(*), sum(v), count(DISTINCT w), min(w) FROM big"

SCRIPTS = {
    "later_writes_are_not_seen": f"""
{SETUP}
BEGIN
INSERT INTO big VALUES (0, 7, 'own')
DECLARE pages CURSOR FOR SELECT k, v, w FROM big ORDER BY k
DECLARE filtered CURSOR FOR SELECT k, w FROM big WHERE w <> 'x' ORDER BY k
DECLARE grouped CURSOR FOR SELECT w, count(*), sum(k) FROM big GROUP BY w ORDER BY w
DECLARE joined CURSOR FOR SELECT t.k, count(*) FROM t JOIN big ON big.v = t.v GROUP BY t.k ORDER BY t.k
DECLARE indexed CURSOR FOR SELECT k, w FROM big WHERE v = 3 ORDER BY k
DECLARE back CURSOR FOR SELECT k, w FROM big ORDER BY k DESC
DECLARE counted CURSOR FOR {SUM}
DECLARE nested CURSOR FOR SELECT k, (SELECT min(w) FROM big WHERE big.v = t.v) FROM t ORDER BY k
DECLARE with_query CURSOR FOR WITH q AS (SELECT * FROM big WHERE k < 5) SELECT * FROM q ORDER BY k
FETCH 3 FROM pages
FETCH 1 FROM indexed
UPDATE big SET w = 'new', v = v + 1 WHERE k > 2
DELETE FROM big WHERE k BETWEEN 1000 AND 3000
INSERT INTO big SELECT i, 3, 'more' FROM generate_series(7000, 7100) i
DELETE FROM t WHERE k < 3
FETCH 5000 FROM pages
FETCH ALL FROM pages
FETCH ALL FROM filtered
FETCH ALL FROM grouped
FETCH ALL FROM joined
FETCH ALL FROM indexed
FETCH ALL FROM back
FETCH ALL FROM counted
FETCH ALL FROM nested
FETCH ALL FROM with_query
{SUM}
COMMIT
{SUM}
""",
    "each_cursor_has_its_own_moment": f"""
{SETUP}
BEGIN
DECLARE a CURSOR FOR SELECT * FROM t ORDER BY k
UPDATE t SET v = 1
DECLARE b CURSOR FOR SELECT * FROM t ORDER BY k
DELETE FROM t WHERE k = 4
DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k
CLOSE b
UPDATE t SET v = 2
DECLARE b CURSOR FOR SELECT * FROM t ORDER BY k
INSERT INTO t VALUES (4, 4)
FETCH ALL FROM b
FETCH ALL FROM a
FETCH ALL FROM c
SELECT * FROM t ORDER BY k
COMMIT
""",
    "savepoints": f"""
{SETUP}
BEGIN
UPDATE t SET v = 1 WHERE k = 1
DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k
SAVEPOINT s
FETCH 1 FROM c
UPDATE t SET v = 2
INSERT INTO t VALUES (7, 7)
ROLLBACK TO s
FETCH 1 FROM c
UPDATE t SET v = 3
SAVEPOINT s2
FETCH 1 FROM c
INSERT INTO t VALUES (1, 7)
SELECT 1
ROLLBACK TO s2
FETCH 1 FROM c
RELEASE s
DELETE FROM t
FETCH ALL FROM c
SELECT * FROM t
COMMIT
""",
    "a_leading_savepoint": f"""
{SETUP}
BEGIN
SAVEPOINT s
DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k
FETCH 1 FROM c
INSERT INTO t VALUES (7, 7)
CREATE TABLE made (a int)
ROLLBACK TO s
FETCH 1 FROM c
ROLLBACK TO s
SELECT count(*) FROM t
SELECT * FROM made
ROLLBACK TO s
SAVEPOINT inner_s
INSERT INTO t VALUES (1, 1)
ROLLBACK TO inner_s
INSERT INTO t VALUES (8, 8)
SAVEPOINT third
UPDATE t SET v = 0
RELEASE inner_s
SELECT * FROM t ORDER BY k
ROLLBACK TO s
SELECT * FROM t ORDER BY k
INSERT INTO t VALUES (9, 9)
RELEASE s
CREATE TABLE made (a int PRIMARY KEY)
INSERT INTO made VALUES (1)
COMMIT
SELECT * FROM t ORDER BY k
SELECT * FROM made
""",
    "scrolling": f"""
{SETUP}
BEGIN
DECLARE c SCROLL CURSOR FOR SELECT * FROM t ORDER BY k
FETCH 2 FROM c
UPDATE t SET v = 0
DELETE FROM t WHERE k = 3
FETCH 2 FROM c
FETCH BACKWARD 3 FROM c
MOVE LAST FROM c
FETCH RELATIVE 0 FROM c
FETCH FIRST FROM c
MOVE FORWARD ALL FROM c
FETCH BACKWARD ALL FROM c
COMMIT
""",
    "holding": f"""
{SETUP}
BEGIN
INSERT INTO t VALUES (7, 7)
DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t ORDER BY k
FETCH 1 FROM c
UPDATE t SET v = 0
SAVEPOINT s
DELETE FROM t
ROLLBACK TO s
COMMIT
UPDATE t SET v = 100
FETCH 2 FROM c
MOVE 1 FROM c
FETCH ALL FROM c
CLOSE c
""",
    "moving": f"""
{SETUP}
BEGIN
DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k
MOVE 2 FROM c
DELETE FROM t WHERE k IN (3, 4)
MOVE 1 FROM c
FETCH ALL FROM c
COMMIT
""",
    "locked_rows_that_the_transaction_changed": f"""
{SETUP}
BEGIN
DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k FOR UPDATE
FETCH 1 FROM c
UPDATE t SET v = v + 1 WHERE k IN (1, 2)
DELETE FROM t WHERE k = 3
INSERT INTO t VALUES (3, 0), (9, 0)
FETCH 2 FROM c
SAVEPOINT s
UPDATE t SET v = 0 WHERE k = 6
ROLLBACK TO s
FETCH ALL FROM c
SELECT * FROM t ORDER BY k
DECLARE d CURSOR FOR SELECT a.k, b.k FROM t a JOIN t b ON a.k = b.k + 1 ORDER BY 1 FOR UPDATE OF b
UPDATE t SET v = -1 WHERE k = 2
FETCH ALL FROM d
DECLARE e CURSOR FOR SELECT k + 100 AS q FROM t WHERE v > 0 ORDER BY k FOR SHARE
MOVE 1 FROM e
UPDATE t SET v = 77 WHERE k IN (1, 5)
FETCH ALL FROM e
DECLARE f CURSOR FOR SELECT * FROM (SELECT k FROM t WHERE k < 5 ORDER BY k FOR UPDATE) q
DELETE FROM t WHERE k = 2
FETCH ALL FROM f
COMMIT
SELECT * FROM t ORDER BY k
""",
    "what_cannot_be_for_update": f"""
{SETUP}
BEGIN
DECLARE c SCROLL CURSOR FOR SELECT * FROM t FOR UPDATE
ROLLBACK
BEGIN
DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t FOR UPDATE
ROLLBACK
BEGIN
DECLARE c INSENSITIVE CURSOR FOR SELECT * FROM t FOR UPDATE
ROLLBACK
BEGIN
DECLARE c INSENSITIVE CURSOR FOR SELECT * FROM t ORDER BY k
DELETE FROM t
FETCH ALL FROM c
ROLLBACK
""",
    "system_tables": """
BEGIN
DECLARE c CURSOR FOR SELECT relname FROM pg_class WHERE relname LIKE 'uu%' ORDER BY 1
CREATE TABLE uu1 (a int)
FETCH ALL FROM c
DECLARE d CURSOR FOR SELECT relname FROM pg_class WHERE relname LIKE 'uu%' ORDER BY 1
CREATE TABLE uu2 (a int)
FETCH ALL FROM d
SELECT relname FROM pg_class WHERE relname LIKE 'uu%' ORDER BY 1
COMMIT
""",
    "time_stays": f"""
{SETUP}
BEGIN
SAVEPOINT s
CREATE TABLE times (a timestamptz)
ROLLBACK TO s
CREATE TABLE times (a timestamptz)
SAVEPOINT s
INSERT INTO times VALUES (now())
RELEASE s
SAVEPOINT s
SELECT 1 / 0
ROLLBACK TO s
SELECT a = now() FROM times
COMMIT
""",
}


@pytest.mark.parametrize("executor", ["auto", "rows", "duckdb"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_cursors_answer_as_in_postgres(node: Node, oracle: Oracle, name: str, executor: str) -> None:
    compare(node, oracle, f"ours: SET tenure.executor = {executor}\n{SCRIPTS[name]}")


@pytest.mark.parametrize("name", ["savepoints", "a_leading_savepoint", "system_tables"])
def test_the_number_of_nodes_makes_no_difference(nodes: Node, oracle: Oracle, name: str) -> None:
    compare(nodes, oracle, SCRIPTS[name])


# ── portals that are executed in parts ─────────────────────────────────────────────────────────


@pytest.fixture
def talk(node: Node) -> Iterator[Talk]:
    talk = Talk(node)
    talk.say("DROP TABLE IF EXISTS p")
    talk.say("CREATE TABLE p (k int PRIMARY KEY, v int)")
    talk.say("INSERT INTO p SELECT i, 0 FROM generate_series(1, 5000) i")
    yield talk
    talk.close()


def _open(talk: Talk, name: str, text: str, limit: int) -> list[tuple[object, ...]]:
    talk.session.prepare("", text, ())
    talk.session.bind(name, "", ())
    return _more(talk, name, limit)


def _more(talk: Talk, name: str, limit: int) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    while len(rows) < limit:
        answer = talk.session.execute(name, limit - len(rows), ends=False)
        assert isinstance(answer, Answer)
        rows += [tuple(row) for row in answer.rows]
        if answer.is_done:
            break
    return rows


@pytest.mark.parametrize("executor", ["rows", "duckdb"])
@pytest.mark.parametrize("begin", ["BEGIN", "ROLLBACK"], ids=["block", "implicit"])
def test_a_portal_read_in_parts_gives_the_rows_of_its_opening(talk: Talk, executor: str, begin: str) -> None:
    talk.say(f"SET tenure.executor = {executor}")
    talk.say(begin)
    rows = _open(talk, "q", "SELECT k, v FROM p ORDER BY k", 10)
    for text in ("UPDATE p SET v = 1", "DELETE FROM p WHERE k > 2000"):
        _open(talk, "", text, 1)
    rows += _more(talk, "q", 10_000)
    assert rows == [(k, 0) for k in range(1, 5001)]
    assert _open(talk, "", "SELECT count(*), sum(v) FROM p", 1) == [(2000, 2000)]


def test_a_prepared_statement_run_in_parts_gives_the_rows_of_its_opening(talk: Talk) -> None:
    talk.say("PREPARE q AS SELECT k, v FROM p ORDER BY k")
    talk.say("BEGIN")
    rows = _open(talk, "q", "EXECUTE q", 10)
    _open(talk, "", "UPDATE p SET v = 1", 1)
    rows += _more(talk, "q", 10_000)
    assert rows == [(k, 0) for k in range(1, 5001)]


# ── reads that are proved ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def pair(node: Node) -> Iterator[tuple[Talk, Talk]]:
    one, other = Talk(node), Talk(node)
    one.say("DROP TABLE IF EXISTS r")
    one.say("CREATE TABLE r (k int PRIMARY KEY, v int)")
    one.say("INSERT INTO r VALUES (1, 10), (2, 20), (3, 30)")
    yield one, other
    one.close()
    other.close()


def _run(talk: Talk, *texts: str) -> str:
    """The SQLSTATE of the first that fails."""
    return next(filter(None, (talk.say(text).sqlstate for text in texts)), "")


WRITES = ["UPDATE r SET v = 0 WHERE k = 1", "INSERT INTO r VALUES (4, 4)"]
"""The first takes a lock and moves the transaction's time up; the second is proved by its commit alone."""


READ_BEFORE = {
    "a leading savepoint": ["SAVEPOINT s", "SELECT v FROM r WHERE k = 2", "ROLLBACK TO s"],
    "nested savepoints": [
        "SAVEPOINT a",
        "SAVEPOINT b",
        "SELECT v FROM r WHERE k = 2",
        "ROLLBACK TO b",
        "RELEASE b",
        "ROLLBACK TO a",
        "RELEASE a",
    ],
    "a savepoint after a write": [
        "INSERT INTO r VALUES (9, 9)",
        "SAVEPOINT s",
        "SELECT v FROM r WHERE k = 2",
        "ROLLBACK TO s",
    ],
    "definitions taken back": [
        "SAVEPOINT s",
        "CREATE TABLE never (a int)",
        "SELECT v FROM r WHERE k = 2",
        "ROLLBACK TO s",
    ],
    "a cursor taken back": [
        "SAVEPOINT s",
        "DECLARE c CURSOR FOR SELECT v FROM r WHERE k = 2",
        "FETCH ALL FROM c",
        "ROLLBACK TO s",
    ],
    "a cursor in parts": [
        "DECLARE c CURSOR FOR SELECT v FROM r WHERE k = 2",
        "UPDATE r SET v = 0 WHERE k = 3",
        "FETCH ALL FROM c",
    ],
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", READ_BEFORE)
def test_what_was_read_stays_read(pair: tuple[Talk, Talk], name: str, write: str) -> None:
    one, other = pair
    assert _run(one, "BEGIN", *READ_BEFORE[name]) == ""
    assert _run(other, "UPDATE r SET v = 21 WHERE k = 2") == ""
    assert _run(one, write, "COMMIT") == "40001"


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("wrong", ["INSERT INTO r VALUES (2, 0)", "SELECT 1 / (v - 20) FROM r WHERE k = 2"])
def test_what_a_failed_statement_read_stays_read(pair: tuple[Talk, Talk], wrong: str, write: str) -> None:
    one, other = pair
    assert _run(one, "BEGIN", "SAVEPOINT s", wrong) in ("23505", "22012")
    assert _run(one, "ROLLBACK TO s") == ""
    assert _run(other, "DELETE FROM r WHERE k = 2") == ""
    assert _run(one, write, "COMMIT") == "40001"


def test_a_read_repeated_after_going_back_gives_the_same(pair: tuple[Talk, Talk]) -> None:
    one, other = pair
    _run(one, "BEGIN", "SAVEPOINT s")
    told = one.say("SELECT v, cluster_logical_timestamp(), now() FROM r WHERE k = 2")
    _run(one, "ROLLBACK TO s")
    _run(other, "UPDATE r SET v = 21 WHERE k = 2")
    assert one.say("SELECT v, cluster_logical_timestamp(), now() FROM r WHERE k = 2") == told
    _run(one, "ROLLBACK TO s", "RELEASE s")
    assert one.say("SELECT v, cluster_logical_timestamp(), now() FROM r WHERE k = 2") == told
    assert _run(one, "COMMIT") == ""


def test_a_block_keeps_its_moment_of_the_past_over_savepoints(pair: tuple[Talk, Talk]) -> None:
    one, other = pair
    ((at,),) = one.say("SELECT cluster_logical_timestamp()").rows
    _run(other, "UPDATE r SET v = 21 WHERE k = 2")
    _run(one, "BEGIN", "SAVEPOINT s")
    assert one.say(f"SELECT v FROM r AS OF SYSTEM TIME '{at}' WHERE k = 2").rows == (("20",),)
    _run(one, "ROLLBACK TO s")
    assert one.say("SELECT v FROM r WHERE k = 2").rows == (("20",),)
    _run(one, "ROLLBACK", "BEGIN", "SAVEPOINT s", "SELECT v FROM r WHERE k = 2", "ROLLBACK TO s")
    assert _run(one, f"SELECT v FROM r AS OF SYSTEM TIME '{at}'") == "25001"
    _run(one, "ROLLBACK")


@pytest.mark.parametrize("writes", [*([each] for each in WRITES), []])
def test_a_cursor_s_reads_are_proved_from_its_opening_when_time_moves_up(
    pair: tuple[Talk, Talk], writes: list[str]
) -> None:
    one, other = pair
    _run(one, "BEGIN", "DECLARE c CURSOR FOR SELECT v FROM r WHERE k = 2")
    _run(other, "BEGIN", "UPDATE r SET v = 11 WHERE k = 1", "UPDATE r SET v = 21 WHERE k = 2", "COMMIT")
    assert one.say("SELECT v FROM r WHERE k = 1 FOR UPDATE").rows == (("11",),)
    assert one.say("FETCH ALL FROM c").rows == (("20",),)
    assert _run(one, *writes, "COMMIT") == "40001"


def test_a_cursor_s_reads_that_still_hold_when_time_moves_up_do_no_harm(pair: tuple[Talk, Talk]) -> None:
    one, other = pair
    _run(one, "BEGIN", "DECLARE c CURSOR FOR SELECT v FROM r WHERE k = 2")
    _run(other, "UPDATE r SET v = 11 WHERE k = 1")
    assert one.say("SELECT v FROM r WHERE k = 1 FOR UPDATE").rows == (("11",),)
    assert one.say("FETCH ALL FROM c").rows == (("20",),)
    assert _run(one, "UPDATE r SET v = 0 WHERE k = 3", "COMMIT") == ""


def test_what_a_statement_read_that_nobody_was_told_of_does_not_count(pair: tuple[Talk, Talk]) -> None:
    """The door's loop gives up a statement that is not short after all: a thread runs it again."""
    one, _ = pair
    block = Block(one.session.state.services, is_explicit=True)
    keyspace = one.session.state.services.store.keyspace
    first, second = (keyspace.key(USER_TABLES, (number,)) for number in (1, 2))
    start = block.mark()
    block.use.txn.get(first)
    place = block.mark()
    block.use.txn.get(second)
    block.use.txn.put(second, b"1")
    block.undo(place)
    assert block.use.txn.proof.mark() == place.reads
    assert not block.has_writes
    block.back(start)
    assert block.use.txn.proof.mark() == place.reads
    block.undo(start)
    assert not block.has_begun
