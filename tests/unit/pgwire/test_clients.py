"""PostgreSQL's own clients at the door: psycopg, with libpq below it, and psql."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from psycopg.pq import Format, TransactionStatus

from tenure.base.env import SystemEnv
from tenure.catalog.accounts.passwords import SALT_BYTES, parse_verifier, stored_password
from tenure.pgwire.login.scram import Scram, server_nonce
from tenure.pgwire.login.tls import load
from tenure.pgwire.server import Server
from tests.postgres_server import BIN
from tests.unit.pgwire.certificates import make_certificate
from tests.unit.pgwire.toy import LetIn, Toys

ROW = (1, "hällo", None)
PASSWORD = "correct horse"


@pytest.fixture
def toys() -> Toys:
    return Toys()


@pytest.fixture
def server(toys: Toys) -> Iterator[Server]:
    server = Server(toys, LetIn(), SystemEnv())
    server.start()
    yield server
    server.stop()


@pytest.fixture
def connection(server: Server) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        yield connection


def dsn(server: Server, **more: object) -> str:
    host, port = server.address
    said = {"host": host, "port": port, "user": "root", "dbname": "db", "sslmode": "disable", **more}
    return " ".join(f"{name}='{value}'" for name, value in said.items())


def psql(server: Server, *commands: str, text: str = "") -> subprocess.CompletedProcess[str]:
    said = [option for command in commands for option in ("-c", command)]
    return subprocess.run(
        [BIN / "psql", dsn(server), "-X", "-A", "-t", *said], input=text, capture_output=True, text=True
    )


def test_parameters_are_reported(connection: psycopg.Connection) -> None:
    assert connection.info.server_version == 180000
    assert connection.info.parameter_status("client_encoding") == "UTF8"


def test_settings_given_at_the_start_reach_the_session(server: Server, toys: Toys) -> None:
    with psycopg.connect(dsn(server, application_name="me", options="-c search_path=a")):
        options = toys.clients[0].options
        assert (options["application_name"], options["search_path"]) == ("me", "a")


@pytest.mark.parametrize("binary", [False, True])
def test_parameters_and_rows_in_both_formats(connection: psycopg.Connection, binary: bool) -> None:
    cursor = connection.cursor(binary=binary)
    assert cursor.execute("select %b" if binary else "select %t", (41,)).fetchall() == [(42, "hällo", None)]
    assert cursor.pgresult is not None
    assert cursor.pgresult.fformat(0) == (Format.BINARY if binary else Format.TEXT)


def test_rows_are_described(connection: psycopg.Connection) -> None:
    described = connection.execute("select 1").description
    assert described is not None
    assert [(each.name, each.type_code) for each in described] == [
        ("number", 23),
        ("label", 25),
        ("nothing", 25),
    ]


def test_a_statement_is_prepared_once(connection: psycopg.Connection, toys: Toys) -> None:
    for number in range(3):
        row = connection.execute("select %s", (number,), prepare=True).fetchone()
        assert row == (number + 1, "hällo", None)
    assert len(toys.clients[0]._statements) == 1


def test_a_transaction_has_its_status(connection: psycopg.Connection) -> None:
    with connection.transaction():
        connection.execute("select 1")
        inside = connection.info.transaction_status
    after = connection.info.transaction_status
    assert (inside, after) == (TransactionStatus.INTRANS, TransactionStatus.IDLE)


def test_a_pipeline_answers_in_order(connection: psycopg.Connection) -> None:
    with connection.pipeline():
        cursors = [connection.execute("select %s", (number,)) for number in range(50)]
    assert [cursor.fetchall()[0][0] for cursor in cursors] == list(range(1, 51))


def test_an_error_in_a_pipeline_aborts_up_to_its_sync(connection: psycopg.Connection, toys: Toys) -> None:
    def run() -> None:
        with connection.pipeline() as pipeline:
            connection.execute("fail")
            connection.execute("select 1")
            pipeline.sync()

    with pytest.raises(errors.UniqueViolation):
        run()
    assert "select 1 ends=False" not in toys.log
    assert "select 1 ends=True" not in toys.log
    assert connection.execute("select 1").fetchall() == [ROW]


def test_a_commit_in_a_pipeline_is_waited_for(connection: psycopg.Connection, toys: Toys) -> None:
    with connection.pipeline():
        tags = [connection.execute("insert retried") for _ in range(5)]
    assert [each.statusmessage for each in tags] == ["INSERT 0 1"] * 5
    assert toys.log.count("committed") == 5


def test_a_commit_that_cannot_begin_is_an_error(connection: psycopg.Connection) -> None:
    with pytest.raises(errors.ProgramLimitExceeded):
        connection.execute("insert refused")
    assert connection.execute("select 1").fetchall() == [ROW]


def test_errors_have_all_their_fields(connection: psycopg.Connection) -> None:
    with pytest.raises(errors.UniqueViolation) as caught:
        connection.execute("fail")
    found = caught.value.diag
    assert (found.schema_name, found.table_name, found.column_name) == ("public", "t", "id")
    assert (found.constraint_name, found.statement_position) == ("t_pkey", "3")
    assert (found.message_detail, found.message_hint) == ("Key (id)=(1) already exists.", "Try another.")


def test_notices_reach_the_client(connection: psycopg.Connection) -> None:
    heard: list[str | None] = []
    connection.add_notice_handler(lambda notice: heard.append(notice.message_primary))
    connection.execute("notice")
    assert heard == ["look"]


def test_a_changed_setting_reaches_the_client(connection: psycopg.Connection) -> None:
    connection.execute("set TimeZone UTC")
    assert connection.info.parameter_status("TimeZone") == "UTC"


def test_rows_can_be_streamed(connection: psycopg.Connection) -> None:
    cursor = connection.cursor()
    assert [row[0] for row in cursor.stream("series 1000")] == list(range(1000))


def test_copy_out_row_by_row(connection: psycopg.Connection) -> None:
    with connection.cursor().copy("copy t to stdout") as copy:
        assert list(copy.rows()) == [("1", "a"), ("2", "b"), ("3", "c")]


def test_copy_in_row_by_row(connection: psycopg.Connection, toys: Toys) -> None:
    cursor = connection.cursor()
    with cursor.copy("copy t from stdin") as copy:
        for number in range(20_000):
            copy.write_row((number, "x" * 20))
    assert cursor.statusmessage == "COPY 20000"
    assert len(toys.table) == 20_003


def test_copy_in_that_fails_on_either_side(connection: psycopg.Connection, toys: Toys) -> None:
    def copy_and(row: tuple[object, ...], failure: Exception | None) -> None:
        with connection.cursor().copy("copy t from stdin") as copy:
            copy.write_row(row)
            if failure:
                raise failure

    with pytest.raises(errors.InvalidTextRepresentation):
        copy_and((1, "bad"), None)
    with pytest.raises(ZeroDivisionError):
        copy_and((1, "good"), ZeroDivisionError())
    assert len(toys.table) == 3
    assert connection.execute("select 1").fetchall() == [ROW]


def test_psql_shows_tables_tags_and_errors(server: Server) -> None:
    done = psql(server, "select 1", "begin; notice; fail")
    assert done.stdout == "1|hällo|\nBEGIN\nNOTICE\n"
    assert "WARNING:  look\nHINT:  there" in done.stderr
    assert "ERROR:  duplicate key" in done.stderr
    assert "LINE 1: begin; notice; fail\n                         ^" in done.stderr


def test_psql_copies_in_and_out(server: Server) -> None:
    done = psql(server, text="copy t from stdin;\n4\td\n\\.\n\\copy t to stdout\n")
    assert done.stdout == "COPY 1\n1\ta\n2\tb\n3\tc\n4\td\n"


def test_psql_fetches_by_portions(server: Server) -> None:
    done = psql(server, text="select 7 \\parse s\n\\bind_named s \\g\n\\close_prepared s\nselect \\bind\n;\n")
    assert done.stdout.count("1|hällo|") == 2


@pytest.mark.parametrize("version", ["3.0", "3.2", "latest"])
def test_psql_speaks_every_version_of_the_protocol(server: Server, version: str) -> None:
    command: list[str | Path] = [BIN / "psql", dsn(server, max_protocol_version=version)]
    done = subprocess.run([*command, "-XAt", "-c", "select 1"], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1|hällo|\n", "")


class AskForPassword:
    """SCRAM for everybody, with one password."""

    def __init__(self) -> None:
        self._verifier = parse_verifier(stored_password(PASSWORD, salt=bytes(SALT_BYTES)))
        self.bindings: list[bytes | None] = []

    def login(self, *, user: str, address: str, binding: bytes | None) -> "Exchange":
        self.bindings.append(binding)
        return Exchange(user, self._verifier, nonce=server_nonce(), mock_secret=b"secret", binding=binding)


class Exchange(Scram):
    def wait_seconds(self) -> float:
        return 0.0


def test_a_password_is_asked_for_and_bound_to_the_tls_channel(tmp_path: Path, toys: Toys) -> None:
    pair = make_certificate(tmp_path)
    asks = AskForPassword()
    server = Server(toys, asks, SystemEnv(), tls=load(pair.certificate, pair.key))
    server.start()
    secure = {"sslmode": "verify-ca", "sslrootcert": pair.certificate, "channel_binding": "require"}
    try:
        with psycopg.connect(dsn(server, password=PASSWORD, **secure), autocommit=True) as connection:
            assert connection.pgconn.ssl_in_use
            assert len(connection.execute("series 5000").fetchall()) == 5000
            assert connection.execute("insert x").statusmessage == "INSERT 0 1"
        with psycopg.connect(dsn(server, password=PASSWORD)) as connection:
            assert not connection.pgconn.ssl_in_use
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(dsn(server, password="wrong", **secure))
    finally:
        server.stop()
    assert [binding is None for binding in asks.bindings] == [False, True, False]


def test_a_failed_handshake_leaves_nothing_behind(tmp_path: Path, toys: Toys) -> None:
    pair = make_certificate(tmp_path)
    server = Server(toys, LetIn(), SystemEnv(), tls=load(pair.certificate, pair.key))
    server.start()
    try:
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(dsn(server, sslmode="verify-ca", sslrootcert="system"))
        assert server.drain(10)
    finally:
        server.stop()
    assert toys.clients == []
