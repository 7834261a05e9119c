"""Whole plans in DuckDB against the same plans by rows."""

import random
from typing import Any

import pytest

from tenure.sql.plans.plan import Query
from tenure.sql.rows.run import QueryRun
from tenure.sql.rows.runner import compile
from tests.unit.sql.duck.both_executors import NAMES, BothExecutors

WHOLE = [
    "SELECT count(*) FROM people",
    "SELECT count(*), count(age), count(DISTINCT city), min(age), max(age), sum(age), sum(id) FROM people",
    "SELECT city, count(*), sum(score), max(name), min(born), max(seen) FROM people GROUP BY city",
    "SELECT avg(age), avg(id), avg(score), avg(c) FROM people JOIN t ON t.a = people.id",
    "SELECT mood, count(*), min(mood), max(mood) FROM people GROUP BY mood ORDER BY mood",
    "SELECT mood, bool_and(age > 10), bool_or(age > 10), every(age IS NULL) FROM people GROUP BY 1",
    "SELECT p.name, o.amount FROM people p JOIN orders o ON o.person = p.id WHERE o.amount > 100",
    "SELECT p.id, o.id FROM people p LEFT JOIN orders o ON o.person = p.id AND o.amount < 500",
    "SELECT p.id, o.id FROM people p RIGHT JOIN orders o ON o.person = p.id",
    "SELECT p.id, o.id FROM people p FULL JOIN orders o ON o.person = p.id AND p.age > 5",
    "SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE person = p.id AND amount > age)",
    "SELECT p.id FROM people p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.person = p.id)",
    "SELECT p.id FROM people p WHERE p.id IN (SELECT person FROM orders WHERE amount > 300)",
    "SELECT p.id FROM people p WHERE p.id NOT IN (SELECT person FROM orders WHERE person IS NOT NULL)",
    "SELECT p.id FROM people p WHERE p.id NOT IN (SELECT person FROM orders)",
    "SELECT p.id FROM people p WHERE (p.id, p.age) IN (SELECT person, amount FROM orders)",
    "SELECT p.id FROM people p WHERE p.age IN (SELECT amount FROM orders WHERE person = p.id)",
    "SELECT p.id FROM people p WHERE p.age NOT IN (SELECT amount FROM orders WHERE person = p.id)",
    "SELECT p.id FROM people p WHERE p.age < ALL (SELECT amount FROM orders WHERE person = p.id)",
    "SELECT p.id FROM people p WHERE NOT (p.age, p.id) < ANY "
    "(SELECT o.amount, o.id FROM orders o WHERE o.person = p.id)",
    "SELECT p.id, (SELECT max(o.amount) FROM orders o WHERE o.person = p.id) FROM people p",
    "SELECT id FROM people WHERE age > (SELECT avg(age)::int FROM people)",
    "SELECT DISTINCT city, mood FROM people",
    "SELECT DISTINCT ON (city) city, id FROM people ORDER BY city, age DESC NULLS LAST, id",
    "SELECT id, name FROM people ORDER BY city NULLS FIRST, id DESC LIMIT 7 OFFSET 3",
    "SELECT name FROM people ORDER BY born DESC, id",
    "SELECT upper(name), lower(city), length(name) FROM people WHERE name LIKE '%n%' ORDER BY id",
    "SELECT id FROM people WHERE name LIKE 'ann_' OR city ILIKE 'RO%' OR name LIKE '\\_%'",
    "SELECT city FROM people UNION SELECT note FROM orders",
    "SELECT city FROM people UNION ALL SELECT note FROM orders",
    "SELECT age FROM people INTERSECT SELECT a FROM t",
    "SELECT age FROM people INTERSECT ALL SELECT a FROM t",
    "SELECT age FROM people EXCEPT SELECT a FROM t",
    "SELECT age FROM people EXCEPT ALL SELECT a FROM t",
    "SELECT city, mood, count(*), grouping(city, mood) FROM people GROUP BY ROLLUP (city, mood)",
    "SELECT city, mood, sum(age) FROM people GROUP BY GROUPING SETS ((city), (mood), ())",
    "SELECT city, mood, sum(score) FROM people GROUP BY CUBE (city, mood) HAVING count(*) > 2",
    "SELECT count(*) FILTER (WHERE age > 10), sum(score) FILTER (WHERE city = 'Rome') FROM people",
    "SELECT sum(amount * 2), sum(amount * amount), sum(amount * (1 - 0.05)) FROM orders",
    "SELECT sum(c), avg(c), min(c), max(c) FROM t",
    "SELECT id, row_number() OVER (PARTITION BY city ORDER BY id) FROM people",
    "SELECT id, rank() OVER (ORDER BY age), dense_rank() OVER (ORDER BY age DESC) FROM people",
    "SELECT id, sum(age) OVER (PARTITION BY city ORDER BY id), count(*) OVER (PARTITION BY city) FROM people",
    "SELECT id, lag(age) OVER (ORDER BY id), lead(name) OVER (ORDER BY id) FROM people",
    "SELECT id, first_value(age) OVER (PARTITION BY mood ORDER BY id) FROM people",
    "WITH rich AS (SELECT person, sum(amount) AS total FROM orders GROUP BY person) "
    "SELECT p.city, count(*) FROM rich JOIN people p ON p.id = rich.person WHERE total > 100 GROUP BY p.city",
    "WITH r AS (SELECT id, age FROM people) SELECT a.id, b.id FROM r a JOIN r b USING (age)",
    "SELECT tags, data, id FROM people WHERE age > 20",
    "SELECT e, count(*) FROM u GROUP BY e",
    "SELECT e FROM u WHERE e = 'a' OR e > 'b'",
    "SELECT u.e, t.b FROM u JOIN t USING (a) WHERE d IS NOT TRUE",
    "SELECT CASE WHEN age > 30 THEN 'old' WHEN age IS NULL THEN 'unknown' ELSE 'young' END AS c, count(*) "
    "FROM people GROUP BY 1",
    "SELECT coalesce(city, 'none'), nullif(age, 5), greatest(age, 10), least(age, id::int) FROM people",
    "SELECT id FROM people WHERE age IN (1, 2, 3, 40) AND city IN ('Rome', 'Oslo')",
    "SELECT id FROM people WHERE age NOT IN (1, 2, NULL)",
    "SELECT id FROM people WHERE age = ANY (ARRAY[1, 5, 9]) OR name <> ALL (ARRAY['ann0', 'Bob1'])",
    "SELECT id FROM people WHERE born BETWEEN date '1990-01-01' AND date '2010-01-01' + interval '1 year'",
    "SELECT extract(year FROM born), count(*) FROM people GROUP BY 1",
    "SELECT date_trunc('month', at), sum(amount) FROM orders GROUP BY 1 ORDER BY 1",
    "SELECT id FROM people WHERE seen > timestamptz '2024-06-01 00:00:00+02' AND born IS NOT NULL",
    "SELECT age / 3, age % 7, age * 2 - 1, -age, abs(age), id & 7 FROM people",
    "SELECT id FROM people WHERE (age > 10) = (score > 0) AND NOT (city = 'Rome' AND mood = 'sad')",
    "SELECT id FROM people WHERE mood > 'sad' ORDER BY mood, id",
    "SELECT age IS DISTINCT FROM 5, mood IS NULL, (age > 5) IS UNKNOWN FROM people",
    "SELECT x FROM (VALUES (1, 'a'), (2, NULL)) v(x, y) JOIN t ON t.a = v.x",
    "SELECT g, count(t.a) FROM generate_series(1, 5) g LEFT JOIN t ON t.a = g GROUP BY g",
    "SELECT p.id, o.amount FROM people p CROSS JOIN LATERAL "
    "(SELECT amount FROM orders WHERE orders.person = p.id ORDER BY amount DESC NULLS LAST LIMIT 1) o",
    "SELECT sum(CASE WHEN age > 10 THEN score ELSE 0 END) FROM people",
    "SELECT city, sum(CASE WHEN age > 50 THEN score ELSE 0 END), count(*), "
    "avg(CASE WHEN id < 5 THEN score WHEN id > 30 THEN 1.125 ELSE 0 END) FROM people GROUP BY city",
    "SELECT sum(CASE WHEN id < 0 THEN score ELSE 0 END), "
    "sum(CASE WHEN id < 0 THEN score WHEN id < 0 THEN 1 END) FROM people",
    "SELECT id FROM people WHERE CASE WHEN age > 10 THEN score ELSE 0 END > 1.5",
    "SELECT p.id, o.n FROM people p CROSS JOIN LATERAL (SELECT count(*) AS n FROM orders WHERE person = p.id "
    "AND amount > (SELECT min(amount) FROM orders x WHERE x.person <> p.id)) o",
    "SELECT p.id, o.n FROM people p CROSS JOIN LATERAL (SELECT count(*) AS n FROM orders WHERE "
    "(SELECT count(*) FROM t WHERE t.a < p.age) > 7) o",
    "SELECT x, count(*), min(x), max(x) FROM (VALUES ('NaN'::float8), (1), ('-inf'), (NULL), ('NaN')) v(x) "
    "GROUP BY x ORDER BY x",
    "SELECT min(x), max(x) FROM (VALUES ('NaN'::float8), (1), ('-inf')) v(x)",
    "SELECT count(*) FROM people WHERE false",
    "SELECT city, count(*) FROM people WHERE id < 0 GROUP BY city",
    "SELECT id + 1 AS n FROM people WHERE score >= 1.5 ORDER BY n DESC LIMIT 3",
    "SELECT score::int, score::numeric(10,1), age::text, born::text, age::float8, score * 3 FROM people",
    "SELECT max(score) - min(score), sum(age) + 1 FROM people",
    "SELECT * FROM pairs WHERE (a, b) = (3, 10) OR c = 'x'",
    "SELECT a, string FROM (SELECT a, c || '!' AS string FROM pairs) s WHERE string <> 'x!'",
    "SELECT substring(name, 2, 2), left(name, 2), replace(name, 'n', 'm'), position('n' IN name), "
    "trim(name), starts_with(name, 'a') FROM people",
    "SELECT city FROM people GROUP BY city HAVING sum(age) > (SELECT count(*) FROM t)",
    "SELECT person FROM orders GROUP BY person HAVING sum(amount * id) > "
    "(SELECT sum(amount * id) * 0.0712345678 FROM orders)",
    "SELECT person FROM orders GROUP BY person HAVING -7.00000000001 <= sum(amount * id)",
    "SELECT person FROM orders GROUP BY person HAVING sum(amount * id) < 1500.00000000001",
    "SELECT p.id, p.age IN (SELECT amount FROM orders WHERE person = p.id), "
    "p.age > ALL (SELECT amount FROM orders WHERE person = p.id), "
    "(p.age, p.id) <= ANY (SELECT o.amount, o.id FROM orders o WHERE o.person = p.id) FROM people p",
    "SELECT p.id FROM people p WHERE p.age IN (SELECT amount FROM orders WHERE person = p.id) OR p.id = 7",
    "SELECT p.id, (SELECT min(o.amount) FROM orders o, t WHERE o.id = p.id AND t.a = o.person) FROM people p",
    "SELECT p.id, o.id, t.a FROM people p LEFT JOIN (orders o JOIN t ON t.a = o.id) ON o.person = p.id",
    "SELECT p.id, q.a, q.b FROM people p CROSS JOIN LATERAL (SELECT o.id AS a, t.a AS b FROM orders o "
    "LEFT JOIN t ON t.a > p.age WHERE o.person = p.id) q",
    "SELECT p.id, o.id FROM people p JOIN orders o ON o.person = p.id JOIN t ON t.a = o.id "
    "WHERE EXISTS (SELECT 1 FROM orders x JOIN t y ON y.a = x.id WHERE x.person = p.id)",
    "SELECT o.id, p.age, p.age FROM people p FULL JOIN orders o ON o.person = p.id LEFT JOIN u ON u.a = o.id",
    "SELECT id, (age > 10 AND city = 'Rome') OR (age > 10 AND mood = 'ok') FROM people",
    "SELECT id, age > 10 OR (city = 'Rome' AND age > 10), (mood = 'ok' AND age > 9) OR age > 9 FROM people",
]
"""Queries that run in DuckDB whole."""


