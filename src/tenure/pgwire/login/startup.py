"""From the first byte to ReadyForQuery: TLS, version, login, session.

    SSLRequest        S and a handshake, or N
    GSSENCRequest     N
    CancelRequest     done, and the connection ends without an answer
    StartupMessage    version 3.0 to 3.2, settings    NegotiateProtocolVersion, where newer is asked for
    login             SCRAM, or nothing               AuthenticationOk
    session           Clients.open                    ParameterStatus ..., BackendKeyData, ReadyForQuery

Every error here is FATAL.

`Progress` is the step that a connection has reached: those that stop half-way are evicted first.

Invariant (no-stuffing): bytes that come with an SSLRequest, before the handshake, are never read as
if they had come through TLS.

Walk: `pgwire.connection` runs `start_up` as its first talk.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Protocol

from tenure.base.errors import LoginRefused, NotSupported, ProtocolViolation
from tenure.pgwire.connection_slots import SECRET_BYTES, SECRET_BYTES_OLD, ConnectionSlots, Seat
from tenure.pgwire.guesses import Guesses
from tenure.pgwire.messages import (
    AUTHENTICATION_OK,
    CANCEL_REQUEST,
    GSSENC_REQUEST,
    MINOR_MAX,
    SSL_REQUEST,
    UINT4,
    Body,
    Startup,
    authentication_sasl,
    authentication_sasl_continue,
    authentication_sasl_final,
    backend_key,
    negotiate_version,
    parameter_statuses,
    read_sasl_initial,
    read_startup,
)
from tenure.pgwire.turns import Turns, untimed
from tenure.pgwire.waits import Delay, InThread, Lane, Need, Talk
from tenure.sql.session.answers import Client, Clients, Endpoints

PASSWORD = ord("p")

_ALREADY_MEANT = ("user", "database", "options", "replication")
_OPTION = re.compile(r"(?:-c\s*|--)([A-Za-z_][\w.-]*)=((?:\\.|[^\s\\])*)", re.DOTALL)


class Progress(IntEnum):
    """The step that a connection has reached; the furthest last."""

    DELAYED = 0
    """It has guessed wrong, and waits for that."""
    SILENT = 1
    NAMED = 2
    """Its start-up packet has arrived."""
    ANSWERED = 3
    """It has begun the exchange of SCRAM."""
    PROVED = 4
    """It has sent its proof, which may be wrong."""
    LET_IN = 5


class Login(Protocol):
    """One SCRAM exchange, two messages each way. Raises 28P01 where it fails, with `delay_seconds`."""

    @property
    def mechanisms(self) -> Sequence[str]: ...

    def begin(self, mechanism: str, first: bytes | None) -> bytes: ...

    def wait_seconds(self) -> float:
        """How long to wait before `finish`, because of wrong passwords; asked again until it is 0."""
        ...

    def finish(self, final: bytes) -> bytes: ...


class Authenticator(Protocol):
    def login(self, *, user: str, address: str, binding: bytes | None) -> Login | None:
        """Called in a thread. `binding` is the TLS channel's data, None without TLS. Returns None if the user
        needs no password.
        """
        ...


@dataclass(frozen=True)
class Service:
    """The server's services for a connection."""

    clients: Clients
    authenticator: Authenticator
    seats: ConnectionSlots
    route_cancel: Callable[[int, bytes], None] = lambda _pid, _secret: None
    """Routes a cancel for a pid of another process; called in a thread."""
    has_tls: bool = False
    turns: Turns = field(default_factory=untimed)
    guesses: Guesses = field(default_factory=Guesses)
    monotonic: Callable[[], float] = lambda: 0.0


class StartingConnection(Protocol):
    """The connection during its start."""

    endpoints: Endpoints
    output: list[bytes]
    seat: Seat | None
    client: Client | None
    user: str
    progress: Progress

    @property
    def buffered(self) -> int: ...

    def cancel(self) -> None: ...

    def terminate(self) -> None: ...


def start_up(connection: StartingConnection, service: Service) -> Talk[Client | None]:
    """Returns the session; None if the connection only carried a cancel."""
    packet, binding = yield from _negotiate_encryption(connection, service)
    if UINT4.unpack_from(packet)[0] == CANCEL_REQUEST:
        yield from _cancel(connection, packet, service)
        return None
    startup = read_startup(packet)
    _negotiate_version(connection, startup)
    user = connection.user = startup.parameters.get("user", "")
    connection.progress = Progress.NAMED
    if not user:
        raise LoginRefused("no PostgreSQL user name specified in startup packet")
    if startup.parameters.get("replication", "false") not in ("false", "off", "no", "0"):
        raise NotSupported("replication connections are not supported")
    yield from _log_in(connection, service, user, binding)
    secret_bytes = SECRET_BYTES if startup.minor >= 2 else SECRET_BYTES_OLD
    connection.seat = seat = service.seats.take(
        user, connection.cancel, secret_bytes=secret_bytes, terminate=connection.terminate
    )
    yield InThread(partial(_open, connection, service.clients, startup.parameters), lane=Lane.OPENING)
    client = connection.client
    assert client is not None
    connection.output += (parameter_statuses(client.parameters()), backend_key(seat.pid, seat.secret))
    return client


