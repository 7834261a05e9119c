"""Messages in, answers out, as PostgreSQL gives them: no sockets."""

import pytest

from tenure.pgwire.waits import CommitWait, Need
from tests.unit.pgwire.toy import BATCH, ToyClient
from tests.unit.pgwire.wire import (
    FLUSH,
    SYNC,
    TERMINATE,
    bind,
    close,
    describe,
    execute,
    message,
    opened,
    parse,
    query,
)

SELECT = "select $1"
INT4_OID, UNKNOWN_OID, NO_SUCH_OID = 23, 705, 99


def test_a_simple_query_describes_its_rows_and_counts_them() -> None:
    talk = opened()
    assert talk.say(query("select 1")) == "T D C:SELECT 1 Z:I"
    assert talk.rows == [[b"1", "hällo".encode(), None]]


def test_statements_of_one_query_string_are_answered_one_by_one() -> None:
    assert opened().say(query("begin; select 1; commit")) == "C:BEGIN T D C:SELECT 1 C:COMMIT Z:I"


def test_only_the_last_statement_of_a_query_string_ends_the_transaction() -> None:
    talk = opened()
    talk.say(query("select 1; select 2; select 3"))
    assert talk.toys.log == ["select 1 ends=False", "select 2 ends=False", "select 3 ends=True"]


def test_an_error_ends_the_query_string() -> None:
    talk = opened()
    assert talk.say(query("select 1; fail; select 2")) == "T D C:SELECT 1 E:23505 Z:I"
    assert talk.toys.log[-1] == "failed"


def test_a_query_string_without_statements_is_empty() -> None:
    assert opened().say(query(" ; ")) == "I Z:I"


def test_an_empty_statement_can_be_prepared() -> None:
    assert opened().say(parse(""), bind(), execute(), SYNC) == "1 2 I Z:I"


def test_an_error_carries_every_field() -> None:
    talk = opened()
    talk.say(query("fail"))
    assert talk.error == {
        "S": "ERROR",
        "V": "ERROR",
        "C": "23505",
        "M": 'duplicate key value violates unique constraint "t_pkey"',
        "D": "Key (id)=(1) already exists.",
        "H": "Try another.",
        "P": "3",
        "s": "public",
        "t": "t",
        "c": "id",
        "n": "t_pkey",
        "F": "toy.py",
        "L": talk.error["L"],
        "R": "_answer",
    }
    assert talk.error["L"].isdigit()


def test_an_error_is_placed_in_the_whole_query_string() -> None:
    talk = opened()
    talk.say(query("select 1;  fail"))
    assert talk.error["P"] == str(len("select 1;  ") + 3)


def test_a_bug_is_told_as_one_and_the_session_goes_on() -> None:
    talk = opened()
    assert talk.say(query("crash")) == "E:XX000 Z:I"
    assert "a bug" not in talk.error["M"]
    assert talk.say(query("select 1")) == "T D C:SELECT 1 Z:I"


def test_an_extended_query_goes_step_by_step() -> None:
    talk = opened()
    assert talk.say(parse(SELECT, "s")) == "1"
    assert talk.say(describe("S", "s"), FLUSH) == "t T"
    assert talk.say(bind(b"41", statement="s"), describe("P")) == "2 T"
    assert talk.say(execute(), SYNC) == "D C:SELECT 1 Z:I"
    assert talk.rows[0][0] == b"42"


def test_a_statement_without_rows_is_described_as_such() -> None:
    assert opened().say(parse("begin"), bind(), describe("P"), describe("S"), SYNC) == "1 2 n t n Z:I"


def test_parameters_and_results_can_be_binary() -> None:
    talk = opened()
    value = (41).to_bytes(4, "big")
    talk.say(parse(SELECT), bind(value, formats=[1], results=[1, 0, 1]), execute(), SYNC)
    assert talk.rows == [[(42).to_bytes(4, "big"), "hällo".encode(), None]]


