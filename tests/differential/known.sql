UPDATE item SET m=40000 WHERE false
UPDATE item SET m=1/0 WHERE false
SELECT 1/0 FROM a WHERE false
SELECT 1/0 FROM a WHERE id < 0
SELECT CASE WHEN id < 0 THEN 1/0 END FROM a
SELECT CASE WHEN false THEN 1/0 END FROM a
SELECT CASE WHEN id+null > 1 THEN 1/0 END FROM a
SELECT CASE WHEN id > 0 THEN 1 WHEN true THEN 2 ELSE 1/0 END FROM a
SELECT id FROM a WHERE id > 0 AND false AND 1/0=1
SELECT id FROM a WHERE id < 0 AND 1/0=1
SELECT id FROM a WHERE id > 0 OR 1/0=1
SELECT id FROM a WHERE id > 0 OR true OR 1/0=1
SELECT coalesce(id, 1/0) FROM a
SELECT coalesce(1, 1/0) FROM a
SELECT coalesce(id, 1, 1/0) FROM a
SELECT count(*) FILTER (WHERE 1/0 = 1) FROM a WHERE false
SELECT sum(1/0) FROM a WHERE false
SELECT id FROM a WHERE false ORDER BY 1/0
SELECT id FROM a WHERE EXISTS (SELECT 1/0 FROM b WHERE false)
WITH q AS (SELECT 1/0) SELECT 1
WITH q AS (SELECT 1/0 WHERE false) SELECT * FROM q
WITH q AS (SELECT (SELECT 1/0) FROM a) SELECT 1
SELECT $1::int4 / 0 FROM a WHERE false -- given ['1']
SELECT 5 / $1::int4 FROM a WHERE false -- given ['0']
SELECT CASE WHEN $1::bool THEN 5 / $2::int4 END FROM a -- given ['f', '0']
SELECT to_number('x','9') FROM a WHERE false
SELECT to_date('x','YYYY') FROM a WHERE false
SELECT 'x'::text::int4 FROM a WHERE false
SELECT 'x'::text::date FROM a WHERE false
SELECT ('x'||'y')::uuid FROM a WHERE false
SELECT chr(-1) FROM a WHERE false
SELECT repeat('a', 2147483647) FROM a WHERE false
SELECT 'x'::text::mood FROM a WHERE false
SELECT ('{x}'::text)::int4[] FROM a WHERE false
SELECT ('{x}'::text[])::int4[] FROM a WHERE false
SELECT ARRAY[1/0] FROM a WHERE false
SELECT greatest(1, 1/0) FROM a WHERE false
SELECT nullif(1/0, 1) FROM a WHERE false
SELECT ln(0) FROM a WHERE false
SELECT now() + interval '1 day' * 'NaN'::float8 FROM a WHERE false
SELECT id FROM a LIMIT 1/0
SELECT id FROM a WHERE false LIMIT -1
SELECT row_number() OVER (ORDER BY 1/0) FROM a WHERE false
SELECT sum(id) OVER (ROWS 1/0 PRECEDING) FROM a WHERE false
SELECT generate_series(1, 1/0) FROM a WHERE false
SELECT * FROM generate_series(1, 1/0) g WHERE false
SELECT 1/0 UNION SELECT 2 FROM a WHERE false
SELECT 1 FROM a JOIN b ON a.id = 1/0 WHERE false
SELECT id IN (1, 1/0) FROM a WHERE false
SELECT id FROM a GROUP BY id HAVING 1/0 = 1
INSERT INTO item (k, m) SELECT 'q', 40000 WHERE false
INSERT INTO item (k, m) VALUES ('q', CASE WHEN now() < '2000-01-01' THEN 1/0 ELSE 1 END)
DELETE FROM item WHERE k = 'nope' RETURNING 1/0
INSERT INTO item (k, m) VALUES ('a', 1) ON CONFLICT DO NOTHING RETURNING 1/0
INSERT INTO item (k, m) VALUES ('a', 1) ON CONFLICT (k, m) DO UPDATE SET amount = 1/0 WHERE false
DELETE FROM item WHERE k = 'nope' AND 1/0 = 1
VALUES (1/0) LIMIT 0
SELECT * FROM (VALUES (1/0), (2)) v LIMIT 0
SELECT 1/s.z FROM (SELECT 0 AS z) s WHERE false
SELECT CASE WHEN a.id < 0 THEN 1/s.z END FROM a, (SELECT 0 AS z) s
SELECT interval '1 day' / 0 FROM a WHERE false
SELECT timestamp '2020-01-01' - timestamp '9999-01-01' FROM a WHERE false
SELECT mod(5, 0) FROM a WHERE false
SELECT jsonb_set('[1]', '{x}', '1') FROM a WHERE false
SELECT substring('abc' from '(') FROM a WHERE false
SELECT 'abc' ~ '(' FROM a WHERE false
SELECT t ~ '(' FROM a WHERE false
SELECT make_date(2024, 2, 30) FROM a WHERE false
SELECT extract(nope FROM date '2024-01-01') FROM a WHERE false
SELECT date_trunc('nope', timestamptz '2024-01-01') FROM a WHERE false
SELECT encode('a', 'nope') FROM a WHERE false
SELECT '(' LIKE 'ab\' FROM a WHERE false
SELECT NULL::int4 + 1/0
SELECT 1/0 + NULL::int4
SELECT lower(NULL) || chr(-1)
SELECT '2000-13-01'::timestamptz FROM a WHERE false
SELECT CASE WHEN id < 0 THEN '2000-13-01'::timestamptz END FROM a
INSERT INTO item (k, m) SELECT 'q', 40000 FROM a WHERE a.id < 0
INSERT INTO item (k, m) SELECT 'q', 40000 FROM a WHERE a.id < 0 ORDER BY 1
INSERT INTO item (k, m) SELECT 'q', 40000 FROM a WHERE a.id < 0 LIMIT 1
SELECT 1/z FROM (SELECT 0 AS z FROM a WHERE false ORDER BY 1) s
SELECT 1/z FROM (SELECT 0 AS z FROM a WHERE false) s
SELECT 1/z FROM (SELECT 0 AS z FROM a WHERE false UNION ALL SELECT 0) s WHERE false
SELECT 1/z FROM a LEFT JOIN (SELECT 0 AS z) s ON true WHERE false
SELECT 1/z FROM (SELECT 0 AS z) s LEFT JOIN a ON true WHERE false
WITH s AS (SELECT 0 AS z) SELECT 1/z FROM s WHERE false
WITH s AS MATERIALIZED (SELECT 0 AS z) SELECT 1/z FROM s WHERE false
WITH s AS (SELECT 0 AS z) SELECT 1/x.z FROM s x, s y WHERE false
SELECT 1/z FROM (VALUES (0)) v(z) WHERE false
SELECT 1/z FROM (VALUES (0), (1)) v(z) WHERE false
SELECT 1 FROM (SELECT 1/0) s WHERE false
SELECT 1 FROM a JOIN LATERAL (SELECT 1/0 AS q) s ON true WHERE false
SELECT 1 FROM a WHERE id IN (SELECT 1/0 FROM b WHERE false)
SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE 1/0 = 1)
SELECT 1 FROM a WHERE EXISTS (SELECT sum(1/0) FROM b)
SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b ORDER BY 1/0)
SELECT 1 FROM a WHERE EXISTS (SELECT 1/0 FROM b LIMIT 1)
SELECT 1 FROM a WHERE EXISTS (SELECT DISTINCT 1/0 FROM b)
SELECT 1 FROM a WHERE EXISTS (SELECT 1/0 FROM b GROUP BY id)
SELECT 1 FROM a WHERE EXISTS (SELECT 1/0 UNION SELECT 1)
SELECT (SELECT 1/0 FROM b WHERE false)
SELECT ARRAY(SELECT 1/0 FROM b WHERE false)
SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b LIMIT 0)
SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b OFFSET 100)
SELECT 1 FROM a WHERE EXISTS (SELECT count(*) FROM b WHERE false)
SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE false GROUP BY ())
SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b HAVING count(*) > 100)
SELECT 1 FROM a WHERE EXISTS (SELECT a_id FROM b GROUP BY a_id HAVING a_id > 100)
SELECT 1 FROM a WHERE EXISTS (SELECT generate_series(1,0) FROM b)
SELECT i4 + i2/0 FROM a
SELECT timezone('x1', timestamp '2024-01-01')
SELECT timezone('x', timestamp '2024-01-01')
SELECT timezone('ab 3', timestamp '2024-01-01')
SELECT timezone('1', timestamp '2024-01-01')
SELECT timezone('+16', timestamp '2024-01-01')
SELECT timezone('UTC+16', timestamp '2024-01-01')
SELECT timezone('UTC+100', timestamp '2024-01-01')
SELECT timezone('UTC+200', timestamp '2024-01-01')
SELECT timezone('UTC+1:5', timestamp '2024-01-01')
SELECT timezone('UTC+1:70', timestamp '2024-01-01')
SELECT timezone('UTC+1:30:15', timestamp '2024-01-01')
SELECT timezone('<+05>-5', timestamp '2024-01-01')
SELECT timezone('<+05>-5', timestamptz '2024-01-01 00:00:00+00')
SELECT timezone('-1', timestamptz '2024-01-01 00:00:00+00')
SELECT timezone('1 month',timestamp '2024-01-01')
SELECT timezone('1 month',timestamp '2024-07-01')
SELECT timezone('1 day',timestamptz '2024-07-01')
SELECT timezone('',timestamptz '2024-07-01')
SELECT timezone('  ',timestamptz '2024-07-01')
SELECT timezone('2024-01-01',timestamptz '2024-07-01')
SELECT timezone('12:34:56',timestamptz '2024-07-01')
SELECT timezone('abc',timestamptz '2024-07-01')
SELECT timezone('é1',timestamptz '2024-07-01')
SELECT timezone('1,M3',timestamptz '2024-07-01')
SELECT timezone('{}',timestamptz '2024-07-01')
SELECT timezone('{1}',timestamptz '2024-07-01')
SELECT timezone('{"a": 1}',timestamptz '2024-07-01')
SELECT extract(julian from timestamptz '2024-02-29 12:34:56+00')
SELECT extract(julian from timestamp '2024-02-29 00:00:00')
SELECT date_part('julian', timestamp '2024-02-29 12:34:56.789')
SELECT interval '1999-12-31'
SELECT interval '1999-11-31'
SELECT interval '1999-12-31 12:34:56'
SELECT interval '1999-12-31 25:99:56'
SELECT interval '1999-12'
SELECT '{"aa":1}' <@ '{}'::timestamptz[]
SELECT '{aa{b}}'::int4[]
SELECT '{aa'::int4[]
SELECT '{aa,1}}'::int4[]
SELECT '{1,"2"x}'::int4[]
SELECT '{a,"2"x}'::int4[]
SELECT substring('abc', '0', '3')
SELECT substring('abc', '%b_', '#')
SELECT substring('abc', '%#"b#"_', '#')
SELECT substring('abc', 'a', 'xy')
SELECT to_number('12', '99')
SELECT to_number('-12', '99')
SELECT to_number('12-', '99S')
SELECT to_number('12-', '99MI')
SELECT to_number('12 -', '99MI')
SELECT to_number('<12>', '99PR')
SELECT to_number('1,234.5', '9,999.9')
SELECT to_number('1,234.5', '9999.9')
SELECT to_number('1234.5', '9,999.9')
SELECT to_number('1234.56', '9,999.9')
SELECT to_number('12', '999V99')
SELECT to_number('12345', '999V99')
SELECT to_number('$12', '$99')
SELECT to_number('x12', '$99')
SELECT to_number('12', '')
SELECT to_number('', '99')
SELECT to_number(' ', '99')
SELECT to_number('x', '99')
SELECT to_number('.5', '9.9')
SELECT to_number('5.', '9.9')
SELECT to_number('+5', 'S9')
SELECT to_number('-5', 'S9')
SELECT to_number('5-', '9S')
SELECT to_number('5', '9S')
SELECT to_number('12th', '99th')
SELECT to_number('12', '"x"99')
SELECT to_number('1 2', '99')
SELECT to_number('1  2', '99')
SELECT to_number('123', '9')
SELECT to_number('0', 'x')
SELECT to_number('00', 'x9')
SELECT to_number('5', '.9')
SELECT to_number('5', 'D9')
SELECT to_number('12,34', '99G99')
SELECT to_number('12,34', 'FM99G99')
SELECT to_number('1', 'L9')
SELECT to_number('-', '9')
SELECT to_number('--1', '99')
SELECT to_number('-0', '99')
SELECT to_number('1e5', '9999')
SELECT to_number('NaN', '999')
SELECT to_number('٣', '9')
SELECT to_number('12', '2000-01-01 00:00:00+00')
SELECT to_number('-99999999.99', 'FM9990.00')
SELECT to_char(0::numeric,' pad ')
SELECT to_char('NaN'::numeric, '9,999')
SELECT to_char('-Infinity'::numeric, '9,999')
SELECT to_char('1e23'::float8, '999.99'::text)
SELECT to_char(12345, '999')
SELECT to_char(12345, 'FM999.99')
SELECT to_char(-12345, '999.99S')
SELECT regexp_substr('abc', 'a*?'::text, '7'::int4)
SELECT regexp_replace('abc', '', 'x', '7'::int4)
SELECT regexp_count('abc','',4)
SELECT to_char('-1 year -2 mons +3 days'::interval,'J Q CC')
SELECT to_char('-1 year -2 mons +3 days'::interval,'IYYY-IW')
SELECT to_char('-1 year -2 mons +3 days'::interval,'IYYY IYY IY I')
SELECT to_char('-1 year -2 mons +3 days'::interval,'IDDD')
SELECT to_char('-1 year -2 mons +3 days'::interval,'YYYY YYY YY Y')
SELECT to_char('-1 year -2 mons +3 days'::interval,'Y,YYY')
SELECT to_char('-1 year -2 mons +3 days'::interval,'W WW')
SELECT to_char('-1 year -2 mons +3 days'::interval,'RM rm FMRM')
SELECT to_char('-1 year -2 mons +3 days'::interval,'HH12 AM')
SELECT to_char('-1 year -2 mons +3 days'::interval,'Month')
SELECT to_char('-1 year -2 mons +3 days'::interval,'mon')
SELECT to_char('-1 year -2 mons +3 days'::interval,'D')
SELECT to_char('-1 year -2 mons +3 days'::interval,'ID')
SELECT to_char('-1 year -2 mons +3 days'::interval,'DDD DD')
SELECT to_char('-1 year -2 mons +3 days'::interval,'SSSS')
SELECT to_char('-1 year -2 mons +3 days'::interval,'TZ')
SELECT to_char('-1 year -2 mons +3 days'::interval,'BC')
SELECT to_char('-1 year -2 mons +3 days'::interval,'Dy')
SELECT to_char('-1 year -2 mons +3 days'::interval,'HH24:MI:SS.US')
SELECT to_char('-1 year -2 mons +3 days'::interval,'Q')
SELECT to_char('-1 year -2 mons +3 days'::interval,'FMQ')
SELECT to_char('1 day 02:03:04.5'::interval,'J Q CC')
SELECT to_char('1 day 02:03:04.5'::interval,'IYYY-IW')
SELECT to_char('1 day 02:03:04.5'::interval,'IYYY IYY IY I')
SELECT to_char('1 day 02:03:04.5'::interval,'IDDD')
SELECT to_char('1 day 02:03:04.5'::interval,'YYYY YYY YY Y')
SELECT to_char('1 day 02:03:04.5'::interval,'Y,YYY')
SELECT to_char('1 day 02:03:04.5'::interval,'W WW')
SELECT to_char('1 day 02:03:04.5'::interval,'RM rm FMRM')
SELECT to_char('1 day 02:03:04.5'::interval,'HH12 AM')
SELECT to_char('1 day 02:03:04.5'::interval,'Month')
SELECT to_char('1 day 02:03:04.5'::interval,'mon')
SELECT to_char('1 day 02:03:04.5'::interval,'D')
SELECT to_char('1 day 02:03:04.5'::interval,'ID')
SELECT to_char('1 day 02:03:04.5'::interval,'DDD DD')
SELECT to_char('1 day 02:03:04.5'::interval,'SSSS')
SELECT to_char('1 day 02:03:04.5'::interval,'TZ')
SELECT to_char('1 day 02:03:04.5'::interval,'BC')
SELECT to_char('1 day 02:03:04.5'::interval,'Dy')
SELECT to_char('1 day 02:03:04.5'::interval,'HH24:MI:SS.US')
SELECT to_char('1 day 02:03:04.5'::interval,'Q')
SELECT to_char('1 day 02:03:04.5'::interval,'FMQ')
SELECT to_char('-1 day'::interval,'J Q CC')
SELECT to_char('-1 day'::interval,'IYYY-IW')
SELECT to_char('-1 day'::interval,'IYYY IYY IY I')
SELECT to_char('-1 day'::interval,'IDDD')
SELECT to_char('-1 day'::interval,'YYYY YYY YY Y')
SELECT to_char('-1 day'::interval,'Y,YYY')
SELECT to_char('-1 day'::interval,'W WW')
SELECT to_char('-1 day'::interval,'RM rm FMRM')
SELECT to_char('-1 day'::interval,'HH12 AM')
SELECT to_char('-1 day'::interval,'Month')
SELECT to_char('-1 day'::interval,'mon')
SELECT to_char('-1 day'::interval,'D')
SELECT to_char('-1 day'::interval,'ID')
SELECT to_char('-1 day'::interval,'DDD DD')
SELECT to_char('-1 day'::interval,'SSSS')
SELECT to_char('-1 day'::interval,'TZ')
SELECT to_char('-1 day'::interval,'BC')
SELECT to_char('-1 day'::interval,'Dy')
SELECT to_char('-1 day'::interval,'HH24:MI:SS.US')
SELECT to_char('-1 day'::interval,'Q')
SELECT to_char('-1 day'::interval,'FMQ')
SELECT to_char('25:00:00'::interval,'J Q CC')
SELECT to_char('25:00:00'::interval,'IYYY-IW')
SELECT to_char('25:00:00'::interval,'IYYY IYY IY I')
SELECT to_char('25:00:00'::interval,'IDDD')
SELECT to_char('25:00:00'::interval,'YYYY YYY YY Y')
SELECT to_char('25:00:00'::interval,'Y,YYY')
SELECT to_char('25:00:00'::interval,'W WW')
SELECT to_char('25:00:00'::interval,'RM rm FMRM')
SELECT to_char('25:00:00'::interval,'HH12 AM')
SELECT to_char('25:00:00'::interval,'Month')
SELECT to_char('25:00:00'::interval,'mon')
SELECT to_char('25:00:00'::interval,'D')
SELECT to_char('25:00:00'::interval,'ID')
SELECT to_char('25:00:00'::interval,'DDD DD')
SELECT to_char('25:00:00'::interval,'SSSS')
SELECT to_char('25:00:00'::interval,'TZ')
SELECT to_char('25:00:00'::interval,'BC')
SELECT to_char('25:00:00'::interval,'Dy')
SELECT to_char('25:00:00'::interval,'HH24:MI:SS.US')
SELECT to_char('25:00:00'::interval,'Q')
SELECT to_char('25:00:00'::interval,'FMQ')
SELECT to_char('1 year 2 mons'::interval,'J Q CC')
SELECT to_char('1 year 2 mons'::interval,'IYYY-IW')
SELECT to_char('1 year 2 mons'::interval,'IYYY IYY IY I')
SELECT to_char('1 year 2 mons'::interval,'IDDD')
SELECT to_char('1 year 2 mons'::interval,'YYYY YYY YY Y')
SELECT to_char('1 year 2 mons'::interval,'Y,YYY')
SELECT to_char('1 year 2 mons'::interval,'W WW')
SELECT to_char('1 year 2 mons'::interval,'RM rm FMRM')
SELECT to_char('1 year 2 mons'::interval,'HH12 AM')
SELECT to_char('1 year 2 mons'::interval,'Month')
SELECT to_char('1 year 2 mons'::interval,'mon')
SELECT to_char('1 year 2 mons'::interval,'D')
SELECT to_char('1 year 2 mons'::interval,'ID')
SELECT to_char('1 year 2 mons'::interval,'DDD DD')
SELECT to_char('1 year 2 mons'::interval,'SSSS')
SELECT to_char('1 year 2 mons'::interval,'TZ')
SELECT to_char('1 year 2 mons'::interval,'BC')
SELECT to_char('1 year 2 mons'::interval,'Dy')
SELECT to_char('1 year 2 mons'::interval,'HH24:MI:SS.US')
SELECT to_char('1 year 2 mons'::interval,'Q')
SELECT to_char('1 year 2 mons'::interval,'FMQ')
SELECT to_char('-00:00:01.5'::interval,'J Q CC')
SELECT to_char('-00:00:01.5'::interval,'IYYY-IW')
SELECT to_char('-00:00:01.5'::interval,'IYYY IYY IY I')
SELECT to_char('-00:00:01.5'::interval,'IDDD')
SELECT to_char('-00:00:01.5'::interval,'YYYY YYY YY Y')
SELECT to_char('-00:00:01.5'::interval,'Y,YYY')
SELECT to_char('-00:00:01.5'::interval,'W WW')
SELECT to_char('-00:00:01.5'::interval,'RM rm FMRM')
SELECT to_char('-00:00:01.5'::interval,'HH12 AM')
SELECT to_char('-00:00:01.5'::interval,'Month')
SELECT to_char('-00:00:01.5'::interval,'mon')
SELECT to_char('-00:00:01.5'::interval,'D')
SELECT to_char('-00:00:01.5'::interval,'ID')
SELECT to_char('-00:00:01.5'::interval,'DDD DD')
SELECT to_char('-00:00:01.5'::interval,'SSSS')
SELECT to_char('-00:00:01.5'::interval,'TZ')
SELECT to_char('-00:00:01.5'::interval,'BC')
SELECT to_char('-00:00:01.5'::interval,'Dy')
SELECT to_char('-00:00:01.5'::interval,'HH24:MI:SS.US')
SELECT to_char('-00:00:01.5'::interval,'Q')
SELECT to_char('-00:00:01.5'::interval,'FMQ')
SELECT to_char('12 months'::interval,'J Q CC')
SELECT to_char('12 months'::interval,'IYYY-IW')
SELECT to_char('12 months'::interval,'IYYY IYY IY I')
SELECT to_char('12 months'::interval,'IDDD')
SELECT to_char('12 months'::interval,'YYYY YYY YY Y')
SELECT to_char('12 months'::interval,'Y,YYY')
SELECT to_char('12 months'::interval,'W WW')
SELECT to_char('12 months'::interval,'RM rm FMRM')
SELECT to_char('12 months'::interval,'HH12 AM')
SELECT to_char('12 months'::interval,'Month')
SELECT to_char('12 months'::interval,'mon')
SELECT to_char('12 months'::interval,'D')
SELECT to_char('12 months'::interval,'ID')
SELECT to_char('12 months'::interval,'DDD DD')
SELECT to_char('12 months'::interval,'SSSS')
SELECT to_char('12 months'::interval,'TZ')
SELECT to_char('12 months'::interval,'BC')
SELECT to_char('12 months'::interval,'Dy')
SELECT to_char('12 months'::interval,'HH24:MI:SS.US')
SELECT to_char('12 months'::interval,'Q')
SELECT to_char('12 months'::interval,'FMQ')
SELECT to_char('-12 months'::interval,'J Q CC')
SELECT to_char('-12 months'::interval,'IYYY-IW')
SELECT to_char('-12 months'::interval,'IYYY IYY IY I')
SELECT to_char('-12 months'::interval,'IDDD')
SELECT to_char('-12 months'::interval,'YYYY YYY YY Y')
SELECT to_char('-12 months'::interval,'Y,YYY')
SELECT to_char('-12 months'::interval,'W WW')
SELECT to_char('-12 months'::interval,'RM rm FMRM')
SELECT to_char('-12 months'::interval,'HH12 AM')
SELECT to_char('-12 months'::interval,'Month')
SELECT to_char('-12 months'::interval,'mon')
SELECT to_char('-12 months'::interval,'D')
SELECT to_char('-12 months'::interval,'ID')
SELECT to_char('-12 months'::interval,'DDD DD')
SELECT to_char('-12 months'::interval,'SSSS')
SELECT to_char('-12 months'::interval,'TZ')
SELECT to_char('-12 months'::interval,'BC')
SELECT to_char('-12 months'::interval,'Dy')
SELECT to_char('-12 months'::interval,'HH24:MI:SS.US')
SELECT to_char('-12 months'::interval,'Q')
SELECT to_char('-12 months'::interval,'FMQ')
SELECT to_char('100 years 5 days'::interval,'J Q CC')
SELECT to_char('100 years 5 days'::interval,'IYYY-IW')
SELECT to_char('100 years 5 days'::interval,'IYYY IYY IY I')
SELECT to_char('100 years 5 days'::interval,'IDDD')
SELECT to_char('100 years 5 days'::interval,'YYYY YYY YY Y')
SELECT to_char('100 years 5 days'::interval,'Y,YYY')
SELECT to_char('100 years 5 days'::interval,'W WW')
SELECT to_char('100 years 5 days'::interval,'RM rm FMRM')
SELECT to_char('100 years 5 days'::interval,'HH12 AM')
SELECT to_char('100 years 5 days'::interval,'Month')
SELECT to_char('100 years 5 days'::interval,'mon')
SELECT to_char('100 years 5 days'::interval,'D')
SELECT to_char('100 years 5 days'::interval,'ID')
SELECT to_char('100 years 5 days'::interval,'DDD DD')
SELECT to_char('100 years 5 days'::interval,'SSSS')
SELECT to_char('100 years 5 days'::interval,'TZ')
SELECT to_char('100 years 5 days'::interval,'BC')
SELECT to_char('100 years 5 days'::interval,'Dy')
SELECT to_char('100 years 5 days'::interval,'HH24:MI:SS.US')
SELECT to_char('100 years 5 days'::interval,'Q')
SELECT to_char('100 years 5 days'::interval,'FMQ')
SELECT to_char('0'::interval,'J Q CC')
SELECT to_char('0'::interval,'IYYY-IW')
SELECT to_char('0'::interval,'IYYY IYY IY I')
SELECT to_char('0'::interval,'IDDD')
SELECT to_char('0'::interval,'YYYY YYY YY Y')
SELECT to_char('0'::interval,'Y,YYY')
SELECT to_char('0'::interval,'W WW')
SELECT to_char('0'::interval,'RM rm FMRM')
SELECT to_char('0'::interval,'HH12 AM')
SELECT to_char('0'::interval,'Month')
SELECT to_char('0'::interval,'mon')
SELECT to_char('0'::interval,'D')
SELECT to_char('0'::interval,'ID')
SELECT to_char('0'::interval,'DDD DD')
SELECT to_char('0'::interval,'SSSS')
SELECT to_char('0'::interval,'TZ')
SELECT to_char('0'::interval,'BC')
SELECT to_char('0'::interval,'Dy')
SELECT to_char('0'::interval,'HH24:MI:SS.US')
SELECT to_char('0'::interval,'Q')
SELECT to_char('0'::interval,'FMQ')
SELECT to_char('-13:00:00'::interval,'J Q CC')
SELECT to_char('-13:00:00'::interval,'IYYY-IW')
SELECT to_char('-13:00:00'::interval,'IYYY IYY IY I')
SELECT to_char('-13:00:00'::interval,'IDDD')
SELECT to_char('-13:00:00'::interval,'YYYY YYY YY Y')
SELECT to_char('-13:00:00'::interval,'Y,YYY')
SELECT to_char('-13:00:00'::interval,'W WW')
SELECT to_char('-13:00:00'::interval,'RM rm FMRM')
SELECT to_char('-13:00:00'::interval,'HH12 AM')
SELECT to_char('-13:00:00'::interval,'Month')
SELECT to_char('-13:00:00'::interval,'mon')
SELECT to_char('-13:00:00'::interval,'D')
SELECT to_char('-13:00:00'::interval,'ID')
SELECT to_char('-13:00:00'::interval,'DDD DD')
SELECT to_char('-13:00:00'::interval,'SSSS')
SELECT to_char('-13:00:00'::interval,'TZ')
SELECT to_char('-13:00:00'::interval,'BC')
SELECT to_char('-13:00:00'::interval,'Dy')
SELECT to_char('-13:00:00'::interval,'HH24:MI:SS.US')
SELECT to_char('-13:00:00'::interval,'Q')
SELECT to_char('-13:00:00'::interval,'FMQ')
SELECT to_char('-1 mon'::interval,'J Q CC')
SELECT to_char('-1 mon'::interval,'IYYY-IW')
SELECT to_char('-1 mon'::interval,'IYYY IYY IY I')
SELECT to_char('-1 mon'::interval,'IDDD')
SELECT to_char('-1 mon'::interval,'YYYY YYY YY Y')
SELECT to_char('-1 mon'::interval,'Y,YYY')
SELECT to_char('-1 mon'::interval,'W WW')
SELECT to_char('-1 mon'::interval,'RM rm FMRM')
SELECT to_char('-1 mon'::interval,'HH12 AM')
SELECT to_char('-1 mon'::interval,'Month')
SELECT to_char('-1 mon'::interval,'mon')
SELECT to_char('-1 mon'::interval,'D')
SELECT to_char('-1 mon'::interval,'ID')
SELECT to_char('-1 mon'::interval,'DDD DD')
SELECT to_char('-1 mon'::interval,'SSSS')
SELECT to_char('-1 mon'::interval,'TZ')
SELECT to_char('-1 mon'::interval,'BC')
SELECT to_char('-1 mon'::interval,'Dy')
SELECT to_char('-1 mon'::interval,'HH24:MI:SS.US')
SELECT to_char('-1 mon'::interval,'Q')
SELECT to_char('-1 mon'::interval,'FMQ')
SELECT to_char('2021-01-03'::timestamp,'J Q CC')
SELECT to_char('2021-01-03'::timestamp,'IYYY-IW-ID IDDD')
SELECT to_char('2021-01-03'::timestamp,'IYY IY I')
SELECT to_char('2021-01-03'::timestamp,'RM')
SELECT to_char('2021-01-03'::timestamp,'W WW')
SELECT to_char('2020-12-31'::timestamp,'J Q CC')
SELECT to_char('2020-12-31'::timestamp,'IYYY-IW-ID IDDD')
SELECT to_char('2020-12-31'::timestamp,'IYY IY I')
SELECT to_char('2020-12-31'::timestamp,'RM')
SELECT to_char('2020-12-31'::timestamp,'W WW')
SELECT to_char('2024-12-30'::timestamp,'J Q CC')
SELECT to_char('2024-12-30'::timestamp,'IYYY-IW-ID IDDD')
SELECT to_char('2024-12-30'::timestamp,'IYY IY I')
SELECT to_char('2024-12-30'::timestamp,'RM')
SELECT to_char('2024-12-30'::timestamp,'W WW')
SELECT to_char('0001-01-01'::timestamp,'J Q CC')
SELECT to_char('0001-01-01'::timestamp,'IYYY-IW-ID IDDD')
SELECT to_char('0001-01-01'::timestamp,'IYY IY I')
SELECT to_char('0001-01-01'::timestamp,'RM')
SELECT to_char('0001-01-01'::timestamp,'W WW')
SELECT to_char('9999-12-31'::timestamp,'J Q CC')
SELECT to_char('9999-12-31'::timestamp,'IYYY-IW-ID IDDD')
SELECT to_char('9999-12-31'::timestamp,'IYY IY I')
SELECT to_char('9999-12-31'::timestamp,'RM')
SELECT to_char('9999-12-31'::timestamp,'W WW')
SELECT to_char('2016-01-01'::timestamp,'J Q CC')
SELECT to_char('2016-01-01'::timestamp,'IYYY-IW-ID IDDD')
SELECT to_char('2016-01-01'::timestamp,'IYY IY I')
SELECT to_char('2016-01-01'::timestamp,'RM')
SELECT to_char('2016-01-01'::timestamp,'W WW')
SELECT $1 IN (ai,$2) FROM a -- given ['{1}', '{2}']
SELECT $1 BETWEEN $2 AND i8 FROM a -- given ['1', '2']
SELECT $1 BETWEEN i8 AND $2 FROM a -- given ['1', '2']
SELECT i8 BETWEEN $1 AND $2 FROM a -- given ['1', '2']
SELECT i8 NOT BETWEEN SYMMETRIC $1 AND $2 FROM a -- given ['2', '1']
SELECT concat(t,$1) FROM a -- given ['1']
SELECT concat(t,$1), $1 = t FROM a -- given ['1']
SELECT count($1) FROM a -- given ['1']
SELECT jsonb_build_object('a', $1) -- given ['1']
SELECT jsonb_agg($1) FROM a -- given ['1']
SELECT pg_typeof($1) -- given ['1']
SELECT format('%s', $1) -- given ['1']
SELECT $1 || 'x' -- given ['1']
SELECT i4 || $1 FROM a -- given ['1']
SELECT $1 || i4 FROM a -- given ['1']
SELECT i4 IN ($1, $2) FROM a -- given ['1','2']
SELECT i4 IN ($1) FROM a -- given ['1']
SELECT i4 IN ($1, i8, 5) FROM a -- given ['1']
SELECT i4 NOT IN ($1, i8, $2) FROM a -- given ['1', '2']
SELECT $1 IN (i4, 5) FROM a -- given ['1']
SELECT $1 IN (1.5, 5) FROM a -- given ['1']
SELECT $1 IN ('a', 'b') FROM a -- given ['1']
SELECT $1 IN ($2, $3) FROM a -- given ['1', '2', '1']
SELECT $1 NOT IN ($2, t) FROM a -- given ['1', '2']
SELECT t IN ($2, $1) FROM a -- given ['1', '2']
SELECT coalesce($1, $2) -- given ['1', '2']
SELECT coalesce($1, 5) -- given ['1']
SELECT CASE WHEN $1 THEN 1 END -- given ['t']
SELECT CASE $1 WHEN 1 THEN 'b' END -- given ['1']
SELECT CASE $1 WHEN 'x' THEN 'b' END -- given ['1']
SELECT nullif($1, 5) -- given ['1']
SELECT greatest($1, i4) FROM a -- given ['1']
SELECT array_fill(NULL::jsonb[],'x')
SELECT percentile_disc('0.25') WITHIN GROUP (ORDER BY ai) FROM a
SELECT array_append('{}', '{1}'::int4[])
SELECT array_agg(ai) FROM a WHERE id < 2
INSERT INTO item (k, m, f, u, c) VALUES ('ü', 1, 0.1, 'x', CASE $1 WHEN 1 THEN 'b'::char(5) WHEN 2 THEN 'a'::char(5) END) -- given ['10']
INSERT INTO item (k, m) VALUES ($1, $1) -- given ['1']
INSERT INTO item (k, m) VALUES ('x', $1 + 1) RETURNING $1 -- given ['1']
UPDATE item SET u = 'x', amount = 1 + true
UPDATE item SET nope = 'x', amount = 1 + true
UPDATE item SET k = $1, m = $1 -- given ['1']
SELECT $1 -- given ['1']
SELECT $1 UNION SELECT 1 -- given ['1']
SELECT $1 AS x ORDER BY x -- given ['1']
SELECT * FROM (SELECT $1 AS x) s WHERE x = 'a' -- given ['1']
SELECT ARRAY[$1, 2] -- given ['1']
SELECT ARRAY[$1] -- given ['1']
SELECT $1 IS NULL -- given ['1']
SELECT $1 IS TRUE -- given ['t']
SELECT NOT $1 -- given ['t']
SELECT $1::text, $1::int4 -- given ['1']
SELECT $1 = $1 -- given ['1']
SELECT i4 = $1, $1 FROM a -- given ['1']
SELECT $1, i4 = $1 FROM a -- given ['1']
SELECT abs($1) -- given ['1']
SELECT lower($1) -- given ['1']
SELECT length($1) -- given ['1']
SELECT $1 + $2 -- given ['1', '2']
SELECT - $1 -- given ['1']
SELECT $1 -> 'a' -- given ['{}']
SELECT jb -> $1 FROM a -- given ['a']
SELECT ai[$1] FROM a -- given ['1']
SELECT i4 = ANY ($1) FROM a -- given ['{1}']
SELECT $1 = ANY (ai) FROM a -- given ['1']
SELECT id FROM a LIMIT $1 -- given ['1']
SELECT generate_series(1, $1) -- given ['2']
SELECT sum($1) FROM a -- given ['2']
SELECT lag(i4, $1) OVER (ORDER BY id) FROM a -- given ['2']
SELECT extract(year from $1) -- given ['2']
SELECT date '2020-01-01' + $1 -- given ['2']
SELECT date '2020-01-01' - $1 -- given ['2020-01-01']
SELECT ts - $1 FROM a -- given ['1 day']
SELECT e = $1 FROM a -- given ['sad']
SELECT t LIKE $1 FROM a -- given ['a%']
SELECT t ~ $1 FROM a -- given ['a']
SELECT $1 LIKE $2 -- given ['a', 'a']
SELECT (i4, t) = ($1, $2) FROM a -- given ['1', 'a']
SELECT (i4, t) IN (($1, $2)) FROM a -- given ['1', 'a']
SELECT i4 IN (SELECT $1) FROM a -- given ['1']
SELECT $1 IN (SELECT i4 FROM a) -- given ['1']
SELECT i4 = (SELECT $1) FROM a -- given ['1']
VALUES ($1), (1) -- given ['1']
VALUES (1), ($1) -- given ['1']
VALUES ($1) -- given ['1']
SELECT bit_count('abc')
SELECT trunc('10000')
SELECT '{}' && '{}'
SELECT '[1, [2], {}]' @> 'null'
SELECT count(DISTINCT $1) FROM a -- given ['1']
SELECT '1' << '2'
SELECT '1' + '2'
SELECT '1' * '2'
SELECT '1' = '2'
SELECT '1' & '2'
SELECT ~ '2'
SELECT - '2'
SELECT + '2'
SELECT @ '2'
SELECT length('2')
SELECT lower('2')
SELECT max('2')
SELECT sum('2')
SELECT bit_and('2')
SELECT get_bit('2', 1)
SELECT set_bit('2', 1, 1)
SELECT overlay('abc', 'x', 1)
SELECT overlay('abc' placing 'x' from 1)
SELECT substring('abc', 1)
SELECT substring('abc', 1, 2)
SELECT position('a' in 'b')
SELECT octet_length('abc')
SELECT bit_length('abc')
SELECT unnest('{1}')
SELECT age('2000-01-01')
SELECT age('2000-01-01', '2001-01-01')
SELECT extract(hour from '12:00')
SELECT date_part('hour', '12:00')
SELECT timezone('UTC', time '12:00')
SELECT timezone('UTC', '2000-01-01')
SELECT 'a' || 'b'
SELECT 'a' # 'b'
SELECT 1 # '2'
SELECT 'a' ?| 'b'
SELECT 1 << '2'
SELECT '1' << 2
SELECT '2000-01-01' + 1
SELECT '1 day' + date '2000-01-01'
SELECT time '12:00' + '1 day'
SELECT '1 day' + time '12:00'
SELECT upper('a')
SELECT ('2000-01-01','2000-01-02') OVERLAPS ('2000-01-01','2000-01-02')
SELECT 1.5 * '2'
SELECT '2' * interval '1 day'
SELECT '2' / 3
SELECT 3 / '2'
SELECT t < 'x' FROM a
SELECT '{1}' <@ '{1,2}'
SELECT '{1}' <@ ai FROM a
SELECT '2' @> ai FROM a
SELECT make_timestamptz(7,2,2,7,2,0,'EST5EDT')
SELECT '99999999999999999999.9999'::int4
SELECT '99999999999x'::int4
SELECT '2147483648x'::int4
SELECT '21474836480x'::int4
SELECT '2147483650x'::int4
SELECT '32768x'::int2
SELECT '99999x'::int2
SELECT '-99999x'::int2
SELECT '000000099999x'::int4
SELECT '9999999999999999999999999'::int8
SELECT '99999999999999999999999x'::int8
INSERT INTO item (k, m, amount, flag, f, c) VALUES ('', 1.5, 10, true, 1e39, 'toolong') RETURNING item.*
INSERT INTO item (k, m, f) VALUES ('a', 2, 0.1), ('', 40000, 0.1), ('b', 1, 1e39)
UPDATE item SET f = 1e39, c = 'toolong'
SELECT '2147483647'::date
SELECT '1234567'::date
SELECT '12340101'::timestamp
SELECT '-32768'::date
SELECT '-3276'::date
SELECT '-1200'::time
SELECT '12:00 -1200'::time
SELECT '2020-01-01 12:00 -120000'::timestamptz
SELECT '2020-01-01 12:00 -130'::timestamptz
SELECT '2020-01-01 12:00 -1:30'::timestamptz
SELECT '2020-01-01 12:00 -5'::timestamptz
SELECT json_agg(x) FROM (VALUES ('{1}'::int4[]), (NULL), ('{2}'), (NULL)) v(x)
COPY a TO STDOUT WITH (FORMAT nope)
INSERT INTO a (id, t) VALUES (1)
SELECT '{"2000-01-01 00:00:00+00"}'::time
SELECT '{"2000-01-01 00:00:00+00"}'::timestamptz
SELECT '{2000-01-01}'::date
SELECT '(2000-01-01)'::date
SELECT '[2000-01-01, 12:00]'::timestamp
SELECT '{}'::date
SELECT '"'::date
SELECT '2000-01-01;12:00'::timestamp
SELECT '{12:00}'::time
SELECT '{Jan 1 2000}'::date
SELECT '{2000-01-01,1999-12-31}'::date
SELECT $1 IN ('{"",NULL}'::text[], a.at, $2) FROM a -- given ['{a,b}', '{"",NULL}']
SELECT to_char(1::numeric,' pad ')
SELECT to_char(-12.5::numeric,'a9bd9')
SELECT regexp_count('abc','',7,'q')
SELECT regexp_count('abc','',5)
SELECT regexp_count('abc','$',5)
SELECT regexp_instr('abc','',5)
SELECT to_date('2024-02-29','YYYYMMDD')
SELECT to_date('20240229','YYYY-MM-DD')
SELECT timezone(interval '1 month',timestamp '2024-01-01')
SELECT percentile_disc('x') WITHIN GROUP (ORDER BY ai) FROM a
SELECT to_number('-99999999.99', 'FM9990.00'::text)
SELECT to_number('12'::text, '2000-01-01 00:00:00+00')
SELECT nullif(greatest((- a.f4), a.f4), '0.5'::float4) AS x0 FROM a
SELECT array_position(w.ae, w.e, w.i4) AS x, w.id FROM w ORDER BY 2
SELECT a.id, (a.ai)[a.id:a.i4] AS x FROM a WHERE a.id < 12 ORDER BY a.id
SELECT ('{2,NULL}'::int4[])[1:1]
SELECT ('{2,NULL}'::int4[])[5:1]
SELECT ('{2,NULL}'::int4[])[2:9]
SELECT (SELECT lag('1.5', '7', '2000-01-01') OVER (ORDER BY id) FROM a LIMIT 1)
SELECT w.id, regexp_replace(w.t, '', w.t, '7'::int4) FROM w ORDER BY w.id
SELECT regexp_substr(w.t, 'a*?'::text, '7'::int4) AS x, w.id FROM w ORDER BY 2
SELECT 'abc'::bytea ~~ '_b%', 'abc'::bytea !~~ '___', '\x00ff'::bytea LIKE '\x00%'
SELECT ('{2,NULL}'::int4[])[0:1]
SELECT '0'::date
SELECT '00'::date
SELECT '13'::date
SELECT '5'::date
SELECT '99'::timestamp
SELECT '0'::timestamptz
SELECT '0'::time
SELECT '12'::time
SELECT '13'::timestamptz
SELECT '12'::timestamptz
SELECT '0 12:00'::timestamptz
SELECT to_char('-Infinity'::float4, '999.99'::text)
SELECT to_char('NaN'::float4, '999.9999999')
SELECT to_char('Infinity'::float8, '999EEEE')
SELECT to_char('NaN'::numeric, '.99EEEE')
SELECT to_char(2147483647, '99V99')
SELECT to_char(9223372036854775807, '99V99')
SELECT to_char(999, '9.9EEEE')
SELECT to_char(12, '9V9S')
SELECT to_char(12, '9RN90')
SELECT to_char(12, 'RNRN')
SELECT to_char(12, '9B9RN')
SELECT to_char(-12.5, 'BEEEE')
SELECT to_char(-12.5, 'EEEETH')
SELECT array_position('{1,2}'::int4[], NULL::int4, NULL::int4)
SELECT array_position('{1,NULL}'::int4[], NULL::int4, NULL::int4)
SELECT array_fill(7, '{{1,2},{3,4}}'::int4[])
SELECT ARRAY['{}'::int4[], NULL::int4[]]
SELECT ARRAY[NULL::int4[], NULL::int4[]]
SELECT ARRAY['{1}'::int4[], NULL::int4[]]
SELECT '{"a":{"b":1}}'::jsonb #- '{a,b,NULL}'::text[]
SELECT jsonb_set('{"a":1}', '{a,NULL}'::text[], '2')
SELECT '1.2.3'::date
SELECT '2000-01-01T12:00'::time
SELECT '2000-01-01 12:00'::time
SELECT '12345678901234567.995'::int2
SELECT '12345678901234567.995'::int4
SELECT '12345678901234567.995'::int8
SELECT '0X7Ffffffffffffff F'::int4
SELECT '-1e400'::time
SELECT '1e400x'::float8
SELECT '-nan'::float4
SELECT 'Thu 2000-01-01'::date
SELECT '12:00 2000-01-01'::timestamp
SELECT '2000-01-01 996199'::timestamp
SELECT 'J2451545.5'::timestamp
SELECT '2000.060'::date
SELECT '2000-060'::date
SELECT '5 mm'::interval
SELECT '1 microsecondzzz'::interval
SELECT 'P1.5e2D'::interval
SELECT 'P20000102T030405'::interval
SELECT 'P0001-02-03T04:05:06'::interval
SELECT 'P+1Y'::interval
SELECT '5 at'::interval
SELECT '1 day 2 day'::interval
SELECT '12::5'::time
SELECT '2000-01-01 12:00 MSK'::timestamptz
SELECT '2000-01-01 12:00 NPT'::timestamptz
SELECT '2000-01-01 12:00 CET DST'::timestamptz
SELECT '2000-01-01 12:00 Nowhere/Land'::timestamptz
SELECT '[1:2]={1,2}'::int4[]
SELECT '[1:2]={1,2,3}'::int4[]
SELECT '[2]={1,2}'::int4[]
SELECT '[2:1]={1}'::int4[]
SELECT '[99999999999]={1}'::int4[]
SELECT '{{},{{}}}'::int4[]
SELECT '{{1},{{x}}}'::int4[]
SELECT '["\u0000", x]'::jsonb
SELECT '["\ud83d"]'::jsonb
SELECT '["\ud83d"]'::json
SELECT '1'::int4::interval(3)
SELECT 12345.6::numeric(4,1)
SELECT convert_to('\'::text, 'abc')
SELECT convert_to('ß', 'ISO-8859-16')
SELECT convert_from('\x81', 'WIN1252')
SELECT convert_from('\xff', 'SQL_ASCII')
SELECT convert_to('ß', 'sqlascii')
SELECT convert_from('\xfe', 'koi8')
SELECT convert_to('ß', 'sjis')
SELECT '-7.31128861E-308'::numeric::float4
SELECT '97e85635738251680931592687170085x'::numeric
SELECT timestamptz '2024-07-01 12:00:00+00' AT TIME ZONE 'x+00015:059'
SELECT to_char('2000-01-01 00:00:00'::timestamp, 'thTMth')
SELECT to_char('2021-01-03 00:00:00'::timestamp, 'TMMonth|Month|FMMonth|FMMS|TMTMMM')
SELECT to_char('1'::int8, '$RN99RN00')
SELECT to_char('10000'::numeric, 'DRN')
SELECT to_char('1'::float4, 'THV')
SELECT to_char('0.5'::numeric, '99EEEEFM')
SELECT to_char('Infinity'::float4, 'D00SGLx')
SELECT to_char('1.0'::numeric, 'FM99."a"S')
SELECT to_char(2147483647, '99V9')
SELECT to_char(9223372036854775807, '99V9')
SELECT to_number('2.91350821', '99 VG')
SELECT to_date('5950-6', 'FF3FXQMONTH')
SELECT to_date('7904-05-06 2431 +02', 'TZHa.d.MMSSSSSDD')
SELECT to_date('8045-12-28', 'DDHH12SS')
SELECT to_timestamp('-8479-05-06', 'YY TZH')
SELECT to_timestamp('9725-05-25', 'dayx')
SELECT '1e-106341'::numeric
SELECT ('[' || repeat('0', 5000) || '1:1]={7}')::int4[]
SELECT ('1' || repeat('0', 5000) || ':00')::interval
SELECT ('2000-01-' || repeat('0', 60) || '1')::date
SELECT '106341.02553625895085100576e-131071'::numeric(6,2)
SELECT 1 AS x FROM a UNION ALL SELECT 1/0 FROM a WHERE false
SELECT 1 AS x FROM a UNION ALL SELECT 1/0 FROM a WHERE id < -100
SELECT 1 AS x FROM a UNION SELECT 1/0 FROM a WHERE false
SELECT 1 AS x FROM a INTERSECT SELECT 1/0 FROM a WHERE false
SELECT 1 AS x FROM a EXCEPT ALL SELECT 1/0 FROM a WHERE id < -100
(SELECT 1 AS x FROM a UNION ALL SELECT 1/0 FROM a WHERE false) LIMIT 1
(SELECT 1 AS x FROM a UNION ALL SELECT 1/0 FROM a) LIMIT 1
SELECT 1 FROM (SELECT 1 AS x FROM a UNION ALL SELECT 1/0 FROM a) s
SELECT 1 FROM (SELECT 1 AS x FROM a UNION SELECT 1/0 FROM a) s
SELECT 1 FROM (SELECT 1 AS x FROM a UNION ALL SELECT 1/0 FROM a WHERE false) s
SELECT x FROM (SELECT 1 AS x FROM a UNION ALL SELECT 0 FROM a WHERE false) s WHERE 1/x > 0
SELECT 1/x FROM (SELECT 1 AS x FROM a UNION ALL SELECT 0 FROM a WHERE false) s
SELECT 1/x FROM (SELECT 1 AS x FROM a UNION ALL SELECT 0 FROM a WHERE id < -100) s
SELECT x FROM (SELECT 1 AS x FROM a UNION ALL SELECT 0 FROM a WHERE id < -100) s WHERE 1/x > 0
SELECT 1/x FROM (SELECT 1 AS x FROM a UNION SELECT 0 FROM a WHERE id < -100) s
SELECT x FROM (SELECT 1 AS x FROM a UNION SELECT 0 FROM a WHERE id < -100) s WHERE 1/x > 0
SELECT x FROM (SELECT 1 AS x FROM a INTERSECT SELECT 0 FROM a WHERE id < -100) s WHERE 1/x > 0
SELECT x FROM (SELECT 1 AS x FROM a EXCEPT SELECT 0 FROM a WHERE id < -100) s WHERE 1/x > 0
WITH q AS (SELECT 0 AS z, id FROM a) SELECT 1/z FROM q WHERE false
WITH q AS (SELECT 0 AS z, id FROM a) SELECT 1/z FROM q WHERE id < -100
WITH q AS (SELECT 0 AS z, id FROM a) SELECT 1 FROM q WHERE 1/z > id AND false
WITH q AS MATERIALIZED (SELECT 0 AS z, id FROM a) SELECT 1/z FROM q WHERE id < -100
WITH q AS NOT MATERIALIZED (SELECT 0 AS z, id FROM a) SELECT 1/z FROM q WHERE id < -100
WITH q AS (SELECT 1/0 AS z, id FROM a) SELECT 1 FROM q WHERE id < -100
WITH q AS (SELECT 1/0 AS z, id FROM a) SELECT id FROM q
WITH q AS MATERIALIZED (SELECT 1/0 AS z, id FROM a) SELECT id FROM q WHERE id < -100
WITH q AS (SELECT 1/0 AS z, id FROM a) SELECT q.id FROM q, q r WHERE q.id < -100
WITH q AS NOT MATERIALIZED (SELECT 1/0 AS z, id FROM a) SELECT q.id FROM q, q r WHERE q.id < -100
WITH q AS (SELECT 0 AS z, id FROM a) SELECT 1/q.z FROM q, q r WHERE q.id < -100
WITH q AS NOT MATERIALIZED (SELECT 0 AS z, id FROM a) SELECT 1/q.z FROM q, q r WHERE q.id < -100
WITH q AS (SELECT 0 AS z, id FROM a LIMIT 3) SELECT 1/z FROM q WHERE id < -100
WITH q AS (SELECT 1 AS z, id FROM a UNION ALL SELECT 0, id FROM b) SELECT 1/z FROM q WHERE id < -100
WITH q AS (SELECT 1 AS z, id FROM a UNION ALL SELECT 0, id FROM b) SELECT id FROM q WHERE id < -100 AND 1/z > 0
SELECT 1/z FROM (SELECT 0 AS z, id FROM a LIMIT 3) q WHERE id < -100
SELECT * FROM (SELECT 0 AS z, id FROM a LIMIT 3) q WHERE id < -100 AND 1/z > 1
SELECT * FROM (SELECT DISTINCT 0 AS z, id FROM a) q WHERE id < -100 AND 1/z > 1
SELECT * FROM (SELECT 0 AS z, id FROM a GROUP BY id) q WHERE id < -100 AND 1/z > 1
SELECT * FROM (SELECT 0 AS z, id, row_number() over () FROM a) q WHERE id < -100 AND 1/z > 1
SELECT * FROM (SELECT 0 AS z, id, row_number() over (partition by id) FROM a) q WHERE id < -100 AND 1/z > 1
WITH q AS (SELECT 0 AS z, id FROM a) SELECT (SELECT 1/z FROM q WHERE id < -100) FROM b
SELECT x FROM (SELECT 1 AS x, id FROM a UNION ALL (SELECT 0, id FROM a UNION ALL SELECT 2, id FROM a)) s WHERE 1/x > 0 AND id < -100
SELECT 1/x FROM (SELECT 1 AS x, id FROM a UNION ALL (SELECT 0, id FROM a UNION ALL SELECT 2, id FROM a)) s WHERE id < -100
SELECT x FROM (VALUES (0), (1)) v(x) WHERE 1/x > 0 AND false
SELECT x FROM (VALUES (0)) v(x) WHERE 1/x > 0 AND false
SELECT x FROM (VALUES (1/0)) v(x) WHERE false
SELECT x FROM (VALUES (1/0), (1)) v(x) WHERE false
SELECT x FROM (SELECT 1 AS x UNION ALL SELECT 0) s WHERE 1/x > 0 AND false
SELECT x FROM (SELECT 1 AS x UNION ALL SELECT 0) s WHERE x > 2 AND 1/x > 0
SELECT s.x FROM b LEFT JOIN (SELECT 1 AS x, id FROM a UNION ALL SELECT 1/0, id FROM a WHERE false) s ON s.id = b.id
SELECT 1/s.x FROM b LEFT JOIN (SELECT 0 AS x, id FROM a) s ON s.id = -7
SELECT 1/s.x FROM b LEFT JOIN (SELECT 1 AS x, id FROM a UNION ALL SELECT 0, id FROM a WHERE id = -7) s ON s.id = b.id
SELECT CASE WHEN x = 1 THEN 1 ELSE 1/0 END FROM (SELECT 1 AS x FROM a UNION ALL SELECT 1 FROM b) s
SELECT CASE WHEN x = 1 THEN 1 ELSE 1/0 END FROM (SELECT 1 AS x FROM a) s
WITH q AS (SELECT 1 AS x FROM a) SELECT CASE WHEN x = 1 THEN 1 ELSE 1/0 END FROM q
WITH q AS MATERIALIZED (SELECT 1 AS x FROM a) SELECT CASE WHEN x = 1 THEN 1 ELSE 1/0 END FROM q
WITH q AS (SELECT 1 AS x FROM a), r AS (SELECT x AS y FROM q) SELECT CASE WHEN y = 1 THEN 1 ELSE 1/0 END FROM r
SELECT x FROM (SELECT 1 AS x FROM a UNION ALL SELECT 1 FROM b) s WHERE CASE WHEN x = 1 THEN true ELSE 1/0 > 0 END
SELECT x FROM (SELECT 1 AS x FROM a LIMIT 1) s WHERE CASE WHEN x = 1 THEN true ELSE 1/0 > 0 END
SELECT count(1/0) FROM a WHERE false
SELECT x FROM (SELECT 1 AS x, 1/0 FROM a UNION ALL SELECT 1, 2 FROM b) s
SELECT x FROM (SELECT 1 AS x, 1/0 FROM a LIMIT 0) s
SELECT id, (1/i4 > 0 AND false) FROM a ORDER BY id
SELECT id, (1/(id-1) > 0 AND false) FROM a ORDER BY id
SELECT id, (1/(id-1) > 0 OR 1 = 1) FROM a ORDER BY id
SELECT id FROM a WHERE 1/(id-1) > 0 AND 1 = 2
SELECT id FROM a WHERE 1/(id-1) > 0 OR true
SELECT id FROM a WHERE CASE WHEN 1/(id-1) > 0 AND false THEN false ELSE true END ORDER BY id
SELECT count(*) FILTER (WHERE 1/(id-1) > 0 AND false) FROM a
SELECT a.id FROM a JOIN b ON a.id = b.a_id AND 1/(a.id-1) > 0 AND false
SELECT a.id FROM a LEFT JOIN b ON a.id = b.a_id AND 1/(b.id-1) > 0 AND false ORDER BY 1
SELECT x FROM (SELECT 1 AS x, 1/0 FROM a ORDER BY id) s
SELECT x FROM (SELECT id AS x, 1/0 AS y FROM a GROUP BY id) s WHERE x < -100
SELECT x, y FROM (SELECT id AS x, 1/0 AS y FROM a GROUP BY id) s WHERE x < -100
SELECT x FROM (SELECT DISTINCT id AS x, 1/0 AS y FROM a) s WHERE x < -100
SELECT x FROM (SELECT id AS x, 1/0 AS y, row_number() OVER () FROM a) s WHERE x < -100
SELECT 1/z FROM (SELECT 0 AS z, id FROM a GROUP BY id) q WHERE id < -100
SELECT 1/z FROM (SELECT DISTINCT 0 AS z, id FROM a) q WHERE id < -100
SELECT 1/z FROM (SELECT 0 AS z, id FROM a ORDER BY id) q WHERE id < -100
SELECT id FROM (SELECT 0 AS z, id FROM a ORDER BY id) q WHERE id < -100 AND 1/z > 0
SELECT id FROM (SELECT 0 AS z, id FROM a ORDER BY id) q WHERE 1/z > 0 AND false
SELECT s.x FROM b JOIN (SELECT 0 AS x, id FROM a UNION ALL SELECT 1, id FROM a) s ON s.id = b.id AND 1/s.x > 0 AND s.id < -100
SELECT s.x FROM b LEFT JOIN (SELECT DISTINCT 0 AS x, id FROM a) s ON s.id = b.id AND 1/s.x > 0 AND s.id < -100
SELECT x FROM (SELECT 1 AS x, id FROM a UNION ALL SELECT 0, id FROM a ORDER BY 2) s WHERE 1/x > 0 AND id < -100
SELECT x FROM (SELECT 1 AS x, id FROM a UNION ALL SELECT 0, id FROM a LIMIT 2) s WHERE 1/x > 0 AND id < -100
SELECT y FROM (SELECT 1/0 AS x, id AS y FROM a UNION SELECT 2, id FROM a) s WHERE y < -100
SELECT y FROM (SELECT 1/0 AS x, id AS y FROM a WHERE id > 0 UNION ALL SELECT 2, id FROM a WHERE id > 0) s WHERE y < -100
SELECT y FROM (SELECT 1/0 AS x, id AS y FROM a WHERE id > 0 UNION ALL SELECT 2, id FROM a WHERE id > 0 UNION ALL SELECT 3, 4) s WHERE y < -100
SELECT count(*) FROM (SELECT 1/0 AS x FROM a UNION ALL SELECT 2 FROM a) s
SELECT count(*) FROM (SELECT 1/0 AS x FROM a WHERE id > 0 UNION ALL SELECT 2 FROM a) s
SELECT count(*) FROM (SELECT 1/0 AS x FROM a LIMIT 5) s
SELECT count(*) FROM (SELECT count(1/0), id FROM a GROUP BY id) s
SELECT id FROM a WHERE id IN (SELECT CASE WHEN x = 1 THEN 1 ELSE 1/0 END FROM (SELECT 1 AS x FROM b LIMIT 3) s) AND false
SELECT EXISTS (SELECT 1/0 FROM a WHERE false)
SELECT EXISTS (SELECT 1/0 FROM a LIMIT 0)
WITH q AS MATERIALIZED (SELECT 1/0 AS z, id FROM a WHERE id < -100) SELECT id FROM q
WITH q AS (SELECT 1/0 AS z, id FROM a WHERE id < -100) SELECT q.id FROM q, q r
SELECT json_object_agg(j, '' ORDER BY id) FROM (VALUES (1,NULL::json),(2,'1'::json)) v(id,j)
SELECT json_object_agg(j, '' ORDER BY id DESC) FROM (VALUES (1,NULL::json),(2,'1'::json)) v(id,j)
SELECT jsonb_object_agg(j, '' ORDER BY id) FROM (VALUES (1,NULL::json),(2,'1'::json)) v(id,j)
SELECT jsonb_object_agg(j, '' ORDER BY id DESC) FROM (VALUES (1,NULL::json),(2,'1'::json)) v(id,j)
SELECT json_object_agg(j, '') FROM (VALUES (1,NULL::json),(2,'1'::json)) v(id,j)
SELECT json_object_agg(j, '') FROM (VALUES (1,'1'::json),(2,NULL::json)) v(id,j)
SELECT json_object_agg(j, '' ORDER BY id) FROM (VALUES (1,'1'::json),(2,NULL::json)) v(id,j)
SELECT array_agg(x ORDER BY id DESC) FROM (VALUES (1,NULL::int4[]),(2,'{}'::int4[])) v(id,x)
SELECT array_agg(x ORDER BY id) FROM (VALUES (1,NULL::int4[]),(2,'{}'::int4[])) v(id,x)
SELECT array_agg(x ORDER BY id) FROM (VALUES (1,'{1}'::int4[]),(2,'{1,2}'::int4[]),(3,NULL)) v(id,x)
SELECT sum(x ORDER BY id DESC) FROM (VALUES (1,9223372036854775807),(2,-5),(3,7)) v(id,x)
SELECT jsonb_object_agg(k, v ORDER BY k DESC) FROM (VALUES ('a',1),('b',2)) t(k,v)
SELECT stddev_samp(x ORDER BY id DESC) FROM (VALUES (1,1e308),(2,-1e308),(3,7)) v(id,x)
SELECT right('äöü', -2147483648)
SELECT format('%*s|', -2147483648, 'a')
SELECT regexp_substr('a,b,,c', '', 1, 2, 'i', 1)
SELECT regexp_instr('abc', 'b', 1, 1, 0, '', 1)
SELECT regexp_substr('abc', 'b', 1, 1, '', 2)
SELECT to_char(timestamp '2024-02-29 13:45', 'TMMonth|TMDD|TMDay|tmmon|FMDDSP|DDspSP|THth|xTH')
SELECT to_char(interval '1 day', 'TMMonth')
SELECT to_date('2024-02-29', 'FX YYYY')
SELECT to_date('2024-02-29', 'FXYYYY-MM-DD')
SELECT to_date('2024-2-9', 'FXYYYY-MM-DD')
SELECT to_timestamp(' 2024 05', 'FXYYYY MM')
SELECT to_timestamp('2024  05', 'YYYYFX MM')
SELECT to_timestamp('1,999', 'FX YYYY')
SELECT to_date('20240229', 'TMMonth')
SELECT to_date('5 Mai 2024', 'DD TMMonth YYYY')
SELECT to_date('5 mAy 2024', 'DD TMMonth YYYY')
SELECT to_timestamp('10000-01-01', 'YYYY DDD')
SELECT interval '25:00:00'::interval day
SELECT interval '3' day, interval '2' hour, interval '1.5' second(0)
SELECT a.iv::interval day FROM a
SELECT to_char(timestamp '2024-02-09 03:04:05.678', 'THHH24MonthMON|SPMonthtmFX')
COPY child (id, p_default) FROM STDIN WITH (FORMAT csv) -- copied '8,5\n\\.\n'
COPY child (id, p_default) FROM STDIN -- copied 'x\n'
COPY child (id, p_default) FROM STDIN -- copied '77\n'
COPY child (id, p_default) FROM STDIN -- copied 'x\ty\tz\n'
COPY child (id, p_default) FROM STDIN WITH (FORMAT csv) -- copied '\n'
COPY child (id, p_default) FROM STDIN -- copied ''
COPY parent (id, n, e, name) FROM STDIN -- copied '2\tNaN\n'
COPY parent (id, n, e, name) FROM STDIN -- copied '2\tNaN\tnope\n'
COPY child (id, p_default) FROM STDIN WITH (FORMAT csv, HEADER match) -- copied 'id\n1,2\n'
COPY child (id, p_default) FROM STDIN WITH (FORMAT csv, HEADER match) -- copied 'id,nope\n1,2\n'
COPY child (id, p_default) FROM STDIN WITH (FORMAT csv, HEADER match) -- copied 'id,p_default,x\n1,2\n'
COPY child (id, p_default) FROM STDIN WITH (FORMAT text, HEADER match) -- copied 'id\tp_default\n\\N\t2\n'
COPY child (id, p_default) FROM STDIN WITH (FORMAT csv, HEADER match) -- copied ',p_default\n1,2\n'
COPY child (id, p_default) FROM STDIN WITH (FORMAT csv, HEADER match) -- copied ''
COPY child (id, p_default) FROM STDIN WITH (FORMAT csv, HEADER) -- copied 'a\n'
SELECT '345'::numeric(4,-2)
SELECT '3-'::numeric(4,-2)
SELECT 12345.678::numeric(4,-2)
SELECT 12345.678::numeric(3,-2)
SELECT 12345.678::numeric(2,-2)
SELECT n::numeric(4,-2) FROM a
SELECT '345'::numeric(4,5)
SELECT '0.000345'::numeric(2,5)
SELECT '345'::numeric(0)
SELECT '345'::numeric(1001)
SELECT '345'::numeric(4,1001)
SELECT '345'::numeric(4,-1001)
SELECT '-nan'::float8
SELECT '-nan'::float8::text
SELECT 'abcdefgh'::varchar(4), 'abcdefgh'::char(4), 'abcdefgh'::varchar(8), '12345.678'::numeric(8,2), '12:00:00.123456'::time(4), '2020-01-01 12:00:00.123456'::timestamp(4), 'x'::char(8)
SELECT 1234.5678::numeric(8,1), 'abc'::pg_catalog.varchar(2)
SELECT interval '3' month, interval '3' year, interval '1.123456' second(4)
SELECT '1'::numeric(1,2,3)
SELECT '1'::float(54)
SET datestyle = 'German, DMY'
SET intervalstyle = 'iso_8601'
SET bytea_output = 'escape'
SET extra_float_digits = 0
SET timezone = 'europe/berlin'
SET timezone = '+05'
SET timezone = 'Nowhere'
SET timezone = 'est5edt'
SELECT ('[1,"x",null,[2]]'::jsonb)['0']
SELECT ('1'::jsonb)[0]
SELECT ('null'::jsonb)[-1]
SELECT ('{"0":5,"a":{"b":[1,2]}}'::jsonb)[0], ('{"0":5,"a":{"b":[1,2]}}'::jsonb)['a']['b'][1]
SELECT ('[1,2]'::jsonb)[NULL::text], ('[1,2]'::jsonb)[1::int2], ('[1,2]'::jsonb)['1'::varchar(3)]
SELECT ('[1,2]'::jsonb)[1::int8]
SELECT ('[1,2]'::jsonb)[1.0]
SELECT ('[1,2]'::jsonb)[true]
SELECT a.jb['a'], a.jb[a.i4] FROM a ORDER BY id
SELECT jb[$1] FROM a ORDER BY id -- given ['a']
SELECT decode('YQ=a', 'base64')
SELECT decode('YQ==YWJj', 'base64')
SELECT decode('YWI=YWJj', 'base64')
SELECT decode('Y===', 'base64')
SELECT decode('=', 'base64')
SELECT decode('YQ=', 'base64')
SELECT decode('YQ=!', 'base64')
SELECT decode('YWJjYQ', 'base64')
SELECT decode('YQ==YQ==', 'base64')
SELECT id, sum(i4) OVER (ORDER BY f8 RANGE BETWEEN 1 PRECEDING AND 'NaN' FOLLOWING) FROM a ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND 'NaN' FOLLOWING) FROM a ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY tm RANGE BETWEEN '1 hour' PRECEDING AND '1 hour' FOLLOWING) FROM a ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY tm DESC RANGE BETWEEN '1 hour' PRECEDING AND '25 hour' FOLLOWING) FROM a ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY tm RANGE BETWEEN '-1 day' PRECEDING AND '1 day' FOLLOWING) FROM a ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY tz RANGE BETWEEN '1 day' PRECEDING AND '0' FOLLOWING) FROM a ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY tz DESC RANGE BETWEEN '1 mon' PRECEDING AND '1 year' FOLLOWING) FROM a ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY ts DESC RANGE BETWEEN '1 mon' PRECEDING AND '1 year' FOLLOWING) FROM a ORDER BY id
SELECT id, sum(i4) OVER (ORDER BY d RANGE BETWEEN '1 mon' PRECEDING AND '1 year' FOLLOWING) FROM a ORDER BY id
SELECT rank(3) WITHIN GROUP (ORDER BY i4) FROM a
SELECT '2000-01-01 12:00:00+17'::timestamptz
SELECT '0001-01-01T00:00:00+01'::timestamptz
SELECT '9999-12-31 23:59:59+00'::timestamptz
INSERT INTO item (k, m, c) VALUES ('b', 3, 'toolong'), ('', ('t'::bool)::int2, 'toolong')
INSERT INTO item (k, m, c) VALUES ('b', 3, 'toolong'), ('', 4, nope)
INSERT INTO item (k, m, c) VALUES ('b', 3, 'toolong'), ('', 4)
INSERT INTO item (k, m, u) VALUES ('b', 3, 'x'), ('', ('t'::bool)::int2, NULL)
INSERT INTO item (k, m, u) VALUES ('b', 3, NULL), ('c', 4, DEFAULT) RETURNING k
INSERT INTO item (k, m) VALUES ('b', '2020-01-01'::date), ('', nope)
SELECT to_char('1 month'::interval, 'TMRMMM')
SELECT to_char(date '2020-01-01', 'TMRM|TMrm|TMMON|TMDY|TMDay|TMQ|TMDD|TMHH12|TMAM|TMWW')
SELECT to_date('2024-4', 'TZH YYYYRM')
SELECT to_date(E'\r\t+\f38\\99-12-26', 'TZHMI-WW')
SELECT to_date(E'+\f 38', 'TZHMI')
SELECT to_timestamp(E'2024 07', 'YYYYMM')
SELECT timestamptz '2024-07-01 12:00:00+00' AT TIME ZONE 'IST'
SELECT timestamptz '2024-07-01 12:00 IST'
SELECT timestamptz '2024-07-01 12:00 BST', timestamp '2024-07-01 12:00' AT TIME ZONE 'BST'
SELECT make_timestamptz(2024, 7, 1, 12, 0, 0, 'EST'), date_trunc('day', timestamptz '2024-07-01 12:00:00+00', 'PST')
SELECT date_add(timestamptz '2024-07-01 12:00:00+00', '1 day', 'CEST')
SELECT 'null 24:00:00 PM -12345'::timestamptz::jsonb
SELECT '24:00:00 EST 2487-09-11'::timestamptz::interval
SELECT '3311-11-09T6:22:4.BSTad'::timestamptz::uuid
SELECT '{"6737-07-07,5:54:561. ART"}'::timestamptz[]::numeric(1000,1000)[]
SELECT 'foo 5751-12-24  13:'::timestamptz::bytea
COPY item (k, k) FROM STDIN
COPY item (k, total) FROM STDIN
COPY item (k, k) TO STDOUT
COPY item (total) TO STDOUT
