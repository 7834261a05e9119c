"""Sorts that an index makes needless.

    ORDER BY a, b DESC        index (a, b DESC) forwards; (a DESC, b) backwards
    WHERE a = 1 ORDER BY b    index (a, b): a is the same everywhere

A Sort whose input is sorted already is marked so (`Sort.is_presorted`); the scan below it may have to run
backwards. Under a Limit an index is chosen for its order alone, if the scan has no better access.

Invariant (order-given): the input of a Sort marked `is_presorted` is sorted by its keys.

Walk: `sql.access.planner` calls `ordered` after indexes are chosen.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import Index, KeyPart
from tenure.expr.tree.expressions import ColumnRef
from tenure.sql.access.indexes import usable_indexes
from tenure.sql.plans.plan import (
    Access,
    Among,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Lock,
    Plan,
    Project,
    ProjectSet,
    Scan,
    Sort,
    SortKey,
    inputs,
    with_inputs,
)


def ordered(plan: Plan, *, is_limited: bool = False) -> Plan:
    if isinstance(plan, Sort):
        wanted = _wanted(plan.keys)
        found = None if wanted is None else _giving(plan.input, wanted, is_limited=is_limited)
        if found is not None:
            return replace(plan, input=ordered(found), is_presorted=True)
    is_limited = (isinstance(plan, Limit) and plan.count is not None) or (
        is_limited and isinstance(plan, Project | Lock)
    )
    return with_inputs(plan, [ordered(each, is_limited=is_limited) for each in inputs(plan)])


class _Wanted(NamedTuple):
    """A column by its position, and how it is sorted."""

    place: int
    is_descending: bool
    nulls_first: bool


def _wanted(keys: Sequence[SortKey]) -> list[_Wanted] | None:
    places = [key.node.column for key in keys if isinstance(key.node, ColumnRef)]
    if len(places) < len(keys):
        return None
    return [
        _Wanted(place, key.is_descending, key.nulls_first) for place, key in zip(places, keys, strict=True)
    ]


def _giving(plan: Plan, wanted: Sequence[_Wanted], *, is_limited: bool) -> Plan | None:
    """The plan made such that its rows come in this order; None if that cannot be."""
    match plan:
        case Scan():
            return _scan_giving(plan, wanted, is_limited=is_limited)
        case Filter() | Lock() | ProjectSet() | Distinct():
            if any(each.place >= len(plan.input.outputs) for each in wanted):
                return None
            below = _giving(plan.input, wanted, is_limited=is_limited)
        case Project():
            nodes = [plan.expressions[each.place] for each in wanted]
            below_wanted = [
                each._replace(place=node.column)
                for each, node in zip(wanted, nodes, strict=True)
                if isinstance(node, ColumnRef)
            ]
            if len(below_wanted) < len(wanted):
                return None
            below = _giving(plan.input, below_wanted, is_limited=is_limited)
        case Join() if plan.kind in _KEEPS_ORDER:
            if any(each.place >= len(plan.left.outputs) for each in wanted):
                return None
            left = _giving(plan.left, wanted, is_limited=is_limited)
            return None if left is None else replace(plan, left=left)
        case _:
            return None
    return None if below is None else with_inputs(plan, [below])


_KEEPS_ORDER = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
"""The rows of these joins come in the order of the left side."""


def _scan_giving(scan: Scan, wanted: Sequence[_Wanted], *, is_limited: bool) -> Scan | None:
    access = scan.access or Access(scan.table.primary)
    choices = [access]
    if scan.access is None and is_limited:
        choices += [Access(index.id) for index in usable_indexes(scan)]
    for choice in choices:
        index = scan.table.index(choice.index)
        direction = _direction(scan, index, choice, wanted)
        if direction is not None:
            chosen = None if choice == Access(scan.table.primary) else choice
            return replace(scan, access=chosen, is_reverse=direction)
    return None


def _direction(scan: Scan, index: Index, access: Access, wanted: Sequence[_Wanted]) -> bool | None:
    """Whether the index has to be read backwards; None if it does not give this order."""
    count = len(access.prefix)
    fixed = {
        part.column
        for part, value in zip(index.parts, access.prefix, strict=False)
        if not isinstance(value, Among)
    }
    several = [
        part for part, value in zip(index.parts, access.prefix, strict=False) if isinstance(value, Among)
    ]
    # After a column with several values, a fixed column is not constant over the whole scan.
    rest = [*several, *index.parts[count:]]
    if not index.is_unique and index.id != scan.table.primary:
        rest += scan.table.index(index.primary).parts
    if access.is_point and not several:
        return False
    seen = set(fixed)
    directions: set[bool] = set()
    for each in wanted:
        column = scan.columns[each.place]
        if column in seen:
            continue
        while rest and rest[0].column in seen:
            rest = rest[1:]
        if not rest or rest[0].column != column:
            return None
        directions.add(backwards := rest[0].is_descending is not each.is_descending)
        if not _nulls_fit(scan, rest[0], each, backwards):
            return None
        seen.add(column)
        rest = rest[1:]
        if _is_unique(scan, index, seen):
            break
    return None if len(directions) > 1 else True in directions


def _nulls_fit(scan: Scan, part: KeyPart, wanted: _Wanted, backwards: bool) -> bool:
    """NULLs stand last in a column that ascends; backwards first."""
    if not scan.table.column(part.column).is_nullable:
        return True
    return wanted.nulls_first is (part.is_descending is not backwards)


def _is_unique(scan: Scan, index: Index, seen: set[int]) -> bool:
    """Whether no two rows have the same values in these columns: then further keys change nothing."""
    primary = scan.table.index(scan.table.primary)
    if {part.column for part in primary.parts} <= seen:
        return True
    has_null = any(scan.table.column(part.column).is_nullable for part in index.parts)
    return index.is_unique and not has_null and {part.column for part in index.parts} <= seen
