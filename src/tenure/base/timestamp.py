"""Hybrid logical timestamps: one signed 64-bit integer.

    63                                      10 9         0
    +----------------------------------------+-----------+
    | microseconds since 1970 (53 bits)      | logical   |
    +----------------------------------------+-----------+

A timestamp is a plain `int`: it compares, hashes and packs at the speed of an integer, and
the next timestamp is `at + 1` (a full logical counter carries into the microseconds). People
see the decimal form `1763230000000000.0000000007`: microseconds, a point, ten digits of
logical counter; so the text sorts like the integer and nothing is rounded on the way back.

Walk: everything imports this; it imports nothing.
"""

import re
from typing import TypeAlias

Timestamp: TypeAlias = int

LOGICAL_BITS = 10
LOGICAL_MAX = (1 << LOGICAL_BITS) - 1
ZERO_AT: Timestamp = 0
MAX_AT: Timestamp = (1 << 63) - 1

_TEXT = re.compile(r"(\d{1,16})(?:\.(\d{10}))?", re.ASCII)


def from_micros(micros: int, logical: int = 0) -> Timestamp:
    """Returns the timestamp of a wall-clock reading in microseconds since 1970."""
    at = (micros << LOGICAL_BITS) + logical
    if not 0 <= logical <= LOGICAL_MAX or not 0 <= at <= MAX_AT:
        raise ValueError(f"{micros} microseconds, counter {logical}: outside the range of timestamps")
    return at


def micros_of(at: Timestamp) -> int:
    return at >> LOGICAL_BITS


def logical_of(at: Timestamp) -> int:
    return at & LOGICAL_MAX


def add_seconds(at: Timestamp, seconds: float) -> Timestamp:
    """Moves a timestamp by wall time, keeping its logical counter; never below zero."""
    return max(ZERO_AT, min(MAX_AT, at + (round(seconds * 1_000_000) << LOGICAL_BITS)))


def seconds_between(earlier_at: Timestamp, later_at: Timestamp) -> float:
    return (micros_of(later_at) - micros_of(earlier_at)) / 1_000_000


def to_text(at: Timestamp) -> str:
    return f"{at >> LOGICAL_BITS}.{at & LOGICAL_MAX:010d}"


def parse(text: str) -> Timestamp:
    """Reads the decimal form back; the counter may be left out. Raises ValueError."""
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is not a timestamp: expected microseconds[.counter of ten digits]')
    return from_micros(int(match[1]), int(match[2] or 0))


def to_bytes(at: Timestamp) -> bytes:
    """Eight bytes, big-endian: the order of the bytes is the order of the timestamps."""
    return at.to_bytes(8, "big")


def from_bytes(data: bytes) -> Timestamp:
    return int.from_bytes(data, "big")
