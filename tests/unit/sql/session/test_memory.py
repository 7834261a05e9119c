"""What sessions hold in memory is charged while they hold it, and given back however it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.errors import OutOfMemory, StatementTimeout
from tenure.node import Node
from tenure.sql.text import parse
from tests.unit.sql.talking import Speaker, a_node, front_of

MIB = 1 << 20
ROWS = "SELECT g, repeat('x', 1000) || g FROM generate_series(1, 2000) g"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with a_node(Path(tmp_path_factory.mktemp("memory"))) as node:
        Speaker(node).run("CREATE TABLE things (id int PRIMARY KEY, name text)")
        yield node


@pytest.fixture
def speaker(node: Node) -> Iterator[Speaker]:
    speaker = Speaker(node)
    speaker.run("SET tenure.executor = 'rows'")
    yield speaker
    speaker.close()


def held(speaker: Speaker) -> int:
    return speaker.session.memory.account.held_bytes


def open_scrolled(speaker: Speaker, name: str = "c") -> None:
    speaker.run(f"DECLARE {name} SCROLL CURSOR FOR {ROWS}")
    speaker.run(f"MOVE ALL IN {name}")


@pytest.mark.parametrize("end", ["CLOSE c", "CLOSE ALL", "COMMIT", "ROLLBACK", "ROLLBACK TO s"])
def test_the_rows_a_scroll_cursor_keeps_are_charged_until_it_is_closed(speaker: Speaker, end: str) -> None:
    speaker.run("BEGIN")
    speaker.run("SAVEPOINT s")
    open_scrolled(speaker)
    assert 2 * MIB < held(speaker) < 4 * MIB
    speaker.run(end)
    assert held(speaker) == 0


def test_a_cursor_from_before_a_savepoint_stays_charged(speaker: Speaker) -> None:
    speaker.run("BEGIN")
    open_scrolled(speaker, "first")
    before = held(speaker)
    speaker.run("SAVEPOINT s")
    open_scrolled(speaker, "second")
    speaker.run("ROLLBACK TO s")
    assert held(speaker) == before
    assert len(speaker.rows("FETCH BACKWARD 5 FROM first")) == 5


def test_the_rows_of_a_cursor_with_hold_outlive_its_transaction(speaker: Speaker) -> None:
    speaker.run("BEGIN")
    speaker.run(f"DECLARE c CURSOR WITH HOLD FOR {ROWS}")
    speaker.run("COMMIT")
    assert held(speaker) > 2 * MIB
    assert len(speaker.rows("FETCH ALL FROM c")) == 2000
    speaker.run("CLOSE c")
    assert held(speaker) == 0


def test_a_session_that_ends_gives_all_back(node: Node) -> None:
    memory = front_of(node).services.memory
    before = memory.node.held_bytes
    speaker = Speaker(node)
    speaker.run("BEGIN")
    open_scrolled(speaker)
    speaker.run("PREPARE p AS SELECT 1")
    assert memory.node.held_bytes > before + 2 * MIB
    speaker.close()
    assert memory.node.held_bytes == before


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT count(*) FROM ({ROWS} ORDER BY 2 OFFSET 0) t",
        f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({ROWS}) u) t",
        f"WITH w AS MATERIALIZED ({ROWS}) SELECT count(*) FROM w a, w b WHERE a.g = b.g",
        f"SELECT count(*) FROM ({ROWS}) a JOIN ({ROWS}) b USING (g)",
        "SELECT cardinality(ARRAY(SELECT repeat('x', 1000) || g FROM generate_series(1, 2000) g))",
        "SELECT count(a) FROM (SELECT array_agg(g) OVER (ORDER BY g) a FROM generate_series(1, 500) g) t",
        "SELECT count(*) FROM generate_series(1, 100) g WHERE repeat('x', 1000) || g IN "
        "(SELECT repeat('x', 1000) || h FROM generate_series(1, 2000) h)",
    ],
)
def test_what_a_statement_held_is_given_back_when_it_is_over(speaker: Speaker, text: str) -> None:
    speaker.run(text)
    account = speaker.session.memory.account
    assert account.held_bytes == 0
    assert account.peak_bytes > 0


@pytest.mark.parametrize("limit", ["", "LIMIT 3"])
def test_what_an_error_leaves_behind_is_given_back(speaker: Speaker, limit: str) -> None:
    speaker.run("BEGIN")
    with pytest.raises(Exception, match="division by zero"):
        speaker.run(f"SELECT 1 / (g - 1500) FROM ({ROWS} ORDER BY 1) t {limit} OFFSET 1499")
    speaker.run("ROLLBACK")
    assert held(speaker) == 0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT repeat('x', 1000000) || g FROM generate_series(1, 1000) g ORDER BY 1",
        "SELECT string_agg(repeat('x', 100000), '') FROM generate_series(1, 10000)",
        "SELECT array_agg(repeat('x', 1000) || g) FROM generate_series(1, 1000000) g",
        "SELECT jsonb_agg_strict(g) FROM generate_series(1, 3000000) g",
        "SELECT ('[' || repeat('1.5,', 5000000) || '1]')::jsonb",
        "SELECT string_to_array(repeat('ab,', 6000000), ',')",
        "SELECT ARRAY(SELECT repeat('x', 1000) || g FROM generate_series(1, 1000000) g)",
        "SELECT count(*) FROM (SELECT array_agg(g) OVER (ORDER BY g) FROM generate_series(1, 20000) g) t",
    ],
)
def test_a_statement_that_wants_too_much_is_refused(speaker: Speaker, text: str) -> None:
    with pytest.raises(OutOfMemory) as caught:
        speaker.run(text)
    assert "sql.query_memory" in caught.value.hint
    del caught  # its traceback refers to this frame: the rows would stay until a garbage collection
    assert held(speaker) == 0


def test_large_values_that_are_gone_at_once_are_no_reason_to_refuse(speaker: Speaker) -> None:
    text = "SELECT sum(length(repeat('x', 5000000))) FROM generate_series(1, 200)"
    assert speaker.rows(text) == [(1_000_000_000,)]


def test_prepared_statements_are_charged_until_they_are_deallocated(speaker: Speaker) -> None:
    speaker.run("PREPARE p AS SELECT 1")
    short = held(speaker)
    assert 0 < short < 10_000
    numbers = ", ".join(map(str, range(10_000)))
    speaker.run(f"PREPARE q AS SELECT 1 WHERE 1 IN ({numbers})")
    assert held(speaker) > MIB
    speaker.run("DEALLOCATE q")
    assert held(speaker) == short
    speaker.run("DEALLOCATE ALL")
    assert held(speaker) == 0


def test_a_long_text_to_be_prepared_is_not_planned_on_the_loop(speaker: Speaker) -> None:
    numbers = ", ".join(map(str, range(5_000)))
    tries: list[bool] = []
    make = speaker.session.preparing.make

    def noted(text: str, types: tuple[object, ...] = ()) -> object:
        tries.append(speaker.session.state.is_inline)
        return make(text, ())

    speaker.session.preparing.make = noted  # type: ignore[method-assign,assignment]
    speaker.run(f"PREPARE p AS SELECT 1 WHERE 1 IN ({numbers})", inline=True)
    assert tries == [False, False]


def test_the_tokens_of_a_long_text_go_when_it_is_planned(speaker: Speaker) -> None:
    numbers = ", ".join(map(str, range(5_000)))
    speaker.run(f"SELECT 1 WHERE 1 IN ({numbers})")
    assert parse._long_tokens.cache_info().currsize == 0


def test_a_long_text_is_charged_while_it_is_planned(speaker: Speaker) -> None:
    numbers = ", ".join(map(str, range(20_000)))
    speaker.run(f"SELECT 1 WHERE 1 IN ({numbers})")
    assert speaker.session.memory.account.peak_bytes > 20 * MIB
    assert held(speaker) < 20 * MIB


def test_a_very_long_text_waits_for_its_turn_and_can_be_canceled(node: Node, speaker: Speaker) -> None:
    turn = front_of(node).services.memory.planning
    assert turn.take()
    numbers = ", ".join(map(str, range(10_000)))
    speaker.run("SET statement_timeout = '50ms'")
    with pytest.raises(StatementTimeout):
        speaker.run(f"SELECT 1 WHERE 1 IN ({numbers})")
    turn.give()
    speaker.run("RESET statement_timeout")
    assert speaker.rows(f"SELECT 1 WHERE 1 IN ({numbers})") == [(1,)]


def test_buffers_between_a_session_and_its_client_are_charged(speaker: Speaker) -> None:
    memory = speaker.session.memory
    memory.receive(MIB)
    memory.leave_unsent(2 * MIB)
    assert held(speaker) == 3 * MIB
    memory.leave_unsent(0)
    memory.receive(0)
    assert held(speaker) == 0


def test_show_memory_tells_who_holds_how_much(speaker: Speaker) -> None:
    speaker.run("BEGIN")
    open_scrolled(speaker)
    rows = speaker.rows("SHOW MEMORY")
    levels = [row[0] for row in rows if row[0] != "session"]
    assert levels == ["bulk work", "columns", "duckdb", "node", "user"]
    number = speaker.session.state.number
    (own,) = [row for row in rows if row[2] == number]
    assert own[1] == "root"
    assert own[3] > 2 * MIB
    assert own[6] == "sql.session_memory"
    (node_row,) = [row for row in rows if row[0] == "node"]
    assert node_row[3] > 2 * MIB
    assert node_row[7] > node_row[3]


def fill(speaker: Speaker, first: int, size: int = 100_000, rows: int = 10) -> None:
    last = first + rows - 1
    speaker.run(f"INSERT INTO things SELECT g, repeat('x', {size}) FROM generate_series({first}, {last}) g")


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_what_a_transaction_has_written_is_charged_until_it_ends(speaker: Speaker, end: str) -> None:
    speaker.run("BEGIN")
    fill(speaker, 1000)
    assert 0.7 * MIB < held(speaker) < 2 * MIB
    speaker.run(end)
    assert held(speaker) == 0
    speaker.run("DELETE FROM things WHERE id >= 1000")


def test_what_a_savepoint_keeps_is_charged_until_it_is_gone_back_to(speaker: Speaker) -> None:
    speaker.run("BEGIN")
    fill(speaker, 2000)
    before = held(speaker)
    speaker.run("SAVEPOINT s")
    for number in range(5):
        speaker.run(f"SAVEPOINT s{number}")
        speaker.run("UPDATE things SET name = name || '.' WHERE id >= 2000")
    assert held(speaker) > before + 3 * MIB, "each savepoint keeps the rows as they were"
    speaker.run("ROLLBACK TO s")
    assert held(speaker) < before + MIB
    speaker.run("ROLLBACK")
    assert held(speaker) == 0


def test_a_transaction_that_writes_too_much_for_its_session_is_refused(node: Node) -> None:
    speaker = Speaker(node)
    speaker.run("SET CLUSTER SETTING sql.session_memory = 8388608")
    try:
        speaker.run("BEGIN")
        with pytest.raises(OutOfMemory, match="what the transaction has written"):
            fill(speaker, 3000, size=50_000, rows=1000)
        speaker.run("ROLLBACK")
        assert held(speaker) == 0
    finally:
        speaker.run("RESET CLUSTER SETTING sql.session_memory")
        speaker.close()
