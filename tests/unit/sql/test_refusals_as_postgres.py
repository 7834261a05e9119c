"""Scripts in which Tenure once refused what PostgreSQL answers, or took what PostgreSQL refuses."""

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, compare

ON_CONFLICT = """
CREATE TABLE t (a int, b int, c text)
CREATE UNIQUE INDEX part ON t (a) WHERE b > 0
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b > 0 DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b > 0 DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b > 5 DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b < 5 DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b IS NOT NULL DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b > 0 AND c = 'x' DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE c = 'x' DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b = 3 DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b >= 1 DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b > 0 OR b IS NULL DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE true DO NOTHING
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) DO NOTHING
SELECT * FROM t
CREATE TABLE u (a int, s text)
CREATE UNIQUE INDEX u_part ON u (a) WHERE s = 'live'
INSERT INTO u VALUES (1, 'live') ON CONFLICT (a) WHERE s = 'live' DO UPDATE SET s = 'live'
INSERT INTO u VALUES (1, 'live') ON CONFLICT (a) WHERE s = 'dead' DO UPDATE SET s = 'live'
INSERT INTO u VALUES (1, 'live') ON CONFLICT (a) WHERE s IN ('live') DO UPDATE SET s = 'live'
INSERT INTO u VALUES (1, 'live') ON CONFLICT (a) WHERE s IN ('live', 'dead') DO UPDATE SET s = 'live'
CREATE TABLE n (a int, b int)
CREATE UNIQUE INDEX n_part ON n (a) WHERE b IS NOT NULL
INSERT INTO n VALUES (1, 1) ON CONFLICT (a) WHERE b > 1 DO NOTHING
INSERT INTO n VALUES (1, 1) ON CONFLICT (a) WHERE b IS NOT NULL DO NOTHING
INSERT INTO n VALUES (1, 1) ON CONFLICT (a) WHERE b IS NULL DO NOTHING
"""

VIEW_KEYS = """
CREATE TABLE t (id int PRIMARY KEY, a int, b text)
CREATE VIEW v AS SELECT id, a, count(*) FROM t GROUP BY id
like: ALTER TABLE t DROP CONSTRAINT t_pkey
SELECT count(*) FROM v
ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE
SELECT count(*) FROM v
CREATE TABLE u (id int PRIMARY KEY, a int)
CREATE VIEW w AS SELECT id, count(*) FROM u GROUP BY id
ALTER TABLE u DROP CONSTRAINT u_pkey
SELECT count(*) FROM w
"""

NOT_ENFORCED = """
CREATE TABLE p (id int PRIMARY KEY)
CREATE TABLE t (a int)
0A000: CREATE TABLE u (a int CHECK (a > 0) NOT ENFORCED)
0A000: CREATE TABLE u (a int, CHECK (a > 0) NOT ENFORCED)
0A000: CREATE TABLE u (a int REFERENCES p NOT ENFORCED)
0A000: ALTER TABLE t ADD CONSTRAINT k CHECK (a > 5) NOT ENFORCED
0A000: ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY (a) REFERENCES p NOT ENFORCED
ALTER TABLE t ADD CONSTRAINT k CHECK (a > 5) ENFORCED
0A000: ALTER TABLE t ALTER CONSTRAINT k NOT ENFORCED
INSERT INTO t VALUES (1)
"""

JSONB = """
SELECT ('[1,2,3]'::jsonb)[1]
SELECT ('{"a": {"b": 5}}'::jsonb)['a']['b']
SELECT ('[1,2,3]'::jsonb)[1:2]
SELECT ('[1,2,3]'::jsonb)[1:]
SELECT ('[1,2,3]'::jsonb)[:2]
SELECT ('[1,2,3]'::jsonb)[:]
SELECT ('[[1,2],[3]]'::jsonb)[0][0:1]
"""

UTILITY = """
ANALYZE missing
CREATE TABLE t (a int)
like: ANALYZE t
like: ANALYZE t (a)
ANALYZE t (b)
like: ANALYZE
ANALYZE t, missing
SELECT uuidv7('-1000 years')
SELECT length(uuidv7('1 day')::text)
0A000: SELECT uuidv7('100000 years')
"""

