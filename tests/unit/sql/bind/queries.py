"""Queries and their clauses, over the tables of `schema`."""

# ruff: noqa: E501 - a statement is a line

PARAMETERS = r"""
SELECT * FROM people WHERE id = $1
SELECT * FROM people WHERE id = $1 AND name = $2 AND age > $3 + 1
SELECT $1
SELECT $1::int, $2::varchar(5), $3::text[]
SELECT $1 IS NULL
SELECT $1 + $2
SELECT id + $1 FROM people
SELECT $1 = $2
SELECT 1 WHERE $1
SELECT $2
SELECT * FROM people WHERE name LIKE 'a%' AND city ILIKE $1
SELECT * FROM people WHERE age BETWEEN 1 AND $1
SELECT * FROM people WHERE age NOT BETWEEN SYMMETRIC $2 AND $1
SELECT * FROM people WHERE id IN (1,2,$1)
SELECT * FROM people WHERE name IN ('a', $1) OR id NOT IN (1)
SELECT * FROM people WHERE mood = $1
SELECT id FROM people LIMIT $1 OFFSET $2
SELECT age = ANY('{1,2}'), age = ANY(ARRAY[1,2]), name = ANY(tags), age < ALL($1) FROM people
SELECT id = ANY($1) FROM people
VALUES ('a'), (NULL), ($1) ORDER BY 1 LIMIT 1
SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.person = p.id AND o.amount > $1)
SELECT $1 UNION SELECT 1
SELECT sum(age) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND $1 FOLLOWING) FROM people
SELECT $1 AS x, count(*) FROM people GROUP BY 1
SELECT age, count(*) FROM people GROUP BY age HAVING age > $1
SELECT people.id AS people_id, people.name AS people_name FROM people WHERE people.id = $1 LIMIT $2
SELECT "people"."id", "people"."name" FROM "people" WHERE ("people"."age" >= $1 AND UPPER("people"."name"::text) LIKE UPPER($2)) ORDER BY "people"."name" ASC LIMIT 21
SELECT 1 AS a WHERE EXISTS (SELECT 1 FROM people WHERE id = $1 LIMIT 1)
SELECT id FROM people WHERE name = $1::varchar
SELECT id FROM people WHERE $1::int IS NULL OR age = $1
SELECT id FROM people WHERE age = $1 OR id = $1
SELECT $1::int + $1
SELECT id FROM people WHERE ($1 = '' OR name = $1)
SELECT coalesce($1, 'x'), coalesce($2, 1)
SELECT CASE WHEN $1 THEN $2 ELSE 5 END
SELECT ARRAY[$1, 2], $2 = ANY(ARRAY['a'])
SELECT $1 || 'a'
SELECT $1 || $2
SELECT $1 LIKE 'a'
SELECT id FROM people WHERE born > $1 AND seen < $2 - interval '1 day'
SELECT id FROM people WHERE seen > now() - $1::interval
SELECT id FROM people WHERE seen > now() - $1
SELECT id FROM people WHERE tags @> $1
SELECT id FROM people WHERE data @> $1 AND data ->> $2 = $3
SELECT id FROM people WHERE data -> $1 IS NOT NULL
SELECT id FROM people WHERE age IN ($1, $2, 3)
SELECT id FROM people WHERE age = ANY($1)
SELECT id FROM people WHERE city = ANY($1)
SELECT id FROM people WHERE mood IN ($1, 'sad')
SELECT id FROM people WHERE (age, name) > ($1, $2) ORDER BY age, name LIMIT 10
SELECT id FROM people WHERE score * $1 > 5
SELECT id FROM people WHERE $1 BETWEEN 1 AND 10
SELECT * FROM (VALUES ($1::int, $2::text)) AS v(a, b)
SELECT * FROM (VALUES ($1, $2), (1, 'x')) AS v(a, b)
SELECT $1 UNION ALL SELECT $2
SELECT lower($1), length($2), abs($3)
SELECT round($1, 2), substr($1, 2)
SELECT generate_series($1, $2)
SELECT generate_series($1::int, 10)
SELECT date_trunc('day', seen), date_trunc($1, seen) FROM people
SELECT max($1)
SELECT sum($1)
SELECT LEAST($1, 5), GREATEST(age, $2) FROM people
SELECT nullif($1, 5), nullif(age, $2) FROM people
SELECT $1 IS DISTINCT FROM 5
SELECT NOT $1
SELECT $1 AND $2
SELECT (SELECT $1)
SELECT EXISTS (SELECT $1)
SELECT $1 IN (SELECT id FROM people)
SELECT 5 IN ($1)
SELECT x FROM (SELECT $1 AS x) s WHERE x = 'a'
SELECT x + 1 FROM (SELECT $1 AS x) s
SELECT t.a FROM t LIMIT 1 + 1 OFFSET $1::int
SELECT $0
"""

