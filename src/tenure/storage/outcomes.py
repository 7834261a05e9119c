"""How a lane stores the outcomes of its last group: a few bytes per member.

Walk: `storage.sqlite` writes with `encode_outcomes` when it commits; both engines read with `decode_outcomes`
when they settle.
"""

import struct
from collections.abc import Iterable

from tenure.storage.engine import CommitStatus, Outcome

_MEMBER = struct.Struct(">BqIH")
"""status, at, removed, length of the key that follows"""


def encode_outcomes(outcomes: Iterable[Outcome]) -> bytes:
    return b"".join(
        _MEMBER.pack(status, at, removed, len(key)) + key for status, at, key, removed in outcomes
    )


def decode_outcomes(data: bytes) -> list[Outcome]:
    outcomes = []
    position = 0
    while position < len(data):
        status, at, removed, length = _MEMBER.unpack_from(data, position)
        position += _MEMBER.size
        outcomes.append(Outcome(CommitStatus(status), at, data[position : position + length], removed))
        position += length
    return outcomes
