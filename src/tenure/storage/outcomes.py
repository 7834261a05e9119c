"""How a lane stores the outcomes of its last group: a few bytes per member.

Walk: `storage.sqlite.sqlite_engine` writes with `encode_outcomes` when it commits; both engines read with
`decode_outcomes` when they settle.
"""

import struct
from collections.abc import Iterable, Sequence

from tenure.storage.engine import CommitStatus, Outcome

_MEMBER = struct.Struct(">BqIH")
"""status, at, removed, length of the bytes that follow: the key of a failure, or where a removal was cut"""

SEVERAL = 0x80
"""Added to the status if several removals ran: what each has removed comes before the place of the cut."""
_COUNTS = struct.Struct(">H")


def encode_outcomes(outcomes: Iterable[Outcome]) -> bytes:
    encoded = []
    for status, at, key, removed, last, counts in outcomes:
        tail = _encode_counts(counts) + last if counts else key or last
        mark = SEVERAL if counts else 0
        encoded.append(_MEMBER.pack(status + mark, at, removed, len(tail)) + tail)
    return b"".join(encoded)


def decode_outcomes(data: bytes) -> list[Outcome]:
    outcomes = []
    position = 0
    while position < len(data):
        status, at, removed, length = _MEMBER.unpack_from(data, position)
        position += _MEMBER.size
        tail = data[position : position + length]
        position += length
        if status == CommitStatus.COMMITTED:
            outcomes.append(Outcome(CommitStatus.COMMITTED, at, removed=removed, last=tail))
        elif status == SEVERAL:
            counts, last = _decode_counts(tail)
            outcomes.append(Outcome(CommitStatus.COMMITTED, at, removed=removed, last=last, counts=counts))
        else:
            outcomes.append(Outcome(CommitStatus(status), at, tail, removed))
    return outcomes


def _encode_counts(counts: Sequence[int]) -> bytes:
    return _COUNTS.pack(len(counts)) + struct.pack(f">{len(counts)}I", *counts)


def _decode_counts(tail: bytes) -> tuple[tuple[int, ...], bytes]:
    """What each removal has removed, and the place of the cut."""
    (number,) = _COUNTS.unpack_from(tail)
    counts = struct.unpack_from(f">{number}I", tail, _COUNTS.size)
    return counts, tail[_COUNTS.size + 4 * number :]
