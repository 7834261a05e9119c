"""Expressions and functions, and what is missing or refused, over the tables of `schema`."""

# ruff: noqa: E501 - a statement is a line

FUNCTIONS = r"""
SELECT generate_series(1, 3), id FROM people
SELECT generate_series(1, generate_series(1, 3))
SELECT * FROM generate_series(1, 3)
SELECT * FROM generate_series(1, 3) AS g
SELECT * FROM generate_series(1, 3) AS g(x)
SELECT g FROM generate_series(1, 3) WITH ORDINALITY AS g
SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS g(x, n)
SELECT * FROM people p, unnest(p.tags) AS tag
SELECT * FROM people p, unnest(p.tags) WITH ORDINALITY
SELECT * FROM people p LEFT JOIN LATERAL unnest(tags) u ON true
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b']) AS x(a, b)
SELECT * FROM ROWS FROM (generate_series(1,2), unnest('{a}'::text[])) AS x(a, b)
SELECT * FROM jsonb_each('{}')
SELECT * FROM jsonb_array_elements('[1]') AS x
SELECT * FROM jsonb_array_elements_text('[1]') AS x WHERE value = 'a'
SELECT * FROM lower('X') AS l
SELECT * FROM current_date
SELECT * FROM people WHERE generate_series(1,2) = 1
SELECT CASE WHEN true THEN generate_series(1,2) END
SELECT coalesce(generate_series(1,2), 0)
SELECT * FROM generate_series(1, generate_series(1,2))
SELECT 1 LIMIT generate_series(1,2)
SELECT extract(epoch FROM seen), extract('year' FROM born), EXTRACT(day FROM now() - seen) FROM people
SELECT * FROM t CROSS JOIN LATERAL generate_series(1, t.a) AS g(i) WHERE i > 1
SELECT * FROM generate_series(1, t.a) g, t
SELECT g.g, g.* FROM generate_series(1, 2) AS g
SELECT generate_series FROM generate_series(1, 2)
SELECT * FROM now()
SELECT * FROM now() AS n, upper('a') WITH ORDINALITY AS u(x, y)
SELECT * FROM json_each('{"a":1}') AS j
SELECT * FROM json_each('{"a":1}') AS j(k, v)
SELECT key, value FROM jsonb_each_text('{"a":1}')
SELECT jsonb_object_keys('{"a":1}'), unnest(ARRAY['a'])
SELECT * FROM string_to_table('a,b', ',') AS s
SELECT * FROM nosuch(1)
SELECT * FROM generate_series(1)
SELECT * FROM generate_series(1, 2) AS g(a, b)
"""

