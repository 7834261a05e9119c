"""What runs on the door's loop is cheap by proof; everything else leaves it, before any lasting effect."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest

from tenure.node import Node
from tenure.sql.session import inline
from tenure.sql.session.answers import Answer, NotShort
from tenure.table.rows import Layout
from tests.unit.sql.talking import Speaker


@pytest.fixture
def one(node: Node, request: pytest.FixtureRequest) -> Iterator[Speaker]:
    """In a schema of its own."""
    speaker = Speaker(node)
    schema = f"s{abs(hash(request.node.nodeid))}"
    speaker.run(f"CREATE SCHEMA {schema}")
    speaker.run(f"SET search_path = {schema}")
    speaker.run("CREATE TABLE t (id int PRIMARY KEY, name text, price numeric, doc jsonb, code text UNIQUE)")
    speaker.run("INSERT INTO t VALUES (1, 'one', 1.5, '{\"a\": 1}', 'c1'), (2, 'two', 2.5, '[]', 'c2')")
    yield speaker
    speaker.close()


def is_short(speaker: Speaker, text: str) -> bool:
    session = speaker.session
    prepared = session.prepare("", text, ())
    session.bind("", "", [None] * len(prepared.parameters), inline=True)
    return session.portal("").is_short


SHORT = (
    "SELECT name FROM t WHERE id = 1",
    "SELECT lower(name) || '!', price + 1, doc ->> 'a', now(), id::text FROM t WHERE id = $1",
    "SELECT CASE WHEN name IS NULL THEN 0 ELSE length(name) END FROM t WHERE code = 'c1'",
    "SELECT * FROM t WHERE id IN (1, 2, 3) AND name <> ''",
    "INSERT INTO t VALUES ($1, $2, $3, $4, $5)",
    "INSERT INTO t (id, name) VALUES (3, upper('x')) RETURNING id, name || '!'",
    "INSERT INTO t (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name || t.name",
    "UPDATE t SET price = price + $1 WHERE id = 1",
    "DELETE FROM t WHERE id = 1 AND price < 3",
)
LONG = (
    "SELECT repeat('a', 60000) LIKE '%a%a%a%b' FROM t WHERE id = 1",
    "SELECT name FROM t WHERE id = 1 AND name LIKE $1",
    "SELECT name FROM t WHERE id = 1 AND name ~ 'a+b'",
    "SELECT price / 3 FROM t WHERE id = 1",
    "SELECT name FROM t WHERE id = length(repeat('a', 60000))",
    "SELECT name FROM t WHERE id = 1 ORDER BY md5(name)",
    "SELECT name FROM t WHERE id = 1 LIMIT length(repeat('a', 60000))",
    "SELECT name FROM t WHERE id = ANY ($1)",
    f"SELECT name FROM t WHERE id IN ({', '.join(map(str, range(50)))})",
    f"SELECT {' || '.join(['name'] * 60)} FROM t WHERE id = 1",
    "INSERT INTO t (id, name) VALUES (3, repeat('a', 60000))",
    "INSERT INTO t (id, name) VALUES (3, 'x') RETURNING repeat(name, 60000)",
    "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = repeat('a', 60000)",
    "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = '' WHERE t.name LIKE '%a%b'",
    "UPDATE t SET name = repeat('a', 60000) WHERE id = 1",
    "UPDATE t SET name = '' WHERE id = 1 AND name LIKE '%a%b'",
    "DELETE FROM t WHERE id = 1 RETURNING repeat(name, 60000)",
)


@pytest.mark.parametrize("text", SHORT)
def test_ordinary_lookups_and_writes_stay_on_the_loop(one: Speaker, text: str) -> None:
    assert is_short(one, text)


@pytest.mark.parametrize("text", LONG)
def test_what_is_not_on_the_list_leaves_the_loop(one: Speaker, text: str) -> None:
    assert not is_short(one, text)


@pytest.mark.parametrize(
    "element",
    [
        "v text DEFAULT repeat('a', 60000)",
        "v text GENERATED ALWAYS AS (repeat(name, 60000)) STORED",
        "CHECK (name NOT LIKE '%a%a%b')",
    ],
)
def test_what_the_table_evaluates_by_itself_counts(one: Speaker, element: str) -> None:
    one.run(f"CREATE TABLE own (id int PRIMARY KEY, name text, {element})")
    assert not is_short(one, "INSERT INTO own (id, name) VALUES (1, 'x')")
    assert not is_short(one, "UPDATE own SET name = 'y' WHERE id = 1")


def test_the_condition_of_a_partial_index_counts(one: Speaker) -> None:
    one.run("CREATE INDEX few ON t (name) WHERE name LIKE '%a%b'")
    assert not is_short(one, "INSERT INTO t (id, name) VALUES (3, 'x')")
    assert not is_short(one, "DELETE FROM t WHERE id = 1")
    assert is_short(one, "SELECT name FROM t WHERE id = 1")


def test_rows_that_others_refer_to_are_not_deleted_on_the_loop(one: Speaker) -> None:
    """A cascade may have any number of rows."""
    one.run("CREATE TABLE child (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE)")
    assert not is_short(one, "DELETE FROM t WHERE id = 1")
    assert not is_short(one, "UPDATE t SET id = 9 WHERE id = 1")
    assert is_short(one, "UPDATE t SET name = 'x' WHERE id = 1")
    assert is_short(one, "INSERT INTO child VALUES (1, 1)")


def test_many_entries_of_indexes_leave_the_loop(one: Speaker) -> None:
    columns = [f"c{at} int" for at in range(20)]
    one.run(f"CREATE TABLE wide (id int PRIMARY KEY, {', '.join(columns)})")
    for at in range(20):
        one.run(f"CREATE INDEX ON wide (c{at})")
    assert is_short(one, "INSERT INTO wide (id) VALUES (1), (2), (3)")
    assert not is_short(one, f"INSERT INTO wide (id) VALUES {', '.join(f'({at})' for at in range(15))}")


def test_arguments_of_execute_count(one: Speaker) -> None:
    one.run("PREPARE find (text) AS SELECT id FROM t WHERE code = $1")
    assert is_short(one, "EXECUTE find('c1')")
    assert not is_short(one, "EXECUTE find(repeat('a', 60000))")


def test_constants_of_a_long_text_are_not_given_to_the_loop(one: Speaker) -> None:
    assert not is_short(one, f"INSERT INTO t (id, name) VALUES (3, '{'x' * inline.INPUT_BYTES_MAX}')")


def test_what_is_bound_in_a_thread_runs_in_one(one: Speaker) -> None:
    one.session.prepare("", "SELECT name FROM t WHERE id = $1", ())
    one.session.bind("", "", [1], inline=True)
    assert one.session.portal("").is_short
    one.session.bind("", "", [1])
    assert not one.session.portal("").is_short


def test_a_statement_that_is_planned_again_leaves_the_loop_if_its_table_is_dearer_now(one: Speaker) -> None:
    session = one.session
    session.prepare("add", "INSERT INTO t (id, name) VALUES ($1, 'x')", ())
    one.run("ALTER TABLE t ADD CHECK (name NOT LIKE '%a%a%b')")
    session.bind("", "add", [7], inline=True)
    with pytest.raises(NotShort):
        session.execute("", ends=True, inline=True)
    assert one.rows("SELECT id FROM t WHERE id = 7") == []


LARGE = "x" * (inline.ROWS_BYTES_MAX + 1)


def executed(speaker: Speaker, text: str, values: Sequence[Any] = (), limit: int = 0) -> Answer:
    """On the loop or, if it leaves that, in a thread."""
    session = speaker.session
    session.prepare("", text, ())
    session.bind("", "", values, inline=True)
    assert session.portal("").is_short
    with pytest.raises(NotShort):
        session.execute("", limit, ends=session.state.block is None, inline=True)
    answer = speaker.settled(session.execute("", limit, ends=session.state.block is None))
    assert answer is not None
    return answer


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize(
    ("text", "gives"),
    [
        ("SELECT length(name) FROM t WHERE id = 3", [(len(LARGE),)]),
        ("SELECT length(name) FROM t WHERE code = 'c3'", [(len(LARGE),)]),
        ("SELECT id FROM t WHERE id IN (1, 2, 3)", [(1,), (2,), (3,)]),
        ("UPDATE t SET price = 1 WHERE id = 3 RETURNING price", [(Decimal(1),)]),
        ("DELETE FROM t WHERE id = 3 RETURNING id", [(3,)]),
        (
            "INSERT INTO t (id) VALUES (3) ON CONFLICT (id) DO UPDATE SET price = 2 RETURNING t.price",
            [(Decimal(2),)],
        ),
    ],
)
def test_large_rows_leave_the_loop_and_are_found_in_a_thread(
    one: Speaker, block: bool, text: str, gives: list[tuple[Any, ...]]
) -> None:
    one.run("INSERT INTO t (id, name, code) VALUES (3, $1, 'c3')", [LARGE])
    if block:
        one.run("BEGIN")
        one.run("SAVEPOINT here")
    assert [tuple(row) for row in executed(one, text).rows] == gives
    if block:
        one.run("COMMIT")
    assert one.rows("SELECT count(*) FROM t") == [(2 if text.startswith("DELETE") else 3,)]


def test_rows_that_are_fetched_in_parts_are_all_there_before_the_first_is_given(one: Speaker) -> None:
    one.run("INSERT INTO t (id, name) VALUES (3, $1)", [LARGE])
    one.run("BEGIN")
    assert [tuple(row) for row in executed(one, "SELECT id FROM t WHERE id IN (1, 2, 3)", limit=1).rows] == [
        (1,)
    ]
    rest = one.session.execute("", 0, ends=False)
    assert isinstance(rest, Answer) and [tuple(row) for row in rest.rows] == [(2,), (3,)]
    one.run("ROLLBACK")


def test_many_rows_that_are_small_count_together(one: Speaker) -> None:
    half = "x" * (inline.ROWS_BYTES_MAX // 2)
    one.run("INSERT INTO t (id, name) VALUES (3, $1), (4, $1), (5, $1)", [half])
    assert len(executed(one, "SELECT id FROM t WHERE id IN (3, 4, 5)").rows) == 3


def test_a_large_row_that_a_foreign_key_leads_to_is_not_decoded(
    one: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.run("INSERT INTO t (id, name, code) VALUES (3, $1, 'c3')", [LARGE])
    one.run("CREATE TABLE child (id int PRIMARY KEY, code text REFERENCES t (code))")
    seen: list[str] = []
    row = Layout.row

    def watched(self: Layout, *arguments: Any) -> Any:
        seen.append(self.table.name)
        return row(self, *arguments)

    monkeypatch.setattr(Layout, "row", watched)
    one.run("INSERT INTO child VALUES (1, 'c3')", inline=True)
    assert one.rows("SELECT code FROM child") == [("c3",)]
    assert seen.count("t") == 0