RECORDS = r"""
SELECT (p).id, (p).name || 'x' FROM people p
SELECT (p).nope FROM people p
SELECT (q).id FROM people p
SELECT (jsonb_each('{}')).key
SELECT (jsonb_each('{}')).nope
SELECT (s.k).key FROM (SELECT jsonb_each('{}') AS k) s
SELECT (s.j).z FROM (SELECT jsonb_each('{}') AS k) s
SELECT (generate_series(1,2)).x
SELECT (id).x FROM people
SELECT (data).x FROM people
SELECT (1).x
SELECT (information_schema._pg_expandarray(tags)).x, (information_schema._pg_expandarray(tags)).n FROM people
"""

SUBQUERIES = r"""
SELECT * FROM (SELECT id, name FROM people) s
SELECT * FROM (SELECT id, name FROM people)
SELECT s.id FROM (SELECT id, name FROM people) AS s(x)
SELECT s.x, s.name FROM (SELECT id, name FROM people) AS s(x)
SELECT * FROM (SELECT id, name FROM people) AS s(x, y, z)
SELECT (SELECT 1), (SELECT name FROM people), EXISTS (SELECT 1), ARRAY(SELECT id FROM people)
SELECT (SELECT 1, 2)
SELECT id FROM people p WHERE id IN (SELECT person FROM orders)
SELECT id FROM people p WHERE id NOT IN (SELECT person FROM orders WHERE orders.id = p.age)
SELECT id FROM people p WHERE id IN (SELECT name FROM people)
SELECT id FROM people p WHERE id IN (SELECT id, name FROM people)
SELECT id FROM people p WHERE (id, name) IN (SELECT id, note FROM orders)
SELECT id FROM people p WHERE (id, name) IN (SELECT id FROM orders)
SELECT id FROM people p WHERE (id, name) = (SELECT id, note FROM orders)
SELECT id FROM people p WHERE id > ALL (SELECT person FROM orders)
SELECT id FROM people p WHERE id = ANY (SELECT id FROM orders)
SELECT (SELECT o.note FROM orders o WHERE o.person = p.id AND EXISTS (SELECT 1 FROM t WHERE t.a = p.age AND t.b = o.note)) FROM people p
SELECT EXISTS (SELECT FROM people)
SELECT ARRAY(SELECT tags FROM people)
SELECT x FROM (SELECT 'a' AS x) s WHERE x = 5
SELECT x || 'b' FROM (SELECT 'a' AS x) s
SELECT t.a FROM t LIMIT (SELECT 1)
SELECT * FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a) AND a NOT IN (SELECT a FROM u)
SELECT (SELECT b FROM t WHERE a = u.a LIMIT 1) AS q FROM u ORDER BY q
SELECT (SELECT x.a FROM u) FROM t
SELECT (SELECT nope FROM u) FROM t
SELECT a, a FROM (SELECT 1 AS a, 2 AS a) s
"""

