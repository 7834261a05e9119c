# ruff: noqa: E501
"""Statements over the tables of `two_sides`: what the rows executor and the access planner are tried with.

Where rows have an order to compare, ORDER BY says it all; else they are compared as bags.
"""

READS = """
SELECT 1, 'x', NULL
SELECT * FROM a
SELECT id, x FROM a WHERE x = 3
SELECT id FROM a WHERE id = 7
SELECT id FROM a WHERE id = 7 AND x = 3
SELECT id FROM a WHERE id IN (3, 5, 5, 1000, NULL)
SELECT id FROM a WHERE id = ANY (ARRAY[4, 2, 9]::bigint[])
SELECT id FROM a WHERE id = ANY (NULL::bigint[])
SELECT id FROM a WHERE id NOT IN (3, 5)
SELECT id FROM a WHERE id BETWEEN 10 AND 15
SELECT id FROM a WHERE id > 50 AND id <= 55
SELECT id FROM a WHERE 50 < id
SELECT id FROM a WHERE x = 2 AND y > 1
SELECT id FROM a WHERE x = 2 AND y <= 1
SELECT id FROM a WHERE x IN (1, 2) AND y BETWEEN 1 AND 3
SELECT id FROM a WHERE x BETWEEN 2 AND 3
SELECT id FROM a WHERE s = 's07'
SELECT id FROM a WHERE s > 's50'
SELECT id FROM a WHERE s IS NULL
SELECT id FROM a WHERE x = 3000000000
SELECT id FROM a WHERE x = 3.0
SELECT id FROM a WHERE x = 2.5
SELECT id FROM a WHERE n = 2.50
SELECT id, n FROM a WHERE n > 4 AND n < 5.5
SELECT id FROM a WHERE f = 0
SELECT id FROM a WHERE f = 'NaN'
SELECT id FROM a WHERE f > 1
SELECT id FROM a WHERE flag
SELECT id FROM a WHERE NOT flag
SELECT id FROM a WHERE flag IS NOT TRUE
SELECT id FROM a WHERE d = '2024-01-05'
SELECT id FROM a WHERE x > 3 AND d = '2024-01-09'
SELECT id FROM a WHERE x > 3 AND d > '2024-01-20'
SELECT id FROM a WHERE d = timestamp '2024-01-05 00:00:00'
SELECT id FROM a WHERE d > timestamp '2024-01-05 12:00:00'
SELECT id FROM a WHERE x = NULL
SELECT id FROM a WHERE x = 1 OR x = 2
SELECT id FROM a WHERE x = y
SELECT id FROM a WHERE x + 1 = 4
SELECT id FROM a WHERE x = (SELECT max(m) FROM p)
SELECT id FROM b WHERE v = 'ab'
SELECT id FROM b WHERE v = 'ab'::text
SELECT id FROM b WHERE c = 'x'
SELECT id FROM b WHERE c = 'x '
SELECT id FROM b WHERE c > 'x' AND c < 'zz'
SELECT id FROM b WHERE w = '{1,2}'
SELECT k, m FROM p WHERE k = 'k1'
SELECT k, m FROM p WHERE k = 'k1' AND m = 1
SELECT k, m FROM p WHERE k IN ('k1', 'k3') AND m = 1
SELECT k, m FROM p WHERE k = 'k2' AND m IN (0, 1, 7)
SELECT k, m FROM p WHERE k > 'k1' AND m = 0
SELECT x, count(*) FROM a GROUP BY x HAVING x = 3
SELECT 1 FROM a WHERE false
SELECT * FROM e
"""