def test_one_format_counts_for_all() -> None:
    talk = opened()
    talk.say(parse(SELECT), bind(None, results=[1]), execute(), SYNC)
    assert talk.rows[0][0] == (1).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("wrong", "sqlstate"),
    [
        (bind(b"1", formats=[0, 1, 0]), "08P01"),
        (bind(b"1", results=[0, 1]), "08P01"),
        (bind(b"1", formats=[7]), "22023"),
        (bind(b"x"), "22P02"),
        (bind(b"1", b"2"), "08P01"),
        (bind(b"1", statement="none"), "26000"),
        (message("B", b"\0\0\0"), "08P01"),
        (message("B", b"no end"), "08P01"),
        (execute(portal="none"), "34000"),
        (message("E", b"\0"), "08P01"),
        (describe("S", "none"), "26000"),
        (describe("X"), "08P01"),
        (message("C", b"S"), "08P01"),
        (message("P", b"\xff\0\0\0\0"), "22021"),
        (parse("select 1", types=[NO_SUCH_OID]), "42704"),
    ],
)
def test_what_is_wrong_with_a_message_is_told_and_skipped(wrong: bytes, sqlstate: str) -> None:
    talk = opened()
    assert talk.say(parse(SELECT), wrong, execute(), SYNC) == f"1 E:{sqlstate} Z:I"


def test_parameters_of_unknown_type_are_left_to_the_statement() -> None:
    assert opened().say(parse(SELECT, types=[UNKNOWN_OID]), bind(b"1"), execute(), SYNC).endswith("Z:I")


@pytest.mark.invariant("skips-to-sync")
def test_after_an_error_nothing_is_executed_before_sync() -> None:
    talk = opened()
    said = talk.say(parse("fail"), bind(), execute(), parse("insert x"), bind(), execute(), query("insert y"))
    assert said == "1 2 E:23505"
    assert talk.say(SYNC) == "Z:I"
    assert "insert x ends=False" not in talk.toys.log
    assert talk.say(query("select 1")) == "T D C:SELECT 1 Z:I"


def test_execute_before_sync_ends_the_transaction() -> None:
    talk = opened()
    talk.say(
        parse(SELECT, "s"), bind(b"1", statement="s"), execute(), bind(b"2", statement="s"), execute(), SYNC
    )
    assert talk.toys.log == [f"{SELECT} ends=False", f"{SELECT} ends=True"]


@pytest.mark.invariant("commit-before-complete")
def test_a_statement_is_complete_only_when_its_commit_is_done() -> None:
    talk = opened()
    talk.connection.receive(parse("insert x") + bind() + execute() + SYNC)
    assert talk.connection.take_output() == b"1\0\0\0\x042\0\0\0\x04"
    talk.attend()
    assert talk.toys.log[-2:] == ["submitted", "committed"]
    assert talk.connection.take_output().startswith(b"C")


def test_a_commit_may_have_to_be_tried_again() -> None:
    talk = opened()
    assert talk.say(query("insert retried")) == "C:INSERT 0 1 Z:I"
    assert talk.toys.log[1:] == ["submitted", "submitted", "committed"]


def test_what_is_not_short_runs_in_a_thread() -> None:
    talk = opened()
    assert talk.say(query("select slowly")) == "T D C:SELECT 1 Z:I"
    assert talk.say(parse("select slowly"), bind(), execute(), SYNC) == "1 2 D C:SELECT 1 Z:I"
    assert talk.toys.log == ["select slowly ends=True"] * 2


def test_a_portal_gives_as_many_rows_as_asked_for() -> None:
    talk = opened()
    assert talk.say(parse("series 5"), bind(portal="p"), execute(2, "p")) == "1 2 D s"
    assert talk.rows == [[b"0"], [b"1"]]
    assert talk.say(execute(2, "p")) == "D s"
    assert talk.say(execute(2, "p"), SYNC) == "D C:SELECT 1 Z:I"


