"""Whole scripts that Tenure once answered differently from PostgreSQL: said to both, answered alike."""

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Talk, compare

TARGET_IN_FROM = """
CREATE TABLE t (id int PRIMARY KEY, v text)
INSERT INTO t VALUES (1, 'a'), (2, 'b')
UPDATE t SET v = s.y FROM (SELECT v || '!' AS y) s
UPDATE t SET v = s.y FROM (SELECT t.v || '!' AS y) s
UPDATE t SET v = s.y FROM LATERAL (SELECT v || '!' AS y) s
UPDATE t SET v = s.y FROM LATERAL (SELECT t.v || '!' AS y) s
UPDATE t SET v = s.y FROM t AS o, LATERAL (SELECT o.v || '!' AS y) s WHERE o.id = t.id
UPDATE t SET v = g FROM generate_series(1, id) g
UPDATE t AS o SET v = s.y FROM t JOIN (SELECT o.v AS y) s ON true
DELETE FROM t USING (SELECT id AS k) s WHERE s.k IS NULL
DELETE FROM t USING LATERAL (SELECT t.id AS k) s WHERE s.k IS NULL
UPDATE t SET v = s.y FROM (SELECT max(v) AS y FROM t AS o) s WHERE id = 2
SELECT * FROM t ORDER BY id
"""

JOIN_ALIASES = """
CREATE TABLE j1 (a int, b int)
CREATE TABLE j2 (c int, d int)
INSERT INTO j1 VALUES (1, 2)
INSERT INTO j2 VALUES (3, 4)
SELECT * FROM (j1 JOIN j2 ON true) AS tx(x, y, z, w)
SELECT tx.z, w FROM (j1 JOIN j2 ON true) AS tx(x, y, z, w)
SELECT * FROM (j1 JOIN j2 ON true) AS tx(x, y, z)
SELECT * FROM (j1 JOIN j2 ON true) AS tx(x, y, z, w, v)
SELECT * FROM (j1 CROSS JOIN j2) AS tx(c)
SELECT * FROM (j1 JOIN j1 AS k USING (a)) AS tx(x, y, z)
SELECT * FROM j1 JOIN j1 AS k USING (a) AS u
"""

HAVING = """
CREATE TABLE t (a int, b int)
INSERT INTO t VALUES (1, 2), (2, 3)
SELECT 1 FROM t HAVING false
SELECT 1 FROM t HAVING null
SELECT 1 FROM t HAVING true
SELECT count(*) FROM t HAVING false
SELECT count(*) FROM t HAVING count(*) > 5
SELECT count(*) FROM t WHERE false HAVING count(*) = 0
SELECT 1 HAVING false
SELECT count(*) FROM t GROUP BY () HAVING false
SELECT count(*) FROM t GROUP BY () HAVING true
SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), ()) HAVING false
SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), ()) HAVING null
SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), ()) HAVING a IS NULL
SELECT (SELECT count(*) FROM t AS u HAVING o.a > 1) FROM t AS o ORDER BY a
SELECT (SELECT 7 FROM t AS u HAVING o.a > 1) FROM t AS o ORDER BY a
SELECT (SELECT count(*) FROM t AS u GROUP BY () HAVING o.a > 1) FROM t AS o ORDER BY a
SELECT a FROM t AS o WHERE EXISTS (SELECT 1 FROM t AS u HAVING o.a > 1)
SELECT a FROM t AS o WHERE EXISTS (SELECT count(*) FROM t AS u GROUP BY GROUPING SETS (u.a, ()) HAVING
  o.a > 1) ORDER BY a
"""

RECURSIVE_WITH = """
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM (WITH w AS MATERIALIZED (SELECT n + 1 AS n FROM
  r WHERE n < 5) SELECT n FROM w) s) SELECT * FROM r ORDER BY 1
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (WITH w AS (SELECT n + 1 AS n FROM r WHERE n < 4) SELECT w.n
  FROM w JOIN w AS v ON v.n = w.n)) SELECT * FROM r ORDER BY 1
WITH RECURSIVE r(n) AS (SELECT 1 UNION (WITH w AS MATERIALIZED (SELECT n FROM r WHERE n < 4) SELECT w.n +
  v.n FROM w, w AS v)) SELECT * FROM r ORDER BY 1
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + (WITH w AS MATERIALIZED (SELECT r.n AS m) SELECT
  max(w.m) FROM w, w AS v) FROM r WHERE n < 20) SELECT * FROM r ORDER BY 1
"""