ORDERS = """
SELECT id FROM a ORDER BY id
SELECT id FROM a ORDER BY id DESC
SELECT id FROM a ORDER BY id DESC LIMIT 3
SELECT id FROM a ORDER BY id OFFSET 55
SELECT id FROM a ORDER BY id LIMIT 3 OFFSET 4
SELECT id FROM a ORDER BY id LIMIT NULL OFFSET NULL
SELECT id FROM a ORDER BY id LIMIT 0
SELECT id FROM a ORDER BY id LIMIT -1
SELECT id FROM a ORDER BY id OFFSET -1
SELECT x, id FROM a ORDER BY x, id
SELECT x, id FROM a ORDER BY x DESC, id DESC
SELECT x, id FROM a ORDER BY x DESC, id
SELECT x, id FROM a ORDER BY x NULLS FIRST, id
SELECT x, id FROM a ORDER BY x DESC NULLS LAST, id
SELECT x, id FROM a ORDER BY x, id LIMIT 5
SELECT x, id FROM a ORDER BY x DESC, id DESC LIMIT 20
SELECT x, id FROM a ORDER BY x NULLS FIRST, id LIMIT 5
SELECT x, y, id FROM a ORDER BY x, y DESC, id LIMIT 15
SELECT x, y, id FROM a ORDER BY x DESC, y, id DESC LIMIT 15
SELECT y, id FROM a WHERE x = 2 ORDER BY y DESC, id
SELECT y, id FROM a WHERE x = 2 ORDER BY y, id DESC
SELECT y, id FROM a WHERE x = 2 ORDER BY y, id
SELECT x, id FROM a WHERE x IN (3, 1) ORDER BY x, id
SELECT x, id FROM a WHERE x IN (3, 1) ORDER BY x DESC, id DESC LIMIT 4
SELECT id FROM a WHERE id IN (9, 3, 40) ORDER BY id DESC
SELECT s FROM a ORDER BY s LIMIT 4
SELECT s FROM a ORDER BY s DESC LIMIT 4
SELECT s FROM a WHERE s > 's30' ORDER BY s LIMIT 4
SELECT f, id FROM a ORDER BY f, id
SELECT f, id FROM a ORDER BY f DESC, id
SELECT n, id FROM a ORDER BY n, id
SELECT n, id FROM a ORDER BY n DESC NULLS LAST, id LIMIT 10
SELECT -x, id FROM a ORDER BY -x, id
SELECT id FROM a ORDER BY x % 2, id
SELECT c, id FROM b ORDER BY c, id
SELECT w, id FROM b ORDER BY w, id
SELECT k, m FROM p ORDER BY k, m
SELECT k, m FROM p ORDER BY k DESC, m DESC
SELECT k, m FROM p ORDER BY k, m DESC
SELECT k, m FROM p ORDER BY k, m, t
SELECT m FROM p WHERE k = 'k2' ORDER BY m DESC
SELECT x FROM a ORDER BY x FETCH FIRST 3 ROWS WITH TIES
SELECT x FROM a WHERE x > 5 ORDER BY x DESC FETCH FIRST 1 ROWS WITH TIES
SELECT DISTINCT x FROM a ORDER BY x
SELECT DISTINCT x, y FROM a ORDER BY y, x
SELECT DISTINCT ON (x) x, id FROM a ORDER BY x, id DESC
SELECT DISTINCT ON (x, flag) x, flag, id FROM a ORDER BY x, flag, id
SELECT DISTINCT f FROM a ORDER BY f
SELECT a.id, b.id FROM a JOIN b ON b.a_id = a.id ORDER BY a.id, b.id
SELECT a.id, b.id FROM a JOIN b ON b.a_id = a.id ORDER BY a.id DESC, b.id LIMIT 5
SELECT id FROM (SELECT * FROM a ORDER BY id LIMIT 10) AS q ORDER BY id DESC
SELECT id, x FROM a WHERE x = 3 ORDER BY id LIMIT 1
"""