def test_a_limit_beyond_a_batch_takes_several() -> None:
    talk = opened()
    talk.say(parse(f"series {BATCH * 3}"), bind(), execute(BATCH * 2 + 1), SYNC)
    assert len(talk.rows) == BATCH * 2 + 1


def test_a_long_result_is_written_batch_by_batch() -> None:
    talk = opened()
    assert talk.say(query(f"series {BATCH * 3}")) == f"T D C:SELECT {BATCH * 3} Z:I"
    assert talk.toys.clients[0].batches_made == 3


@pytest.mark.invariant("reader-holds-one-batch")
def test_the_next_batch_is_made_when_the_last_one_was_taken() -> None:
    talk = opened()
    talk.connection.receive(query(f"series {BATCH * 3}"))
    talk.attend()
    assert talk.connection.wait is Need.FLUSH
    assert talk.toys.clients[0].batches_made == 1
    assert talk.connection.take_output().count(b"D\0\0\0") == BATCH


def test_a_query_string_of_many_statements_is_answered_in_parts() -> None:
    talk = opened()
    talk.connection.receive(query("select 1;" * 400))
    assert talk.connection.wait is Need.FLUSH
    assert len(talk.connection.take_output()) < 20_000
    talk.say()
    assert len(talk.toys.log) == 400


def test_closing_what_is_not_there_is_fine() -> None:
    assert opened().say(close("S", "none"), close("P", "none"), SYNC) == "3 3 Z:I"


def test_a_closed_statement_is_gone() -> None:
    talk = opened()
    assert talk.say(parse(SELECT, "s"), close("S", "s"), bind(b"1", statement="s"), SYNC) == "1 3 E:26000 Z:I"


def test_a_name_prepared_anew_is_described_anew() -> None:
    talk = opened()
    talk.say(parse(SELECT, "s"), bind(b"1", statement="s"), SYNC)
    talk.toys.clients[0].close_prepared("s")  # as DEALLOCATE does, which the door does not see
    talk.toys.clients[0].prepare("s", "series 1", ())
    assert talk.say(bind(statement="s"), describe("P"), execute(), SYNC) == "2 T D C:SELECT 1 Z:I"
    assert talk.rows == [[b"0"]]


def test_notices_come_before_the_answer() -> None:
    talk = opened()
    assert talk.say(query("notice")) == "N:01000 C:NOTICE Z:I"
    assert talk.last[0].fields["S"] == "WARNING"
    assert talk.last[0].fields["H"] == "there"


def test_changed_settings_are_reported() -> None:
    talk = opened()
    assert talk.say(query("set TimeZone UTC")) == "C:SET S Z:I"
    assert talk.last[1].body == b"TimeZone\0UTC\0"


def test_timestamps_follow_the_time_zone_at_once() -> None:
    talk = opened()
    instant, again = parse("select instant", "s"), [bind(statement="s"), execute(), SYNC]
    talk.say(instant, *again, query("set TimeZone Asia/Kolkata; select instant"), *again)
    assert [row[0] for row in talk.rows] == [
        b"2026-07-01 12:00:00+00",
        b"2026-07-01 17:30:00+05:30",
        b"2026-07-01 17:30:00+05:30",
    ]


def test_ready_tells_the_transaction() -> None:
    talk = opened()
    assert talk.say(query("begin")) == "C:BEGIN Z:T"
    assert talk.say(query("fail")) == "E:23505 Z:E"
    assert talk.say(query("select 1")) == "T E:25P02 Z:E"
    assert talk.say(query("commit")) == "C:ROLLBACK Z:I"


def test_function_calls_are_refused() -> None:
    assert opened().say(message("F", b"\0\0\0\1\0\0\0\0\0\0")) == "E:0A000 Z:I"