PARTLY = [
    "SELECT city, avg(score) FROM people GROUP BY city ORDER BY avg(score)",
    "SELECT sum(score) / count(*) FROM people",
    "SELECT data ->> 'x', count(*) FROM people GROUP BY 1",
    "SELECT city, array_agg(id ORDER BY id), string_agg(name, ',' ORDER BY id) FROM people GROUP BY city",
    "SELECT id, age::float8 / 3, seen + interval '1 month' FROM people ORDER BY id",
    "SELECT seen::text, seen - now() > interval '0' FROM people",
    "SELECT id FROM people ORDER BY tags, id LIMIT 5",
    "SELECT stddev(age), variance(score) FROM people",
    "SELECT sum(score) + 1 FROM people",
    "SELECT round(score, 1), round(c), sqrt(abs(age)) FROM people JOIN t ON t.a = people.id",
]


FAILING = [
    "SELECT age / 0 FROM people",
    "SELECT sum(id / (age - age)) FROM people WHERE age IS NOT NULL",
    "SELECT (age + 2147483647) FROM people",
    "SELECT substring(name, 1, -1) FROM people",
    "SELECT id FROM people WHERE age > (SELECT a FROM t)",
    "SELECT id FROM people ORDER BY id LIMIT -1",
    "SELECT c / 0 FROM t",
    "SELECT name LIKE 'ann\\' FROM people",
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_query_runs_whole_in_duckdb_with_the_same_answer(executors: BothExecutors, text: str) -> None:
    query = executors.query(text)
    before = executors.duck.offloaded_count
    found, expected = executors.by_duck(query), executors.by_rows(query)
    if "ORDER BY" not in text.rpartition(")")[2]:
        found, expected = sorted(found), sorted(expected)
    assert found == expected
    assert isinstance(found, list)
    assert _took_whole(executors, query), "DuckDB did not take all of it"
    assert executors.duck.offloaded_count > before


def _took_whole(executors: BothExecutors, query: Query) -> bool:
    run = executors.run()
    asked: list[bool] = []
    taking = executors.duck.taking(NAMES.enum, is_forced=True)

    def instead(plan: Any, run: QueryRun) -> Any:
        rows = taking(plan, run)
        if plan is query.plan:
            asked.append(rows is not None)
        return rows

    run.instead = instead
    list(compile(query, NAMES.enum).rows(run))
    return asked == [True]


@pytest.mark.parametrize("text", PARTLY)
def test_what_is_not_shared_runs_by_rows_above_duckdb(executors: BothExecutors, text: str) -> None:
    query = executors.query(text)
    assert sorted(executors.by_duck(query)) == sorted(executors.by_rows(query))


@pytest.mark.parametrize("text", FAILING)
@pytest.mark.invariant("duck-error")
def test_errors_are_those_of_postgres(executors: BothExecutors, text: str) -> None:
    query = executors.query(text)
    found = executors.by_duck(query)
    assert isinstance(found, str)
    assert found == executors.by_rows(query)


_CONDITIONS = [
    *("age > 20", "age IS NULL", "city = 'Rome'", "name LIKE 'a%'", "score < 1.25", "mood = 'ok'"),
    *(
        "age + 5 < people.id",
        "NOT (age > 20)",
        "city IN ('Oslo', 'Rome')",
        "born < date '2005-05-05'",
        "age % 2 = 0",
    ),
    *(
        "length(name) > 3",
        "coalesce(age, 0) > 3",
        "score * 2 > score + 1",
        "people.id IN (SELECT person FROM orders)",
    ),
]


_KEYS = ["city", "mood", "age % 5", "age > 20", "length(name)", "score", "name", "extract(year FROM born)"]


_CALLS = [
    *("count(*)", "sum(age)", "avg(age)", "max(name)", "min(score)", "sum(score)", "avg(score)", "max(born)"),
    *(
        "count(DISTINCT mood)",
        "sum(id) FILTER (WHERE age > 9)",
        "bool_or(age > 9)",
        "min(mood)",
        "sum(age + 1)",
    ),
]


@pytest.mark.parametrize("seed", range(40))
def test_random_queries_have_the_same_answer(executors: BothExecutors, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        text = _random_query(rng)
        query = executors.query(text)
        assert sorted(executors.by_duck(query)) == sorted(executors.by_rows(query)), text


def _random_query(rng: random.Random) -> str:
    source = rng.choice(
        [
            "people",
            "people JOIN orders ON orders.person = people.id",
            "people LEFT JOIN t ON t.a = people.age",
            "(SELECT * FROM people ORDER BY score LIMIT 20) people",
        ]
    )
    conditions = f" {rng.choice(['AND', 'OR'])} ".join(rng.sample(_CONDITIONS, rng.randrange(1, 4)))
    keys = rng.sample(_KEYS, rng.randrange(0, 3))
    calls = [each.replace("(id)", "(people.id)") for each in rng.sample(_CALLS, rng.randrange(1, 4))]
    text = f"SELECT {', '.join(keys + calls)} FROM {source} WHERE {conditions}"
    return text + (f" GROUP BY {', '.join(keys)}" if keys else "")
