"""S28, S29: statements that ask for too much get a clear error; the node and its neighbours go on.

Each runs against a real process. What it takes is bounded in bytes, not in seconds: how fast a machine
is must not decide. The neighbour's answers are only counted.
"""

from collections.abc import Iterator

import psycopg
import pytest

from tests.security.node_process import MIB, Neighbour, NodeProcess, running

DUCKDB_BYTES = 640 * MIB
"""What DuckDB may take: `sql.duckdb_memory` and a quarter of it for files that are held."""

GROWTH_BYTES_MAX = DUCKDB_BYTES + 512 * MIB
"""A query may hold 256 MiB by its account, which is rough; what Python gives back late comes on top."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with running(tmp_path_factory.mktemp("node")) as node:
        with node.connect() as client:
            client.execute("CREATE TABLE big (a int PRIMARY KEY, b int, s text)")
            client.execute(
                "INSERT INTO big SELECT g, g % 100, repeat('x', 50) FROM generate_series(1, 20000) g"
            )
        yield node


@pytest.fixture(scope="module")
def neighbour(node: NodeProcess) -> Iterator[Neighbour]:
    with node.neighbour() as neighbour:
        yield neighbour


TIMEOUT, TOO_COMPLEX, TOO_LARGE, NO_MEMORY, OUT_OF_RANGE = "57014", "54001", "54000", "53200", "22003"

STATEMENTS: dict[str, tuple[str, set[str | None]]] = {
    "a count without end": ("SELECT count(*) FROM generate_series(1, 1000000000000)", {TIMEOUT}),
    "parentheses": ("SELECT " + "(" * 10_000 + "1" + ")" * 10_000, {TOO_COMPLEX}),
    "brackets": ("SELECT " + "array[" * 5_000 + "1" + "]" * 5_000, {TOO_COMPLEX}),
    "signs": ("SELECT " + "- " * 20_000 + "1", {TOO_COMPLEX}),
    "NOTs": ("SELECT " + "NOT " * 10_000 + "true", {TOO_COMPLEX}),
    "operators": ("SELECT 1" + "+1" * 50_000, {TOO_COMPLEX}),
    "unions": ("SELECT 1" + " UNION SELECT 1" * 5_000, {TOO_COMPLEX}),
    "subqueries": ("SELECT * FROM " + "(SELECT * FROM " * 3_000 + "big" + ") x" * 3_000, {TOO_COMPLEX}),
    "joins": ("SELECT 1 FROM " + " CROSS JOIN ".join(f"big b{n}" for n in range(3_000)), {TOO_COMPLEX}),
    "cases": ("SELECT " + "CASE WHEN true THEN " * 3_000 + "1" + " END" * 3_000, {TOO_COMPLEX}),
    "a long statement": ("SELECT '" + "x" * 10_000_000 + "'", {TOO_COMPLEX}),
    "a long list": ("SELECT 1 WHERE 1 IN (" + ",".join(map(str, range(100_000))) + ")", {None}),
    "columns of a table": (f"CREATE TABLE wide ({', '.join(f'c{n} int' for n in range(1_601))})", {"54011"}),
    "columns of a result": ("SELECT " + ", ".join(["1"] * 1_665), {"54011"}),
    "a recursion": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
        {TIMEOUT, NO_MEMORY},
    ),
    "a recursion that doubles": (
        "WITH RECURSIVE t(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM t) SELECT max(length(s)) FROM t",
        {TOO_LARGE, NO_MEMORY},
    ),
    "a cross join": ("SELECT count(*) FROM big a, big b, big c WHERE a.b <> b.b", {TIMEOUT}),
    "a sorted cross join": ("SELECT a.s, b.s FROM big a, big b ORDER BY 1, 2, a.a", {TIMEOUT, NO_MEMORY}),
    "a sort": (
        "SELECT g FROM generate_series(1, 30000000) g ORDER BY g DESC OFFSET 29000000",
        {TIMEOUT, NO_MEMORY},
    ),
    "groups": (
        "SELECT g, count(*) FROM generate_series(1, 30000000) g GROUP BY g",
        {TIMEOUT, NO_MEMORY},
    ),
    "distinct rows": (
        "SELECT count(*) FROM (SELECT DISTINCT g FROM generate_series(1, 30000000) g) t",
        {TIMEOUT, NO_MEMORY},
    ),
    "a hash join": (
        "SELECT count(*) FROM generate_series(1, 30000000) a JOIN generate_series(1, 30000000) b ON a = b",
        {TIMEOUT, NO_MEMORY},
    ),
    "a window": ("SELECT sum(x) OVER (ORDER BY x) FROM generate_series(1, 30000000) x", {TIMEOUT, NO_MEMORY}),
    "texts put together": (
        "SELECT length(string_agg(repeat('x', 1000000), '')) FROM generate_series(1, 3000)",
        {NO_MEMORY},
    ),
    "texts put together in order": (
        "SELECT length(string_agg(repeat('x', 1000000), '' ORDER BY g)) FROM generate_series(1, 3000) g",
        {NO_MEMORY},
    ),
    "large rows among small ones": (
        "SELECT count(*) FROM (SELECT CASE WHEN g % 499 = 0 THEN repeat('x', 30000000) ELSE 'x' END AS s "
        "FROM generate_series(1, 100000) g ORDER BY s DESC OFFSET 0) t",
        {NO_MEMORY},
    ),
    "arrays put together": (
        "SELECT count(a) FROM (SELECT array_agg(g) AS a FROM generate_series(1, 30000000) g) t",
        {TIMEOUT, NO_MEMORY},
    ),
    "an object put together": (
        "SELECT length(jsonb_object_agg(g::text, g)::text) FROM generate_series(1, 30000000) g",
        {TIMEOUT, NO_MEMORY},
    ),
    "repeat": ("SELECT repeat('x', 1000000000)", {TOO_LARGE}),
    "lpad": ("SELECT lpad('x', 1000000000, 'ab')", {TOO_LARGE}),
    "||": ("SELECT length(repeat('x', 60000000) || repeat('x', 60000000))", {TOO_LARGE}),
    "concat": ("SELECT length(concat(repeat('x', 60000000), repeat('x', 60000000)))", {TOO_LARGE}),
    "json_build_array": (
        "SELECT json_build_array(repeat('x', 60000000), repeat('x', 60000000)) IS NULL",
        {TOO_LARGE},
    ),
    "json_build_object": (
        "SELECT json_build_object('a', repeat('x', 60000000), 'b', repeat('x', 60000000)) IS NULL",
        {TOO_LARGE},
    ),
    "format": ("SELECT length(format('%s%s', repeat('x', 60000000), repeat('x', 60000000)))", {TOO_LARGE}),
    "a wide format": ("SELECT length(format('%999999999s', 'x'))", {TOO_LARGE}),
    "replace": ("SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 1000)))", {TOO_LARGE}),
    "regexp_replace": (
        "SELECT length(regexp_replace(repeat('x', 1000000), 'x', repeat('y', 1000), 'g'))",
        {TOO_LARGE},
    ),
    "array_fill": ("SELECT array_fill(1, array[100000000])", {TOO_LARGE}),
    "array_to_string": (
        "SELECT length(array_to_string(array_fill(repeat('x', 1000), array[1000000]), ','))",
        {TOO_LARGE},
    ),
    "nested json": ("SELECT (repeat('[', 100000) || repeat(']', 100000))::jsonb", {TOO_COMPLEX}),
    "nested arrays": ("SELECT repeat('{', 10000)::int[]", {"22P02", TOO_LARGE}),
    "a power": ("SELECT 10::numeric ^ 200000", {OUT_OF_RANGE}),
    "a factorial": ("SELECT factorial(100000)", {OUT_OF_RANGE}),
    "an exponential": ("SELECT exp(100000::numeric)", {OUT_OF_RANGE}),
    "a product": ("SELECT 1e131071::numeric * 1e131071::numeric", {OUT_OF_RANGE}),
    "a regular expression's repeats": ("SELECT 'x' ~ '((a{1,100}){1,100}){1,100}'", {"2201B"}),
    "a regular expression's depth": ("SELECT 'x' ~ repeat('(', 10000)", {"2201B"}),
    "a regular expression that backtracks": ("SELECT repeat('a', 100000) || 'b' ~ '(a|aa)+$'", {None}),
    "another one": ("SELECT repeat('a', 100000) ~ '(a+)+b'", {None}),
    "LIKE": ("SELECT repeat('a', 100000) LIKE repeat('%a', 1000) || 'b'", {None}),
    "LIKE with single letters": ("SELECT repeat('a', 5000) LIKE repeat('%_', 2000) || 'b'", {None}),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_asking_too_much_is_a_clear_error(node: NodeProcess, neighbour: Neighbour, name: str) -> None:
    text, expected = STATEMENTS[name]
    before = node.resident_bytes()
    node.forget_peak()
    answered = neighbour.answers
    assert node.ask(text) in expected
    assert node.resident_bytes("VmHWM") - before < GROWTH_BYTES_MAX
    assert neighbour.error is None
    with node.connect() as client:
        assert client.execute("SELECT count(*) FROM big").fetchone() == (20_000,)
    assert neighbour.answers >= answered


def test_a_reader_who_stops_reading_costs_one_batch(node: NodeProcess, neighbour: Neighbour) -> None:
    node.forget_peak()
    before, answered = node.resident_bytes(), neighbour.answers
    client = node.connect()
    client.pgconn.send_query(b"SELECT repeat('x', 100000) FROM generate_series(1, 1000000000000)")
    with node.connect() as other:
        for _ in range(50):
            other.execute("SELECT count(*) FROM big").fetchone()
    assert node.resident_bytes("VmHWM") - before < 128 * MIB
    assert neighbour.answers > answered
    client.close()


def test_the_nodes_session_is_extended_under_load(node: NodeProcess) -> None:
    """Heartbeats come every five seconds by default; a statement computes for more than that."""
    extended = "SELECT max(expiration) FROM system.sqlliveness"
    with node.connect() as client:
        before = client.execute(extended).fetchone()
        assert node.ask("SELECT count(*) FROM big a, big b, big c WHERE a.b <> b.b", seconds=8) == TIMEOUT
        after = client.execute(extended).fetchone()
    assert before is not None
    assert after is not None
    assert after > before


def test_two_hundred_clients_are_served_at_once(node: NodeProcess) -> None:
    before = node.resident_bytes()
    clients: list[psycopg.Connection] = []
    try:
        for _ in range(200):
            clients.append(node.connect())
        for client in clients:
            assert client.execute("SELECT 1").fetchone() == (1,)
        assert node.resident_bytes() - before < 200 * MIB
    finally:
        for client in clients:
            client.close()


def test_a_result_that_is_large_is_written_beside_the_loop(node: NodeProcess, neighbour: Neighbour) -> None:
    answered = neighbour.answers
    many = "SELECT (SELECT array_agg(i) FROM generate_series(1, 100000) i) FROM generate_series(1, 20)"
    with node.connect() as client:
        assert len(client.execute(many).fetchall()) == 20
    assert neighbour.answers - answered >= 5


def test_a_parameter_that_is_large_is_read_beside_the_loop(node: NodeProcess, neighbour: Neighbour) -> None:
    answered = neighbour.answers
    with node.connect() as client:
        row = client.execute("SELECT cardinality(%s::int[])", [list(range(500_000))]).fetchone()
    assert row == (500_000,)
    assert neighbour.answers - answered >= 3