SETS = r"""
VALUES (1, 'a'), (2, 'b')
VALUES (1, 'a'), (2)
VALUES (1), ('a')
VALUES (1), (2.5), (NULL)
VALUES (1), ('x'::text)
VALUES (1) ORDER BY column1
SELECT 1 UNION SELECT 2
SELECT 1 AS a UNION ALL SELECT 2.5
SELECT 'a' UNION SELECT 'b'
SELECT 'a' UNION SELECT name FROM people
SELECT 1 UNION SELECT 'a'
SELECT 1 UNION SELECT 'a'::text
SELECT NULL UNION SELECT NULL UNION SELECT 1
SELECT 1, 2 UNION SELECT 1
SELECT id, name FROM people EXCEPT SELECT id, note FROM orders ORDER BY name LIMIT 2
SELECT id FROM people UNION SELECT id FROM orders ORDER BY id + 1
SELECT id FROM people INTERSECT ALL SELECT id FROM orders
(SELECT id FROM people ORDER BY name LIMIT 1) UNION ALL (SELECT 5)
SELECT raw FROM people UNION SELECT raw FROM people
SELECT raw FROM people UNION ALL SELECT raw FROM people
SELECT x FROM (SELECT 1 AS x UNION SELECT 2) s ORDER BY x
SELECT city FROM people UNION SELECT city FROM people
SELECT city FROM people UNION SELECT name FROM people
SELECT score FROM people UNION SELECT amount FROM orders UNION SELECT 1
SELECT e FROM u UNION SELECT city FROM people
VALUES ('a'::varchar(5)), ('b'::varchar(5))
VALUES ('a'::varchar(5)), ('b'::varchar(6))
SELECT 1 UNION SELECT 2 ORDER BY 2
SELECT 1 AS a UNION SELECT 2 AS b ORDER BY b
SELECT 1 AS a UNION SELECT 2 AS b ORDER BY a
SELECT a FROM t UNION SELECT a FROM u ORDER BY t.a
SELECT a, b FROM t UNION SELECT a, d FROM u
SELECT 1 UNION (SELECT 2 UNION ALL SELECT '3')
SELECT '1' UNION ALL SELECT '2' UNION ALL SELECT 3
(SELECT '1' ORDER BY 1) UNION ALL SELECT 3
SELECT * FROM t UNION SELECT * FROM u
SELECT a FROM t INTERSECT SELECT a FROM u EXCEPT SELECT 1
(VALUES (1), (2)) UNION VALUES (3)
SELECT a FROM t WHERE a IN (SELECT 1 UNION SELECT 2)
"""

WITHS = r"""
WITH x AS (SELECT 1 AS a) SELECT * FROM x
WITH x(b) AS (SELECT 1 AS a) SELECT b FROM x
WITH x(b, c) AS (SELECT 1 AS a) SELECT b FROM x
WITH x AS (SELECT 1 AS a), y AS (SELECT a + 1 AS b FROM x) SELECT * FROM x, y
WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1.5 FROM n WHERE i < 5) SELECT * FROM n
WITH RECURSIVE n(i) AS (SELECT i FROM n) SELECT * FROM n
WITH RECURSIVE n(i) AS (SELECT i FROM n UNION SELECT 1) SELECT * FROM n
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT n.i + m.i FROM n, n m) SELECT * FROM n
WITH c AS MATERIALIZED (SELECT city, count(*) AS n FROM people GROUP BY city) SELECT * FROM c a JOIN c b USING (city)
WITH c AS (SELECT p.id) SELECT 1 FROM people p
WITH c AS (SELECT * FROM d), d AS (SELECT 1) SELECT * FROM c
WITH RECURSIVE c AS (SELECT * FROM d), d AS (SELECT 1 AS x) SELECT * FROM c
WITH t AS (SELECT 1 AS z) SELECT z FROM t
WITH x AS (SELECT 1 AS z) SELECT (SELECT z FROM x), (WITH x AS (SELECT 'a'::text AS z) SELECT z FROM x)
WITH x AS (SELECT $1::int AS z) SELECT z + $2 FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x ORDER BY 1) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT 'a' FROM x) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 'a' UNION ALL SELECT n || 'b' FROM x) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 'a'::varchar(3) UNION ALL SELECT n || 'b' FROM x) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 EXCEPT SELECT n + 1 FROM x) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT count(*)::int FROM x) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n FROM t LEFT JOIN x ON true) SELECT * FROM x
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM x)) SELECT * FROM x
"""

