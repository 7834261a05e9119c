"""SCRAM and TLS against PostgreSQL's own client library: a socket, and just enough protocol to log in."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tenure.base.errors import TenureError
from tenure.catalog.accounts.passwords import SALT_BYTES, parse_verifier, stored_password
from tenure.pgwire.login.scram import PLAIN, Scram, server_nonce
from tenure.pgwire.login.tls import Tls, load
from tests.unit.pgwire.certificates import Pair, make_certificate

PASSWORD = "pen cil\u00ad \u2168"
VERIFIER = parse_verifier(stored_password(PASSWORD, salt=bytes(range(SALT_BYTES))))
SSL_REQUEST = 80_877_103
IN = "logged in, and no further"

Offer = Callable[[Scram], tuple[str, ...]]


class Peer:
    """The server's end of one connection."""

    def __init__(self, plain: socket.socket, tls: Tls | None, offer: Offer) -> None:
        self.socket = plain
        self.tls = tls
        self.offer = offer

    def serve(self) -> None:
        code = struct.unpack_from("!i", self._packet())[0]
        if code == SSL_REQUEST:
            self.socket.sendall(b"S" if self.tls else b"N")
            if self.tls:
                self.socket = self.tls.context.wrap_socket(self.socket, server_side=True)
            self._packet()
        binding = self.tls.binding if self.tls else None
        scram = Scram("ann", VERIFIER, nonce=server_nonce(), mock_secret=b"x", binding=binding)
        try:
            self._exchange(scram)
        except TenureError as error:
            self._send(b"E", f"SFATAL\0VFATAL\0C{error.sqlstate}\0M{error}\0\0".encode())

    def _exchange(self, scram: Scram) -> None:
        offered = "".join(f"{each}\0" for each in self.offer(scram)) + "\0"
        self._send(b"R", struct.pack("!i", 10) + offered.encode())
        mechanism, _, rest = self._message().partition(b"\0")
        self._send(b"R", struct.pack("!i", 11) + scram.begin(mechanism.decode(), rest[4:]))
        self._send(b"R", struct.pack("!i", 12) + scram.finish(self._message()))
        self._send(b"R", struct.pack("!i", 0))
        self._send(b"E", f"SFATAL\0VFATAL\0C57P03\0M{IN}\0\0".encode())

    def _packet(self) -> bytes:
        return self._exactly(struct.unpack("!i", self._exactly(4))[0] - 4)

    def _message(self) -> bytes:
        assert self._exactly(1) == b"p"
        return self._packet()

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("the client is gone")
            data += piece
        return data

    def _send(self, kind: bytes, body: bytes) -> None:
        self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)


@contextmanager
def _listening(tls: Tls | None, offer: Offer) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                peer = Peer(connection, tls, offer)
                try:
                    peer.serve()
                except (OSError, ssl.SSLError):
                    pass
                peer.socket.close()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(10)


def _as_offered(scram: Scram) -> tuple[str, ...]:
    return scram.mechanisms


def _said(
    tls: Tls | None = None, *, offer: Offer = _as_offered, password: str = PASSWORD, **options: str
) -> str:
    with _listening(tls, offer) as port, pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(make_conninfo(host="127.0.0.1", port=port, user="ann", password=password, **options))
    return str(caught.value)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return make_certificate(tmp_path)


def test_libpq_logs_in_without_tls() -> None:
    assert IN in _said(sslmode="disable")


def test_libpq_hears_of_a_wrong_password() -> None:
    assert 'password authentication failed for user "ann"' in _said(sslmode="disable", password="wrong")


def test_libpq_logs_in_bound_to_the_certificate(pair: Pair) -> None:
    assert IN in _said(load(*pair), sslmode="require", channel_binding="require")


@pytest.mark.parametrize("digest", ["-sha384", "-sha512"])
def test_libpq_takes_the_hash_of_the_certificates_signature_too(tmp_path: Path, digest: str) -> None:
    pair = make_certificate(tmp_path, "-newkey", "rsa:2048", digest)
    assert IN in _said(load(*pair), sslmode="require", channel_binding="require")


def test_libpq_logs_in_over_tls_without_binding(pair: Pair) -> None:
    assert IN in _said(load(*pair), sslmode="require", channel_binding="disable")


def test_libpq_logs_in_where_the_certificate_has_nothing_to_bind_to(tmp_path: Path) -> None:
    pair = make_certificate(tmp_path, "-newkey", "ed25519")
    assert IN in _said(load(*pair), sslmode="require")


def test_an_offer_stripped_on_the_way_ends_the_login(pair: Pair) -> None:
    said = _said(load(*pair), sslmode="require", channel_binding="prefer", offer=lambda scram: (PLAIN,))
    assert "SCRAM channel binding negotiation error" in said
