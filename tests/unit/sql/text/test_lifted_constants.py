"""Constants lifted out of a text change nothing but how often it is planned."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.base.errors import StatementTimeout, TemporaryTablesLost, TenureError
from tenure.node import Node
from tenure.sql.execution import planning, preparing
from tenure.sql.text.lifted_constants import lift
from tests.unit.sql.talking import Speaker, a_node

SETUP = """
CREATE TABLE t (
    id INT PRIMARY KEY, s SMALLINT, b BIGINT, n NUMERIC(8,2), f DOUBLE PRECISION, r REAL, c TEXT,
    v VARCHAR(5), k CHAR(4), d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, tm TIME, i INTERVAL, u UUID, o BOOLEAN,
    y BYTEA, j JSONB, a INT[], z TEXT DEFAULT 'dflt'
);
CREATE INDEX ON t (c);
INSERT INTO t (id, s, b, n, f, r, c, v, k, d, ts, tz, tm, i, u, o, y, j, a) VALUES
    (1, 1, 1, 1.5, 1.5, 1.5, 'one', 'v1', 'k1', '2020-01-01', '2020-01-01 10:00', '2020-01-01 10:00+00',
     '10:00', '1 day', '00000000-0000-0000-0000-000000000001', true, '\\x01', '{"a": 1, "b": 2}', '{1,2}'),
    (2, -2, -3000000000, -2.25, -0.5, 2.5, 'it''s', 'v2', 'k2', '2021-02-03', '2021-02-03 04:05',
     '2021-02-03 04:05+00', '04:05', '2 hours', '00000000-0000-0000-0000-000000000002', false, '\\x02',
     '[1]', '{3}');