WINDOWS = r"""
SELECT 1 FROM t WINDOW w AS (ORDER BY nope)
SELECT 1 FROM t WINDOW w AS (PARTITION BY a ORDER BY b), v AS (w ROWS 1 PRECEDING), x AS (v)
SELECT sum(sum(age)) OVER () FROM people
SELECT lower(name) OVER () FROM people
SELECT row_number() OVER (), rank() OVER (ORDER BY age), lag(name) OVER (PARTITION BY city ORDER BY age) FROM people
SELECT sum(age) OVER w, avg(score) OVER w FROM people WINDOW w AS (PARTITION BY city ORDER BY age)
SELECT sum(age) OVER (w ORDER BY id) FROM people WINDOW w AS (PARTITION BY city)
SELECT sum(age) OVER (w PARTITION BY id) FROM people WINDOW w AS (PARTITION BY city)
SELECT sum(age) OVER (w ORDER BY id) FROM people WINDOW w AS (ORDER BY city)
SELECT sum(age) OVER w FROM people
SELECT sum(age) OVER (ORDER BY id ROWS BETWEEN 'a' PRECEDING AND CURRENT ROW) FROM people
SELECT sum(age) OVER (ORDER BY id ROWS BETWEEN id PRECEDING AND CURRENT ROW) FROM people
SELECT sum(age) OVER (ORDER BY born RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM people
SELECT sum(age) OVER (ORDER BY name RANGE 1 PRECEDING) FROM people
SELECT sum(age) OVER (RANGE 1 PRECEDING) FROM people
SELECT sum(age) OVER (GROUPS 1 PRECEDING) FROM people
SELECT row_number() OVER () FROM people WHERE row_number() OVER () > 1
SELECT rank() OVER (ORDER BY rank() OVER ()) FROM people
SELECT sum(rank() OVER ()) FROM people
SELECT lag(rank() OVER ()) OVER () FROM people
SELECT count(DISTINCT age) OVER () FROM people
SELECT city, rank() OVER (ORDER BY count(*)) FROM people GROUP BY city
SELECT city, rank() OVER (ORDER BY age) FROM people GROUP BY city
SELECT id FROM people ORDER BY row_number() OVER (ORDER BY age)
SELECT 'happy'::mood, mood::text, mood < 'happy', mood = 'sad'::mood, max(mood) OVER () FROM people
SELECT a, sum(c) OVER (PARTITION BY b ORDER BY a) FROM t WINDOW w AS ()
SELECT a FROM t WINDOW w AS (), w AS ()
SELECT rank() OVER w FROM t WINDOW w AS (ORDER BY a), v AS (w)
SELECT sum(a) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), sum(a) OVER (ROWS UNBOUNDED PRECEDING) FROM t
SELECT lag(a, 'x') OVER () FROM t
SELECT first_value() OVER () FROM t
"""