JOINS = """
SELECT a.id, b.id FROM a, b WHERE (a.id = b.a_id AND a.x = 2) OR (a.id = b.a_id AND b.v = 'aa')
SELECT a.id, b.id FROM a, b WHERE (a.id = b.a_id AND a.x > 2) OR a.id = b.a_id
SELECT a.id, b.id FROM a, b WHERE (a.id = b.a_id AND a.x = 2 AND b.v = 'aa') OR (b.a_id = 3 AND a.id = b.a_id AND a.y < 3)
SELECT a.id, b.id FROM a JOIN b ON (a.x = 2 AND b.id < 9) OR (a.x = 3 AND b.id > 30 AND a.y > b.id % 3)
SELECT a.id, b.id FROM a LEFT JOIN b ON (a.id = b.a_id AND b.id < 9) OR (a.id = b.a_id AND a.x = 3)
SELECT a.id, b.id FROM a RIGHT JOIN b ON (a.x = 2 AND b.id < 9) OR (a.x = 3 AND b.id > 30)
SELECT a.id, b.id FROM a FULL JOIN b ON (a.id = b.a_id AND a.x = 2) OR (a.id = b.a_id AND b.v = 'aa')
SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE (b.a_id = a.id AND a.x = 2) OR (b.a_id = a.id AND b.id > 20))
SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE (b.a_id = a.id AND a.x = 2) OR (b.a_id = a.id AND b.id > 20))
SELECT id FROM a WHERE (x = 2 AND y = 1) OR (x = 2 AND y IS NULL) OR (y > 2 AND x = 2)
SELECT a.id, b.id FROM a JOIN b ON a.id = b.a_id
SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id
SELECT a.id, b.id FROM a RIGHT JOIN b ON a.id = b.a_id
SELECT a.id, b.id FROM a FULL JOIN b ON a.id = b.a_id
SELECT a.id, b.id FROM a FULL JOIN b ON a.id = b.a_id AND b.v = 'aa'
SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id AND b.v = 'aa'
SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id AND a.x = 3
SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id WHERE a.x = 3
SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id WHERE b.v = 'aa'
SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id WHERE b.id IS NULL
SELECT a.id, b.id FROM a RIGHT JOIN b ON a.id = b.a_id WHERE a.x = 3
SELECT a.id, b.id FROM a RIGHT JOIN b ON a.id = b.a_id AND b.v = 'aa' WHERE b.id > 10
SELECT a.id, b.id FROM a, b WHERE a.id = b.a_id AND a.id = 5
SELECT a.id, b.id FROM a, b WHERE a.id = b.a_id AND b.id = 5
SELECT a.id, b.id FROM b, a WHERE a.id = b.a_id AND a.id IN (5, 6, 7, 8, 9, 10)
SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a_id WHERE a.id IN (1, 2, 3, 4, 5, 6)
SELECT a.id, b.id, p.m FROM a, b, p WHERE a.id = b.a_id AND p.m = a.x AND b.id = 7
SELECT a.id, b.id, p.m FROM a, p, b WHERE a.id = b.a_id AND p.m = a.x
SELECT a.id, b.id, p.k FROM p JOIN a ON a.x = p.m JOIN b ON b.a_id = a.id WHERE p.k = 'k1' AND p.m = 1
SELECT a.id, b.id FROM a JOIN b ON a.id < b.a_id WHERE a.id < 4 AND b.id < 6
SELECT a1.id, a2.id FROM a a1 JOIN a a2 ON a1.x = a2.x AND a1.y = a2.y AND a1.id < a2.id
SELECT a1.id, a2.id FROM a a1 JOIN a a2 ON a1.n = a2.n AND a1.id < a2.id
SELECT a1.id, a2.id FROM a a1 JOIN a a2 ON a1.f = a2.f AND a1.id < a2.id
SELECT a1.id, a2.id FROM a a1 JOIN a a2 ON a1.x = a2.y WHERE a1.id = 3
SELECT a1.id, a2.id FROM a a1 JOIN a a2 ON a1.x + 1 = a2.y WHERE a1.id < 9
SELECT b1.id, b2.id FROM b b1 JOIN b b2 ON b1.v = b2.v AND b1.c = b2.c
SELECT b1.id, b2.id FROM b b1 JOIN b b2 ON b1.w = b2.w WHERE b1.id < b2.id
SELECT a.id, p.k FROM a JOIN p ON a.x = p.m AND p.k = 'k1' AND a.y = 2
SELECT count(*) FROM a, b
SELECT count(*) FROM a CROSS JOIN p
SELECT a.id, q.c FROM a, LATERAL (SELECT count(*) AS c FROM b WHERE b.a_id = a.id) AS q
SELECT a.id, q.id FROM a LEFT JOIN LATERAL (SELECT id FROM b WHERE b.a_id = a.id ORDER BY id DESC LIMIT 1) AS q ON true
SELECT a.id, g FROM a, generate_series(1, a.x) AS g WHERE a.id < 10
SELECT a.id, u FROM a JOIN b ON b.a_id = a.id, unnest(b.w) AS u
SELECT b.id, u.v, u.o FROM b, unnest(b.w) WITH ORDINALITY AS u(v, o)
SELECT * FROM a JOIN e ON a.id = e.id
SELECT a.id, e.z FROM a LEFT JOIN e ON a.id = e.id
SELECT a.id, e.z FROM e RIGHT JOIN a ON a.id = e.id
SELECT a.id, b.v FROM a JOIN b USING (id)
SELECT id, x, v FROM a FULL JOIN b USING (id) WHERE id > 38 AND id < 43
SELECT id, x, v FROM a NATURAL JOIN b
SELECT a.id FROM a JOIN (SELECT a_id, count(*) AS c FROM b GROUP BY a_id) AS q ON q.a_id = a.id WHERE q.c > 1
SELECT a.id FROM a JOIN (SELECT a_id, count(*) AS c FROM b GROUP BY a_id) AS q ON q.a_id = a.id WHERE a.id = 9
SELECT (SELECT count(*) FROM b WHERE b.a_id = a.id AND b.v > 'a'), a.id FROM a
"""

