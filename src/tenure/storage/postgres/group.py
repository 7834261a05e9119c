"""Turns groups of commits into the arrays that the section's function takes.

The members of a group go in *waves*: runs of members, in their order, none of which touches what
another of the same wave writes. Within a wave the function may therefore check all reads at once
and then make all writes at once, and still decide as if it had taken one member after the other.
Waves are runs, not layers, so that commit timestamps follow the order of the members.

Arrays travel in PostgreSQL's binary form with fixed types: psycopg would choose the type of an array by its
content, and each choice would be another statement to prepare.

Walk: `storage.postgres.postgres_engine` calls `encode_group`, `encode_reads` and `head_bounds`;
`storage.postgres.listener` calls `decode_heads`; pure.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

from tenure.base.timestamp import MAX_AT
from tenure.storage.engine import EVERY_HEAD, HEAD_BYTES, Commit, Group, Stamp, head_of
from tenure.storage.removals import first_place

INT8_OID, INT8_ARRAY_OID = 20, 1016
BYTEA_OID, BYTEA_ARRAY_OID = 17, 1001

HEADS_MAX = 300
"""How many heads a signal names: PostgreSQL carries 8,000 bytes, and a head is twenty."""

_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)


class Int8Array(list[int]):
    def encode(self) -> bytes:
        fields = [field for value in self for field in (8, value)]
        return _array_head(len(self), 0, INT8_OID) + struct.pack(">" + "iq" * len(self), *fields)


class ByteaArray(list[bytes | None]):
    def encode(self) -> bytes:
        parts = [_array_head(len(self), 1, BYTEA_OID)]
        for value in self:
            parts.append(_NULL if value is None else _LENGTH.pack(len(value)) + value)
        return b"".join(parts)


def _array_head(count: int, has_null: int, oid: int) -> bytes:
    if count == 0:
        return struct.pack(">iii", 0, 0, oid)
    return struct.pack(">iiiii", 1, has_null, oid, count, 1)


def head_bounds(lo: bytes, hi: bytes) -> tuple[bytes, bytes]:
    """Returns the first head a span can touch and a bound above the last one."""
    # Keys below a short `hi` have heads below it too; below a long one they may share its head.
    beyond = hi if len(hi) <= HEAD_BYTES else hi[:HEAD_BYTES] + b"\0"
    first = head_of(lo)
    if len(first) == HEAD_BYTES and hi <= _next_head(first):
        beyond = first + b"\0"
    return first, beyond


def _next_head(head: bytes) -> bytes:
    """The smallest key that is above all keys of a full head."""
    stripped = head.rstrip(b"\xff")
    if not stripped:
        return b"\xff" * (HEAD_BYTES + 1)
    return stripped[:-1] + bytes([stripped[-1] + 1])


def encode_reads(members: Sequence[Commit]) -> list[object]:
    """The arguments of `failures` after the clock; `commit_group` takes them too."""
    points = [(nr, key) for nr, member in enumerate(members, 1) for key in member.points]
    absent = [(nr, key) for nr, member in enumerate(members, 1) for key in member.absent]
    spans = [
        (nr, lo, hi, *head_bounds(lo, hi)) for nr, member in enumerate(members, 1) for lo, hi in member.spans
    ]
    guards = [(nr, *guard) for nr, member in enumerate(members, 1) for guard in member.guards]
    return [
        Int8Array([0, *accumulate(len(member.excused) for member in members)]),
        Int8Array(at for member in members for at in member.excused),
        *_columns(points, "ib"),
        *_columns(absent, "ib"),
        *_columns(spans, "ibbbb"),
        *_columns(guards, "ibbbb"),
    ]


def encode_group(group: Group) -> list[object]:
    members = group.members
    writes = [
        (nr, write.key, write.value, *_stamp(write.key_stamp), *_stamp(write.value_stamp))
        for nr, member in enumerate(members, 1)
        for write in member.writes
    ]
    removals = [
        (nr, r.lo, r.hi, *head_bounds(r.lo, r.hi), int(r.removes), r.at, r.limit, *first_place(r))
        for nr, member in enumerate(members, 1)
        for r in member.removals
    ]
    moves = [
        (nr, head, is_written)
        for nr, member in enumerate(members, 1)
        for head, is_written in _moved_heads(member).items()
    ]
    points = [sorted(removal.points) for member in members for removal in member.removals]
    return [
        group.lane,
        group.seq,
        group.wall_at,
        group.max_offset_micros,
        encode_heads(head for _, head, _ in moves),
        Int8Array(member.read_at for member in members),
        Int8Array(MAX_AT if m.deadline_at is None else m.deadline_at for m in members),
        Int8Array(-1 if m.not_before_at is None else m.not_before_at for m in members),
        *encode_reads(members),
        *_columns(writes, "ibbiiii"),
        *_columns(moves, "ibi"),
        *_columns(removals, "ibbbbiiiibi"),
        Int8Array([0, *accumulate(map(len, points))]),
        Int8Array(chain.from_iterable(points)),
        *_wave_ends(members),
    ]


def _moved_heads(member: Commit) -> dict[bytes, int]:
    """The heads that a commit moves: 1 for those that count as written to, 2 for those that are forgotten."""
    moved = dict.fromkeys(member.thresholds, 0)
    moved |= dict.fromkeys([*member.moves, *[write[0][:HEAD_BYTES] for write in member.writes]], 1)
    return moved | dict.fromkeys(member.forgotten, 2)


def encode_heads(heads: Iterable[bytes]) -> str:
    """The text of a signal: the heads that the group may have written to, or nothing if they are too many."""
    distinct = set(heads)
    is_known = EVERY_HEAD not in distinct and len(distinct) <= HEADS_MAX
    return b"".join(distinct).hex() if is_known else ""


def decode_heads(text: str) -> list[bytes] | None:
    """None: any head may have been written to."""
    heads = bytes.fromhex(text)
    return [heads[at : at + HEAD_BYTES] for at in range(0, len(heads), HEAD_BYTES)] or None


def _stamp(stamp: Stamp | None) -> tuple[int, int]:
    return (-1, 0) if stamp is None else (stamp.offset, stamp.plus)


def _columns(rows: Sequence[tuple[object, ...]], kinds: str) -> list[object]:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    make = {"i": Int8Array, "b": ByteaArray}
    return [make[kind](column) for kind, column in zip(kinds, columns, strict=True)]


def _wave_ends(members: Sequence[Commit]) -> list[object]:
    """For each wave the number of members, points, absent keys, spans, guards and writes up to its end."""
    ends = wave_ends(members)

    def counted(sizes: Iterable[int]) -> Int8Array:
        totals = [0, *accumulate(sizes)]
        return Int8Array(totals[end] for end in ends)

    return [
        Int8Array(ends),
        counted(len(member.points) for member in members),
        counted(len(member.absent) for member in members),
        counted(len(member.spans) for member in members),
        counted(len(member.guards) for member in members),
        counted(len(member.writes) for member in members),
    ]


def wave_ends(members: Sequence[Commit]) -> list[int]:
    """Splits members into waves; returns the number of members up to the end of each."""
    ends: list[int] = []
    wave = _Wave()
    for nr, member in enumerate(members):
        if nr > 0 and wave.touches(member):
            ends.append(nr)
            wave = _Wave()
        wave.add(member)
    return [*ends, len(members)] if members else []


class _Wave:
    """What the members of a wave write: single keys, and spans of keys stamped at commit."""

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._spans: list[tuple[bytes, bytes]] = []
        self._is_closed = False

    def add(self, member: Commit) -> None:
        for write in member.writes:
            if write.key_stamp is None:
                self._keys.append(write.key)
            else:
                self._spans.append(_span_of(write.key[: write.key_stamp.offset]))
        self._keys.sort()
        # Removals go alone: their effects on other members are not worth telling apart.
        self._is_closed = bool(member.removals)

    def touches(self, member: Commit) -> bool:
        if self._is_closed or member.removals:
            return True
        if not self._keys and not self._spans:
            return False
        return any(self._has_in(lo, hi) for lo, hi in _spans_touched(member))

    def _has_in(self, lo: bytes, hi: bytes) -> bool:
        """Whether a written key may lie in the closed interval [lo, hi]."""
        if bisect_left(self._keys, lo) < bisect_right(self._keys, hi):
            return True
        return any(lo <= last and first <= hi for first, last in self._spans)


def _spans_touched(member: Commit) -> Iterable[tuple[bytes, bytes]]:
    """Closed intervals; a half-open span is widened a little, which costs a wave at most."""
    for key in (*member.points, *member.absent):
        yield key, key
    yield from member.spans
    for guard in member.guards:
        yield guard.threshold_first, guard.threshold_last
        yield guard.cleaned_first, guard.cleaned_last
    for write in member.writes:
        stamp = write.key_stamp
        yield (write.key, write.key) if stamp is None else _span_of(write.key[: stamp.offset])


def _span_of(prefix: bytes) -> tuple[bytes, bytes]:
    stripped = prefix.rstrip(b"\xff")
    if not stripped:
        return prefix, b"\xff" * 4096
    return prefix, stripped[:-1] + bytes([stripped[-1] + 1])