GROUPS = r"""
SELECT (SELECT max FROM (SELECT 1 AS max) x)
SELECT count(*) FROM people
SELECT count(*), sum(age), avg(age), min(name), max(seen), count(DISTINCT city) FROM people
SELECT city, count(*) FROM people GROUP BY city
SELECT city, count(*) FROM people GROUP BY 1 ORDER BY 2 DESC
SELECT city AS c, count(*) AS n FROM people GROUP BY c HAVING count(*) > 1 ORDER BY n
SELECT city, age FROM people GROUP BY city
SELECT p.city, p.age FROM people p GROUP BY city
SELECT * FROM people GROUP BY city
SELECT id, name, age FROM people GROUP BY id
SELECT name, count(*) FROM people p JOIN orders o ON o.person = p.id GROUP BY p.id
SELECT note, count(*) FROM people p JOIN orders o ON o.person = p.id GROUP BY p.id
SELECT a, b, c FROM pairs GROUP BY a, b
SELECT c FROM pairs GROUP BY a
SELECT a + b FROM pairs GROUP BY a + b
SELECT a + b + 1 FROM pairs GROUP BY a + b
SELECT a FROM pairs GROUP BY a + b
SELECT age FROM people WHERE count(*) > 1
SELECT age FROM people GROUP BY count(*)
SELECT count(*) FROM people GROUP BY 1
SELECT sum(count(*)) FROM people
SELECT count(*) FROM people HAVING age > 1
SELECT 1 FROM people HAVING true
SELECT 1 FROM people HAVING 1
SELECT count() FROM people
SELECT sum(*) FROM people
SELECT sum(name) FROM people
SELECT count(*) FILTER (WHERE age > 1) FROM people
SELECT count(*) FILTER (WHERE age) FROM people
SELECT string_agg(name, ',' ORDER BY age DESC), array_agg(id), array_agg(DISTINCT age), json_agg(name), bool_and(age > 1) FROM people
SELECT string_agg(DISTINCT name, ',' ORDER BY age) FROM people
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY age), mode() WITHIN GROUP (ORDER BY city) FROM people
SELECT percentile_cont(0.5) FROM people
SELECT sum(age) WITHIN GROUP (ORDER BY age) FROM people
SELECT mode(age) FROM people
SELECT city, age, count(*) FROM people GROUP BY ROLLUP (city, age)
SELECT city, age, count(*), grouping(city), grouping(city, age) FROM people GROUP BY CUBE (city, age)
SELECT city, count(*) FROM people GROUP BY GROUPING SETS ((city), ())
SELECT count(*) FROM people GROUP BY ()
SELECT age FROM people GROUP BY GROUPING SETS ((city), ())
SELECT grouping(age) FROM people GROUP BY city
SELECT grouping(age) FROM people WHERE grouping(age) = 1
SELECT (SELECT max(p.age)) FROM people p
SELECT (SELECT max(p.age) FROM orders) FROM people p
SELECT (SELECT max(p.age + o.id) FROM orders o) FROM people p
SELECT (SELECT count(*) FROM orders o WHERE o.person = p.id) FROM people p
SELECT city, (SELECT count(*) FROM orders o WHERE o.note = p.city) FROM people p GROUP BY city
SELECT city, (SELECT count(*) FROM orders o WHERE o.note = p.name) FROM people p GROUP BY city
SELECT id FROM people p WHERE (SELECT count(p.id) > 1)
SELECT sum(generate_series(1,2))
SELECT count(*) FROM generate_series(1, 10) g GROUP BY g % 2
SELECT * FROM generate_series(1, count(*))
SELECT id FROM people GROUP BY id ORDER BY age
SELECT city FROM people GROUP BY city ORDER BY age
SELECT DISTINCT city, count(*) FROM people GROUP BY city ORDER BY count(*)
SELECT city FROM people GROUP BY city ORDER BY count(*)
SELECT upper(city) AS city FROM people GROUP BY city
SELECT upper(name) AS n FROM people GROUP BY n
SELECT raw FROM people GROUP BY raw
SELECT 'a' AS x, count(*) FROM people GROUP BY x
SELECT max(tags), min(mood), max(score) FROM people
SELECT max(raw) FROM people
SELECT a FROM t GROUP BY t.a
SELECT t.a FROM t JOIN u USING (a) GROUP BY a
SELECT a, count(*) FROM t FULL JOIN u USING (a) GROUP BY a
SELECT u.a FROM t FULL JOIN u USING (a) GROUP BY a
SELECT 1 IN (SELECT count(*) FROM people)
SELECT bool_or(d), every(d), bit_and(a) FROM u
SELECT sum(a) filter (where d) over (order by a) from u
SELECT count(*) AS count_1 FROM (SELECT people.id AS people_id FROM people) AS anon_1
SELECT 5::numeric(10,2), 5::numeric(10,2) + 1, max(score), sum(score), avg(score), min(score) FROM people
SELECT city, city || 'a', lower(city), coalesce(city, 'x'), coalesce(city, NULL), city::text, max(city) FROM people GROUP BY city
SELECT e, coalesce(e, 'x'), max(e), e::text, e || 'a' FROM u GROUP BY e
SELECT (SELECT city FROM people), ARRAY[city], ARRAY(SELECT city FROM people), (SELECT max(score) FROM people) FROM people
SELECT count(*) FROM people p, LATERAL (SELECT p.id) s, LATERAL (SELECT s.id) r
SELECT a, b FROM t GROUP BY 1, 2 HAVING count(*) > 1
SELECT a AS b FROM t GROUP BY b
SELECT a + 1 AS a FROM t GROUP BY a
SELECT a + 1 AS z FROM t GROUP BY z ORDER BY z + 1
SELECT a + 1 AS z FROM t GROUP BY z HAVING z > 1
SELECT z + 1 FROM (SELECT a AS z FROM t) s GROUP BY z
SELECT sum(a) FROM t ORDER BY a
SELECT a FROM t WHERE b = (SELECT max(b) FROM t)
SELECT a FROM t WHERE sum(a) > (SELECT 1)
SELECT a FROM t ORDER BY sum(a)
SELECT 1 FROM t HAVING max(a)
SELECT pg_catalog.lower('a'), pg_catalog.count(*) FROM t
SELECT max(a, b) FROM t
SELECT count(a, b) FROM t
SELECT count(DISTINCT a, b) FROM t
SELECT grouping(a) FROM t GROUP BY a
SELECT a, b, count(*) FROM t GROUP BY GROUPING SETS (a, ROLLUP (b), CUBE (a, b))
SELECT a, b FROM t GROUP BY (a, b)
SELECT a, b FROM t GROUP BY ((a), (b)), ()
SELECT a, b FROM t GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a)
SELECT a, count(*) FILTER (WHERE count(*) > 1) FROM t GROUP BY a
SELECT (SELECT u.a FROM t LIMIT 1) FROM u GROUP BY u.a
SELECT (SELECT t.a FROM u) FROM t GROUP BY b
SELECT sum(a) FROM t HAVING sum(a) > (SELECT avg(a) FROM u WHERE u.a = sum(t.a))
SELECT (SELECT sum(t.a + u.a) FROM u) FROM t GROUP BY a
SELECT (SELECT sum(t.a) FROM u) FROM t GROUP BY b
SELECT b, (SELECT count(*) FROM u WHERE u.a = sum(t.a)) FROM t GROUP BY b
SELECT EXISTS (SELECT 1 FROM u WHERE u.a = max(t.a)) FROM t
SELECT sum((SELECT t.a)) FROM t
SELECT sum((SELECT sum(u.a) FROM u)) FROM t
SELECT sum((SELECT sum(t.a) FROM u)) FROM t
"""

