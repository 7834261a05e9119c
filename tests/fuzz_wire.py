"""Malformed and mutated messages against the protocol's state machine, by seed.

    python -m tests.fuzz_wire --messages 1000000 --seed 1

Each connection gets some messages: good ones, good ones with a few bytes changed, with a wrong length,
cut off, doubled, or plain noise; in pieces of any size. Then it must have answered, and must be
closed, wait for the rest of a message, or go on to answer a good query.

Walk: `tests/unit/pgwire/test_fuzz.py` runs some; `make fuzz` runs many.
"""

import argparse
import logging
import random
import resource
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tenure.pgwire.bound_statements import REMEMBERED_STATEMENTS_MAX
from tests.unit.pgwire.toy import Toys
from tests.unit.pgwire.wire import (
    FLUSH,
    GSSENC_REQUEST,
    SSL_REQUEST,
    SYNC,
    TERMINATE,
    Talk,
    bind,
    cancel_request,
    close,
    describe,
    execute,
    heard,
    message,
    parse,
    query,
    service_of,
    startup,
)

MESSAGES_PER_CONNECTION = 25
ANSWERS = frozenset("RSKZTDCEINntvs123GHdc")
GROWTH_BYTES_MAX = 64 * 2**20

PACKETS = [
    startup(),
    startup(database="missing"),
    SSL_REQUEST,
    GSSENC_REQUEST,
    cancel_request(65537, b"1234"),
]
GOOD = [
    query("select 1"),
    query("begin; select 1; fail; commit"),
    query("copy t from stdin"),
    query("copy t to stdout"),
    query("series 250"),
    query("insert retried"),
    query("crash"),
    parse("select $1", "s", [23]),
    parse("series 7", types=[0, 705]),
    parse("select slowly"),
    parse(""),
    bind(b"41", statement="s"),
    bind(b"\0\0\0\1", statement="s", formats=[1], results=[1, 0, 1]),
    bind(portal="p"),
    describe("S", "s"),
    describe("P"),
    execute(),
    execute(3, "p"),
    close("S", "s"),
    close("P"),
    message("d", b"1\ta\n"),
    message("c"),
    message("f", b"why\0"),
    message("F", bytes(10)),
    message("p", b"SCRAM-SHA-256\0\0\0\0\1n"),
    SYNC,
    SYNC,
    FLUSH,
    TERMINATE,
]


@dataclass
class Tally:
    messages: int = 0
    connections: int = 0
    closed: int = 0
    answered: int = 0


def fuzz(messages: int, seed: int) -> Tally:
    """Raises if a connection raises, has a bug, says what is no message, or stays mute."""
    tally = Tally()
    bugs = _Bugs()
    log = logging.getLogger("tenure.pgwire.connection")
    log.addHandler(bugs)
    log.propagate = False
    try:
        while tally.messages < messages:
            _one_connection(random.Random(f"{seed}/{tally.connections}"), tally)
            assert not bugs.found, bugs.found
    finally:
        log.removeHandler(bugs)
        log.propagate = True
    return tally


class _Bugs(logging.Handler):
    """What connections log, but for the statement that has its bug on purpose."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, ZeroDivisionError):
            self.found.append(f"{record.getMessage()}: {error!r}")


def _one_connection(rng: random.Random, tally: Tally) -> None:
    toys = Toys(series_max=1000)
    toys.released.set()
    talk = Talk(toys, service=service_of(toys))
    tally.connections += 1
    has_started = rng.random() < 0.9
    given = [startup()] if has_started else [_mutated(rng, rng.choice(PACKETS)) for _ in range(3)]
    given += [_mutated(rng, rng.choice(GOOD)) for _ in range(rng.randrange(1, MESSAGES_PER_CONNECTION))]
    for each in given:
        tally.messages += 1
        _give(rng, talk, each)
        if talk.connection.is_closing:
            break
    if talk.connection.is_closing:
        tally.closed += 1
        assert talk.raw(query("select 1")) == b"", "it closes and still answers"
    elif talk.connection.is_ready and not talk.connection.buffered:
        tally.answered += 1
        said = list(heard(talk.raw(SYNC, query("select 1"))))
        assert str(said[-1])[:2] == "Z:", said
    _check_bounds(talk)


def _give(rng: random.Random, talk: Talk, data: bytes) -> None:
    was_starting = talk.connection.is_starting
    said = b""
    for piece in _pieces(rng, data):
        said += talk.raw(piece)
    if was_starting:
        said = said.lstrip(b"N")  # to SSLRequest and GSSENCRequest
    kinds = {each.kind for each in heard(said)}
    assert kinds <= ANSWERS, kinds - ANSWERS


def _pieces(rng: random.Random, data: bytes) -> list[bytes]:
    if rng.random() < 0.7:
        return [data]
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 4)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]


def _check_bounds(talk: Talk) -> None:
    connection = talk.connection
    assert connection.output == []
    if connection._conversation is not None:
        assert len(connection._conversation._bound._statements) <= REMEMBERED_STATEMENTS_MAX


def _mutated(rng: random.Random, good: bytes) -> bytes:
    mutate = rng.choice(MUTATIONS)
    return mutate(rng, good)


def _unchanged(rng: random.Random, good: bytes) -> bytes:
    return good


def _body_changed(rng: random.Random, good: bytes) -> bytes:
    """Framing stays right."""
    changed = bytearray(good)
    for _ in range(rng.randrange(1, 4)):
        if len(changed) > 5:
            changed[rng.randrange(5, len(changed))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return bytes(changed)


def _body_cut(rng: random.Random, good: bytes) -> bytes:
    body = good[5 : rng.randrange(5, len(good) + 1)]
    return good[:1] + struct.pack(">I", len(body) + 4) + body


def _body_longer(rng: random.Random, good: bytes) -> bytes:
    body = good[5:] + rng.randbytes(rng.randrange(1, 40))
    return good[:1] + struct.pack(">I", len(body) + 4) + body


def _any_byte_changed(rng: random.Random, good: bytes) -> bytes:
    changed = bytearray(good)
    changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _wrong_length(rng: random.Random, good: bytes) -> bytes:
    length = rng.choice((0, 3, 4, 5, 100, 10_001, 2**20, 2**31 - 1, 2**32 - 1))
    return good[:1] + struct.pack(">I", length) + good[5:]


def _another_kind(rng: random.Random, good: bytes) -> bytes:
    return bytes([rng.randrange(256)]) + good[1:]


def _cut_off(rng: random.Random, good: bytes) -> bytes:
    return good[: rng.randrange(1, len(good) + 1)]


def _doubled(rng: random.Random, good: bytes) -> bytes:
    return good * rng.randrange(2, 6)


def _noise(rng: random.Random, good: bytes) -> bytes:
    return rng.randbytes(rng.randrange(1, 64))


MUTATIONS: list[Callable[[random.Random, bytes], bytes]] = [
    *[_unchanged] * 24,
    *[_body_changed] * 24,
    *[_body_cut] * 12,
    *[_body_longer] * 4,
    *[_doubled] * 4,
    _any_byte_changed,
    _wrong_length,
    _another_kind,
    _cut_off,
    _noise,
]
"""Those that keep the framing come often: after the others little more is learnt from a connection."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    fuzz(1000, options.seed)
    before = _memory_bytes()
    tally = fuzz(options.messages, options.seed)
    grown = _memory_bytes() - before
    print(f"{tally}, memory grown by {grown / 2**20:.1f} MiB")
    return 0 if grown <= GROWTH_BYTES_MAX else 1


def _memory_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
