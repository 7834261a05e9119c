"""Window functions: row_number, rank, lag, first_value and similar ones.

    function, targets = resolve_window("lag", types)
    column = function.run(window, *columns)

A function gets a whole partition at once, sorted: the `Window` says which rows are peers and what
the frame of each row is; each argument is a column, one value for each row. It returns a column.
(Aggregates over windows are run by their `Steps` over each frame.)

Walk: `sql` binds a call with `resolve_window`; its executor sorts, finds peers and frames, and runs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tenure.base.errors import InvalidNthValue, InvalidNtile
from tenure.expr.tree.overload_resolution import choose, type_named
from tenure.expr.types.datatype import Datum, Type


@dataclass(frozen=True, slots=True)
class Window:
    peers: Sequence[tuple[int, int]]
    """For each row, the first and the one past the last of the rows that ORDER BY does not tell apart."""
    frames: Sequence[Sequence[int]]
    """For each row, the rows of its frame in order; usually a range, with EXCLUDE perhaps a list."""

    @property
    def size(self) -> int:
        return len(self.peers)


Column = Sequence[Datum]


@dataclass(frozen=True, slots=True)
class WindowFunction:
    name: str
    arguments: tuple[str, ...]
    result: str
    run: Callable[..., Column]
    """run(window, *columns)"""
    is_variadic: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}({','.join(self.arguments)})"


def resolve_window(name: str, argument_types: Sequence[Type]) -> tuple[WindowFunction, tuple[Type, ...]]:
    """Returns the overload and the types its arguments have to be cast to."""
    return choose(name, _BY_NAME.get(name, []), argument_types)


def window_type(function: WindowFunction, argument_types: Sequence[Type]) -> Type:
    """The type of the result, for arguments of these types."""
    return type_named(function.result, function, argument_types)


def is_window_function(name: str) -> bool:
    return name in _BY_NAME


def _functions() -> Iterator[WindowFunction]:
    yield WindowFunction("row_number", (), "int8", lambda window: range(1, window.size + 1))
    yield WindowFunction("rank", (), "int8", lambda window: [first + 1 for first, _ in window.peers])
    yield WindowFunction("dense_rank", (), "int8", _dense_rank)
    yield WindowFunction("percent_rank", (), "float8", _percent_rank)
    yield WindowFunction(
        "cume_dist", (), "float8", lambda window: [end / window.size for _, end in window.peers]
    )
    yield WindowFunction("ntile", ("int4",), "int4", _ntile)
    for name, direction in (("lag", -1), ("lead", 1)):
        shift = _shift(direction)
        yield WindowFunction(name, ("anyelement",), "anyelement", shift)
        yield WindowFunction(name, ("anyelement", "int4"), "anyelement", shift)
        yield WindowFunction(name, ("anycompatible", "int4", "anycompatible"), "anycompatible", shift)
    yield WindowFunction("first_value", ("anyelement",), "anyelement", lambda window, of: _at(window, of, 0))
    yield WindowFunction("last_value", ("anyelement",), "anyelement", lambda window, of: _at(window, of, -1))
    yield WindowFunction("nth_value", ("anyelement", "int4"), "anyelement", _nth_value)


def _dense_rank(window: Window) -> Column:
    ranks, rank = [], 0
    for at, (first, _) in enumerate(window.peers):
        rank += at == first
        ranks.append(rank)
    return ranks


def _percent_rank(window: Window) -> Column:
    others = window.size - 1
    return [first / others if others else 0.0 for first, _ in window.peers]


def _ntile(window: Window, buckets: Column) -> Column:
    """Buckets of equal size; if the rows do not divide evenly, the first buckets have one row more."""
    count = buckets[0]
    if count is None:
        return [None] * window.size
    if count <= 0:
        raise InvalidNtile("argument of ntile must be greater than zero")
    size, greater = divmod(window.size, count)
    edge = greater * (size + 1)
    return [
        at // (size + 1) + 1 if at < edge else greater + (at - edge) // size + 1 for at in range(window.size)
    ]


def _shift(direction: int) -> Callable[..., Column]:
    def run(window: Window, of: Column, by: Column | None = None, otherwise: Column | None = None) -> Column:
        result: list[Datum] = []
        for at in range(window.size):
            distance = 1 if by is None else by[at]
            if distance is None:
                result.append(None)
                continue
            there = at + direction * distance
            if 0 <= there < window.size:
                result.append(of[there])
            else:
                result.append(None if otherwise is None else otherwise[at])
        return result

    return run


def _at(window: Window, of: Column, place: int) -> Column:
    return [of[frame[place]] if frame else None for frame in window.frames]


def _nth_value(window: Window, of: Column, places: Column) -> Column:
    result: list[Datum] = []
    for place, frame in zip(places, window.frames, strict=True):
        if place is not None and place <= 0:
            raise InvalidNthValue("argument of nth_value must be greater than zero")
        result.append(of[frame[place - 1]] if place is not None and place <= len(frame) else None)
    return result


WINDOW_FUNCTIONS: tuple[WindowFunction, ...] = tuple(_functions())
_BY_NAME: dict[str, list[WindowFunction]] = defaultdict(list)
for each in WINDOW_FUNCTIONS:
    _BY_NAME[each.name].append(each)