LOCKS = r"""
SELECT id FROM people FOR UPDATE
SELECT id FROM people p FOR UPDATE OF p SKIP LOCKED
SELECT id FROM people p FOR UPDATE OF people
SELECT DISTINCT id FROM people FOR UPDATE
SELECT 1 UNION SELECT 2 FOR UPDATE
SELECT p.id FROM people p LEFT JOIN orders o ON true FOR SHARE OF p NOWAIT
SELECT sum(age) FROM people FOR UPDATE
SELECT generate_series(1,2) FROM people FOR UPDATE
SELECT count(*) FROM (SELECT id FROM people FOR UPDATE) s
SELECT * FROM t FOR UPDATE OF u
SELECT * FROM t, u FOR UPDATE OF t FOR SHARE OF u
SELECT * FROM (SELECT * FROM t) s FOR UPDATE
SELECT * FROM generate_series(1,2) g FOR UPDATE
SELECT * FROM generate_series(1,2) g FOR UPDATE OF g
VALUES (1) FOR UPDATE
WITH c AS (SELECT 1) SELECT * FROM c FOR UPDATE
WITH c AS (SELECT 1) SELECT * FROM c FOR UPDATE OF c
"""

JOINS = r"""
SELECT age IS DISTINCT FROM 1, age IS NOT DISTINCT FROM NULL FROM people
SELECT * FROM people p JOIN orders o ON o.person = p.id
SELECT p.id FROM people p, orders o WHERE o.person = p.id AND amount > 5
SELECT id FROM people p, orders o
SELECT * FROM people, people
SELECT * FROM people p, people q WHERE p.id = q.id
SELECT * FROM people p JOIN orders p ON true
SELECT * FROM t JOIN u USING (a)
SELECT a, t.a, u.a FROM t JOIN u USING (a)
SELECT * FROM t NATURAL JOIN u
SELECT * FROM t FULL JOIN u USING (a)
SELECT * FROM t LEFT JOIN u USING (a) WHERE a = 1
SELECT * FROM t RIGHT JOIN u USING (a)
SELECT * FROM t JOIN u USING (b)
SELECT * FROM t JOIN u USING (a) AS j
SELECT j.a FROM t JOIN u USING (a) AS j
SELECT j.b FROM t JOIN u USING (a) AS j
SELECT * FROM (t JOIN u USING (a)) AS j
SELECT j.b FROM (t JOIN u USING (a)) AS j(x, b2)
SELECT t.a FROM (t JOIN u USING (a)) AS j
SELECT * FROM t CROSS JOIN u
SELECT * FROM t JOIN u ON t.a = u.a AND people.id = 1
SELECT * FROM t JOIN u ON t.a
SELECT * FROM people, t JOIN u ON people.id = t.a
SELECT * FROM t, LATERAL (SELECT t.a + 1 AS x) s
SELECT * FROM t, (SELECT t.a + 1 AS x) s
SELECT * FROM t LEFT JOIN LATERAL (SELECT t.a + 1 AS x) s ON true
SELECT * FROM t RIGHT JOIN LATERAL (SELECT t.a + 1 AS x) s ON true
SELECT * FROM t FULL JOIN LATERAL (SELECT a + 1 AS x) s ON true
SELECT (WITH c AS (SELECT p.id AS i) SELECT a.i FROM c a, c b) FROM people p
SELECT * FROM people p JOIN orders o USING (id) JOIN pairs q ON q.a = o.id
SELECT id FROM people p JOIN orders o USING (id) JOIN pairs q ON q.a = id
SELECT * FROM (people p JOIN orders o USING (id)) JOIN pairs ON a = id
SELECT * FROM people NATURAL JOIN orders NATURAL JOIN pairs
SELECT * FROM t JOIN u USING (a, a)
SELECT * FROM t a, u a
SELECT a.* FROM t a, u b
SELECT t.*, u.a AS ua FROM t, u
SELECT 1 FROM t JOIN u ON t.a = u.a AND v.a = 1
SELECT s.x FROM t, LATERAL (SELECT a AS x) s WHERE s.x > 1
SELECT s.x FROM t, LATERAL (SELECT t.a AS x, u.d) s, u
SELECT * FROM LATERAL (SELECT 1) s
"""

