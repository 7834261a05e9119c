"""From the first byte to ReadyForQuery."""

import struct
from typing import Any

import pytest

from tenure.base.errors import WrongPassword
from tenure.pgwire.connection_slots import SECRET_BYTES, SECRET_BYTES_OLD, ConnectionSlots
from tenure.pgwire.login.startup import Service, settings_of
from tenure.pgwire.waits import Need
from tests.unit.pgwire.toy import LetIn, Toys
from tests.unit.pgwire.wire import (
    GSSENC_REQUEST,
    SSL_REQUEST,
    VERSION_3_2,
    Talk,
    cancel_request,
    message,
    query,
    service_of,
    startup,
)


def test_a_client_is_let_in_and_told_its_settings() -> None:
    talk = Talk()
    assert talk.say(startup()) == "R S S S K Z:I"
    assert talk.last[1].body == b"server_version\x0018.0\0"


def test_encryption_is_refused_where_there_is_none_and_the_client_goes_on() -> None:
    talk = Talk()
    assert talk.raw(SSL_REQUEST) == b"N"
    assert talk.raw(GSSENC_REQUEST) == b"N"
    assert talk.say(startup()).endswith("Z:I")


def test_encryption_can_be_asked_for_once() -> None:
    talk = Talk()
    assert talk.raw(SSL_REQUEST) == b"N"
    assert talk.say(SSL_REQUEST) == "E:08P01"


def test_the_handshake_comes_before_everything_else() -> None:
    talk = Talk(service=service_of(Toys(), has_tls=True))
    talk.connection.receive(SSL_REQUEST)
    assert talk.connection.take_output() == b"S"
    assert talk.connection.wait is Need.TLS
    talk.connection.resume(b"binding")
    assert talk.say(startup()).endswith("Z:I")


@pytest.mark.invariant("no-stuffing")
def test_bytes_stuffed_after_an_ssl_request_are_refused() -> None:
    talk = Talk(service=service_of(Toys(), has_tls=True))
    assert talk.say(SSL_REQUEST + startup() + query("select 1")) == "E:08P01"
    assert talk.error["M"] == "received unencrypted data after SSL request"
    assert talk.connection.is_closing


def test_the_newest_protocol_has_longer_secrets() -> None:
    old, new = Talk(), Talk()
    old.say(startup())
    new.say(startup(VERSION_3_2))
    assert [len(talk.last[4].body) for talk in (old, new)] == [4 + 4, 4 + 32]


def test_a_newer_protocol_and_unknown_options_are_negotiated() -> None:
    talk = Talk()
    assert talk.say(startup(3 << 16 | 9, **{"_pq_.wish": "1"})) == "v R S S S K Z:I"
    assert talk.last[0].body == struct.pack(">II", VERSION_3_2, 1) + b"_pq_.wish\0"


@pytest.mark.parametrize("version", [2 << 16, 4 << 16, 0])
def test_another_protocol_is_refused(version: int) -> None:
    assert Talk().say(startup(version)) == "E:08P01"


