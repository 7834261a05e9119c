"""Window functions and the windows they run over.

    rank() OVER (w ORDER BY x)     ... WINDOW w AS (PARTITION BY y)

A window's parts are bound where a call uses it, over the same row as the call's own arguments.

Walk: `sql.bind.calls` comes here with calls that have OVER.
"""

from typing import NamedTuple

from tenure.base.errors import (
    CannotCast,
    DatatypeMismatch,
    InvalidColumnReference,
    NotSupported,
    UndefinedObject,
    WindowFault,
)
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.aggregates.aggregate_table import is_aggregate
from tenure.expr.aggregates.window_functions import resolve_window, window_type
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef, Node, nodes
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.aggregates import aggregate
from tenure.sql.bind.clauses import check_window
from tenure.sql.bind.grouping import SET, WINDOW, found_at
from tenure.sql.bind.locations import at, location_of
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.bind.targets import check_equality, sort_keys
from tenure.sql.bind.values import INT8, TEXT
from tenure.sql.plans.plan import Frame, FrameEdge, FrameMode, SortKey, WindowCall
from tenure.sql.text.parse import Tree


class Spec(NamedTuple):
    """A window, bound."""

    partition: tuple[Node, ...]
    order: tuple[SortKey, ...]
    order_types: tuple[Type, ...]
    frame: Frame
    has_frame: bool


def call(tree: Tree, level: QueryLevel, name: str) -> Typed:
    location = tree.location
    if tree.agg_distinct:
        raise NotSupported("DISTINCT is not implemented for window functions", position=location + 1)
    if len(tree.agg_order) and not tree.agg_within_group:
        raise NotSupported(
            "aggregate ORDER BY is not implemented for window functions", position=location + 1
        )
    if tree.agg_within_group:
        raise NotSupported(f"OVER is not supported for ordered-set aggregate {name}", position=location + 1)
    window_call = _of_aggregate(tree, level, name) if is_aggregate(name) else _of_function(tree, level, name)
    operands = (
        *window_call.arguments,
        *((window_call.condition,) if window_call.condition is not None else ()),
    )
    if (inside := found_at(WINDOW, level.calls, *operands)) is not None:
        raise WindowFault("window function calls cannot be nested", position=inside + 1)
    if (inside := found_at(SET, level.calls, *operands)) is not None:
        raise NotSupported(
            "window function calls cannot contain set-returning function calls",
            hint="You might be able to move the set-returning function into a LATERAL FROM item.",
            position=inside + 1,
        )
    check_window(level.clause, location)
    spec = _spec(tree.over, level)
    return level.calls.window(
        WindowCall(
            window_call.function,
            window_call.arguments,
            window_call.type,
            spec.partition,
            spec.order,
            spec.frame,
            window_call.is_aggregate,
            window_call.condition,
        ),
        location,
    )


def _of_aggregate(tree: Tree, level: QueryLevel, name: str) -> WindowCall:
    aggregate_call = aggregate(tree, level, name)
    return WindowCall(
        aggregate_call.function,
        aggregate_call.arguments,
        aggregate_call.type,
        is_aggregate=True,
        condition=aggregate_call.condition,
    )


def _of_function(tree: Tree, level: QueryLevel, name: str) -> WindowCall:
    if tree.HasField("agg_filter"):
        raise NotSupported(
            "FILTER is not implemented for non-aggregate window functions", position=tree.location + 1
        )
    arguments = [level.expression(each) for each in tree.args]
    with at(tree.location):
        function, targets = resolve_window(name, [each.type for each in arguments])
        operands = build.with_casts(function, arguments, targets)
    kind_of_result = window_type(function, [each.type for each in operands])
    return WindowCall(function.id, tuple(each.node for each in operands), kind_of_result)


# The window itself


def add(level: QueryLevel, tree: Tree) -> None:
    """A part of the WINDOW clause."""
    if tree.name in level.windows:
        raise WindowFault(f'window "{tree.name}" is already defined', position=tree.location + 1)
    level.windows[tree.name] = tree


def _spec(tree: Tree, level: QueryLevel) -> Spec:
    if tree.name and not _is_definition(tree):
        return _bound(_named(tree.name, level, tree.location), level)
    return _bound(tree, level)


def _is_definition(tree: Tree) -> bool:
    return bool(tree.refname or len(tree.partition_clause) or len(tree.order_clause))


def check_unused(level: QueryLevel) -> None:
    """Binds the windows that no call uses: they must be valid, too."""
    for name, tree in level.windows.items():
        if name not in level.used_windows:
            _bound(tree, level)


