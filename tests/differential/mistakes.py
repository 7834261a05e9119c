"""Statements that have to fail, and how: unknown and ambiguous names, wrong types, misplaced clauses.

Also what once was answered wrongly.

Walk: `run` takes one now and then.
"""

from random import Random

from tests.differential.sides import Statement

MISTAKES = """
SELECT nope FROM a
SELECT a.nope FROM a
SELECT nope.id FROM a
SELECT id FROM a, b
SELECT * FROM nope
SELECT * FROM nowhere.a
SELECT nope(1)
SELECT lower(1, 2)
SELECT lower(1)
SELECT 1 + 'x'
SELECT 1 + true
SELECT 'a' + 'b'
SELECT -'a'::text
SELECT 1 / 0
SELECT 1 % 0
SELECT 1.0 / 0
SELECT 1::float8 / 0
SELECT i4 / 0 FROM a
SELECT 2147483647 + 1
SELECT -32768::int2
SELECT (-32768)::int2 / (-1)::int2
SELECT 9223372036854775807 + 1
SELECT 'x'::int4
SELECT ''::int4
SELECT '2024-02-30'::date
SELECT 'abc'::uuid
SELECT '{'::jsonb
SELECT 'maybe'::bool
SELECT 'nobody'::mood
SELECT 1::date
SELECT true::date
SELECT 1::nosuchtype
SELECT count(*) FROM a WHERE count(*) > 1
SELECT id, count(*) FROM a
SELECT id FROM a GROUP BY t
SELECT t FROM a GROUP BY id
SELECT sum(count(*)) FROM a
SELECT sum(t) FROM a
SELECT max(b) FROM a
SELECT row_number() FROM a
SELECT id FROM a WHERE row_number() OVER () = 1
SELECT rank() OVER (PARTITION BY nope) FROM a
SELECT (SELECT id FROM a)
SELECT (SELECT 1, 2)
SELECT 1 WHERE 1
SELECT 1 WHERE 'x'
SELECT 1 WHERE NULL
SELECT 1 LIMIT -1
SELECT 1 OFFSET -1
SELECT 1 LIMIT 'x'
SELECT id FROM a ORDER BY 5
SELECT id FROM a ORDER BY nope
SELECT DISTINCT id FROM a ORDER BY t
SELECT DISTINCT ON (t) id FROM a ORDER BY id
SELECT 1 UNION SELECT 'x'
SELECT 1 UNION SELECT 1, 2
SELECT 1 UNION SELECT true
SELECT j FROM a GROUP BY j
SELECT DISTINCT j FROM a
SELECT id FROM a ORDER BY j
SELECT j = j FROM a
SELECT * FROM a JOIN b USING (nope)
SELECT * FROM a JOIN b ON a.id
SELECT * FROM a x JOIN a x ON true
SELECT CASE WHEN 1 THEN 2 END
SELECT CASE 1 WHEN 'x' THEN 1 END
SELECT CASE WHEN true THEN 1 ELSE 'x' END
SELECT coalesce(1, 'x')
SELECT coalesce(1, true)
SELECT greatest(1, 'x')
SELECT nullif(1, 'x')
SELECT ARRAY[1, 'x']
SELECT ARRAY[1, true]
SELECT ARRAY[]
SELECT ARRAY[[1], [2, 3]]
SELECT 1 IN ('x')
SELECT 1 IN (true)
SELECT 1 = ANY (1)
SELECT 1 BETWEEN 'a' AND 'b'
SELECT t LIKE 1 FROM a
SELECT i4 || i8 FROM a
SELECT NOT 1
SELECT 1 AND true
SELECT 1 IS TRUE
SELECT $1
SELECT
SELECT FROM a WHERE id < 3
SELEC 1
SELECT 1 1
SELECT 'a
SELECT (1
VALUES (1), (1, 2)
VALUES (1), ('x')
INSERT INTO a (nope) VALUES (1)
INSERT INTO a (id, id) VALUES (1, 2)
INSERT INTO a (id) VALUES (1, 2)
INSERT INTO a (id, t) VALUES (1)
INSERT INTO a (id) VALUES ('x')
INSERT INTO a (id) VALUES (true)
INSERT INTO a (id) VALUES (1)
INSERT INTO a (id) VALUES (NULL)
INSERT INTO item (k, m, total) VALUES ('q', 1, 5)
INSERT INTO nope VALUES (1)
UPDATE a SET nope = 1
UPDATE a SET id = 'x'
UPDATE a SET id = true
UPDATE item SET total = 1
UPDATE a SET id = 1, id = 2
UPDATE nope SET x = 1
DELETE FROM nope
DELETE FROM a WHERE nope
DELETE FROM a WHERE 1
WITH q AS (SELECT 1) SELECT * FROM r
WITH q(a, b) AS (SELECT 1) SELECT * FROM q
WITH q AS (SELECT 1), q AS (SELECT 2) SELECT * FROM q
WITH RECURSIVE q AS (SELECT * FROM q) SELECT * FROM q
WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT 'x' FROM q) SELECT * FROM q
WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1.5 FROM q WHERE n < 3) SELECT * FROM q
SELECT string_agg(t) FROM a
SELECT percentile_cont(2) WITHIN GROUP (ORDER BY i4) FROM a
SELECT percentile_cont(0.5) FROM a
SELECT count(DISTINCT *) FROM a
SELECT lag(id) FROM a
SELECT lag(id, 'x') OVER (ORDER BY id) FROM a
SELECT ntile(0) OVER (ORDER BY id) FROM a
SELECT sum(i4) OVER (ORDER BY t RANGE 1 PRECEDING) FROM a
SELECT sum(i4) OVER (ROWS -1 PRECEDING) FROM a
SELECT sum(i4) OVER (GROUPS 1 PRECEDING) FROM a
SELECT sum(i4) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW) FROM a
SELECT sum(i4) OVER nope FROM a
SELECT repeat('x', 2147483647)
SELECT generate_series(1, 3, 0)
SELECT substr('abc', 1, -1)
SELECT chr(0)
SELECT chr(-1)
SELECT ln(0)
SELECT sqrt(-1)
SELECT power(0, -1)
SELECT 'a'::char(3) || 'b'
SELECT 'abc'::varchar(2)
SELECT 1e400::float8
SELECT 1e-400::float8
SELECT 'NaN'::numeric::int4
SELECT 'Infinity'::float8::int4
SELECT 1e10::int4
SELECT date '2024-01-31' + interval '1 month'
SELECT date '9999-12-31' + 1
SELECT time '23:00' + interval '2 hours'
SELECT interval '1 day' / 0
SELECT '{1,2}'::int4[] || 'x'
SELECT ('{1,2}'::int4[])['x']
SELECT '[1, 2]'::jsonb -> 'x'
SELECT '"x"'::jsonb::int4
SELECT '1.5'::jsonb::int4
SELECT to_date('x', 'YYYY')
SELECT to_number('x', '9')
SELECT make_date(2024, 2, 30)
SELECT extract(nope FROM date '2024-01-01')
SELECT extract(hour FROM date '2024-01-01')
SELECT date_trunc('nope', timestamp '2024-01-01')
SELECT now() AT TIME ZONE 'Nowhere/Land'
SELECT encode('a', 'nope')
SELECT decode('zz', 'hex')
SELECT a FROM a WHERE id < 0
SELECT a.* FROM a AS x
SELECT 1 AS "A", 2 AS a
SELECT a.id AS id, b.id AS id FROM a JOIN b ON a.id = b.id
SELECT id AS x FROM a WHERE x = 1
SELECT id AS x FROM a GROUP BY x HAVING x > 1
SELECT id + 1 AS t FROM a ORDER BY t, id
SELECT id + 1 AS t FROM a ORDER BY t + 1
SELECT i4 FROM a GROUP BY 1 ORDER BY 1
SELECT i4 FROM a GROUP BY 2
SELECT NULL
SELECT NULL = NULL
SELECT 'x' UNION SELECT NULL
SELECT NULL UNION SELECT 1
SELECT pg_typeof('x'), pg_typeof(NULL), pg_typeof(1.5)
SELECT 'a' 'b'
SELECT 1 AS select
EXECUTE nope
DEALLOCATE nope
FETCH 1 FROM nope
SAVEPOINT s
ROLLBACK TO s
RELEASE s
SET nope = 1
SHOW nope
SET timezone = 'x/y'
DROP TABLE nope
DROP VIEW a
CREATE TABLE a (id int)
CREATE TABLE q1 (id int, id int)
CREATE TABLE q1 (id nosuchtype)
CREATE TABLE q1 (id int PRIMARY KEY, x int PRIMARY KEY)
CREATE TABLE q1 (id int DEFAULT 'x')
CREATE TABLE q1 (id int CHECK (nope > 1))
CREATE TABLE q1 (id int CHECK (id))
CREATE TABLE q1 (id int REFERENCES nope)
CREATE TABLE q1 (id int REFERENCES a (t))
CREATE TABLE q1 (id text REFERENCES a)
CREATE INDEX ON nope (x)
CREATE INDEX ON a (nope)
CREATE INDEX a_i4 ON a (i4)
CREATE TYPE mood AS ENUM ('x')
ALTER TABLE nope ADD COLUMN x int
ALTER TABLE a ADD COLUMN t int
ALTER TABLE a DROP COLUMN nope
ALTER TABLE a ALTER COLUMN nope SET NOT NULL
ALTER TABLE a ALTER COLUMN t SET NOT NULL
ALTER TABLE a ADD UNIQUE (b)
ALTER TABLE a ADD CHECK (id > 5)
ALTER TABLE a RENAME COLUMN nope TO x
ALTER TABLE a RENAME COLUMN id TO t
TRUNCATE nope
COMMENT ON TABLE nope IS 'x'
SELECT id, f8 = ANY (SELECT a.f8 + s.i4 FROM b s) AS y FROM a
SELECT pg_typeof(-2147483648), pg_typeof(2147483648), pg_typeof(-9223372036854775808)
SELECT pg_typeof(nullif(1::int2, 2.5)), pg_typeof(nullif('a'::varchar, 'b'::varchar))
SELECT jsonb_agg_strict(NULL::date), json_agg(NULL::int4) FROM a
SELECT ('{1,2}'::int4[])[NULL:2], ('{1,2}'::int4[])[:1], ('{1,2}'::int4[])[2:]
SELECT make_timestamptz(2020, 1, 1, 0, 0, 0, '+02:30')
SELECT percentile_disc(f8) WITHIN GROUP (ORDER BY i4) FROM a
SELECT lag('1.5', '7', '2000-01-01') OVER (ORDER BY id) FROM a
"""


class Mistakes:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._left: list[str] = []

    def one(self) -> Statement:
        """Each in turn; all are over tables that stay as they are."""
        if not self._left:
            self._left = MISTAKES.strip().splitlines()
            self._random.shuffle(self._left)
        text = self._left.pop()
        return Statement(text, kind="mistake", is_ordered=False)