EXPRESSIONS = r"""
SELECT tags[1], tags[1][2] FROM people
SELECT tags[1]['x'] FROM people
SELECT tags[1][true] FROM people
SELECT 'a'::"char"
SELECT 1
SELECT 1, 'a', NULL, 1.5, true, 10000000000, 0x1F, 1e10, -1, - 2.5
SELECT id, name FROM people
SELECT * FROM people
SELECT p.* FROM people p
SELECT p.id, people.name FROM people p
SELECT people.id FROM people
SELECT bound.people.id FROM people
SELECT nope FROM people
SELECT x.id FROM people
SELECT p.nope FROM people p
SELECT * FROM nope
SELECT * FROM public.nope
SELECT * FROM people WHERE mood = 'happy'
SELECT * FROM people WHERE mood = 'nope'
SELECT * FROM people WHERE age = 'abc'
SELECT * FROM people WHERE age = name
SELECT * FROM people WHERE age
SELECT * FROM people WHERE NOT age
SELECT * FROM people WHERE age AND true
SELECT 1 + 'a'
SELECT foo(1)
SELECT lower(1)
SELECT lower(name), upper(city), length(name) FROM people
SELECT CASE WHEN age > 1 THEN 'a' ELSE name END FROM people
SELECT CASE age WHEN 1 THEN 1 WHEN 2 THEN 2.5 END FROM people
SELECT CASE WHEN age THEN 1 END FROM people
SELECT CASE WHEN true THEN 1 ELSE 'x'::text END
SELECT coalesce(age, 0), coalesce(name, 1) FROM people
SELECT coalesce(age, 0), nullif(age, 1), greatest(age, 1.5), least(name, 'a') FROM people
SELECT age::text, name::varchar(3), '1'::int, id::int2, score::numeric(5,1) FROM people
SELECT cast(age AS float), age::bool FROM people
SELECT born::int FROM people
SELECT 'x'::nope
SELECT 'a'::int
SELECT array[1,2,3], array[]::int[], array['a', name] FROM people
SELECT array[]
SELECT name[1] FROM people
SELECT age IS NULL, age IS NOT NULL, (age > 1) IS TRUE, (age > 1) IS NOT UNKNOWN FROM people
SELECT age IS TRUE FROM people
SELECT data -> 'a', data ->> 'b', data @> '{}' FROM people
SELECT current_date, current_timestamp, now(), localtimestamp(3), current_timestamp(2), localtime
SELECT extract(year FROM born), date_part('year', born) FROM people
SELECT name COLLATE "C" FROM people
SELECT name COLLATE "nope" FROM people
SELECT age COLLATE "C" FROM people
SELECT substring(name from 1 for 2), trim(name), trim(leading 'x' from name), position('a' in name) FROM people
SELECT seen AT TIME ZONE 'UTC' FROM people
SELECT name LIKE 'a' ESCAPE 'b' FROM people
SELECT (1,2) = (3,4), (age, name) < (1, 'b'), (age, name) IN ((1,'a'),(2,'b')) FROM people
SELECT (1,2) = (1,2,3)
SELECT (age, name) = (name, age) FROM people
SELECT age = ANY(1) FROM people
SELECT interval '1 day', date '2020-01-01', timestamp '2020-01-01', int '5'
SELECT text(5), date('2020-01-01'), int4('5'), float8(1)
SELECT "PeOple".id FROM people AS "PeOple"
SELECT id id2, name AS "select" FROM people
SELECT FROM people
SELECT
SELECT *
SELECT t.* FROM people
TABLE people
SELECT * FROM (VALUES (1,'a'),(2,'b')) AS v(x, y) WHERE x > 1
SELECT * FROM adults WHERE called = 'x'
SELECT 'é' || nope FROM people
SELECT 1 = 1 = 1
SELECT -name FROM people
SELECT @ 5
SELECT '1' + 1, '1' || 'a', 1 || 'a', 'a' || 1
SELECT data['a'] FROM people
SELECT lower(*) FROM people
SELECT lower(name) FILTER (WHERE true) FROM people
SELECT row_number() FROM people
SELECT tags[1:2], tags[:2], tags[1] FROM people
SELECT make_interval(days => 3)
SELECT people.* FROM people p
SELECT e, e = 'a', e || 'b' FROM u
SELECT first_value(a) over (order by a rows unbounded preceding) from u
SELECT ntile(4) over (order by a), nth_value(e, 2) over (), cume_dist() over (), percent_rank() over () from u
SELECT lag(a, 1, 0) over (), lead(a, 2, 1.5) over () from t
SELECT COUNT(*) AS "__count" FROM "people"
SELECT NULL || 'a', NULL + 1, NULL = NULL
SELECT 'a' = 'b', 'a' < 'b', '1' + '2'
SELECT 1 / 2, 1.0 / 2, 7 % 2, 2 ^ 3, |/ 4.0
SELECT 1::int8 + 1::int2, 1::float4 + 1, 1::float4 * 1.5, 1.5 + 1::float8
SELECT score, score * 2, -score, abs(score), round(score, 1), coalesce(score, 0), coalesce(score, NULL), CASE WHEN true THEN score END FROM people
SELECT coalesce('a'::varchar(5), 'b'::varchar(6))
SELECT tags, tags || 'x', tags || ARRAY['a'], array_append(tags, 'b'), array_length(tags, 1), cardinality(tags) FROM people
SELECT ARRAY[[1,2],[3,4]], ARRAY[ARRAY[1]], ARRAY[1, 2.5, NULL]
SELECT ARRAY[1, 'a']
SELECT ARRAY[1, true]
SELECT '{1,2}'::int[], '{1,2}'::int4[], array[1]::text[], '{{a}}'::text[][]
SELECT mood || 'x', mood::int FROM people
SELECT mood = name FROM people
SELECT born + 1, born - born, born + interval '1 day', seen - seen, born - 1, seen::date FROM people
SELECT 1::pg_catalog.int4, 1::pg_catalog."int8"
SELECT 1::public.int4
SELECT 1::regclass
SELECT 'people'::regclass
SELECT 1 ~ 'a'
SELECT name NOT LIKE 'a', name NOT ILIKE 'b' FROM people
SELECT concat(1, 'a', NULL), concat_ws(',', 1, 2), format('%s', 1)
SELECT overlay('abc' placing 'x' from 2), trim(both from ' a '), ltrim('a'), rtrim('a', 'b'), btrim('a')
SELECT jsonb_build_object('a', 1), json_build_array(1, 'a'), to_jsonb(1), to_json('a'::text)
SELECT data #> '{a,b}', data #>> '{a}', data ? 'a', data - 'a', jsonb_typeof(data) FROM people
SELECT raw = raw FROM people
SELECT id FROM people WHERE raw = '{}'
SELECT md5('a'), encode('a', 'hex'), sha256('a')
SELECT random(), pi(), sqrt(4), power(2, 3), mod(5, 2), ceil(1.5), floor(1.5), trunc(1.5), sign(-1)
SELECT gen_random_uuid()
SELECT t.a, * FROM t
SELECT *, * FROM t
SELECT ALL a FROM t
SELECT a FROM ONLY t
SELECT a FROM t AS x (q)
SELECT q, b FROM t AS x (q)
SELECT x.a FROM t AS x (q)
SELECT * FROM t AS x (q, r, s, u)
SELECT 1 AS "Weird ""x"" name"
SELECT NULL::int, NULL::text[], NULL
SELECT true AND NULL, NOT NULL
SELECT 1 FROM t WHERE NULL
SELECT 1 FROM t WHERE 'true'
SELECT 1 FROM t WHERE 'x'
SELECT CASE WHEN NULL THEN 1 END, CASE 'a' WHEN 'b' THEN 1 END, CASE NULL WHEN NULL THEN 1 END
SELECT CASE a WHEN 'x' THEN 1 END FROM t
SELECT CASE WHEN a = 1 THEN b WHEN a = 2 THEN NULL ELSE 'z' END FROM t
SELECT a::text::int, (a + 1)::text, a + 1::text FROM t
SELECT - a, + a, -(-a), NOT (a > 1) FROM t
SELECT a ->> 1 FROM t
SELECT a FROM t WHERE a = 1 AND b
SELECT upper(a) FROM t
SELECT substring(a, 1) FROM t
SELECT a OPERATOR(pg_catalog.+) 1 FROM t
SELECT * FROM t WHERE a IN ()
SELECT DEFAULT
SELECT a[1] FROM t
SELECT (ARRAY[1,2])[1], (ARRAY[1,2])['1'], (ARRAY[1,2])[1.5]
SELECT (ARRAY[1,2])['x']
SELECT (ARRAY[1,2])[true]
SELECT ('{"a":1}'::jsonb)['a']['b']
SELECT 'a' COLLATE "C" < 'b', 'a' COLLATE pg_catalog."default"
SELECT 1 COLLATE "C"
SELECT 'x' COLLATE "fr_FR_nope"
SELECT 1.5::int, '1.5'::int
SELECT 99999999999999999999, 9223372036854775807, 9223372036854775808, 0xFF, 1_000
SELECT 1.0, .5, 1e3, 1e400
SELECT E'a\nb', U&'\0041', $$x$$
"""