@pytest.mark.parametrize(
    "packet",
    [
        struct.pack(">I", 4),
        struct.pack(">I", 7),
        struct.pack(">II", 10_001, 3 << 16) + bytes(9_993),
        struct.pack(">I", 2**32 - 1),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_a_packet_of_a_wrong_length_is_fatal(packet: bytes) -> None:
    talk = Talk()
    assert talk.say(packet) == "E:08P01"
    assert talk.connection.is_closing


@pytest.mark.parametrize("body", [b"user", b"user\0root", b"user\0root\0", b"user\0root\0\0more"])
def test_a_packet_that_is_cut_off_is_fatal(body: bytes) -> None:
    packet = struct.pack(">II", 8 + len(body), 3 << 16) + body
    assert Talk().say(packet) == "E:08P01"


def test_a_user_must_be_named() -> None:
    assert Talk().say(startup(user="")) == "E:28000"


def test_replication_is_refused() -> None:
    assert Talk().say(startup(replication="database")) == "E:0A000"


def test_a_missing_database_is_told_after_the_login() -> None:
    talk = Talk()
    assert talk.say(startup(database="missing")) == "R E:3D000"
    assert talk.error["S"] == "FATAL"


def test_settings_come_from_the_packet_and_its_options() -> None:
    parameters = {
        "user": "u",
        "application_name": "psql",
        "options": r"-c search_path=a\ b,c --statement-timeout=5s -cDateStyle=ISO",
        "_pq_.wish": "1",
    }
    assert settings_of(parameters) == {
        "search_path": "a b,c",
        "statement_timeout": "5s",
        "DateStyle": "ISO",
        "application_name": "psql",
    }


class PasswordIs:
    """Stands for SCRAM: the message itself must be right; the first try must wait."""

    def __init__(self, password: bytes) -> None:
        self._password = password
        self._waits = [0.0, 0.5]
        self.mechanisms = ("SCRAM-SHA-256",)

    def login(self, **_: Any) -> "PasswordIs":
        return self

    def begin(self, mechanism: str, first: bytes | None) -> bytes:
        return b"go on"

    def wait_seconds(self) -> float:
        return self._waits.pop()

    def finish(self, final: bytes) -> bytes:
        if final != self._password:
            raise WrongPassword("root")
        return b"welcome"


FIRST = message("p", b"SCRAM-SHA-256\0\0\0\0\1n")


def test_a_login_has_two_rounds() -> None:
    talk = Talk(service=service_of(Toys(), PasswordIs(b"secret")))
    assert talk.say(startup()) == "R"
    assert talk.last[0].body == b"\0\0\0\x0aSCRAM-SHA-256\0\0"
    assert talk.say(FIRST) == "R"
    assert talk.last[0].body == b"\0\0\0\x0bgo on"
    assert talk.say(message("p", b"secret")) == "R R S S S K Z:I"


def test_a_wrong_password_is_fatal() -> None:
    talk = Talk(service=service_of(Toys(), PasswordIs(b"secret")))
    talk.say(startup())
    talk.say(FIRST)
    assert talk.say(message("p", b"guess")) == "E:28P01"
    assert talk.toys.clients == []


@pytest.mark.parametrize(
    "wrong",
    [
        message("p", b"MD5\0\xff\xff\xff\xff"),
        message("p", b"SCRAM-SHA-256\0\0\0\1\0n"),
        query("select 1"),
        message("p", bytes(10_001)),
    ],
)
def test_only_a_login_is_listened_to_before_it_is_done(wrong: bytes) -> None:
    talk = Talk(service=service_of(Toys(), PasswordIs(b"secret")))
    talk.say(startup())
    assert talk.say(wrong) == "E:08P01"
    assert talk.connection.is_closing


def test_a_cancel_request_needs_no_login_and_gets_no_answer() -> None:
    service = service_of(Toys())
    busy, other = Talk(service=service), Talk(service=service)
    busy.say(startup())
    busy.connection.receive(query("select slowly"))
    seat = busy.connection.seat
    assert seat is not None
    assert other.raw(cancel_request(seat.pid, seat.secret)) == b""
    assert other.connection.is_closing
    assert busy.say() == "E:57014 Z:I"


@pytest.mark.invariant("cancel-needs-secret")
def test_a_cancel_with_a_wrong_secret_has_no_effect() -> None:
    service = service_of(Toys())
    busy, other = Talk(service=service), Talk(service=service)
    busy.say(startup())
    busy.connection.receive(query("select slowly"))
    seat = busy.connection.seat
    assert seat is not None
    assert other.raw(cancel_request(seat.pid, bytes(4))) == b""
    assert busy.say() == "T D C:SELECT 1 Z:I"


def test_a_cancel_for_another_process_is_routed() -> None:
    routed: list[tuple[int, bytes]] = []
    service = Service(
        Toys(), LetIn(), ConnectionSlots(lambda: 1), route_cancel=lambda *asked: routed.append(asked)
    )
    elsewhere = 7 * 2**16 + 1
    assert Talk(service=service).raw(cancel_request(elsewhere, b"1234")) == b""
    assert routed == [(elsewhere, b"1234")]


def test_a_connection_from_before_the_node_got_another_instance_id_is_still_cancelled_here() -> None:
    instance = [1]
    routed: list[tuple[int, bytes]] = []
    slots = ConnectionSlots(lambda: instance[0])
    service = Service(Toys(), LetIn(), slots, route_cancel=lambda *asked: routed.append(asked))
    canceled: list[str] = []
    before = slots.take("anna", lambda: canceled.append("before"), secret_bytes=SECRET_BYTES)
    instance[0] = 2
    after = slots.take("anna", lambda: canceled.append("after"), secret_bytes=SECRET_BYTES_OLD)
    assert [before.pid >> 16, after.pid >> 16] == [1, 2]
    for seat in (before, after):
        Talk(service=service).raw(cancel_request(seat.pid, seat.secret))
    assert (canceled, routed) == (["before", "after"], [])
    # The node that has the former id now may have given the same pid to a client of its own.
    Talk(service=service).raw(cancel_request(before.pid, b"of another node's client, 32 byte"[:SECRET_BYTES]))
    assert [pid for pid, _ in routed] == [before.pid]
    assert canceled == ["before", "after"]