ALTER_TABLE = """
CREATE TABLE t (a int, b text)
INSERT INTO t VALUES (1, 'x'), (2, 'y')
ALTER TABLE t ADD COLUMN c int DEFAULT 5, ALTER COLUMN c SET NOT NULL, ADD CONSTRAINT c_positive CHECK (c
  > 0)
ALTER TABLE t ADD COLUMN d int, ADD CONSTRAINT d_unique UNIQUE (d)
ALTER TABLE t ADD COLUMN f int, ALTER COLUMN f SET DEFAULT 9
ALTER TABLE t DROP COLUMN d, ADD COLUMN d text DEFAULT 'new'
ALTER TABLE t ADD COLUMN g int DEFAULT 3, ADD PRIMARY KEY (a)
ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a, c)
ALTER TABLE t ADD CONSTRAINT k CHECK (a > 0), DROP CONSTRAINT k
ALTER TABLE t ADD COLUMN h int REFERENCES t (h)
ALTER TABLE t ADD COLUMN h int UNIQUE, ADD COLUMN i int REFERENCES t (h)
INSERT INTO t (a, b) VALUES (3, 'z')
SELECT * FROM t ORDER BY a
ALTER TABLE t ADD COLUMN j int DEFAULT 1, ALTER COLUMN j TYPE text
ALTER TABLE t ALTER COLUMN b TYPE varchar(20), ALTER COLUMN b SET DEFAULT 'none', ALTER COLUMN b SET NOT
  NULL
ALTER TABLE t ALTER COLUMN c DROP NOT NULL, ALTER COLUMN c DROP DEFAULT, ALTER COLUMN c TYPE bigint
ALTER TABLE t DROP CONSTRAINT c_positive, ADD CONSTRAINT c_positive CHECK (c > 1)
ALTER TABLE t ADD COLUMN k int, ADD CHECK (k IS NULL OR k > a), ADD COLUMN l int DEFAULT 4 CHECK (l > 3)
ALTER TABLE t ADD UNIQUE (b), DROP COLUMN b
ALTER TABLE t DROP COLUMN l, DROP COLUMN k, ADD COLUMN k text GENERATED ALWAYS AS ('k' || a) STORED
ALTER TABLE t ADD COLUMN m serial
ALTER TABLE t ALTER COLUMN m DROP DEFAULT, ALTER COLUMN m DROP NOT NULL
ALTER TABLE t DROP CONSTRAINT t_pkey, ADD COLUMN o int DEFAULT 7, ADD PRIMARY KEY (a, o)
ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES t (q), ADD COLUMN p int, ADD COLUMN q int UNIQUE
ALTER TABLE t ADD COLUMN r int, ADD COLUMN r int
ALTER TABLE t DROP COLUMN r, DROP COLUMN r
ALTER TABLE t ALTER COLUMN a SET DEFAULT 5, ALTER COLUMN a DROP DEFAULT
ALTER TABLE t ADD COLUMN s int NOT NULL DEFAULT 1, ALTER COLUMN s DROP NOT NULL
ALTER TABLE t ADD COLUMN u int, ALTER COLUMN u ADD GENERATED BY DEFAULT AS IDENTITY
ALTER TABLE t ALTER COLUMN a TYPE bigint, ADD CONSTRAINT positive CHECK (a > 0), DROP COLUMN f
SELECT * FROM t ORDER BY a
"""

AGGREGATES = """
CREATE TABLE t (a varchar(5), b varchar, n int)
INSERT INTO t VALUES ('b', 'x', 1), ('a', 'y', 2), ('b', 'x', 3)
SELECT string_agg(DISTINCT a, ',' ORDER BY a) FROM t
SELECT string_agg(DISTINCT b, ',' ORDER BY b DESC) FROM t
SELECT string_agg(DISTINCT a, ',' ORDER BY n) FROM t
SELECT string_agg(DISTINCT a, ',' ORDER BY a::text) FROM t
SELECT array_agg(DISTINCT a ORDER BY a) FROM t
SELECT count(DISTINCT a) FROM t
"""