MISSING = r"""
SELECT nam FROM people
SELECT agee FROM people
SELECT p.nam FROM people p
SELECT p.name FROM people q
SELECT perso FROM people p, orders o
SELECT i FROM people p, orders o
SELECT idd FROM people p, orders o
SELECT idx FROM people p, orders o, pairs
SELECT p.idd FROM people p, orders o
SELECT o.nam FROM people p, orders o
SELECT o.name FROM people p, orders o
SELECT (SELECT nam FROM orders) FROM people
SELECT zzz FROM people
SELECT ID2 FROM people
SELECT tagss, dataa FROM people
SELECT "Name" FROM people
SELECT 1 FROM people WHERE peoples.id = 1
SELECT x.nam FROM (SELECT name FROM people) x
"""

REFUSED = r"""
SELECT jsonb_each('{}')
SELECT * FROM (SELECT jsonb_each('{}') AS k) s
SELECT s.* FROM (SELECT jsonb_each('{}') AS k) s
SELECT ctid FROM people
SELECT people FROM people
SELECT b'101'
WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x
SELECT count(*) FROM people TABLESAMPLE SYSTEM (1)
SELECT * INTO x FROM people
SELECT ROW(1,2)
SELECT p FROM people p
SELECT current_time
SELECT '10:00+02'::timetz
SELECT 1::money
SELECT row_to_json(people) FROM people
SELECT count(t.*) FROM t
SELECT count(t) FROM t
SELECT * FROM jsonb_to_recordset('[]') AS x(a int)
SELECT a IS DOCUMENT FROM t
SELECT xmlelement(name x)
SELECT JSON_OBJECT('a': 1 WITH UNIQUE KEYS)
SELECT '{}' IS JSON WITH UNIQUE KEYS
SELECT VARIADIC_test(VARIADIC ARRAY[1])
"""
"""What PostgreSQL has and Tenure refuses (0A000)."""