GROUPING_SETS = """
CREATE TABLE t (a int, b int)
INSERT INTO t VALUES (1, 2), (2, 3)
SELECT 1 AS x, count(*) FROM t GROUP BY GROUPING SETS ((1), ()) ORDER BY 1, 2
SELECT 'k' AS x, a, count(*) FROM t GROUP BY GROUPING SETS ((1), (2)) ORDER BY 1, 2, 3
SELECT * FROM (SELECT a AS x, a AS y, count(*) FROM t GROUP BY GROUPING SETS ((x), (y))) q ORDER BY 1, 2, 3
SELECT * FROM (SELECT a + 1 AS x, a + 1 AS y, count(*) FROM t GROUP BY GROUPING SETS ((x), (y), ())) q
  ORDER BY 1, 2, 3
SELECT * FROM (SELECT a + 1 AS x, a + 1 AS y, count(*) FROM t GROUP BY ROLLUP (x, y)) q ORDER BY 1, 2, 3
SELECT * FROM (SELECT x, y, count(*) FROM (SELECT a AS x, a AS y FROM t) s GROUP BY GROUPING SETS ((x),
  (y))) q ORDER BY 1, 2, 3
SELECT x, count(*) FROM (SELECT 1 AS x FROM t) s GROUP BY GROUPING SETS ((x), ()) ORDER BY 1, 2
SELECT x, grouping(x), count(*) FROM (SELECT 1 AS x FROM t) s GROUP BY ROLLUP (x) ORDER BY 1, 2, 3
SELECT 1 AS x, 1 + 1 AS y, count(*) FROM t GROUP BY CUBE (x, y) ORDER BY 1, 2, 3
"""

SETS_AND_ORDER = """
CREATE TABLE t (a int, b int)
INSERT INTO t VALUES (1, 3), (1, 2), (2, 5)
SELECT DISTINCT ON (a) a, generate_series(1, b) FROM t ORDER BY a, b
SELECT DISTINCT ON (a) a, b, generate_series(1, 2) FROM t ORDER BY a, b DESC
SELECT DISTINCT ON (a) a, generate_series(1, 3) AS g FROM t ORDER BY a, g DESC
SELECT a, generate_series(1, 3) FROM t ORDER BY a, b LIMIT 4
CREATE SEQUENCE s
SELECT nextval('s') FROM t ORDER BY a, b LIMIT 1
SELECT nextval('s') FROM t ORDER BY a, b LIMIT 1
SELECT nextval('s'), a FROM t ORDER BY a DESC, b OFFSET 2
SELECT nextval('s'), a FROM t LIMIT 1 OFFSET 1
SELECT nextval('s')
SELECT nextval('s')
SELECT nextval('s'), a FROM t ORDER BY 1 DESC LIMIT 1
SELECT x FROM (SELECT nextval('s') AS x FROM t) q LIMIT 1
SELECT nextval('s')
"""

SEARCH_PATH = """
CREATE SCHEMA one
CREATE SCHEMA two
CREATE TABLE one.t (a int)
CREATE TABLE two.t (a int, b text)
INSERT INTO one.t VALUES (1)
INSERT INTO two.t VALUES (2, 'x')
SET search_path = one
PREPARE p AS SELECT count(*), max(a) FROM t
EXECUTE p
SET search_path = two
EXECUTE p
PREPARE i AS INSERT INTO t (a) VALUES ($1)
EXECUTE i (5)
SET search_path = one
EXECUTE i (6)
SELECT (SELECT count(*) FROM one.t), (SELECT count(*) FROM two.t)
PREPARE w AS SELECT * FROM t
SET search_path = two
EXECUTE w
DROP TABLE t
EXECUTE p
"""

FRAMES_AND_TIMES = """
CREATE TABLE f (id int PRIMARY KEY, x float8, n numeric)
INSERT INTO f VALUES (1, '-infinity', '-infinity'), (2, -1, -1), (3, 0, 0), (4, 2, 2), (5, 'infinity',
  'infinity'), (6, 'nan', 'nan'), (7, 'infinity', 'infinity')
SELECT id, x, first_value(id) OVER w, last_value(id) OVER w FROM f WINDOW w AS (ORDER BY x, id RANGE
  BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) ORDER BY id
SELECT id, count(*) OVER (ORDER BY x RANGE BETWEEN 'inf' PRECEDING AND 'inf' FOLLOWING) FROM f ORDER BY id
SELECT id, count(*) OVER (ORDER BY x RANGE BETWEEN 'inf' PRECEDING AND 'inf' PRECEDING) FROM f ORDER BY id
SELECT id, count(*) OVER (ORDER BY x RANGE BETWEEN 'inf' FOLLOWING AND 'inf' FOLLOWING) FROM f ORDER BY id
SELECT id, count(*) OVER (ORDER BY x DESC RANGE BETWEEN 'inf' PRECEDING AND 1 FOLLOWING) FROM f ORDER BY id
SELECT id, count(*) OVER (ORDER BY n RANGE BETWEEN 'inf' PRECEDING AND 'inf' FOLLOWING) FROM f ORDER BY id
SELECT id, count(*) OVER (ORDER BY n RANGE BETWEEN 'inf' PRECEDING AND 'inf' PRECEDING) FROM f ORDER BY id
SELECT id, count(*) OVER (ORDER BY n RANGE BETWEEN 'inf' FOLLOWING AND 'inf' FOLLOWING) FROM f ORDER BY id
SELECT id, count(*) OVER (ORDER BY n RANGE BETWEEN 'nan' PRECEDING AND 1 FOLLOWING) FROM f ORDER BY id
SELECT extract(quarter from interval '-6 years'), extract(quarter from interval '-6 years -1 month'),
  extract(quarter from interval '-5 months'), extract(quarter from interval '7 months')
SELECT extract(month from interval '-6 years -1 month'), extract(decade from interval '-6 years'),
  extract(century from interval '-101 years'), extract(millennium from interval '-1001 years')
"""

