"""The heads that a SQLite store has, and the head clock: those that have moved since a time.

Walk: `storage.sqlite.section`, `storage.sqlite.reads` and `storage.sqlite.removals` -> `heads`;
`SqliteEngine.commit` -> `write_heads`; `storage.sqlite.poller` -> `moved_heads`;
`SqliteEngine.written_heads` -> `written_heads`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from tenure.base.timestamp import MAX_AT, ZERO_AT, Timestamp
from tenure.storage.engine import (
    EVERY_HEAD,
    HEAD_BYTES,
    Commit,
    CommitStatus,
    MovedHeads,
    Outcome,
    WrittenHeads,
    head_of,
)

Execute = Callable[[str, Sequence[object]], list[Any]]
"""Runs a statement; a tuple among its values is an array, which `carray` turns into rows."""

ROWS_AT_ONCE = 16
"""Rows of the head clock written by one statement: few commits move more heads."""

_MOVED = (
    "SELECT (SELECT at FROM clock), (SELECT at FROM head_clock WHERE head = x'')"
    " UNION ALL SELECT head, at FROM head_clock WHERE at > ?1"
)
_WRITTEN = "SELECT head, written_at FROM head_clock"
_UPSERT = (
    "INSERT INTO head_clock(head, at, written_at) VALUES {} ON CONFLICT (head)"
    " DO UPDATE SET at = excluded.at, written_at = max(written_at, excluded.written_at)"
)
_FORGET = "DELETE FROM head_clock WHERE head = ?"
_NEXT_HEAD = "SELECT min(substr(key, 1, 10)) FROM {} WHERE substr(key, 1, 10) >= ?"


Moves = tuple[Timestamp, Timestamp]
"""The newest commit that has moved a head, and the newest that has written to it."""


def write_heads(
    execute: Execute, members: Sequence[Commit], outcomes: Sequence[Outcome]
) -> Mapping[bytes, Moves]:
    """Writes what a group has moved, and returns it; what it has forgotten goes."""
    committed = [
        (commit, outcome.at)
        for commit, outcome in zip(members, outcomes, strict=True)
        if outcome.status is CommitStatus.COMMITTED
    ]
    moved = _moved_by(committed)
    for head in {head for commit, _ in committed for head in commit.forgotten}:
        moved.pop(head, None)
        execute(_FORGET, (head,))
    rows = [(head, *moves) for head, moves in moved.items()]
    for first in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[first : first + ROWS_AT_ONCE]
        execute(_upsert(len(some)), list(chain.from_iterable(some)))
    return moved


def _moved_by(committed: Iterable[tuple[Commit, Timestamp]]) -> dict[bytes, Moves]:
    moved: dict[bytes, Moves] = {}
    for commit, at in committed:
        for head in commit.thresholds:
            moved[head] = at, moved.get(head, (ZERO_AT, ZERO_AT))[1]
        heads = {*commit.moves, *[write[0][:HEAD_BYTES] for write in commit.writes]}
        moved |= dict.fromkeys(heads, (at, at))
    return moved


@lru_cache(maxsize=ROWS_AT_ONCE)
def _upsert(rows: int) -> str:
    return _UPSERT.format(",".join(["(?, ?, ?)"] * rows))


def moved_heads(execute: Execute, since_at: Timestamp) -> MovedHeads:
    """One statement, so clock and heads are of one snapshot."""
    (clock_at, kept_since_at), *rows = execute(_MOVED, (since_at,))
    if kept_since_at is None or kept_since_at > since_at:
        return MovedHeads(clock_at, None)
    return MovedHeads(clock_at, frozenset([head for head, _ in rows]))


def written_heads(execute: Execute) -> WrittenHeads:
    written_at = dict(execute(_WRITTEN, ()))
    return WrittenHeads(written_at.pop(EVERY_HEAD, MAX_AT), written_at)


def heads(
    execute: Execute, lo: bytes, hi: bytes, *, table: str = "live", heads_max: int | None = None
) -> list[bytes]:
    """The heads that keys of [lo, hi) can have, up to a limit, at the cost of one seek each."""
    head = head_of(lo)
    if len(head) == HEAD_BYTES and _stays_in(head, hi):
        return [head]
    found: list[bytes] = []
    statement = _NEXT_HEAD.format(table)
    while len(found) != heads_max:
        ((following,),) = execute(statement, (head,))
        if following is None or following >= hi:
            return found
        found.append(following)
        head = following + b"\0"
    return found


def _stays_in(head: bytes, hi: bytes) -> bool:
    """Whether all keys between this head and `hi` have this head."""
    if hi.startswith(head):
        return True
    following = (int.from_bytes(head, "big") + 1).to_bytes(HEAD_BYTES + 1, "big")
    return hi <= following[1:]