SUBQUERIES = """
SELECT id, (SELECT count(*) FROM e WHERE e.z = a.x) FROM a
SELECT id, (SELECT count(*) FROM e WHERE e.z = a.x), '{1,2}'::int[] <> ALL (SELECT CASE WHEN a.x > 3 THEN w ELSE '{1}' END FROM b) FROM a
SELECT id, (SELECT count(z) + 1 FROM e WHERE e.z = a.x AND e.id > 3) FROM a
SELECT id, (SELECT max(z) + a.y FROM e WHERE a.x = e.z) FROM a
SELECT id FROM a WHERE y < (SELECT avg(i.x) FROM a AS i WHERE i.y = a.y)
SELECT id FROM a WHERE n < (SELECT 0.5 * sum(i.n) FROM a AS i WHERE i.y = a.y AND i.id <> 7)
SELECT id FROM a WHERE coalesce((SELECT sum(i.x) FROM a AS i WHERE i.y = a.y + 1), -1) > x
SELECT id FROM a WHERE (SELECT min(t) FROM p WHERE p.t = a.s) IS NULL AND (SELECT count(*) FROM e WHERE e.z = a.y) = 0
SELECT id, CASE WHEN x > 3 THEN (SELECT bool_or(m > 2) FROM p WHERE p.m = a.x) END FROM a
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id AND b.id > (SELECT avg(e.id) FROM e WHERE e.z = b.id))
SELECT a.id, b.id FROM a JOIN b ON b.a_id = a.id WHERE b.id <= (SELECT max(i.id) FROM b AS i WHERE i.c = b.c AND i.v = b.v)
SELECT x, sum((SELECT count(*) FROM e WHERE e.z = a.y)) FROM a GROUP BY x
SELECT id FROM a WHERE x IN (SELECT z FROM e WHERE e.id > (SELECT avg(i.id) FROM e AS i WHERE i.z = e.z))
SELECT id, (SELECT sum(f) FROM a AS i WHERE i.y = a.y) IS NULL FROM a
SELECT id, (SELECT count(*) FROM e HAVING count(*) > a.x) FROM a
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)
SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)
SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id AND b.v = 'aa')
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id AND b.id > a.x)
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id + 1) AND x > 2
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id AND EXISTS (SELECT 1 FROM p WHERE p.m = b.id))
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id AND EXISTS (SELECT 1 FROM p WHERE p.m = a.x))
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b JOIN p ON p.m = b.id WHERE b.a_id = a.id)
SELECT id FROM a WHERE EXISTS (SELECT max(b.id) FROM b WHERE b.a_id = a.id)
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id LIMIT 0)
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id OFFSET 1)
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM e)
SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM e) AND id < 5
SELECT id FROM a WHERE id IN (SELECT a_id FROM b)
SELECT id FROM a WHERE id IN (SELECT a_id FROM b WHERE v = 'aa')
SELECT id FROM a WHERE id IN (SELECT a_id FROM b WHERE v = 'aa' ORDER BY id LIMIT 2) AND x > 1
SELECT id FROM a WHERE x IN (SELECT m FROM p WHERE k = 'k1') AND y IN (SELECT m FROM p WHERE k = 'k2')
SELECT id FROM a WHERE n IN (SELECT x FROM a WHERE id = 5)
SELECT id FROM a WHERE id IN (SELECT x FROM a AS aa WHERE aa.id IN (SELECT id FROM b WHERE v = 'aa'))
SELECT id FROM a WHERE id IN (SELECT a_id FROM b WHERE v = 'zz')
SELECT id FROM a WHERE id NOT IN (SELECT a_id FROM b)
SELECT id FROM a WHERE id NOT IN (SELECT a_id FROM b WHERE a_id IS NOT NULL)
SELECT id FROM a WHERE x NOT IN (SELECT z FROM e)
SELECT id FROM a WHERE n IN (SELECT m FROM p)
SELECT id FROM a WHERE x > ALL (SELECT m FROM p WHERE k = 'k1')
SELECT id FROM a WHERE x > ANY (SELECT m FROM p WHERE k = 'k1')
SELECT id FROM a WHERE x >= ALL (SELECT z FROM e)
SELECT id FROM a WHERE x IN (SELECT m FROM p WHERE p.m = a.y)
SELECT id, x IN (SELECT y FROM a) FROM a
SELECT id, (x, y) = ANY (SELECT y, x FROM a) FROM a
SELECT id, (x, y) = ANY (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) = ANY (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) = ANY (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x = ANY (SELECT z FROM e), f = ANY (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y = ANY (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) = ANY (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) = ANY (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) = ALL (SELECT y, x FROM a) FROM a
SELECT id, (x, y) = ALL (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) = ALL (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) = ALL (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x = ALL (SELECT z FROM e), f = ALL (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y = ALL (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) = ALL (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) = ALL (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) <> ANY (SELECT y, x FROM a) FROM a
SELECT id, (x, y) <> ANY (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) <> ANY (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) <> ANY (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x <> ANY (SELECT z FROM e), f <> ANY (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y <> ANY (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) <> ANY (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) <> ANY (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) <> ALL (SELECT y, x FROM a) FROM a
SELECT id, (x, y) <> ALL (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) <> ALL (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) <> ALL (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x <> ALL (SELECT z FROM e), f <> ALL (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y <> ALL (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) <> ALL (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) <> ALL (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) < ANY (SELECT y, x FROM a) FROM a
SELECT id, (x, y) < ANY (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) < ANY (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) < ANY (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x < ANY (SELECT z FROM e), f < ANY (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y < ANY (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) < ANY (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) < ANY (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) < ALL (SELECT y, x FROM a) FROM a
SELECT id, (x, y) < ALL (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) < ALL (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) < ALL (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x < ALL (SELECT z FROM e), f < ALL (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y < ALL (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) < ALL (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) < ALL (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) <= ANY (SELECT y, x FROM a) FROM a
SELECT id, (x, y) <= ANY (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) <= ANY (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) <= ANY (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x <= ANY (SELECT z FROM e), f <= ANY (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y <= ANY (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) <= ANY (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) <= ANY (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) <= ALL (SELECT y, x FROM a) FROM a
SELECT id, (x, y) <= ALL (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) <= ALL (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) <= ALL (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x <= ALL (SELECT z FROM e), f <= ALL (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y <= ALL (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) <= ALL (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) <= ALL (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) > ANY (SELECT y, x FROM a) FROM a
SELECT id, (x, y) > ANY (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) > ANY (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) > ANY (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x > ANY (SELECT z FROM e), f > ANY (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y > ANY (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) > ANY (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) > ANY (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) > ALL (SELECT y, x FROM a) FROM a
SELECT id, (x, y) > ALL (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) > ALL (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) > ALL (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x > ALL (SELECT z FROM e), f > ALL (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y > ALL (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) > ALL (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) > ALL (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) >= ANY (SELECT y, x FROM a) FROM a
SELECT id, (x, y) >= ANY (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) >= ANY (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) >= ANY (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x >= ANY (SELECT z FROM e), f >= ANY (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y >= ANY (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) >= ANY (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) >= ANY (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id, (x, y) >= ALL (SELECT y, x FROM a) FROM a
SELECT id, (x, y) >= ALL (SELECT z, id FROM e) FROM a
SELECT id FROM a WHERE (x, y) >= ALL (SELECT i.y, i.x FROM a AS i WHERE i.id > a.id)
SELECT id FROM a WHERE NOT (y, f) >= ALL (SELECT i.x, i.f FROM a AS i WHERE i.y = a.y)
SELECT id, x >= ALL (SELECT z FROM e), f >= ALL (SELECT f FROM a AS i WHERE i.x = 2) FROM a
SELECT id FROM a WHERE y >= ALL (SELECT i.x FROM a AS i WHERE i.y = a.x)
SELECT id, (x, n, d) >= ALL (SELECT y, n, d FROM a AS i WHERE i.id < 40) FROM a
SELECT id, (x, d) >= ALL (SELECT y, d + interval '1 day' FROM a AS i) FROM a
SELECT id FROM a WHERE (x, y) IN (SELECT y, x FROM a)
SELECT id FROM a WHERE (x, y) NOT IN (SELECT y, x FROM a WHERE x > 2)
SELECT id FROM a WHERE (x, y) NOT IN (SELECT y, x FROM a WHERE false)
SELECT id FROM a WHERE (x, y) NOT IN (SELECT i.y, i.x FROM a AS i WHERE i.flag = a.flag)
SELECT id FROM a WHERE (id, x) IN (SELECT DISTINCT a_id, length(v) + 1 FROM b ORDER BY 1)
SELECT id FROM a WHERE (id, x) IN (SELECT a_id, count(*) FROM b GROUP BY a_id)
SELECT id FROM a WHERE (id, x) IN (SELECT a_id, id FROM b ORDER BY id LIMIT 5)
SELECT id FROM a WHERE (id, 'aa') IN (SELECT a_id, v FROM b) AND x IN (SELECT z FROM e WHERE e.id > a.id)
SELECT id FROM a WHERE x IN (SELECT z + a.y FROM e WHERE e.z = a.x)
SELECT id FROM a WHERE x NOT IN (SELECT (SELECT max(z) FROM e) FROM b WHERE b.a_id = a.id)
SELECT id FROM a WHERE (x, y) = (SELECT y, x FROM a AS i WHERE i.id = a.id)
SELECT id FROM a WHERE (x, y) ~ ANY (SELECT s, s FROM a)
SELECT id FROM a WHERE (x, y) < ANY (SELECT s, x FROM a)
SELECT id FROM a WHERE s LIKE ANY (SELECT 's' || z || '%' FROM e)
SELECT id FROM a WHERE (NULL, x) IN (SELECT x, y FROM a) OR (NULL, NULL) NOT IN (SELECT z, z FROM e WHERE false)
SELECT id, x NOT IN (SELECT y FROM a WHERE y IS NOT NULL) FROM a
SELECT id, (SELECT v FROM b WHERE b.id = a.id) FROM a
SELECT (SELECT id FROM b)
SELECT (SELECT id FROM b WHERE false)
SELECT ARRAY(SELECT id FROM b WHERE id < 5 ORDER BY id DESC)
SELECT ARRAY(SELECT id FROM b WHERE false)
SELECT a.id, ARRAY(SELECT b.id FROM b WHERE b.a_id = a.id ORDER BY 1) FROM a
SELECT id, (SELECT count(*) FROM a a2 WHERE a2.x = a.x AND (SELECT count(*) FROM b WHERE b.a_id = a.id) > 0) FROM a
SELECT (SELECT x.n FROM (SELECT a.n) AS x) FROM a WHERE a.n IN (1, 1.5, 2.5)
WITH q AS (SELECT x, count(*) AS c FROM a GROUP BY x) SELECT q1.x, q2.c FROM q q1 JOIN q q2 ON q1.c = q2.c
WITH q AS (SELECT * FROM a WHERE x = 3) SELECT id FROM q WHERE id > 10
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT sum(n) FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t LIMIT 5
WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT (n * 2) % 7 FROM t) SELECT n FROM t ORDER BY n
WITH RECURSIVE t(id, x) AS (SELECT id, x FROM a WHERE id = 1 UNION SELECT a.id, a.x FROM a JOIN t ON a.id = t.x) SELECT * FROM t
SELECT id, (WITH q AS (SELECT a.x AS v) SELECT q1.v + q2.v FROM q q1, q q2) FROM a
SELECT x FROM a WHERE x = 3 UNION SELECT y FROM a WHERE y = 3
SELECT x FROM a UNION ALL SELECT m FROM p
SELECT x FROM a UNION SELECT m FROM p
SELECT x FROM a INTERSECT SELECT m FROM p
SELECT x FROM a INTERSECT ALL SELECT m FROM p
SELECT x FROM a EXCEPT SELECT m FROM p
SELECT x FROM a EXCEPT ALL SELECT m FROM p
SELECT * FROM (SELECT x, s FROM a UNION ALL SELECT m, t FROM p) AS q WHERE x = 2
SELECT q.s FROM (SELECT x, s FROM a UNION ALL SELECT m, t FROM p) AS q
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v(n, t) WHERE n > 1
SELECT generate_series(1, x), id FROM a WHERE id < 6
SELECT generate_series(1, 2), generate_series(1, 3)
SELECT count(*) FROM generate_series(1, 5000)
SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(5, 8)) WITH ORDINALITY
SELECT 1 / (x - 3) FROM a WHERE x <> 3
SELECT 1 / x FROM a
SELECT 1 / x FROM (VALUES (1), (0)) AS v(x) LIMIT 1
SELECT CASE WHEN x = 0 THEN 0 ELSE 6 / x END FROM a
"""