def _negotiate_encryption(
    connection: StartingConnection, service: Service
) -> Talk[tuple[bytes, bytes | None]]:
    """Each kind may be requested once. Returns the packet after that."""
    binding: bytes | None = None
    requests: set[int] = set()
    while True:
        packet: bytes = yield Need.PACKET
        code = UINT4.unpack_from(packet)[0]
        if code not in (SSL_REQUEST, GSSENC_REQUEST) or code in requests:
            return packet, binding
        requests.add(code)
        if code == SSL_REQUEST and service.has_tls:
            if connection.buffered:
                raise ProtocolViolation("received unencrypted data after SSL request")
            connection.output.append(b"S")
            binding = yield Need.TLS
        else:
            connection.output.append(b"N")


def _cancel(connection: StartingConnection, packet: bytes, service: Service) -> Talk[None]:
    body = Body(packet, 4)
    pid, secret = body.number(), body.rest()
    seats = service.seats
    # A secret that is too long to be guessed is looked at at once.
    if len(secret) >= SECRET_BYTES and (seats.cancel(pid, secret) or seats.has(pid)):
        return
    address = connection.endpoints.client_address
    while (seconds := service.guesses.wait_seconds(address, service.monotonic())) > 0:
        connection.progress = Progress.DELAYED
        yield Delay(seconds)
    if seats.cancel(pid, secret):
        return
    service.guesses.guessed(address, service.monotonic())
    if not seats.has(pid):
        yield InThread(partial(service.route_cancel, pid, secret), lane=Lane.CANCEL)


def _negotiate_version(connection: StartingConnection, startup: Startup) -> None:
    unknown = [name for name in startup.parameters if name.startswith("_pq_.")]
    if startup.minor > MINOR_MAX or unknown:
        connection.output.append(negotiate_version(startup.minor, unknown))


def _log_in(connection: StartingConnection, service: Service, user: str, binding: bytes | None) -> Talk[None]:
    find = partial(
        service.authenticator.login, user=user, address=connection.endpoints.client_address, binding=binding
    )
    login: Login | None = yield InThread(find, lane=Lane.LOOKUP)
    if login is not None:
        try:
            yield from _exchange(connection, login)
        except Exception as error:
            connection.progress = Progress.DELAYED
            yield Delay(getattr(error, "delay_seconds", 0.0))
            raise
    connection.progress = Progress.LET_IN
    connection.output.append(AUTHENTICATION_OK)


def _exchange(connection: StartingConnection, login: Login) -> Talk[None]:
    connection.output.append(authentication_sasl(login.mechanisms))
    mechanism, first = read_sasl_initial(Body((yield from _password())))
    if mechanism not in login.mechanisms:
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    connection.output.append(authentication_sasl_continue(login.begin(mechanism, first)))
    connection.progress = Progress.ANSWERED
    final = yield from _password()
    connection.progress = Progress.PROVED
    while (seconds := login.wait_seconds()) > 0:
        yield Delay(seconds)
    connection.output.append(authentication_sasl_final(login.finish(final)))


def _password() -> Talk[bytes]:
    kind, body = yield Need.MESSAGE
    if kind != PASSWORD:
        raise ProtocolViolation(f"expected SASL response, got message type {kind}")
    return bytes(body)


def _open(connection: StartingConnection, clients: Clients, parameters: dict[str, str]) -> None:
    """The connection may be gone when this is done: it has the client by then, and closes it."""
    user = parameters["user"]
    connection.client = clients.open(
        user=user,
        database=parameters.get("database") or user,
        options=settings_of(parameters),
        endpoints=connection.endpoints,
        pid=0 if connection.seat is None else connection.seat.pid,
    )


def settings_of(parameters: dict[str, str]) -> dict[str, str]:
    """The settings of a start-up packet: its own names, and what `options` says (-c name=value)."""
    named = {
        name: value
        for name, value in parameters.items()
        if name not in _ALREADY_MEANT and not name.startswith("_pq_.")
    }
    found = _OPTION.findall(parameters.get("options", ""))
    return {name.replace("-", "_"): re.sub(r"\\(.)", r"\1", value) for name, value in found} | named