"""

QUERIES = (
    "SELECT id FROM t WHERE id = 1",
    "SELECT id FROM t WHERE id = -1",
    "SELECT id FROM t WHERE s = -2",
    "SELECT id FROM t WHERE s = 40000",
    "SELECT id FROM t WHERE b = -3000000000",
    "SELECT id FROM t WHERE id = 3000000000",
    "SELECT id FROM t WHERE b < 99999999999999999999999",
    "SELECT b + 3000000000 FROM t ORDER BY id",
    "SELECT id - -2147483648 FROM t ORDER BY id",
    "SELECT -2147483648",
    "SELECT - 2147483648",
    "SELECT -9223372036854775808",
    "SELECT 1 - 9223372036854775808",
    "SELECT 5 - 3, 5 -3, 5-3, 2*-3, 2 * - 3",
    "SELECT n * 1.50, n + 1, n - 1.005, n * 2 FROM t ORDER BY id",
    "SELECT f * 1.5, f + 2, r * 2.5, r + 1 FROM t ORDER BY id",
    "SELECT s + 1, s * 2, s - 1 FROM t ORDER BY id",
    "SELECT 1 + 1.0, 1e3 * 2, 2 * 1e-2, .5 + 1., 1 + 2 * 3",
    "SELECT 1 + 2::text",
    "SELECT 7 / 2 * 2, 7 % 4 + 1, 2 ^ 3 * 2, 2 * 3 ^ 2, -2 ^ 2",
    "SELECT id FROM t WHERE n = 1.5",
    "SELECT id FROM t WHERE n = 1.500",
    "SELECT id FROM t WHERE f > 0.1",
    "SELECT id FROM t WHERE r = 1.5",
    "SELECT id FROM t WHERE n = '1.5'",
    "SELECT id FROM t WHERE c = 'one'",
    "SELECT id FROM t WHERE c = 'it''s'",
    "SELECT id FROM t WHERE c = 'on' \n 'e'",
    "SELECT id FROM t WHERE c = E'one'",
    "SELECT id FROM t WHERE c = $$one$$",
    "SELECT id FROM t WHERE c = U&'\\006Fne'",
    "SELECT id FROM t WHERE v = 'v1'",
    "SELECT id FROM t WHERE v = 'v1 '",
    "SELECT id FROM t WHERE k = 'k1'",
    "SELECT id FROM t WHERE k = 'k1  '",
    "SELECT id FROM t WHERE c < 'p' ORDER BY id",
    "SELECT id FROM t WHERE c LIKE 'o%'",
    "SELECT id FROM t WHERE c || 'x' = 'onex'",
    "SELECT id FROM t WHERE d = '2020-01-01'",
    "SELECT id FROM t WHERE d > '2020-06-01'",
    "SELECT d + 1, d - 1, d - '2020-01-01' FROM t ORDER BY id",
    "SELECT d + '1 day' FROM t ORDER BY id",
    "SELECT d + interval '1 day', d - interval '1' day FROM t ORDER BY id",
    "SELECT id FROM t WHERE ts >= '2020-01-01 10:00'",
    "SELECT ts - '2020-01-01' FROM t ORDER BY id",
    "SELECT id FROM t WHERE tz = '2020-01-01 10:00'",
    "SELECT id FROM t WHERE tz = '2020-01-01 11:00'",
    "SELECT id FROM t WHERE tz > '2020-06-01'::timestamptz",
    "SELECT id FROM t WHERE tm < '09:00'",
    "SELECT id FROM t WHERE i = '1 day'",
    "SELECT i * 2, i * 1.5, i + '1 hour' FROM t ORDER BY id",
    "SELECT id FROM t WHERE u = '00000000-0000-0000-0000-000000000001'",
    "SELECT id FROM t WHERE u = 'nonsense'",
    "SELECT id FROM t WHERE o = 't'",
    "SELECT id FROM t WHERE o = 'yes'",
    "SELECT id FROM t WHERE o = 1",
    "SELECT id FROM t WHERE y = '\\x01'",
    'SELECT id FROM t WHERE j = \'{"b": 2, "a": 1}\'',
    "SELECT j - 'a' FROM t WHERE id = 1",
    "SELECT j - 0 FROM t WHERE id = 2",
    "SELECT id FROM t WHERE a = '{1,2}'",
    "SELECT id FROM t WHERE id = 'x'",
    "SELECT id FROM t WHERE id = '1'",
    "SELECT id FROM t WHERE id = 1.0",
    "SELECT id FROM t WHERE id = 1.5",
    "SELECT 'a' = 'a', 'a' < 'b', 'a' <> 'b'",
    "SELECT '1' + 1, 1 + '1', '2' * 3",
    "SELECT '1' + '2'",
    "SELECT 'a' + 1",
    "SELECT 1 = '1', 1 = 'x'",
    "SELECT NULL = 1, 1 = NULL",
    "SELECT id FROM t ORDER BY -1",
    "SELECT id FROM t ORDER BY id, -1",
    "SELECT id FROM t ORDER BY - id",
    "SELECT id + 1 FROM t GROUP BY id + 1 ORDER BY id + 1",
    "SELECT id + 1, count(*) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT DISTINCT id * 2 FROM t ORDER BY id * 2",
    "SELECT id * 2 AS x FROM t WHERE id * 2 = 4",
    "SELECT count(*) * 2 FROM t HAVING count(*) > 1",
    "SELECT id FROM t ORDER BY id LIMIT 1 + 1 OFFSET 2 - 1",
    "SELECT round(n * 1.5, 1), abs(-3 + id), coalesce(c, 'x') FROM t ORDER BY id",
    "SELECT CASE WHEN id = 1 THEN 'a' ELSE 'b' END FROM t ORDER BY id",
    "SELECT (SELECT max(id) + 1 FROM t WHERE id < 2)",
    "SELECT id FROM t WHERE id IN (1, 2) AND id = ANY ('{1,2}') AND id BETWEEN 1 AND 2 ORDER BY id",
    "SELECT sum(id + 1) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT id FROM t WHERE c = 'one' COLLATE \"C\"",
    "SELECT a[1] + 1, (a)[1] FROM t ORDER BY id",
    "SELECT 0x1F + 1, 1_000 + 1",
    "SELECT generate_series(1, 3) * 2",
    "SELECT * FROM t WHERE id = 1 -- 5 = 5",
    "SELECT id /* = 7 */ FROM t WHERE id = /* = 9 */ 1",
    "SELECT id FROM t WHERE (id, c) = (1, 'one')",
    'SELECT id AS "5" FROM t WHERE id = 1',
    "SELECT pg_typeof(id + 1), pg_typeof(id - 2147483648), pg_typeof(1.5 * 2) FROM t WHERE id = 1",
    "SELECT 'x' FROM t WHERE 1 = 1 AND id = 1",
    "SELECT extract(year FROM d) + 1 FROM t ORDER BY id",
)

WRITES = (
    "INSERT INTO t (id, c) VALUES (10, 'ten')",
    "INSERT INTO t (id, s) VALUES (10, 70000)",
    "INSERT INTO t (id, s, b) VALUES (10, -5, -9223372036854775808)",
    "INSERT INTO t (id, b) VALUES (10, 9223372036854775808)",
    "INSERT INTO t (id, n) VALUES (10, 1.239), (11, '1.239'), (12, -7)",
    "INSERT INTO t (id, n) VALUES (10, 12345678.9)",
    "INSERT INTO t (id, v) VALUES (10, 'toolong')",
    "INSERT INTO t (id, v) VALUES (10, 'abc     ')",
    "INSERT INTO t (id, k) VALUES (10, 'ab')",
    "INSERT INTO t (id, k) VALUES (10, 'abcdef')",
    "INSERT INTO t (id, v) VALUES (10, 12)",
    "INSERT INTO t (id, c) VALUES (10, 12), (11, 1.5), (12, '12')",
    "INSERT INTO t (id, d, ts, tm, i) VALUES (10, '2022-01-01', '2022-01-01', '1:00', '1 h')",
    "INSERT INTO t (id, tz) VALUES (10, '2022-07-01 12:00')",
    "INSERT INTO t (id, u, o) VALUES (10, '00000000-0000-0000-0000-00000000000a', 'f')",
    "INSERT INTO t (id, y, j, a) VALUES (10, '\\x0a', '1', '{}')",
    "INSERT INTO t (id, o) VALUES (10, 1)",
    "INSERT INTO t (id, f, r) VALUES (10, 0.1, 0.1), (11, '0.1', '0.1'), (12, 1, 1)",
    "INSERT INTO t (id, z) VALUES (10, DEFAULT), (11, 'given'), (12, NULL)",
    "INSERT INTO t VALUES (10, 1, 2, 3)",
    "INSERT INTO t (id, c) VALUES (10, 'a' || 'b'), (11, lower('C')), (5 + 7, upper('d'))",
    "INSERT INTO t (id, c) VALUES (10, (SELECT c FROM t WHERE id = 1)), (11, 'x')",
    "INSERT INTO t (id, a) VALUES (10, ARRAY[1, 2 + 3]), (11, '{4}')",
    "INSERT INTO t (id, c) VALUES ('10', 'text'), (11, 'x')",
    "INSERT INTO t (id, c) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET c = 'up' || excluded.c, s = 9",
    "INSERT INTO t (id, c) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET c = 'y' WHERE t.id = 1",
    "INSERT INTO t (id, c) VALUES (1, 'x') ON CONFLICT DO NOTHING",
    "INSERT INTO t (id, c) SELECT id + 100, 'copy' FROM t WHERE id = 1",
    "INSERT INTO t (id, c) VALUES (10, 'x') RETURNING id + 1, c || '!', 'k', 5",
    "UPDATE t SET s = 5, n = n + 1.005, c = 'new' WHERE id = 1",
    "UPDATE t SET s = 70000 WHERE id = 1",
    "UPDATE t SET b = -1, f = -0.5, tz = '2022-01-01 12:00' WHERE id = 2",
    "UPDATE t SET (s, c) = (7, 'row') WHERE c = 'one'",
    "UPDATE t SET z = DEFAULT, v = '12' WHERE id = 1",
    "UPDATE t SET v = 'toolong' WHERE id = 1",
    "DELETE FROM t WHERE id = 1 AND c = 'one'",
    "DELETE FROM t WHERE id = 1 RETURNING id * 2",
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with a_node(Path(tmp_path_factory.mktemp("constants"))) as node:
        speaker = Speaker(node)
        for each in SETUP.strip().split(";\n"):
            speaker.run(each)
        yield node


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def speaker(node: Node, request: pytest.FixtureRequest) -> Iterator[Speaker]:
    speaker = Speaker(node, TimeZone=request.param)
    yield speaker
    speaker.close()


def _outcome(speaker: Speaker, text: str) -> Any:
    """What a statement gives, what columns it has, and what the table is like then."""
    speaker.run("BEGIN")
    try:
        prepared = speaker.session.prepare("", text, ())
        columns = [(each.name, each.type.sql_name) for each in prepared.columns or ()]
        rows, tag = speaker.run(text)
        return columns, repr(rows), tag, repr(speaker.rows("TABLE t"))
    except TenureError as error:
        return type(error).__name__, error.sqlstate, str(error)
    finally:
        speaker.run("ROLLBACK")


@pytest.mark.invariant("lifted-same")
@pytest.mark.parametrize("text", [*QUERIES, *WRITES])
def test_a_statement_gives_the_same_with_its_constants_lifted(
    speaker: Speaker, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lifted = _outcome(speaker, text)
    monkeypatch.setattr(preparing, "lift", lambda text: None)
    assert _outcome(speaker, text) == lifted


@pytest.mark.parametrize("error", [StatementTimeout("its time is up"), TemporaryTablesLost("gone")])
def test_an_error_that_is_not_the_texts_fault_is_not_tried_away(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch, error: TenureError
) -> None:
    texts: list[str] = []

    def plan(session: object, block: object, text: str, *rest: object) -> None:
        texts.append(text)
        raise error

    monkeypatch.setattr(planning, "plan", plan)
    with pytest.raises(type(error)):
        speaker.session.prepare("", "SELECT id AS not_planned_yet FROM t WHERE id = 5", ())
    assert texts == ["SELECT id AS not_planned_yet FROM t WHERE id = $1"]


def test_statements_that_differ_in_their_constants_share_a_text() -> None:
    one, other = lift("UPDATE t SET a = a + 5 WHERE id = 17"), lift("UPDATE t SET a = a + 6 WHERE id = 18")
    assert one is not None and other is not None
    assert one.text == other.text == "UPDATE t SET a = a + $1 WHERE id = $2"
    assert (one.texts, other.texts) == (("5", "17"), ("6", "18"))


@pytest.mark.parametrize(
    "text", ["SELECT a FROM t WHERE id = $1 AND b = 5", "CREATE TABLE t (a INT)", "", "SELECT 1"]
)
def test_some_statements_are_left_alone(text: str) -> None:
    assert lift(text) is None


def test_a_sign_stays_with_its_number_where_they_are_one_constant() -> None:
    assert lift("SELECT -2147483648") is None
    assert lift("SELECT a FROM t ORDER BY -1") is None
    lifted = lift("INSERT INTO t VALUES (1, -5)")
    assert lifted is not None and lifted.text == "INSERT INTO t VALUES ($1, -$2)"
