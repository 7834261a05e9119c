"""S6, S7, S8 on real sockets: TLS from outside and to the store, floods, secrets."""

import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import TenureError, for_operator
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.postgres.session import default_sslmode
from tests import postgres_server
from tests.security.node_process import NodeProcess, running
from tests.system_tables import catalogs, described
from tests.unit.pgwire.certificates import Pair, make_certificate, openssl

SSL_REQUEST = struct.pack(">II", 8, 80877103)
CANARY = "canary-7f3a9c"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Iterator[NodeProcess]:
    folder = tmp_path_factory.mktemp("node")
    with running(folder, "--cert", str(pair.certificate), "--key", str(pair.key)) as node:
        yield node


# TLS from outside


@pytest.mark.parametrize(
    ("version", "is_taken"), [("tls1", False), ("tls1_1", False), ("tls1_2", True), ("tls1_3", True)]
)
def test_tls_1_2_is_the_oldest_that_openssl_gets(node: NodeProcess, version: str, is_taken: bool) -> None:
    found = subprocess.run(
        [
            *("openssl", "s_client", "-starttls", "postgres", f"-{version}"),
            *("-cipher", "ALL:@SECLEVEL=0", "-connect", f"{node.host}:{node.port}"),
        ],
        input=b"",
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (b"Cipher is (NONE)" not in found.stdout and found.returncode == 0) is is_taken


def test_a_query_stuffed_after_the_ssl_request_is_refused(node: NodeProcess) -> None:
    with socket.create_connection((node.host, node.port), timeout=10) as client:
        client.sendall(SSL_REQUEST + b"Q" + struct.pack(">I", 13) + b"SELECT 1\0")
        said = b"".join(iter(lambda: client.recv(4096), b""))
    assert said.startswith(b"E")
    assert b"received unencrypted data after SSL request" in said


def test_old_ciphers_are_not_offered(node: NodeProcess) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection((node.host, node.port), timeout=10) as raw:
        raw.sendall(SSL_REQUEST)
        assert raw.recv(1) == b"S"
        with context.wrap_socket(raw) as client:
            cipher = client.cipher()
            assert cipher is not None
            assert cipher[2] >= 128
            assert client.compression() is None


# floods


def test_five_hundred_half_open_connections_harm_no_one_who_is_in(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        _flood(node)


def _flood(node: NodeProcess) -> None:
    with node.connect() as client, ExitStack() as all:
        before = node.resident_bytes()
        for number in range(500):
            half = all.enter_context(socket.create_connection((node.host, node.port), timeout=10))
            half.sendall(struct.pack(">I", 100)[: number % 5])
        for _ in range(100):
            assert client.execute("SELECT 1").fetchone() == (1,)
        assert node.resident_bytes() - before < 64 << 20
    with node.connect() as client:
        assert client.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("length", [10_001, 1 << 20, 0x7FFFFFFF, 0xFFFFFFFF, 0, 7])
def test_a_startup_packet_of_another_length_is_refused_at_its_head(node: NodeProcess, length: int) -> None:
    with socket.create_connection((node.host, node.port), timeout=10) as client:
        client.sendall(struct.pack(">I", length) + b"\0\x03\0\0")
        said = b"".join(iter(lambda: client.recv(4096), b""))
    assert b"invalid length of startup packet" in said


# TLS to the store


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({"host": "db.example"}, "verify-full"),
        ({"host": "10.0.0.7"}, "verify-full"),
        ({"host": "127.0.0.1,db.example"}, "verify-full"),
        ({"host": "localhost.example"}, "verify-full"),
        ({"hostaddr": "192.0.2.1"}, "verify-full"),
        ({"host": "db.example", "hostaddr": "127.0.0.1"}, "verify-full"),
        ({"host": "127.0.0.1"}, "prefer"),
        ({"host": "::1"}, "prefer"),
        ({"host": "localhost"}, "prefer"),
        ({"host": "/run/postgresql"}, "prefer"),
        ({}, "prefer"),
    ],
)
def test_over_a_network_the_stores_certificate_is_checked(options: dict[str, str], mode: str) -> None:
    assert default_sslmode(options) == mode


def test_a_store_with_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)  # for localhost
    with _tls_server(certificate) as port:
        address = (
            f"host=db.example hostaddr=127.0.0.1 port={port} user=ann password={CANARY} dbname=x "
            f"sslrootcert={certificate.certificate}"
        )
        with pytest.raises(TenureError) as caught:
            PostgresEngine(address, SystemEnv())
    assert "does not match host name" in for_operator(caught.value)
    assert CANARY not in for_operator(caught.value)


def test_a_store_without_tls_is_refused_over_a_network(tmp_path: Path) -> None:
    with _plain_server() as port:
        address = (
            f"host=db.example hostaddr=127.0.0.1 port={port} user=ann dbname=x "
            f"sslrootcert={make_certificate(tmp_path).certificate}"
        )
        with pytest.raises(TenureError) as caught:
            PostgresEngine(address, SystemEnv())
    assert "does not support SSL" in for_operator(caught.value)


def test_a_certificate_that_nobody_trusts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = make_certificate(tmp_path / "other")
    with _tls_server(make_certificate(tmp_path)) as port:
        address = (
            f"host=localhost hostaddr=127.0.0.1 port={port} user=ann dbname=x sslmode=verify-full "
            f"sslrootcert={other.certificate}"
        )
        with pytest.raises(TenureError) as caught:
            PostgresEngine(address, SystemEnv())
    assert "certificate verify failed" in for_operator(caught.value)


class _tls_server:  # noqa: N801
    """Says S to an SSLRequest and shakes hands; nothing more."""

    def __init__(self, pair: Pair | None) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._has_tls = pair is not None
        if pair is not None:
            self._context.load_cert_chain(pair.certificate, pair.key)

    def __enter__(self) -> int:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        port: int = self._listener.getsockname()[1]
        return port

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                with client:
                    client.recv(8)
                    client.sendall(b"S" if self._has_tls else b"N")
                    if self._has_tls:
                        self._context.wrap_socket(client, server_side=True).close()
            except ssl.SSLError:
                continue
            except OSError:
                return


def _plain_server() -> _tls_server:
    return _tls_server(None)


# the store's password


def test_the_stores_password_shows_nowhere(tmp_path: Path, postgres_directory: Path) -> None:
    server = postgres_server.start(postgres_directory)
    address = postgres_server.add_role_with_password(server, CANARY)
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute("GRANT CREATE ON DATABASE postgres TO PUBLIC")
    with running(tmp_path, environment={"TENURE_STORE": address}) as node:
        assert CANARY not in node.ready_line
        assert CANARY.encode() not in Path(f"/proc/{node.process.pid}/cmdline").read_bytes()
        of_records = [each for each in described() if each.schema == "system"]
        with node.connect() as client:
            for each in (*of_records, *catalogs()):
                found = client.execute(f"SELECT * FROM {each.schema}.{each.name}").fetchall()
                assert CANARY not in repr(found)
            assert CANARY not in repr(client.execute("SHOW ALL").fetchall())
            postgres_server.stop(postgres_directory, immediate=True)
            with pytest.raises(psycopg.Error) as caught:
                client.execute("CREATE TABLE t (a int)")
            assert CANARY not in str(caught.value)
        log = node.log
    assert CANARY not in log.read_text()


def test_openssl_is_there() -> None:
    assert openssl("version")