def _named(name: str, level: QueryLevel, location: int) -> Tree:
    if name not in level.windows:
        raise UndefinedObject(f'window "{name}" does not exist', position=location + 1)
    level.used_windows.add(name)
    return level.windows[name]


def _bound(tree: Tree, level: QueryLevel) -> Spec:
    partition = tuple(_part(each, level) for each in tree.partition_clause)
    order, types = _order(tree, level)
    if tree.refname:
        base = _bound(_named(tree.refname, level, tree.location), level)
        for is_there, what in ((partition, "PARTITION BY"), (order and base.order, "ORDER BY")):
            if is_there:
                raise WindowFault(
                    f'cannot override {what} clause of window "{tree.refname}"', position=tree.location + 1
                )
        if base.has_frame:
            raise WindowFault(
                f'cannot copy window "{tree.refname}" because it has a frame clause',
                position=tree.location + 1,
            )
        partition = base.partition
        order, types = (order, types) if order else (base.order, base.order_types)
    frame = _frame(tree, level, types)
    return Spec(partition, order, types, frame, bool(tree.frame_options & _NONDEFAULT))


def _part(tree: Tree, level: QueryLevel) -> Node:
    typed = level.bind(tree, "window PARTITION BY")
    if typed.type.family == "unknown":
        typed = build.coerce(typed, TEXT)
    check_equality(typed.type, location_of(tree))
    return typed.node


def _order(tree: Tree, level: QueryLevel) -> tuple[tuple[SortKey, ...], tuple[Type, ...]]:
    types: list[Type] = []
    keys = sort_keys(tree.order_clause, level, "window ORDER BY", types)
    return keys, tuple(types)


# Frames. The bits are PostgreSQL's FRAMEOPTION_ constants.

_NONDEFAULT = 0x1
_MODES = {0x2: FrameMode.RANGE, 0x4: FrameMode.ROWS, 0x8: FrameMode.GROUPS}
_STARTS = {
    0x20: FrameEdge.UNBOUNDED_PRECEDING,
    0x80: FrameEdge.UNBOUNDED_FOLLOWING,
    0x200: FrameEdge.CURRENT,
    0x800: FrameEdge.PRECEDING,
    0x2000: FrameEdge.FOLLOWING,
}
_EXCLUDES = {0x8000: "current row", 0x10000: "group", 0x20000: "ties"}


def _frame(tree: Tree, level: QueryLevel, order: tuple[Type, ...]) -> Frame:
    options = tree.frame_options
    if not options & _NONDEFAULT:
        return Frame()
    mode = next(mode for bit, mode in _MODES.items() if options & bit)
    start = next(edge for bit, edge in _STARTS.items() if options & bit)
    end = next(edge for bit, edge in _STARTS.items() if options & bit << 1)
    exclude = next((word for bit, word in _EXCLUDES.items() if options & bit), "")
    if mode is FrameMode.GROUPS and not order:
        raise WindowFault("GROUPS mode requires an ORDER BY clause", position=tree.location + 1)
    return Frame(
        mode,
        start,
        end,
        _offset(tree, "start_offset", level, mode, order),
        _offset(tree, "end_offset", level, mode, order),
        exclude,
    )


def _offset(
    tree: Tree, field: str, level: QueryLevel, mode: FrameMode, order: tuple[Type, ...]
) -> Node | None:
    if not tree.HasField(field):
        return None
    inner = getattr(tree, field)
    word = mode.value.upper()
    target = _distance(order, tree.location, location_of(inner)) if mode is FrameMode.RANGE else INT8
    typed = level.bind(inner, "window frame")
    with at(location_of(inner)):
        try:
            offset = build.assign(typed, target)
        except (CannotCast, DatatypeMismatch):
            raise DatatypeMismatch(
                f"argument of {word} must be type {target.sql_name}, not type {typed.type.sql_name}"
            ) from None
        if any(isinstance(each, ColumnRef) for each in nodes(offset.node)):
            raise InvalidColumnReference(f"argument of {word} must not contain variables")
    return offset.node


_DISTANCES = {
    **dict.fromkeys(("int2", "int4", "int8"), "int8"),
    "numeric": "numeric",
    **dict.fromkeys(("float4", "float8"), "float8"),
    **dict.fromkeys(("date", "time", "timestamp", "timestamptz", "interval"), "interval"),
}


def _distance(order: tuple[Type, ...], location: int, offset: int) -> Type:
    """The offset that is added to a value of the ORDER BY column."""
    if len(order) != 1:
        raise WindowFault(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            position=location + 1,
        )
    if order[0].family not in _DISTANCES:
        raise NotSupported(
            f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {order[0].sql_name}",
            position=offset + 1,
        )
    return type_of(TypeRef(_DISTANCES[order[0].family]))
