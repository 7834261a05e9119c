"""AS OF SYSTEM TIME: where it may stand, and rows of the past that are written again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import TenureError
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tests.unit.sql.talking import Speaker, a_node


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("as_of"))


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[Node]:
    with a_node(directory) as node:
        Speaker(node).run("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
        yield node


@pytest.fixture
def one(node: Node) -> Iterator[Speaker]:
    speaker = Speaker(node)
    speaker.run("DELETE FROM t")
    speaker.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    yield speaker
    speaker.close()


def _now(speaker: Speaker) -> str:
    return str(speaker.rows("SELECT cluster_logical_timestamp()")[0][0])


def _refusal(speaker: Speaker, text: str) -> TenureError:
    with pytest.raises(TenureError) as caught:
        speaker.run(text)
    return caught.value


def _all(speaker: Speaker, table: str = "t") -> list[tuple[object, ...]]:
    return speaker.rows(f"SELECT * FROM {table} ORDER BY 1")


# ── where it may stand ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (SELECT v FROM t AS OF SYSTEM TIME '-3s'), (SELECT v FROM t)",
        "SELECT * FROM (SELECT v FROM t AS OF SYSTEM TIME '-3s') q",
        "WITH q AS (SELECT v FROM t AS OF SYSTEM TIME '-3s') SELECT * FROM q",
        "(SELECT v FROM t AS OF SYSTEM TIME '-3s')",
        "SELECT v FROM t AS OF SYSTEM TIME '-3s' WHERE id IN (SELECT id FROM t AS OF SYSTEM TIME '-4s')",
        "SELECT v FROM t AS OF SYSTEM TIME '-3s' UNION ALL SELECT v FROM t",
        "SELECT v FROM t EXCEPT SELECT v FROM t AS OF SYSTEM TIME '-3s'",
        "SELECT * FROM t AS OF SYSTEM TIME '-3s' JOIN t u USING (id)",
        "SELECT * FROM t AS OF SYSTEM TIME '-3s', t u",
        "SELECT * FROM t JOIN t u AS OF SYSTEM TIME '-3s' ON t.id = u.id",
        "INSERT INTO t (SELECT id + 10, v FROM t AS OF SYSTEM TIME '-3s')",
        "INSERT INTO t VALUES (9, 'x') AS OF SYSTEM TIME '-3s'",
        "WITH q AS (SELECT 9) INSERT INTO t SELECT * FROM q AS OF SYSTEM TIME '-3s'",
        "INSERT INTO t SELECT id + 10, v FROM t AS OF SYSTEM TIME '-3s' FOR UPDATE",
        "UPDATE t SET v = (SELECT v FROM t AS OF SYSTEM TIME '-3s' LIMIT 1)",
        "DELETE FROM t AS OF SYSTEM TIME '-3s'",
        "CREATE VIEW w AS SELECT * FROM t AS OF SYSTEM TIME '-3s'",
    ],
)
def test_a_clause_that_seems_to_count_for_a_part_is_refused(one: Speaker, text: str) -> None:
    refused = _refusal(one, text.replace("'-3s'", f"'{_now(one)}'"))
    assert refused.sqlstate == "0A000"
    assert "AS OF SYSTEM TIME" in str(refused) or "earlier time" in str(refused)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM t AS OF SYSTEM TIME '{}' WHERE id > 0",
        "WITH q AS (SELECT * FROM t) SELECT count(*) FROM q AS OF SYSTEM TIME '{}'",
        "SELECT count(*) FROM (SELECT * FROM t UNION SELECT * FROM t) q AS OF SYSTEM TIME '{}'",
        "SELECT count(*) FROM t JOIN t u ON t.id = u.id AS OF SYSTEM TIME '{}'",
        "SELECT (SELECT count(*) FROM t) FROM t AS OF SYSTEM TIME '{}' LIMIT 1",
    ],
)
def test_at_the_top_level_it_counts_for_the_whole_statement(one: Speaker, text: str) -> None:
    at = _now(one)
    one.run("DELETE FROM t WHERE id > 1")
    assert one.rows(text.format(at)) == [(3,)]


# ── rows of the past, written now ──────────────────────────────────────────────────────────────


def test_an_insert_brings_back_what_was_deleted(one: Speaker) -> None:
    at = _now(one)
    one.run("DELETE FROM t WHERE id > 1")
    text = f"INSERT INTO t SELECT * FROM t AS OF SYSTEM TIME '{at}' WHERE id > 1 RETURNING id"
    assert sorted(one.rows(text)) == [(2,), (3,)]
    assert _all(one) == [(1, "a"), (2, "b"), (3, "c")]


def test_another_node_brings_back_what_was_deleted(one: Speaker, directory: Path) -> None:
    at = _now(one)
    one.run("DELETE FROM t")
    node = Node(NodeOptions(f"sqlite:{directory}/store.db", listen=Listen(port=0)), SystemEnv())
    try:
        assert Speaker(node).tag(f"INSERT INTO t SELECT * FROM t AS OF SYSTEM TIME '{at}'") == "INSERT 0 3"
    finally:
        node.stop()
    assert len(_all(one)) == 3


def test_in_a_block_the_rows_come_from_then_and_everything_else_from_now(one: Speaker) -> None:
    at = _now(one)
    one.run("DELETE FROM t WHERE id > 1")
    one.run("BEGIN")
    one.run("UPDATE t SET v = 'kept' WHERE id = 1")
    one.run("SAVEPOINT s")
    one.run(f"INSERT INTO t SELECT * FROM t AS OF SYSTEM TIME '{at}' ON CONFLICT DO NOTHING")
    one.run("ROLLBACK TO s")
    assert _all(one) == [(1, "kept")]
    text = f"INSERT INTO t SELECT * FROM t AS OF SYSTEM TIME '{at}' ON CONFLICT DO NOTHING"
    assert one.tag(text) == "INSERT 0 2"
    one.run("COMMIT")
    assert _all(one) == [(1, "kept"), (2, "b"), (3, "c")]


def test_what_is_read_of_the_past_is_in_nobodys_way(one: Speaker, node: Node) -> None:
    at = _now(one)
    one.run("CREATE TABLE copy_of_t (id INT PRIMARY KEY, v TEXT)")
    one.run("BEGIN")
    one.run(f"INSERT INTO copy_of_t SELECT * FROM t AS OF SYSTEM TIME '{at}'")
    other = Speaker(node)
    other.run("UPDATE t SET v = 'changed since'")
    one.run("COMMIT")
    assert _all(one, "copy_of_t") == [(1, "a"), (2, "b"), (3, "c")]
    one.run("DROP TABLE copy_of_t")
    other.close()


def test_a_block_of_the_past_writes_nothing(one: Speaker) -> None:
    at = _now(one)
    one.run(f"BEGIN AS OF SYSTEM TIME '{at}'")
    assert _refusal(one, f"INSERT INTO t SELECT * FROM t AS OF SYSTEM TIME '{at}'").sqlstate == "25006"
    one.run("ROLLBACK")


def test_prepared_with_the_moment_as_a_parameter(one: Speaker) -> None:
    at = _now(one)
    one.run("DELETE FROM t")
    text = "INSERT INTO t SELECT * FROM t AS OF SYSTEM TIME $1 WHERE id >= $2"
    assert one.run(text, [at, 2])[1] == "INSERT 0 2"
    one.run(
        "PREPARE again (text, int) AS INSERT INTO t SELECT id, v FROM t AS OF SYSTEM TIME $1 WHERE id < $2"
    )
    assert one.tag(f"EXECUTE again ('{at}', 2)") == "INSERT 0 1"
    one.run("DEALLOCATE again")
    assert _all(one) == [(1, "a"), (2, "b"), (3, "c")]


def test_a_prepared_insert_sees_what_its_table_has_become(one: Speaker) -> None:
    one.run("CREATE TABLE later (id INT PRIMARY KEY, v TEXT)")
    at = _now(one)
    one.run(f"PREPARE past AS INSERT INTO later SELECT * FROM t AS OF SYSTEM TIME '{at}'")
    one.run("ALTER TABLE later ADD COLUMN w INT NOT NULL DEFAULT 7")
    one.run("EXECUTE past")
    assert _all(one, "later") == [(1, "a", 7), (2, "b", 7), (3, "c", 7)]
    one.run("DEALLOCATE past")
    one.run("DROP TABLE later")


def test_values_take_the_types_of_the_columns_of_now(one: Speaker) -> None:
    at = _now(one)
    one.run("CREATE TYPE newer AS ENUM ('x', 'y')")
    one.run("CREATE TABLE typed (id INT8 PRIMARY KEY, e newer, n NUMERIC(5, 2))")
    one.run(f"INSERT INTO typed SELECT id, 'y', '1.5' FROM t AS OF SYSTEM TIME '{at}' WHERE id = 1")
    assert one.rows("SELECT id, e::text, n::text FROM typed") == [(1, "y", "1.50")]
    one.run("DROP TABLE typed")
    one.run("DROP TYPE newer")


def test_an_upsert_overwrites_with_what_was(one: Speaker) -> None:
    at = _now(one)
    one.run("UPDATE t SET v = 'wrong'")
    one.run(f"UPSERT INTO t SELECT * FROM t AS OF SYSTEM TIME '{at}'")
    assert _all(one) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("is_in_block", [False, True])
def test_a_table_is_made_of_what_was(one: Speaker, is_in_block: bool) -> None:
    at = _now(one)
    one.run("DELETE FROM t WHERE id > 1")
    one.run("BEGIN") if is_in_block else None
    one.run("INSERT INTO t VALUES (7, 'now')")
    assert one.tag(f"CREATE TABLE was AS SELECT * FROM t AS OF SYSTEM TIME '{at}'") == "SELECT 3"
    one.run("COMMIT") if is_in_block else None
    one.run(f"SELECT id INTO was_too FROM t AS OF SYSTEM TIME '{at}' WHERE id > 1")
    assert _all(one, "was") == [(1, "a"), (2, "b"), (3, "c")]
    assert _all(one, "was_too") == [(2,), (3,)]
    one.run("DROP TABLE was, was_too")


def test_a_dropped_table_comes_back_with_its_columns(one: Speaker) -> None:
    one.run("CREATE TABLE gone (id INT PRIMARY KEY, kept TEXT)")
    one.run("INSERT INTO gone VALUES (1, 'here')")
    at = _now(one)
    one.run("DROP TABLE gone")
    one.run(f"CREATE TABLE back AS SELECT * FROM gone AS OF SYSTEM TIME '{at}'")
    assert _all(one, "back") == [(1, "here")]
    one.run("DROP TABLE back")


def test_a_type_that_is_gone_is_named(one: Speaker) -> None:
    one.run("CREATE TYPE mood AS ENUM ('good')")
    one.run("CREATE TABLE moody (id INT PRIMARY KEY, m mood)")
    one.run("INSERT INTO moody VALUES (1, 'good')")
    at = _now(one)
    one.run("DROP TABLE moody")
    one.run("DROP TYPE mood")
    refused = _refusal(one, f"CREATE TABLE back AS SELECT * FROM moody AS OF SYSTEM TIME '{at}'")
    assert (refused.sqlstate, '"m"' in str(refused)) == ("42704", True)
    one.run(f"CREATE TABLE back AS SELECT id, m::text FROM moody AS OF SYSTEM TIME '{at}'")
    assert _all(one, "back") == [(1, "good")]
    one.run("DELETE FROM back")
    text = f"INSERT INTO back SELECT id, m FROM moody AS OF SYSTEM TIME '{at}'"
    one.run(text)
    assert _all(one, "back") == [(1, "good")]
    one.run("DROP TABLE back")


# ── what was not there yet ─────────────────────────────────────────────────────────────────────


def test_a_table_that_is_newer_than_the_moment_says_since_when_it_exists(one: Speaker) -> None:
    at = _now(one)
    one.run("CREATE TABLE newer (id INT PRIMARY KEY)")
    refused = _refusal(one, f"SELECT * FROM newer AS OF SYSTEM TIME '{at}'")
    assert refused.sqlstate == "42P01"
    assert str(refused).startswith('relation "newer" did not exist at 2')
    since = refused.detail.removeprefix("It exists since ").removesuffix(".")
    one.run("ALTER TABLE newer ADD COLUMN later INT")
    assert one.rows(f"SELECT * FROM newer AS OF SYSTEM TIME '{since}'") == []
    assert _refusal(one, f"SELECT * FROM newer AS OF SYSTEM TIME '{at}'").detail == refused.detail
    one.run("DROP TABLE newer")


def test_a_table_that_had_another_name_is_named_by_it(one: Speaker) -> None:
    one.run("CREATE TABLE former (id INT PRIMARY KEY)")
    at = _now(one)
    one.run("ALTER TABLE former RENAME TO latter")
    refused = _refusal(one, f"SELECT * FROM latter AS OF SYSTEM TIME '{at}'")
    assert '"former"' in refused.detail
    assert one.rows(f"SELECT * FROM former AS OF SYSTEM TIME '{at}'") == []
    one.run("DROP TABLE latter")


def test_a_table_that_never_was_does_not_exist(one: Speaker) -> None:
    refused = _refusal(one, f"SELECT * FROM never AS OF SYSTEM TIME '{_now(one)}'")
    assert str(refused) == 'relation "never" does not exist'
