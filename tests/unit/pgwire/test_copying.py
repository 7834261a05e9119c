"""COPY between a client and its session."""

from tests.unit.pgwire.wire import FLUSH, SYNC, bind, describe, execute, message, opened, parse, query

DATA = message("d", b"4\td\n")
DONE = message("c")
COPY_IN = "copy t from stdin"


def test_copy_out_sends_a_message_for_each_row() -> None:
    talk = opened()
    assert talk.say(query("copy t to stdout")) == "H d d d c C:COPY 3 Z:I"
    assert [each.body for each in talk.last if each.kind == "d"] == talk.toys.table
    assert talk.last[0].body == b"\0\0\2\0\0\0\0"


def test_copy_out_works_in_extended_mode() -> None:
    said = opened().say(parse("copy t to stdout"), bind(), describe("P"), execute(), SYNC)
    assert said == "1 2 n H d d d c C:COPY 3 Z:I"


def test_copy_in_takes_data_in_pieces() -> None:
    talk = opened()
    assert talk.say(query(COPY_IN)) == "G"
    assert talk.say(message("d", b"4\t"), message("d", b"d\n5\te\n")) == ""
    assert talk.say(DONE) == "C:COPY 2 Z:I"
    assert talk.toys.table[3:] == [b"4\td\n", b"5\te\n"]


def test_messages_of_a_copy_that_come_together_are_taken_together() -> None:
    talk = opened()
    talk.say(query(COPY_IN))
    rows = b"".join(message("d", b"%d\td\n" % number) for number in range(4, 40))
    assert talk.say(rows[:-3]) == ""
    assert talk.say(rows[-3:] + FLUSH + DATA + DONE) == "C:COPY 37 Z:I"
    assert len(talk.toys.table) == 40


def test_a_length_that_cannot_be_ends_the_connection_amid_a_copy() -> None:
    talk = opened()
    talk.say(query(COPY_IN))
    assert talk.say(DATA + b"d\0\0\0\1") == "E:08P01"
    assert talk.error["M"] == "invalid message length"


def test_copy_in_goes_on_with_the_query_string() -> None:
    talk = opened()
    assert talk.say(query(f"{COPY_IN}; select 1")) == "G"
    assert talk.say(DATA, DONE) == "C:COPY 1 T D C:SELECT 1 Z:I"


def test_copy_in_works_in_extended_mode_and_passes_over_sync() -> None:
    talk = opened()
    assert talk.say(parse(COPY_IN), bind(), execute(), SYNC) == "1 2 G"
    assert talk.say(FLUSH, DATA, DONE) == "C:COPY 1"
    assert talk.say(SYNC) == "Z:I"


def test_a_client_can_give_up() -> None:
    talk = opened()
    talk.say(query(COPY_IN))
    assert talk.say(DATA, message("f", b"changed my mind\0")) == "E:57014 Z:I"
    assert talk.error["M"] == "COPY from stdin failed: changed my mind"
    assert len(talk.toys.table) == 3


def test_bad_data_ends_the_copy_and_the_rest_of_it_is_passed_over() -> None:
    talk = opened()
    talk.say(query(COPY_IN))
    assert talk.say(message("d", b"bad\n"), DONE) == "E:22P02 Z:I"
    assert talk.say(DATA, DONE, query("select 1")) == "T D C:SELECT 1 Z:I"


def test_bad_data_in_extended_mode_skips_to_sync() -> None:
    talk = opened()
    talk.say(parse(COPY_IN), bind(), execute())
    assert talk.say(message("d", b"bad\n"), DONE) == "E:22P02"
    assert talk.say(DATA, DONE, SYNC) == "Z:I"


def test_another_message_ends_the_copy() -> None:
    talk = opened()
    talk.say(query(COPY_IN))
    assert talk.say(query("select 1")) == "E:08P01 Z:I"
    assert talk.say(query("select 1")) == "T D C:SELECT 1 Z:I"


def test_much_data_is_handed_on_before_the_end() -> None:
    talk = opened()
    talk.say(query(COPY_IN))
    talk.connection.receive(message("d", b"5\te\n" * 70_000))
    assert talk.connection.is_blocked
    assert talk.say(DONE) == "C:COPY 70000 Z:I"
