"""Clients with encodings and time zones of their own: converted, and PostgreSQL says the same."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tenure.node import Node
from tests.postgres_server import Server

Outcome = object
Talk = Callable[["psycopg.Connection[Any]"], Outcome]


class Both:
    """A connection to a node, and one to PostgreSQL."""

    def __init__(self, lone: Node, server: Server, undo: ExitStack) -> None:
        assert lone.front is not None
        self.addresses = (
            f"host={lone.front.host} port={lone.front.port} user=root dbname=defaultdb",
            server.dsn,
        )
        self._undo = undo

    def agree(self, talk: Talk, **options: Any) -> Outcome:
        """What both answer."""
        ours, theirs = (self._ask(address, talk, options) for address in self.addresses)
        assert ours == theirs
        return ours

    def _ask(self, address: str, talk: Talk, options: dict[str, Any]) -> Outcome:
        with psycopg.connect(address, autocommit=True, **options) as connection:
            connection.execute(
                "CREATE TEMPORARY TABLE words (id int PRIMARY KEY, word text, more text[], js jsonb)"
            )
            try:
                return talk(connection)
            except psycopg.Error as error:
                return error.sqlstate, error.diag.message_primary


@pytest.fixture
def both(lone: Node, postgres: Server) -> Iterator[Both]:
    with ExitStack() as undo:
        yield Both(lone, postgres, undo)


def shown(connection: "psycopg.Connection[Any]", text: str) -> object:
    found = connection.execute(sql.SQL(text)).fetchone()
    assert found is not None
    return found[0] if len(found) == 1 else found


@pytest.mark.parametrize(
    "name",
    ["utf-8", "UTF_8", "utf8", "unicode", "latin1", "LATIN-1", "iso8859-1", "win1252", "sql_ascii", "koi8"],
)
def test_names_of_encodings_are_read_as_postgresql_reads_them(both: Both, name: str) -> None:
    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        connection.execute(f"SET client_encoding = '{name}'")
        return connection.pgconn.parameter_status(b"client_encoding"), shown(
            connection, "SHOW client_encoding"
        )

    assert isinstance(both.agree(talk), tuple)


def test_an_unknown_encoding_is_refused(both: Both) -> None:
    assert both.agree(lambda each: each.execute("SET NAMES 'klingon'")) == (
        "22023",
        'invalid value for parameter "client_encoding": "klingon"',
    )


@pytest.mark.parametrize("is_binary", [False, True])
@pytest.mark.parametrize("encoding", ["latin1", "win1252", "sql_ascii", "utf8", "koi8r"])
def test_values_come_and_go_in_the_clients_encoding(both: Both, encoding: str, is_binary: bool) -> None:
    word = "пир" if encoding == "koi8r" else "café"

    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        raw = word.encode("utf8" if encoding == "sql_ascii" else connection.info.encoding)
        execute = connection.pgconn.exec_params
        done = execute(
            b"INSERT INTO words VALUES (1, $1, ARRAY[$1], to_jsonb($1::text)) RETURNING *",
            [raw],
            param_types=[25],
            param_formats=[is_binary],
            result_format=int(is_binary),
        )
        stored = shown(connection, "SELECT convert_to(word, 'UTF8') FROM words")
        return done.error_message, [done.get_value(0, column) for column in range(done.nfields)], stored

    outcome = both.agree(talk, client_encoding=encoding)
    assert isinstance(outcome, tuple)
    assert outcome[2] == word.encode()


def test_names_and_literals_of_a_query_string_are_converted(both: Both) -> None:
    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        found = connection.pgconn.exec_("SELECT 'grün' AS straße".encode("latin1"))
        return found.fname(0), found.get_value(0, 0)

    assert both.agree(talk, client_encoding="latin1") == (b"stra\xdfe", b"gr\xfcn")


def test_positions_and_words_of_errors_are_converted(both: Both) -> None:
    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        done = connection.pgconn.exec_("SELECT 'äöü', fehlt_ß".encode("latin1"))
        field = psycopg.pq.DiagnosticField
        return done.error_field(field.MESSAGE_PRIMARY), done.error_field(field.STATEMENT_POSITION)

    assert both.agree(talk, client_encoding="latin1") == (b'column "fehlt_\xdf" does not exist', b"15")


def test_a_character_that_the_client_does_not_have_is_an_error_and_nothing_is_written(both: Both) -> None:
    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        answers = []
        for text in ("SELECT U&'\\20ac'", "INSERT INTO words VALUES (1, U&'\\20ac') RETURNING word"):
            with pytest.raises(psycopg.errors.UntranslatableCharacter) as caught:
                connection.execute(text)
            answers.append(caught.value.diag.message_primary)
        return answers, shown(connection, "SELECT count(*) FROM words")

    message = (
        'character with byte sequence 0xe2 0x82 0xac in encoding "UTF8" '
        'has no equivalent in encoding "LATIN1"'
    )
    assert both.agree(talk, client_encoding="latin1") == ([message, message], 0)


@pytest.mark.parametrize("raw", [b"SELECT '\x81'", b"SELECT '\xff\xfe'"])
@pytest.mark.parametrize("encoding", ["win1252", "utf8", "sql_ascii"])
def test_bytes_that_are_no_text_are_refused(both: Both, encoding: str, raw: bytes) -> None:
    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        done = connection.pgconn.exec_(raw)
        fields = psycopg.pq.DiagnosticField
        return done.error_field(fields.SQLSTATE), done.error_field(fields.MESSAGE_PRIMARY)

    both.agree(talk, client_encoding=encoding)


def test_an_encoding_ends_with_the_transaction_that_set_it(both: Both) -> None:
    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        with connection.transaction():
            connection.execute("SET LOCAL client_encoding = latin1")
            inside = connection.pgconn.exec_(b"SELECT 'h\xf6r'").get_value(0, 0)
        return inside, connection.pgconn.exec_("SELECT 'hör'".encode()).get_value(0, 0)

    assert both.agree(talk) == (b"h\xf6r", "hör".encode())


@pytest.mark.parametrize("options", ["", "(FORMAT csv)", "(ENCODING 'win1252')", "(FORMAT binary)"])
def test_copy_is_converted_by_its_option_or_the_clients_encoding(both: Both, options: str) -> None:
    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        connection.execute("INSERT INTO words (id, word) VALUES (1, 'naïve'), (2, 'brûlée')")
        with connection.cursor().copy(f"COPY words (id, word) TO STDOUT {options}") as copy:
            data = b"".join(bytes(each) for each in copy)
        connection.execute("DELETE FROM words")
        with connection.cursor().copy(f"COPY words (id, word) FROM STDIN {options}") as copy:
            copy.write(data)
        return data, connection.execute("SELECT id, word FROM words ORDER BY id").fetchall()

    outcome = both.agree(talk, client_encoding="latin1")
    assert isinstance(outcome, tuple)
    assert outcome[1] == [(1, "naïve"), (2, "brûlée")]


def test_copy_in_an_unknown_encoding_is_refused(both: Both) -> None:
    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        with connection.cursor().copy("COPY words TO STDOUT (ENCODING 'klingon')") as copy:
            return list(copy)

    assert both.agree(talk) == ("22023", 'argument to option "encoding" must be a valid encoding name')


@pytest.mark.parametrize(
    "zone",
    [
        *("'+02'", "-3", "5.5", "'5.5'", "'+02:30'", "'utc+3'", "0", "'1e1'", "'GMT-02:00'", "'  2'"),
        *("INTERVAL '+02:00' HOUR TO MINUTE", "INTERVAL '-08:00'", "INTERVAL '1:30:15'", "INTERVAL '1 day'"),
        *("'foo'", "'170'", "'EST5'", "'<+02>-02'", "15.99999", "'europe/berlin'"),
    ],
)
def test_time_zones_of_sessions_may_be_offsets(both: Both, zone: str) -> None:
    def talk(connection: "psycopg.Connection[Any]") -> Outcome:
        connection.execute(f"SET TIME ZONE {zone}")
        at = "'2020-07-01 22:00Z'::timestamptz"
        parts = f"{at}::text, to_char({at}, 'DD HH24:MI TZ OF'), date_trunc('day', {at})::text"
        read = "'2020-01-01'::timestamptz - '2020-01-01Z'"
        return shown(connection, "SHOW TimeZone"), shown(connection, f"SELECT {parts}, {read}")

    both.agree(talk)