GENERATED = """
CREATE TABLE t (n int, s text GENERATED ALWAYS AS (n || ' sec') STORED)
INSERT INTO t VALUES (5)
SELECT * FROM t
CREATE TABLE u (n int8, f text GENERATED ALWAYS AS ('#' || n) STORED, g text GENERATED ALWAYS AS (f8 ||
  '') STORED, f8 float8)
CREATE TABLE w (d date, g text GENERATED ALWAYS AS (d || '') STORED)
CREATE TABLE w (d date, g text GENERATED ALWAYS AS (d::text) STORED)
CREATE TABLE w (d timestamptz, g text GENERATED ALWAYS AS (d::text) STORED)
CREATE TABLE w (d text, g timestamptz GENERATED ALWAYS AS (d::timestamptz) STORED)
CREATE TABLE w (d timestamptz, g date GENERATED ALWAYS AS (d::date) STORED)
CREATE TABLE x (d numeric, g text GENERATED ALWAYS AS (d || '') STORED, h text GENERATED ALWAYS AS (true
  || '') STORED)
"""

ZONES = """
CREATE TABLE z (id int, d timestamptz DEFAULT '2024-05-01 12:00', b bool GENERATED ALWAYS AS (d >
  '2024-05-01 11:00') STORED)
SET TimeZone = 'Europe/Berlin'
INSERT INTO z VALUES (1)
SET TimeZone = 'America/New_York'
INSERT INTO z VALUES (2)
INSERT INTO z VALUES (3, '2024-05-01 10:00')
RESET TimeZone
SELECT * FROM z ORDER BY id
CREATE INDEX z_day ON z (id) WHERE d::date > '2024-01-01'
CREATE INDEX z_late ON z (id) WHERE d > '2024-05-01 11:00'
"""

RETURNING = """
CREATE TABLE t (id int PRIMARY KEY, v int)
INSERT INTO t VALUES (1, 10) RETURNING old.*, new.*
INSERT INTO t VALUES (2, 20) RETURNING old.v, new.v, v
UPDATE t SET v = v + 1 RETURNING old.v, new.v, new.v - old.v AS change
UPDATE t SET v = v + 1 WHERE id = 1 RETURNING WITH (OLD AS o, NEW AS n) o.v, n.v, *
DELETE FROM t WHERE id = 2 RETURNING old.v, new.v, v
INSERT INTO t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING old.v, new.v
INSERT INTO t VALUES (3, 5) ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING old.v IS NULL AS
  is_new, new.v
INSERT INTO t VALUES (4, 5) RETURNING old.x
UPDATE t SET v = 1 FROM (VALUES (1)) s(k) WHERE id = s.k RETURNING old.v, new.v, s.k
UPDATE t AS old SET v = 2 WHERE id = 1 RETURNING old.v
SELECT * FROM t ORDER BY id
"""