NEGATIVE_ZERO = """
CREATE TABLE p (k float8 PRIMARY KEY)
CREATE TABLE c (id int PRIMARY KEY, k float8 REFERENCES p ON UPDATE CASCADE)
INSERT INTO p VALUES (0)
INSERT INTO c VALUES (1, 0)
UPDATE p SET k = '-0'
SELECT * FROM p
SELECT * FROM c
UPDATE p SET k = 0
SELECT * FROM c
CREATE TABLE pn (k numeric PRIMARY KEY)
CREATE TABLE cn (id int PRIMARY KEY, k numeric REFERENCES pn ON UPDATE CASCADE)
INSERT INTO pn VALUES (1)
INSERT INTO cn VALUES (1, 1.00)
UPDATE pn SET k = 1.000
SELECT * FROM cn
UPDATE pn SET k = 2.0
SELECT * FROM cn
"""

DROPPED_KEYS = """
CREATE TABLE t (id int PRIMARY KEY, v int)
INSERT INTO t VALUES (1, 1), (2, 2)
BEGIN
ALTER TABLE t DROP CONSTRAINT t_pkey
0A000: INSERT INTO t VALUES (1, 3)
ROLLBACK
BEGIN
ALTER TABLE t DROP CONSTRAINT t_pkey
0A000: UPDATE t SET id = 1
ROLLBACK
BEGIN
ALTER TABLE t DROP CONSTRAINT t_pkey
0A000: INSERT INTO t VALUES (1, 3) ON CONFLICT DO NOTHING
ROLLBACK
BEGIN
ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, v)
0A000: INSERT INTO t VALUES (1, 3)
ROLLBACK
BEGIN
SAVEPOINT s
ALTER TABLE t DROP CONSTRAINT t_pkey
ROLLBACK TO s
INSERT INTO t VALUES (1, 3)
ROLLBACK
BEGIN
ALTER TABLE t ADD UNIQUE (v)
INSERT INTO t VALUES (1, 3)
ROLLBACK
BEGIN
ALTER TABLE t DROP CONSTRAINT t_pkey
SELECT * FROM t ORDER BY id
COMMIT
INSERT INTO t VALUES (1, 3)
INSERT INTO t VALUES (1, 3)
SELECT * FROM t ORDER BY id, v
"""

SCRIPTS = {
    "the target of UPDATE and DELETE is not in sight of FROM": TARGET_IN_FROM,
    "alias lists over joins": JOIN_ALIASES,
    "HAVING without keys": HAVING,
    "WITH inside a recursive term": RECURSIVE_WITH,
    "grouping sets over constants and aliases": GROUPING_SETS,
    "sets, LIMIT and DISTINCT ON": SETS_AND_ORDER,
    "EXECUTE and search_path": SEARCH_PATH,
    "frames and times": FRAMES_AND_TIMES,
    "cascades of equal keys": NEGATIVE_ZERO,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_answered_as_postgres_answers_it(node: Node, oracle: Oracle, name: str) -> None:
    compare(node, oracle, SCRIPTS[name])


def test_a_key_that_a_block_drops_is_refused_by_name_until_commit(nodes: Node, oracle: Oracle) -> None:
    compare(nodes, oracle, DROPPED_KEYS)


def test_the_refusal_names_the_key_and_says_what_to_do(nodes: Node) -> None:
    talk = Talk(nodes)
    for statement in ("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "BEGIN"):
        assert talk.say(statement).sqlstate == ""
    talk.say("ALTER TABLE t DROP CONSTRAINT t_pkey")
    said = talk.say("INSERT INTO t VALUES (1)")
    talk.close()
    assert said.sqlstate == "0A000"
    assert said.message.startswith('the primary key "t_pkey" of "t" is dropped when the transaction commits')
    assert said.hint == "COMMIT first, and write the rows then."