GROUPS = """
SELECT count(*), count(x), sum(x), avg(x), min(s), max(s) FROM a
SELECT count(*), sum(z), min(z), array_agg(z) FROM e
SELECT x, count(*) FROM a GROUP BY x
SELECT x, y, count(*), sum(n) FROM a GROUP BY x, y
SELECT x, sum(y), avg(n), max(d) FROM a GROUP BY x HAVING count(*) > 5
SELECT x % 2, count(*) FROM a GROUP BY x % 2
SELECT x % 2 AS p, count(*) FROM a GROUP BY p ORDER BY p
SELECT f, count(*) FROM a GROUP BY f
SELECT n, count(*) FROM a GROUP BY n HAVING count(*) > 1 AND n = 2
SELECT z, count(*) FROM e GROUP BY z
SELECT count(DISTINCT x), sum(DISTINCT x) FROM a
SELECT x, count(DISTINCT y) FROM a GROUP BY x
SELECT array_agg(DISTINCT x) FROM a
SELECT array_agg(DISTINCT x ORDER BY x DESC) FROM a
SELECT array_agg(id ORDER BY x, id DESC) FROM a
SELECT string_agg(v, ',' ORDER BY v DESC, id) FROM b
SELECT string_agg(DISTINCT v, ',') FROM b
SELECT count(*) FILTER (WHERE x > 3), sum(y) FILTER (WHERE x > 3) FROM a
SELECT x, count(*) FILTER (WHERE flag) FROM a GROUP BY x
SELECT x, flag, count(*) FROM a GROUP BY GROUPING SETS ((x), (flag), ())
SELECT x, flag, count(*), GROUPING(x, flag) FROM a GROUP BY ROLLUP (x, flag)
SELECT x, flag, count(*), GROUPING(x), GROUPING(flag) FROM a GROUP BY CUBE (x, flag)
SELECT z, count(*) FROM e GROUP BY GROUPING SETS ((z), ())
SELECT x, count(*) FROM a GROUP BY x, GROUPING SETS ((flag), ())
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.25) WITHIN GROUP (ORDER BY y DESC) FROM a
SELECT mode() WITHIN GROUP (ORDER BY x) FROM a
SELECT bool_and(flag), bool_or(flag), every(flag) FROM a
SELECT max(n) - min(n), count(*) + 1 FROM a WHERE x = 2
SELECT x FROM a GROUP BY x ORDER BY count(*) DESC, x LIMIT 3
SELECT count(*) FROM a WHERE x = 100
SELECT count(*) FROM a HAVING count(*) > 100
SELECT sum(c) FROM (SELECT count(*) AS c FROM a GROUP BY x) AS q
SELECT x FROM a GROUP BY x HAVING max(y) = (SELECT max(y) FROM a)
SELECT c, count(*) FROM b GROUP BY c
SELECT w, count(*) FROM b GROUP BY w
SELECT DISTINCT c FROM b
SELECT DISTINCT n FROM a WHERE n = 2
"""

