"""One connection to a webhook: to an address that was checked, and bounded in time and bytes.

    resolve the name ──► check every address ──► connect to one of them ──► TLS for the name
                                                                               └► requests, one at a time

The name is resolved once per connection, and the address that was checked is the one that is connected to: a
name that stands for another address a moment later changes nothing. No proxy is used, no redirect followed.

A request and its answer together have one deadline, so a receiver that sends a byte now and then gains no
time. Of an answer only its status is used; the rest is read up to a limit, so that the connection can be used
again, and forgotten.

Invariant (S22): a webhook's messages go to an address that the rules allow, or nowhere.
Invariant (S23): an answer costs bounded memory and time, and nothing of it but the status is shown or kept.

Walk: `changefeed.sinks.webhook` -> `open_connection`, `CheckedConnection.post`.
"""

import http.client
import io
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any

from tenure.base.env import Env
from tenure.base.errors import Unavailable
from tenure.changefeed.sinks.egress import EgressRules, check_addresses
from tenure.changefeed.sinks.webhook_text import WebhookAddress, check_webhook, context_of

ANSWER_BYTES_MAX = 64 << 10
"""Head and body. An answer has nothing to say but its status."""
PIECE_BYTES = 64 << 10
"""So many bytes are handed to the socket at once: before each, the time that is left is looked at."""

Resolve = Callable[[str, int], Sequence[str]]


def resolve_host(host: str, port: int) -> Sequence[str]:
    """The addresses of a host. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def checked_addresses(
    address: WebhookAddress, rules: EgressRules, resolve: Resolve = resolve_host
) -> Sequence[str]:
    """Raises Unavailable (08006) if there is none, NoPermission (42501) if one is not allowed."""
    check_webhook(address, rules)
    try:
        found = resolve(address.host, address.port)
    except (OSError, UnicodeError):
        found = []
    if not found:
        raise Unavailable(f'webhook "{address.shown}" cannot be reached: its name is not resolved')
    check_addresses(found, rules, shown=address.shown)
    return found


def open_connection(
    address: WebhookAddress,
    rules: EgressRules,
    env: Env,
    *,
    deadline: float,
    resolve: Resolve = resolve_host,
) -> "CheckedConnection":
    addresses = checked_addresses(address, rules, resolve)
    plain = _connected(address, addresses, env, deadline)
    try:
        return CheckedConnection(address, _with_tls(plain, address, env, deadline), env)
    except (OSError, ValueError) as error:
        plain.close()
        raise _unreachable(address, error) from None


def _connected(address: WebhookAddress, targets: Sequence[str], env: Env, deadline: float) -> socket.socket:
    """To the first that answers."""
    failure: OSError = TimeoutError()
    for target in targets:
        seconds = deadline - env.monotonic()
        if seconds <= 0:
            break
        try:
            # An address, not a name: nothing is resolved again.
            plain = socket.create_connection((target, address.port), timeout=seconds)
            # A request is two writes: the second must not wait for an acknowledgement of the first.
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return plain
        except OSError as error:
            failure = error
    raise _unreachable(address, failure) from None


def _with_tls(plain: socket.socket, address: WebhookAddress, env: Env, deadline: float) -> socket.socket:
    if address.scheme == "http":
        return plain
    context = context_of(address.ca_pem)
    secure = context.wrap_socket(plain, server_hostname=address.host, do_handshake_on_connect=False)
    secure.settimeout(max(0.001, deadline - env.monotonic()))
    try:
        secure.do_handshake()
    except BaseException:
        secure.close()
        raise
    return secure


class CheckedConnection:
    def __init__(self, address: WebhookAddress, stream: socket.socket, env: Env) -> None:
        self._address = address
        self._stream = _BoundedStream(stream, env)
        self._client = http.client.HTTPConnection(address.host, address.port)
        self._client.auto_open = 0  # once closed, it stays closed
        self._client.sock = self._stream
        self.opened = env.monotonic()
        self.is_open = True

    def post(self, body: bytes, headers: dict[str, str], *, deadline: float) -> int:
        """Sends a request; returns the status of the answer. Raises Unavailable (08006)."""
        self._stream.begin(deadline)
        fixed = {"Host": self._address.authority, "Content-Length": str(len(body))}
        try:
            self._client.request("POST", self._address.target, body, {**headers, **fixed})
            answer = self._client.getresponse()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            # The text of the error may be the receiver's.
            raise _unreachable(self._address, error) from None
        self._drain(answer)
        return answer.status

    def _drain(self, answer: http.client.HTTPResponse) -> None:
        try:
            is_read = len(answer.read(ANSWER_BYTES_MAX)) < ANSWER_BYTES_MAX and answer.isclosed()
        except (OSError, http.client.HTTPException, ValueError):
            is_read = False
        if answer.will_close or not is_read:
            self.close()

    def close(self) -> None:
        self.is_open = False
        self._client.close()
        self._stream.close()


class _BoundedStream(io.RawIOBase):
    """What the HTTP client sees of the socket: each use has the time that is left of the request."""

    def __init__(self, stream: socket.socket, env: Env) -> None:
        self._stream = stream
        self._env = env
        self._deadline = 0.0
        self._bytes_left = 0

    def begin(self, deadline: float) -> None:
        self._deadline = deadline
        self._bytes_left = 2 * ANSWER_BYTES_MAX

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(view), PIECE_BYTES):
            self._set_time()
            self._stream.sendall(view[start : start + PIECE_BYTES])

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        return io.BufferedReader(_Answer(self))

    def read_into(self, buffer: memoryview) -> int:
        self._set_time()
        if self._bytes_left <= 0:
            raise ValueError("the answer is too long")
        count = self._stream.recv_into(buffer[: self._bytes_left])
        self._bytes_left -= count
        return count

    def _set_time(self) -> None:
        seconds = self._deadline - self._env.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self._stream.settimeout(seconds)

    def close(self) -> None:
        self._stream.close()


class _Answer(io.RawIOBase):
    """Closed when the answer was read, without the socket."""

    def __init__(self, stream: _BoundedStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._stream.read_into(memoryview(buffer).cast("B"))


def _unreachable(address: WebhookAddress, error: Exception) -> Unavailable:
    return Unavailable(f'webhook "{address.shown}" cannot be reached: {_reason(error)}')


def _reason(error: Exception) -> str:
    """In words of ours: nothing that the other side has sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not trusted, or is for another name"
    if isinstance(error, ssl.SSLError):
        return "TLS has failed"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "it refuses connections"
    if isinstance(error, http.client.HTTPException | ValueError) and not isinstance(error, OSError):
        return "its answer is not HTTP, or too long"
    return "the connection has failed"