EXPLAIN = """
CREATE TABLE t (id int PRIMARY KEY, a int)
CREATE TABLE u (id int PRIMARY KEY, t int)
INSERT INTO t SELECT n, n % 7 FROM generate_series(1, 30) n
INSERT INTO u SELECT n, n % 9 FROM generate_series(1, 40) n
ours: EXPLAIN SELECT * FROM t, LATERAL (SELECT * FROM u WHERE u.t = t.id LIMIT 1) s
ours: EXPLAIN SELECT (SELECT max(id) FROM u WHERE u.t = t.id) FROM t
ours: EXPLAIN SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t = t.id AND u.id > t.a)
ours: EXPLAIN SELECT * FROM t WHERE a IN (SELECT id FROM u WHERE u.t = t.id)
ours: EXPLAIN SELECT * FROM t LEFT JOIN LATERAL (SELECT t.a + 1 AS x) s ON true
ours: EXPLAIN SELECT * FROM t, LATERAL generate_series(1, t.a) g
ours: EXPLAIN SELECT ARRAY(SELECT id FROM u WHERE u.t = t.id) FROM t
ours: EXPLAIN SELECT * FROM t WHERE (SELECT count(*) FROM u WHERE u.t = t.id HAVING count(*) > t.a) > 1
ours: EXPLAIN ANALYZE SELECT (SELECT max(id) FROM u WHERE u.t = t.id) FROM t
ours: EXPLAIN UPDATE t SET a = (SELECT max(id) FROM u WHERE u.t = t.id)
ours: EXPLAIN SELECT * FROM t ORDER BY (SELECT max(id) FROM u WHERE u.t = t.id)
ours: EXPLAIN SELECT *, rank() OVER (ORDER BY (SELECT max(id) FROM u WHERE u.t = t.id)) FROM t
ours: EXPLAIN SELECT max((SELECT max(id) FROM u WHERE u.t = t.id)) FROM t GROUP BY t.a
ours: EXPLAIN SELECT * FROM t WHERE id = (SELECT max(u.id) FROM u WHERE u.t = t.a)
ours: EXPLAIN SELECT * FROM t JOIN u ON u.t = t.id AND (SELECT count(*) FROM u AS x WHERE x.t = t.a) > 0
ours: EXPLAIN SELECT * FROM t, LATERAL (VALUES (t.a), (t.id)) v(x)
ours: EXPLAIN SELECT * FROM t, LATERAL (SELECT count(*) FROM u WHERE u.id = t.a) s
ours: EXPLAIN WITH w AS MATERIALIZED (SELECT * FROM u) SELECT (SELECT count(*) FROM w WHERE w.t = t.id)
  FROM t
ours: EXPLAIN SELECT CASE WHEN EXISTS (SELECT FROM u WHERE u.t = t.id) THEN 1 END FROM t
ours: EXPLAIN INSERT INTO t SELECT id, (SELECT max(id) FROM t WHERE t.a = u.t) FROM u
ours: EXPLAIN DELETE FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.t = t.id)
"""

TYPE_AND_MORE = """
CREATE TABLE t (id int PRIMARY KEY, a text DEFAULT '1', b text)
INSERT INTO t VALUES (1, '5', '7'), (2, '6', NULL)
ALTER TABLE t ALTER COLUMN a DROP DEFAULT, ALTER COLUMN a TYPE int USING a::int,
  ALTER COLUMN a SET DEFAULT 9, ALTER COLUMN a SET NOT NULL
INSERT INTO t (id) VALUES (3)
INSERT INTO t VALUES (4, NULL)
like: ALTER TABLE t ALTER COLUMN b TYPE int USING b::int, ALTER COLUMN b SET NOT NULL
SELECT * FROM t ORDER BY id
DELETE FROM t WHERE b IS NULL
ALTER TABLE t ALTER COLUMN b TYPE int USING b::int, ALTER COLUMN b SET NOT NULL, ALTER COLUMN b SET DEFAULT 3
INSERT INTO t (id) VALUES (5)
SELECT * FROM t ORDER BY id
"""

SCRIPTS = {
    "ON CONFLICT with a predicate": ON_CONFLICT,
    "primary keys that views need": VIEW_KEYS,
    "NOT ENFORCED": NOT_ENFORCED,
    "subscripts of jsonb": JSONB,
    "ANALYZE and uuidv7": UTILITY,
    "actions of ALTER TABLE that build on each other": ALTER_TABLE,
    "DISTINCT aggregates with an order": AGGREGATES,
    "generated columns": GENERATED,
    "RETURNING old and new": RETURNING,
    "EXPLAIN of what depends on outer rows": EXPLAIN,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_answered_as_postgres_answers_it(node: Node, oracle: Oracle, name: str) -> None:
    compare(node, oracle, SCRIPTS[name])


@pytest.mark.invariant("zone-fixed")
def test_stored_expressions_mean_the_same_in_every_session(node: Node, oracle: Oracle) -> None:
    compare(node, oracle, ZONES)


def test_a_type_a_default_and_not_null_change_in_one_statement(nodes: Node, oracle: Oracle) -> None:
    compare(nodes, oracle, TYPE_AND_MORE)