WINDOWS = """
SELECT id, row_number() OVER (ORDER BY id) FROM a
SELECT id, row_number() OVER (PARTITION BY x ORDER BY y, id) FROM a
SELECT id, rank() OVER (PARTITION BY x ORDER BY y), dense_rank() OVER (PARTITION BY x ORDER BY y) FROM a
SELECT id, sum(y) OVER (PARTITION BY x) FROM a
SELECT id, sum(y) OVER (PARTITION BY x ORDER BY id) FROM a
SELECT id, count(*) OVER (ORDER BY x) FROM a
SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM a
SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING) FROM a
SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) FROM a
SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM a
SELECT id, sum(id) OVER (ORDER BY y RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM a
SELECT id, sum(id) OVER (ORDER BY y DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM a
SELECT id, sum(id) OVER (ORDER BY y DESC RANGE BETWEEN 2 FOLLOWING AND 3 FOLLOWING) FROM a
SELECT id, sum(id) OVER (ORDER BY y NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM a
SELECT id, sum(id) OVER (ORDER BY y NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM a
SELECT id, sum(id) OVER (ORDER BY y RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) FROM a
SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN '3 days' PRECEDING AND '2 days' FOLLOWING) FROM a
SELECT id, count(*) OVER (ORDER BY n RANGE BETWEEN 0.5 PRECEDING AND 0.25 FOLLOWING) FROM a
SELECT id, count(*) OVER (ORDER BY f RANGE BETWEEN 0.5 PRECEDING AND 1 FOLLOWING) FROM a
SELECT id, sum(id) OVER (ORDER BY y GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM a
SELECT id, sum(id) OVER (ORDER BY y GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM a
SELECT id, count(*) OVER (ORDER BY y RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) FROM a
SELECT id, sum(id) OVER (ORDER BY y RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP) FROM a
SELECT id, sum(id) OVER (ORDER BY y RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM a
SELECT id, sum(id) OVER (ORDER BY y ROWS BETWEEN -1 PRECEDING AND 1 FOLLOWING) FROM a
SELECT id, sum(id) OVER (ORDER BY y ROWS BETWEEN NULL::int PRECEDING AND 1 FOLLOWING) FROM a
SELECT id, sum(id) OVER (ORDER BY y RANGE BETWEEN -1 PRECEDING AND 1 FOLLOWING) FROM a
SELECT id, lag(x) OVER (ORDER BY id), lead(x, 2, -1) OVER (ORDER BY id) FROM a
SELECT id, first_value(s) OVER w, last_value(s) OVER w, nth_value(s, 2) OVER w FROM a WINDOW w AS (PARTITION BY x ORDER BY id)
SELECT id, last_value(s) OVER (PARTITION BY x ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM a
SELECT id, ntile(4) OVER (ORDER BY id), percent_rank() OVER (ORDER BY x), cume_dist() OVER (ORDER BY x) FROM a
SELECT id, count(*) FILTER (WHERE flag) OVER (PARTITION BY x) FROM a
SELECT x, sum(count(*)) OVER (ORDER BY x) FROM a GROUP BY x
SELECT id, sum(x) OVER (ORDER BY id) + sum(y) OVER (ORDER BY id DESC) FROM a
SELECT * FROM (SELECT id, x, row_number() OVER (PARTITION BY x ORDER BY id) AS r FROM a) AS q WHERE r = 1 AND x = 2
SELECT id, avg(n) OVER (ORDER BY id ROWS 2 PRECEDING) FROM a
SELECT id, array_agg(x) OVER (PARTITION BY flag ORDER BY id) FROM a WHERE id < 12
SELECT id, string_agg(s, ',') OVER (ORDER BY id ROWS 1 PRECEDING) FROM a
SELECT id, count(*) OVER () FROM e
SELECT id, min(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM a
"""