def test_pipelined_messages_are_all_answered() -> None:
    talk = opened()
    each = [bind(b"1", statement="s"), execute(), SYNC]
    assert talk.say(parse(SELECT, "s"), *each * 3) == "1" + " 2 D C:SELECT 1 Z:I" * 3


def test_messages_may_come_in_pieces_of_any_size() -> None:
    whole = b"".join([parse(SELECT), bind(b"41"), describe("P"), execute(), SYNC, query("series 3")])
    expected = opened().raw(whole)
    for size in (1, 2, 3, 7, 50):
        talk = opened()
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert b"".join(map(talk.raw, pieces)) == expected


def test_terminate_closes() -> None:
    talk = opened()
    assert talk.say(TERMINATE, query("select 1")) == ""
    assert talk.connection.is_closing


@pytest.mark.parametrize(
    "wrong", [b"?\0\0\0\4", b"\0\0\0\0\0", b"Q\0\0\0\3", b"Q\xff\xff\xff\xff", b"p\0\0\0\4"]
)
def test_what_is_no_message_is_fatal(wrong: bytes) -> None:
    talk = opened()
    assert talk.say(wrong) == "E:08P01"
    assert talk.error["S"] == "FATAL"
    assert talk.connection.is_closing


def test_what_comes_during_a_statement_waits_for_its_end() -> None:
    talk = opened()
    talk.connection.receive(query("select slowly"))
    talk.connection.receive(query("select 2"))
    talk.connection.receive(query("select 3"))
    assert talk.connection.take_output() == b""
    assert talk.say() == "T D C:SELECT 1 Z:I" + " T D C:SELECT 1 Z:I" * 2


def test_a_cancel_stops_what_waits_for_a_thread() -> None:
    talk = opened()
    talk.connection.receive(query("select slowly"))
    talk.connection.cancel()
    assert talk.say() == "E:57014 Z:I"
    assert talk.say(query("select slowly")) == "T D C:SELECT 1 Z:I"


@pytest.mark.parametrize(
    ("statement", "answer"), [("insert", "C:INSERT 0 1 Z:I"), ("insert returning", "T D C:INSERT 0 1 Z:I")]
)
def test_a_cancel_that_comes_after_the_commit_is_not_told(statement: str, answer: str) -> None:
    talk = opened()
    talk.connection.receive(query(statement))
    assert isinstance(talk.connection.wait, CommitWait)
    talk.attend()
    talk.connection.cancel()
    assert talk.say() == answer
    talk.connection.receive(query(statement))
    talk.connection.cancel()
    assert talk.say() == answer


def test_a_cancel_of_nothing_does_nothing() -> None:
    talk = opened()
    talk.connection.cancel()
    assert talk.say(query("select 1")) == "T D C:SELECT 1 Z:I"


def test_much_output_is_written_before_more_is_made() -> None:
    talk = opened()
    talk.say(parse("select 1", "s"))
    talk.connection.receive(describe("S", "s") * 10_000)
    assert talk.connection.is_blocked
    assert len(talk.connection.take_output()) < 200_000


def test_a_long_message_is_charged_from_its_head_until_it_is_dealt_with() -> None:
    talk = opened()
    client = talk.connection.client
    assert isinstance(client, ToyClient)
    data = query("select 1 -- " + "x" * 200_000)
    talk.connection.receive(data[:10])
    assert client.memory.received == [2 * (len(data) - 1)]
    assert talk.say(data[10:]) == "T D C:SELECT 1 Z:I"
    assert client.memory.received[-1] == 0
    assert talk.connection.buffered == 0


def test_a_message_for_which_there_is_no_room_ends_the_connection() -> None:
    talk = opened()
    client = talk.connection.client
    assert isinstance(client, ToyClient)
    client.memory.message_bytes_max = 100_000
    assert talk.say(query("select 1 -- " + "x" * 200_000)[:10]) == "E:53200"
    assert talk.connection.is_closing