ORDERS = r"""
SELECT id FROM people ORDER BY name
SELECT id AS x FROM people ORDER BY x DESC NULLS LAST
SELECT id, name FROM people ORDER BY 2, 1
SELECT id, name FROM people ORDER BY 3
SELECT id, name FROM people ORDER BY 'a'
SELECT id FROM people ORDER BY nope
SELECT id FROM people ORDER BY age + 1
SELECT id AS a, name AS a FROM people ORDER BY a
SELECT raw FROM people ORDER BY raw
SELECT id FROM people LIMIT 1 OFFSET 2
SELECT id FROM people LIMIT 'a'
SELECT id FROM people LIMIT id
SELECT id FROM people LIMIT name
SELECT id FROM people LIMIT 1.5
SELECT id FROM people LIMIT NULL
SELECT id FROM people LIMIT ALL
SELECT id FROM people FETCH FIRST 2 ROWS WITH TIES
SELECT id FROM people ORDER BY id FETCH FIRST 2 ROWS WITH TIES
SELECT id FROM people FETCH FIRST ROW ONLY
SELECT DISTINCT city FROM people
SELECT DISTINCT city FROM people ORDER BY age
SELECT DISTINCT ON (city) city, name FROM people ORDER BY city, age
SELECT DISTINCT ON (city) city, name FROM people ORDER BY age
SELECT DISTINCT ON (city, age) name FROM people ORDER BY age
SELECT DISTINCT ON (city, age) name FROM people ORDER BY age, name
SELECT DISTINCT raw FROM people
SELECT lower(DISTINCT name) FROM people
SELECT a AS b, b FROM t ORDER BY b
SELECT a AS b FROM t ORDER BY b
SELECT a AS x, a AS x FROM t ORDER BY x
SELECT a FROM t ORDER BY t.b
SELECT a FROM t ORDER BY -a, +a
SELECT DISTINCT a FROM t ORDER BY a + 1
SELECT DISTINCT a + 1 FROM t ORDER BY a + 1
SELECT DISTINCT ON (a + 1) a FROM t ORDER BY a + 1, b
SELECT DISTINCT ON (1) a FROM t
SELECT DISTINCT ON (x) a AS x, b FROM t ORDER BY x
SELECT a FROM t OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY
"""
