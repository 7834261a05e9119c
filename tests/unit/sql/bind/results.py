"""Statements over the tables of `two_sides`: what they mean is compared with PostgreSQL, row by row."""

# ruff: noqa: E501 - a statement is a line

MEANINGS = r"""
SELECT x, count(*), sum(y), max(s) FROM a GROUP BY x ORDER BY x
SELECT x, y, count(*), grouping(x, y) FROM a GROUP BY ROLLUP (x, y) ORDER BY 1, 2, 4, 3
SELECT x, y, count(*), grouping(y, x) FROM a GROUP BY CUBE (x, y) ORDER BY 1, 2, 4, 3
SELECT x, count(*) FROM a GROUP BY GROUPING SETS ((x), (), (x, y)) ORDER BY 1, 2
SELECT x + y, count(*) * 2 + 1 FROM a GROUP BY x + y HAVING count(*) > 2 ORDER BY 1
SELECT a.id, a.s, count(b.id) FROM a LEFT JOIN b ON b.a_id = a.id GROUP BY a.id, a.s ORDER BY a.id
SELECT (SELECT max(a.x)) FROM a
SELECT (SELECT max(a.x) FROM b) FROM a
SELECT x, (SELECT count(*) FROM b WHERE b.id = a.x) FROM a GROUP BY x ORDER BY x
SELECT (SELECT count(*) FROM b WHERE b.a_id = a.id) AS n, id FROM a ORDER BY id
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id AND EXISTS (SELECT 1 FROM p WHERE p.m = a.x AND p.m < b.id)) ORDER BY id
SELECT id, (SELECT (SELECT max(p.m) FROM p WHERE p.m <= a.x AND p.m < b.id) FROM b WHERE b.a_id = a.id ORDER BY b.id LIMIT 1) FROM a ORDER BY id
SELECT id FROM a WHERE (x, y) IN (SELECT m, m FROM p) ORDER BY id
SELECT id FROM a WHERE (x, y) NOT IN (SELECT m, m FROM p) ORDER BY id
SELECT id FROM a WHERE (x, y) NOT IN (SELECT x, y FROM a WHERE id < 5) ORDER BY id
SELECT id FROM a WHERE x NOT IN (SELECT x FROM a WHERE id < 5) ORDER BY id
SELECT id FROM a WHERE x > ALL (SELECT m FROM p WHERE m < 3) ORDER BY id
SELECT id FROM a WHERE x > ALL (SELECT z FROM e) ORDER BY id
SELECT id FROM a WHERE (x, y) > ALL (SELECT m, m FROM p WHERE m < 2) ORDER BY id
SELECT id FROM a WHERE n = ANY (SELECT m FROM p) ORDER BY id
SELECT id FROM a WHERE (x, id) < (3, 20) ORDER BY id
SELECT id FROM a WHERE (x, y, id) >= (3, 2, 20) ORDER BY id
SELECT id FROM a WHERE (x, y) = (3, 2) OR (x, y) <> (1, 1) ORDER BY id
SELECT id FROM a WHERE (x, y) IS DISTINCT FROM (3, 2) ORDER BY id
SELECT a.id, q.k FROM a, LATERAL (SELECT p.k FROM p WHERE p.m = a.x ORDER BY p.k LIMIT 1) q ORDER BY 1, 2
SELECT a.id, q.k FROM a LEFT JOIN LATERAL (SELECT p.k FROM p WHERE p.m = a.x) q ON q.k > 'k1' ORDER BY 1, 2
SELECT a.id, b.id, c.v FROM a, b JOIN LATERAL (SELECT a.x + b.id AS v) c ON true WHERE a.id < 4 AND b.id < 4 ORDER BY 1, 2
SELECT a.id, b.id, c.v, dd.d FROM a, (b JOIN LATERAL (SELECT a.x + b.id AS v) c ON true) JOIN LATERAL (SELECT c.v + a.id) AS dd(d) ON dd.d > 2 WHERE a.id < 4 AND b.id < 4 ORDER BY 1, 2
SELECT a.id, g FROM a, generate_series(1, a.x) g ORDER BY 1, 2
SELECT a.id, g, i FROM a, generate_series(1, a.x) WITH ORDINALITY AS t(g, i) ORDER BY 1, 2
SELECT b.id, e FROM b, unnest(w) AS e ORDER BY 1, 2
SELECT b.id, e FROM b LEFT JOIN LATERAL unnest(w) AS e ON e > 0 ORDER BY 1, 2
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a','b'])) AS r(x, y) ORDER BY 1
SELECT * FROM unnest(ARRAY[1,2,3], ARRAY['a','b']) AS r(x, y) ORDER BY 1
SELECT generate_series(1, 3), generate_series(1, 2)
SELECT generate_series(1, generate_series(1, 3))
SELECT id, generate_series(1, x) AS g FROM a ORDER BY id, g DESC
SELECT x, generate_series(1, count(*)) FROM a GROUP BY x ORDER BY 1, 2
SELECT generate_series(1, 3) + 1 AS v, 'k' ORDER BY v DESC
SELECT DISTINCT generate_series(1, 2) FROM a ORDER BY 1
SELECT id, rank() OVER (PARTITION BY x ORDER BY y DESC, id), sum(y) OVER (PARTITION BY x ORDER BY id) FROM a ORDER BY id
SELECT x, count(*), rank() OVER (ORDER BY count(*) DESC, x), sum(count(*)) OVER (ORDER BY x) FROM a GROUP BY x ORDER BY x
SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM a ORDER BY id
SELECT id, count(*) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM a ORDER BY id
SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN '3 days' PRECEDING AND CURRENT ROW) FROM a ORDER BY id
SELECT id, count(*) FILTER (WHERE x > 3) OVER w, first_value(id) OVER w FROM a WINDOW w AS (PARTITION BY y ORDER BY id) ORDER BY id
SELECT id FROM a ORDER BY row_number() OVER (ORDER BY id DESC)
SELECT DISTINCT ON (x) x, id FROM a ORDER BY x, id DESC
SELECT DISTINCT ON (x) id FROM a ORDER BY x DESC NULLS LAST, y, id
SELECT DISTINCT x FROM a ORDER BY x DESC
SELECT x FROM a ORDER BY x FETCH FIRST 3 ROWS WITH TIES
SELECT id FROM a ORDER BY y DESC, id LIMIT 5 OFFSET 3
SELECT id FROM a UNION SELECT id FROM b ORDER BY id
SELECT x FROM a EXCEPT ALL SELECT m FROM p ORDER BY x
SELECT x FROM a INTERSECT SELECT m FROM p ORDER BY x
SELECT NULL AS v UNION ALL SELECT 's01' UNION ALL SELECT s FROM a WHERE id < 5 ORDER BY v
SELECT x, y FROM a WHERE id < 10 UNION ALL SELECT n, 1 FROM a WHERE id < 10 ORDER BY 1, 2
(SELECT id FROM a ORDER BY id DESC LIMIT 2) UNION ALL (SELECT id FROM b ORDER BY id LIMIT 2) ORDER BY 1
WITH q AS (SELECT x, count(*) AS n FROM a GROUP BY x) SELECT l.x, l.n, r.n FROM q l JOIN q r ON l.x = r.x ORDER BY 1
WITH q AS (SELECT 1 AS v), r AS (SELECT v + 1 AS v FROM q) SELECT q.v, r.v FROM q, r
WITH RECURSIVE n(i, f) AS (SELECT 1, 1::bigint UNION ALL SELECT i + 1, f * (i + 1) FROM n WHERE i < 10) SELECT * FROM n ORDER BY i
WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT (i + 2) % 7 FROM n) SELECT * FROM n ORDER BY i
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT a.i, b.i FROM n a, n b ORDER BY 1, 2
SELECT id, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < a.x) SELECT sum(i) FROM n) FROM a ORDER BY id
SELECT id, (WITH c AS (SELECT a.x AS v) SELECT l.v + r.v FROM c l, c r) FROM a ORDER BY id
SELECT * FROM a JOIN b ON b.a_id = a.id ORDER BY a.id, b.id
SELECT * FROM a NATURAL JOIN b ORDER BY id
SELECT id, a.x, b.v FROM a FULL JOIN b USING (id) ORDER BY id
SELECT id, a.id, b.id FROM a RIGHT JOIN b USING (id) ORDER BY b.id
SELECT id, q.z FROM (a LEFT JOIN b USING (id)) AS j LEFT JOIN e q USING (id) ORDER BY id
SELECT j.id, j.v FROM (a JOIN b USING (id)) AS j ORDER BY 1
SELECT coalesce(a.id, b.id) FROM a FULL JOIN b ON a.id = b.a_id ORDER BY 1
SELECT * FROM (VALUES (1, 'a'), (2, NULL), (NULL, 'c')) AS v(n, t) ORDER BY n
VALUES (3, 'x'), (1, 'y') ORDER BY 1 DESC LIMIT 1
SELECT ARRAY(SELECT id FROM b WHERE b.a_id = a.id ORDER BY id) FROM a ORDER BY id
SELECT id, CASE x WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END FROM a ORDER BY id
SELECT id, x BETWEEN y AND 5, x NOT BETWEEN SYMMETRIC 5 AND y FROM a ORDER BY id
SELECT string_agg(s, ',' ORDER BY id DESC), array_agg(DISTINCT x ORDER BY x), count(DISTINCT y), sum(DISTINCT x) FROM a
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.3) WITHIN GROUP (ORDER BY s), mode() WITHIN GROUP (ORDER BY y DESC) FROM a
SELECT count(*) FROM a WHERE false
SELECT 1 FROM a HAVING count(*) > 100
SELECT x FROM a GROUP BY x HAVING x = ANY (SELECT m FROM p) ORDER BY x
SELECT id FROM a WHERE x = (SELECT x FROM a b WHERE b.id = a.id + 1) ORDER BY id
SELECT (SELECT x FROM a)
SELECT id, (SELECT count(*) FROM (SELECT 1 FROM b WHERE b.a_id = a.id UNION ALL SELECT 2) s) FROM a ORDER BY id
SELECT id FROM a WHERE id IN (SELECT a_id FROM b WHERE b.v = 'ab') AND s LIKE 's%' ORDER BY id
SELECT b.w[1], b.w[1:1], b.w[2:] FROM b ORDER BY id
SELECT count(*) FROM a CROSS JOIN b
SELECT max(q.n) FROM (SELECT x, count(*) AS n FROM a GROUP BY x) q
SELECT a.id FROM a WHERE a.x IN (1, 2) AND EXISTS (SELECT FROM b WHERE b.a_id = a.id) ORDER BY a.id
SELECT s.t, count(*) FROM (SELECT a.id % 3 AS t FROM a) s GROUP BY s.t ORDER BY s.t
SELECT x, avg(n), stddev(n) FROM a GROUP BY x ORDER BY count(*), x NULLS FIRST
SELECT upper(s) AS s FROM a ORDER BY s
SELECT s FROM a ORDER BY upper(s) DESC, id
SELECT -x AS x FROM a ORDER BY x, id
SELECT (SELECT a.x FROM b LIMIT 1) AS v, count(*) FROM a GROUP BY a.x ORDER BY 1, 2
SELECT id, lag(x) OVER (ORDER BY id), lead(x, 2, -1) OVER (ORDER BY id), ntile(3) OVER (ORDER BY id) FROM a ORDER BY id
SELECT id, (SELECT sum(x) OVER () FROM p WHERE m = a.x LIMIT 1) FROM a ORDER BY id
SELECT id, (SELECT sum(a.x + m) FROM p) FROM a ORDER BY id
SELECT sum((SELECT count(*) FROM b WHERE b.a_id = a.id)) FROM a
SELECT x, sum((SELECT count(*) FROM b WHERE b.a_id = a.id)) FROM a GROUP BY x ORDER BY x
SELECT 1 WHERE 1 IN (SELECT x FROM a) AND 100 NOT IN (SELECT x FROM a WHERE x IS NOT NULL)
SELECT id FROM a WHERE (x, y) = (SELECT m, m FROM p ORDER BY k, m LIMIT 1) ORDER BY id
SELECT DISTINCT x, y FROM a WHERE id < 20 ORDER BY y, x
SELECT count(*), x FROM a GROUP BY 2 ORDER BY 2
SELECT * FROM (SELECT id, x FROM a ORDER BY id LIMIT 3) s, (SELECT id, v FROM b ORDER BY id LIMIT 2) t ORDER BY 1, 3
SELECT a.id, s, x + y, flag FROM a WHERE id < 10 GROUP BY id ORDER BY id
SELECT a.id, a.s, count(b.id), max(b.v) FROM a LEFT JOIN b ON b.a_id = a.id GROUP BY a.id HAVING a.x > 2 ORDER BY a.y, a.id
SELECT b.a_id, a.s, count(*) FROM b LEFT JOIN a ON a.id = b.a_id GROUP BY b.a_id, a.id ORDER BY 1, 2, 3
SELECT id, x, count(*) FROM a GROUP BY GROUPING SETS ((id), (id, y)) ORDER BY id, x, 3
SELECT k, m, t FROM p GROUP BY k, m ORDER BY k, m
SELECT a.id, rank() OVER (ORDER BY a.y DESC, a.id) FROM a GROUP BY a.id ORDER BY a.id
SELECT id, (SELECT max(m) FROM p WHERE m < a.x) FROM a GROUP BY id ORDER BY id
SELECT a.id, g FROM a, generate_series(1, (SELECT max(m) FROM p WHERE m <= a.x)) g ORDER BY 1, 2
SELECT a.id, v.c FROM a, LATERAL (VALUES (a.x), (a.y)) AS v(c) ORDER BY 1, 2
SELECT a.id, q.s FROM a, LATERAL (SELECT sum(m) AS s FROM p WHERE p.m <= a.x AND EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id AND b.id > p.m)) q ORDER BY 1
SELECT a.id, b.id FROM a JOIN b ON b.a_id = a.id AND EXISTS (SELECT 1 FROM p WHERE p.m = a.x AND p.m < b.id) ORDER BY 1, 2
SELECT a.id, b.id FROM e, a LEFT JOIN b ON b.a_id = (SELECT max(c.id) FROM a c WHERE c.id <= a.id AND c.x = a.x) ORDER BY 1, 2
SELECT a.id, b.id FROM p, a JOIN b ON b.a_id = (SELECT min(c.id) FROM a c WHERE c.id >= a.id) WHERE p.m = 0 ORDER BY 1, 2
SELECT (SELECT count(*) FROM b WHERE b.id <= a.x) AS n, count(*) FROM a GROUP BY 1 ORDER BY 1
SELECT x, count(*) FROM a GROUP BY x HAVING count(*) > (SELECT count(*) FROM p WHERE p.m = a.x) ORDER BY x
SELECT x FROM a GROUP BY x ORDER BY (SELECT count(*) FROM p WHERE p.m = a.x), x
SELECT id FROM a ORDER BY (SELECT max(b.id) FROM b WHERE b.a_id = a.id), id
SELECT x, sum(y) FILTER (WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)) FROM a GROUP BY x ORDER BY x
SELECT id, rank() OVER (ORDER BY (SELECT count(*) FROM b WHERE b.a_id = a.id) DESC) FROM a ORDER BY id
SELECT id, sum((SELECT count(*) FROM b WHERE b.a_id = a.id)) OVER (ORDER BY id) FROM a ORDER BY id
SELECT id FROM a ORDER BY id LIMIT (SELECT max(m) FROM p) OFFSET (SELECT 2)
SELECT id, (SELECT max(v) FROM (SELECT a.x AS v UNION ALL SELECT m FROM p WHERE m > a.x) u) FROM a ORDER BY id
SELECT id, (SELECT string_agg(k, ',' ORDER BY k) FROM (SELECT DISTINCT k FROM p WHERE m > a.x) q) FROM a ORDER BY id
SELECT id, (WITH q AS (SELECT k, m FROM p WHERE m > a.x) SELECT count(*) FROM q l JOIN q r USING (k)) FROM a ORDER BY id
WITH q AS (SELECT * FROM a WHERE x > 2) SELECT id, (SELECT count(*) FROM q r WHERE r.x = q.x) FROM q ORDER BY id
WITH q AS (SELECT * FROM a WHERE x > 2) SELECT count(*) FROM b WHERE a_id IN (SELECT id FROM q) AND EXISTS (SELECT 1 FROM q WHERE q.id = b.a_id)
SELECT id, (SELECT l.v FROM (SELECT id AS i, v FROM b JOIN a USING (id)) l WHERE l.i = a.id) FROM a ORDER BY id
SELECT j.id, q.c FROM (a FULL JOIN b USING (id)) AS j, LATERAL (SELECT count(*) AS c FROM p WHERE p.m < j.id) q ORDER BY 1
SELECT id, (SELECT count(*) FROM p WHERE p.m < id) FROM a FULL JOIN b USING (id) ORDER BY id
SELECT id, q FROM a FULL JOIN b USING (id), LATERAL (SELECT id * 2 AS q) s ORDER BY id
SELECT x, max((SELECT max(m) FROM p WHERE m < a.y)) FROM a GROUP BY x ORDER BY x
SELECT x, (SELECT sum(m) FROM p WHERE m < max(a.y)) FROM a GROUP BY x ORDER BY x
SELECT x, (SELECT count(*) FILTER (WHERE m < sum(a.y)) FROM p) FROM a GROUP BY x ORDER BY x
SELECT count(*), (SELECT count(*) FROM b HAVING count(*) > max(a.x)) FROM a
SELECT x, (SELECT (SELECT max(a.y) + max(p.m)) FROM p) FROM a GROUP BY x ORDER BY x
SELECT id FROM a WHERE x IN (SELECT m FROM p WHERE k = (SELECT max(k) FROM p q WHERE q.m >= a.y)) ORDER BY id
SELECT id FROM a WHERE (SELECT count(*) FROM b WHERE b.a_id = a.id) = (SELECT count(*) FROM p WHERE p.m = a.x) ORDER BY id
SELECT id FROM a WHERE x = ANY (SELECT m FROM p UNION SELECT a.y) ORDER BY id
SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id UNION SELECT 1 WHERE a.x > 3) ORDER BY id
SELECT id, CASE WHEN EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id) THEN (SELECT min(b.id) FROM b WHERE b.a_id = a.id) ELSE -1 END FROM a ORDER BY id
SELECT DISTINCT ON (x) x, (SELECT count(*) FROM b WHERE b.a_id = a.id) AS n FROM a ORDER BY x, n DESC, id
SELECT x, array_agg(id ORDER BY id) FILTER (WHERE y > 1), count(*) FILTER (WHERE y IS NULL) FROM a GROUP BY x ORDER BY x
SELECT x, y, count(*), grouping(x), grouping(y) FROM a GROUP BY GROUPING SETS (x, y, ()) HAVING grouping(x) + grouping(y) > 0 ORDER BY 1, 2, 3
SELECT x, sum(count(*)) OVER (), rank() OVER (ORDER BY grouping(x), x) FROM a GROUP BY ROLLUP (x) ORDER BY 3
SELECT x + 1 AS v, count(*) FROM a GROUP BY x + 1 ORDER BY x + 1
SELECT x % 2, y % 2, count(*) FROM a GROUP BY x % 2, y % 2 ORDER BY 1, 2
SELECT lower(s) || '!' FROM a GROUP BY lower(s) ORDER BY 1
SELECT CASE WHEN x > 3 THEN 'hi' ELSE 'lo' END AS c, count(*) FROM a GROUP BY c ORDER BY c
SELECT n, generate_series(1, 2) AS g FROM a WHERE id < 4 ORDER BY g, id
SELECT unnest(w), id FROM b ORDER BY id, 1
SELECT unnest(w) AS e, count(*) FROM b GROUP BY w ORDER BY w, e
SELECT count(*) FROM (SELECT unnest(w) FROM b) s
SELECT id, (SELECT sum(e) FROM unnest(w) e) FROM b ORDER BY id
SELECT id, ARRAY(SELECT e + 1 FROM unnest(w) WITH ORDINALITY AS u(e, i) ORDER BY i DESC) FROM b ORDER BY id
SELECT b.id, b.v FROM b WHERE b.v IN ('aa', 'b') AND b.c = 'x' ORDER BY b.id
SELECT * FROM a l JOIN a r ON l.id = r.x JOIN b ON b.a_id = r.id LEFT JOIN p ON p.m = l.y AND p.k = 'k1' ORDER BY l.id, r.id, b.id
SELECT * FROM (a CROSS JOIN e) RIGHT JOIN b ON true ORDER BY b.id
SELECT l.id FROM a l WHERE l.x < ALL (SELECT r.y FROM a r WHERE r.id = l.id + 1) ORDER BY l.id
SELECT * FROM (SELECT id, x, row_number() OVER (PARTITION BY x ORDER BY id) AS r FROM a) s WHERE r = 1 ORDER BY x
WITH RECURSIVE t(k, deep) AS (SELECT id, 0 FROM a WHERE id = 1 UNION ALL SELECT a.id, deep + 1 FROM t JOIN a ON a.id = t.k * 2 WHERE deep < 5) SELECT * FROM t ORDER BY k
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 4), u AS (SELECT n * 10 AS n FROM t) SELECT t.n, u.n FROM t, u ORDER BY 1, 2
WITH RECURSIVE t(n) AS (VALUES (0) UNION SELECT (n * 3 + 1) % 11 FROM t), s AS (SELECT sum(n) AS v FROM t) SELECT * FROM s
SELECT a.id, r.n FROM a, LATERAL (WITH RECURSIVE t(n) AS (SELECT a.x UNION ALL SELECT n - 1 FROM t WHERE n > 0) SELECT count(*) AS n FROM t) r ORDER BY 1
SELECT x, y FROM a WHERE (x, y) IN ((1, 1), (2, 2), (NULL, 3)) ORDER BY id
SELECT id, (x, y) <= (3, NULL), (x, y) > (2, 2) FROM a ORDER BY id
SELECT sum(x) FROM a WHERE id IN (SELECT unnest(ARRAY[1, 2, 3]))
SELECT max(x) OVER (PARTITION BY y), min(x) FILTER (WHERE x > 1) OVER (PARTITION BY y) FROM a ORDER BY id
SELECT id, first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 2) OVER w FROM a WINDOW w AS (PARTITION BY x ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY id
SELECT x, count(*), count(*) OVER () FROM a GROUP BY x ORDER BY x LIMIT 3
SELECT DISTINCT x, count(*) OVER (PARTITION BY x) FROM a ORDER BY x
SELECT id, interval '3' day, interval '2' hour + interval '1.5' second FROM a WHERE id = 1
SELECT id, (jsonb_each('{"a": 1, "b": 2}')).key FROM a WHERE id < 3 ORDER BY 1, 2
SELECT (jsonb_each('{"a": 1, "b": 2}')).key, (jsonb_each('{"a": 1, "b": 2}')).value
SELECT id, (s.k).n, (k).x FROM (SELECT id, information_schema._pg_expandarray(w) AS k FROM b) s WHERE (s.k).x > 0 ORDER BY 1, 2
SELECT id, (information_schema._pg_expandarray(w)).n AS n, unnest(w) FROM b ORDER BY 1, 2
WITH s AS (SELECT id, jsonb_each('{"a": 1}') AS k FROM a) SELECT id, (k).value FROM s ORDER BY id
SELECT (ARRAY[[1, 2], [3, 4]])[2][1], (ARRAY[[1, 2], [3, 4]])[3][1], (ARRAY[[1, 2]])[1][NULL], (ARRAY[1, 2])[1][1]
SELECT x, count(*) OVER w FROM a WINDOW w AS (PARTITION BY x), v AS (ORDER BY id) ORDER BY id
"""
