"""The frame of each row of a partition: ROWS, RANGE and GROUPS, with offsets and EXCLUDE.

    ROWS 2 PRECEDING      counted in rows
    GROUPS 1 FOLLOWING    counted in groups of peers
    RANGE '1 day' ...     by the value that ORDER BY sorts by; NULLs are near NULLs only

A frame is a `range` of positions; one with EXCLUDE may be a list.

Walk: `sql.rows.windows` asks `peers_of` and `Frames.of` for each partition.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from itertools import groupby
from typing import Any

from tenure.base.errors import BadFrameOffset, NullNotAllowed
from tenure.expr.functions.function import Context
from tenure.expr.tree.overload_resolution import resolve
from tenure.expr.types.datatype import Type
from tenure.expr.types.time_types import time_micros
from tenure.sql.plans.plan import Frame, FrameEdge, FrameMode, SortKey
from tenure.sql.rows.ordering import KeyOf
from tenure.sql.rows.run import Compiler, QueryRun, Tuple

Peers = Sequence[tuple[int, int]]


def peers_of(part: list[Tuple], key: KeyOf | None, context: Context) -> Peers:
    """For each row, the first of its peers and the one past the last."""
    if key is None:
        return [(0, len(part))] * len(part)
    found: list[tuple[int, int]] = []
    for _, group in groupby(part, key=lambda row: key(row, context)):
        count = sum(1 for _ in group)
        found += [(len(found), len(found) + count)] * count
    return found


class Frames:
    def __init__(
        self, frame: Frame, order: tuple[SortKey, ...], types: Mapping[int, Type], compiler: Compiler
    ) -> None:
        self._frame = frame
        self._offsets = [
            None if node is None else compiler.evaluate(node, {})
            for node in (frame.start_offset, frame.end_offset)
        ]
        self._range: _Range | None = None
        has_offset = frame.start_offset is not None or frame.end_offset is not None
        if frame.mode is FrameMode.RANGE and has_offset:
            node = frame.start_offset if frame.start_offset is not None else frame.end_offset
            assert node is not None
            self._range = _Range(order[0], compiler.type_of(node, {}), types, compiler)

    def of(self, run: QueryRun, part: list[Tuple], peers: Peers) -> Sequence[Sequence[int]]:
        offsets = self._evaluated_offsets(run)
        if self._range is not None:
            starts, ends = self._range.edges(run, part, peers, self._frame, offsets)
        elif self._frame.mode is FrameMode.GROUPS:
            starts, ends = _by_groups(self._frame, peers, offsets)
        elif self._frame.mode is FrameMode.ROWS:
            starts, ends = _by_rows(self._frame, len(part), offsets)
        else:
            starts, ends = _by_peers(self._frame, peers)
        frames = [range(start, max(start, end)) for start, end in zip(starts, ends, strict=True)]
        if not self._frame.exclude:
            return frames
        return [
            _without(frame, place, peers[place], self._frame.exclude) for place, frame in enumerate(frames)
        ]

    def _evaluated_offsets(self, run: QueryRun) -> tuple[Any, Any]:
        found = []
        for evaluate, side in zip(self._offsets, ("starting", "ending"), strict=True):
            value: Any = None
            if evaluate is not None:
                value = evaluate((), run.context)
                if value is None:
                    raise NullNotAllowed(f"frame {side} offset must not be null")
                if self._range is None and value < 0:
                    raise BadFrameOffset(f"frame {side} offset must not be negative")
            found.append(value)
        return found[0], found[1]


def _without(frame: range, place: int, peers: tuple[int, int], exclude: str) -> Sequence[int]:
    first, end = peers
    match exclude:
        case "current row":
            return [each for each in frame if each != place]
        case "group":
            return [each for each in frame if not first <= each < end]
        case _:
            return [each for each in frame if each == place or not first <= each < end]


def _by_rows(frame: Frame, count: int, offsets: tuple[Any, Any]) -> tuple[list[int], list[int]]:
    starts = [_clamped(_row_edge(frame.start, place, count, offsets[0]), count) for place in range(count)]
    ends = [
        count
        if frame.end is FrameEdge.UNBOUNDED_FOLLOWING
        else _clamped(_row_edge(frame.end, place, count, offsets[1]) + 1, count)
        for place in range(count)
    ]
    return starts, ends


def _row_edge(edge: FrameEdge, place: int, count: int, offset: Any) -> int:
    match edge:
        case FrameEdge.UNBOUNDED_PRECEDING:
            return 0
        case FrameEdge.UNBOUNDED_FOLLOWING:
            return count
        case FrameEdge.PRECEDING:
            return int(place - offset)
        case FrameEdge.FOLLOWING:
            return int(place + offset)
        case FrameEdge.CURRENT:
            return place


def _clamped(place: int, count: int) -> int:
    return min(max(place, 0), count)


def _by_peers(frame: Frame, peers: Peers) -> tuple[list[int], list[int]]:
    is_current = frame.start is FrameEdge.CURRENT
    starts = [first if is_current else 0 for first, _ in peers]
    is_current = frame.end is FrameEdge.CURRENT
    ends = [end if is_current else len(peers) for _, end in peers]
    return starts, ends


def _by_groups(frame: Frame, peers: Peers, offsets: tuple[Any, Any]) -> tuple[list[int], list[int]]:
    groups = list(dict.fromkeys(peers))
    number = {group: place for place, group in enumerate(groups)}
    count = len(groups)
    firsts = [*(first for first, _ in groups), len(peers)]
    starts, ends = [], []
    for group in peers:
        at = number[group]
        starts.append(firsts[_clamped(_row_edge(frame.start, at, count, offsets[0]), count)])
        if frame.end is FrameEdge.UNBOUNDED_FOLLOWING:
            ends.append(len(peers))
        else:
            ends.append(firsts[_clamped(_row_edge(frame.end, at, count, offsets[1]) + 1, count)])
    return starts, ends


_PLAIN = ("int2", "int4", "int8", "float4", "float8")


class _Range:
    """RANGE with an offset: edges by the value of the one ORDER BY expression."""

    def __init__(self, key: SortKey, offset: Type, types: Mapping[int, Type], compiler: Compiler) -> None:
        self._evaluate = compiler.evaluate(key.node, types)
        kind = compiler.type_of(key.node, types)
        self._is_descending = key.is_descending
        self._less, self._more = _shift("-", kind, offset), _shift("+", kind, offset)
        self._comparable = _COMPARED.get(kind.family, kind.comparable)
        self._offset = offset
        self._is_clock = kind.family == "time"

    def edges(
        self, run: QueryRun, part: list[Tuple], peers: Peers, frame: Frame, offsets: tuple[Any, Any]
    ) -> tuple[list[int], list[int]]:
        for value in offsets:
            if value is not None and self._is_negative(value):
                raise BadFrameOffset("invalid preceding or following size in window function")
        values = [self._evaluate(row, run.context) for row in part]
        places = [place for place, value in enumerate(values) if value is not None]
        lo, hi = (places[0], places[-1] + 1) if places else (0, 0)
        keys = [self._comparable(values[place]) for place in places]
        starts, ends = [], []
        for place, value in enumerate(values):
            near = lo if frame.start is not FrameEdge.UNBOUNDED_PRECEDING else 0
            if value is None:
                starts.append(peers[place][0] if frame.start is not FrameEdge.UNBOUNDED_PRECEDING else 0)
                is_open = frame.end is FrameEdge.UNBOUNDED_FOLLOWING
                ends.append(len(part) if is_open else peers[place][1])
                continue
            start = partial(self._edge, run.context, frame.start, value, offsets[0])
            starts.append(start(keys, near, peers[place], is_start=True))
            if frame.end is FrameEdge.UNBOUNDED_FOLLOWING:
                ends.append(len(part))
            else:
                end = partial(self._edge, run.context, frame.end, value, offsets[1])
                ends.append(end(keys, lo, peers[place], is_start=False))
        assert hi <= len(part)
        return starts, ends

    def _edge(
        self,
        context: Context,
        edge: FrameEdge,
        value: Any,
        offset: Any,
        keys: list[Any],
        base: int,
        peers: tuple[int, int],
        *,
        is_start: bool,
    ) -> int:
        if edge is FrameEdge.UNBOUNDED_PRECEDING:
            return 0
        if edge is FrameEdge.CURRENT:
            return peers[0] if is_start else peers[1]
        goes_down = (edge is FrameEdge.PRECEDING) is not self._is_descending
        bound = (self._less if goes_down else self._more)(context, value, offset)
        if _is_nan(bound) and not _is_nan(value):
            # An infinite value less an infinite offset: every number is within reach, NaN is not.
            bound = type(bound)("-inf" if is_start is not self._is_descending else "inf")
        sought = self._comparable(bound)
        if not self._is_descending:
            return base + (bisect_left if is_start else bisect_right)(keys, sought)
        # Greatest first: count from the other end.
        turned = keys[::-1]
        place = bisect_right(turned, sought) if is_start else bisect_left(turned, sought)
        return base + len(keys) - place

    def _is_negative(self, value: Any) -> bool:
        if self._is_clock:
            return bool(value.micros < 0)
        if self._offset.family == "interval":
            return bool(value < type(value)())
        return bool(value != value or value < 0)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | Decimal) and value != value


def _as_timestamp(value: date) -> datetime:
    """A day plus an interval is a timestamp: so days are compared as such."""
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _as_micros(value: time | int) -> int:
    return value if isinstance(value, int) else time_micros(value)


_COMPARED: dict[str, Callable[[Any], Any]] = {"date": _as_timestamp, "time": _as_micros}


def _shift(sign: str, kind: Type, offset: Type) -> Callable[[Context, Any, Any], Any]:
    """Adds without overflow: an edge may lie beyond the range of the type."""
    way = -1 if sign == "-" else 1
    if kind.family in _PLAIN:
        return (lambda _, a, b: a - b) if sign == "-" else (lambda _, a, b: a + b)
    if kind.family == "time":
        return lambda _, a, b: time_micros(a) + way * b.micros
    function, targets = resolve(sign, [kind, offset])
    run: Callable[..., Any] = function.run(*targets) if function.wants_types else function.run
    return run if function.wants_context else lambda _, a, b: run(a, b)
