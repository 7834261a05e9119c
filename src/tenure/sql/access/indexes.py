"""Which index a table is read by, from the condition on its rows.

    a = 1 AND b IN (2, 3) AND c > 4 AND d = 5       index (a, b, c): prefix a, b; c from 4, not itself
    id IN (SELECT ... LIMIT 10)                     index (id): the values of the subquery, as an array

A column counts as fixed by an equality with something that has no columns of the table: a constant,
a parameter, a value of an outer row. The comparison must be the index's own, on values as they stand
in its keys: between integer types, between float types, else within one type. A comparison that casts the
column (an int4 column with a numeric) cannot use an index.

A partial index serves only if each part of its predicate stands in the condition, word for word. The
condition stays on the scan; an index only leaves out rows that fail it.

Walk: `sql.access.joins` asks `best_access` for what could be lookups, `sql.access.order` asks
`usable_indexes`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from tenure.catalog.descriptors.definitions import Index, Table, readable
from tenure.expr.function_table import function_with_id
from tenure.expr.tree.expressions import (
    Call,
    Cast,
    ColumnRef,
    Const,
    InList,
    Nested,
    Node,
    Not,
    Quantified,
    columns,
    decode,
)
from tenure.expr.tree.overload_resolution import BOOL
from tenure.sql.plans.plan import Access, Among, Lookup, Scan, SpanEnd, Virtual
from tenure.sql.plans.trees import Comparison, compares_as_is, comparison, conjuncts, is_volatile, moved

Arrays: TypeAlias = Callable[[Nested], Node | None]
"""Gives, of `IN (SELECT ...)`, the values as an array, if they are few and the same for all rows."""


def best_access(scan: Scan, arrays: Arrays) -> Access | None:
    """The access that reads the fewest rows; None: a full scan."""
    fixed, bounds = _comparisons(scan, arrays)
    found = [_along(index, scan.table, fixed, bounds) for index in usable_indexes(scan)]
    ranked = [(rank, access) for access in found if (rank := _rank(access, scan.table)) > NOTHING]
    return max(ranked, key=lambda each: each[0])[1] if ranked else None


def best_lookup(table: Virtual, arrays: Arrays) -> Lookup | None:
    """The column by which the system table is asked; None: all its rows are made."""
    if not table.keys or table.condition is None:
        return None
    fixed, _ = _comparisons(table, arrays)
    return next((Lookup(column, fixed[column]) for column in table.keys if column in fixed), None)


def usable_indexes(scan: Scan) -> Iterator[Index]:
    conditions = conjuncts(scan.condition)
    places = {id: place for place, id in enumerate(scan.columns)}
    for index in readable(scan.table.indexes):
        if index.primary != index.id and index.primary != scan.table.primary:
            continue  # it belongs to a primary index that is still being added
        if index.primary == index.id and index.id != scan.table.primary:
            continue
        if index.predicate is None:
            yield index
        elif set(index.predicate.columns) <= places.keys():
            wanted = conjuncts(moved(decode(index.predicate.tree), places))
            if all(each in conditions for each in wanted):
                yield index


class _Edge(NamedTuple):
    sign: str
    value: Node


def _comparisons(
    scan: Scan | Virtual, arrays: Arrays
) -> tuple[dict[int, Node | Among], dict[int, list[_Edge]]]:
    """By column id: what it must be equal to, and what it must be less or greater than."""
    fixed: dict[int, Node | Among] = {}
    bounds: dict[int, list[_Edge]] = {}
    for each in conjuncts(scan.condition):
        if (among := _among(each, scan, arrays)) is not None:
            fixed.setdefault(among[0], among[1])
        elif isinstance(scan, Virtual) and (named := _matched(each, scan)) is not None:
            fixed.setdefault(*named)
        elif (found := _compared(each, scan)) is not None:
            column, sign, value = found
            if sign != "=":
                bounds.setdefault(column, []).append(_Edge(sign, value))
            elif not isinstance(fixed.get(column), Node):
                fixed[column] = value
    return fixed, bounds


def _compared(tree: Node, scan: Scan | Virtual) -> tuple[int, str, Node] | None:
    if isinstance(tree, ColumnRef):
        return scan.columns[tree.column], "=", Const(BOOL.ref, True)
    if isinstance(tree, Not) and isinstance(tree.operand, ColumnRef):
        return scan.columns[tree.operand.column], "=", Const(BOOL.ref, False)
    found = comparison(tree)
    if found is None or not compares_as_is(found.families):
        return None
    for each in (found, found.turned):
        column = _column(each, scan)
        if column is not None and _is_fixed(each.right):
            return column, each.sign, each.right
    return None


_WHOLE_NAME = re.compile(r"\^(?:\(([\w ]+)\)|([\w ]+))\$")
"""A pattern that only one text matches."""


def _matched(tree: Node, scan: Virtual) -> tuple[int, Node] | None:
    """relname ~ '^(users)$', as psql asks: the column and the text."""
    if not isinstance(tree, Call) or tree.function not in ("~(text,text)", "~(name,text)"):
        return None
    column, pattern = _column_of(tree.arguments[0], scan), tree.arguments[1]
    if column is None or not isinstance(pattern, Const) or not isinstance(pattern.packed, str):
        return None
    found = _WHOLE_NAME.fullmatch(pattern.packed)
    return None if found is None else (column, Const(pattern.type, found[1] or found[2]))


def _column(found: Comparison, scan: Scan | Virtual) -> int | None:
    return _column_of(found.left, scan)


def _column_of(tree: Node, scan: Scan | Virtual) -> int | None:
    """The table's column that it is; a varchar or name read as text is one too."""
    if isinstance(tree, Cast) and tree.type.name == "text" and not tree.type.is_array:
        inner = tree.operand
        if isinstance(inner, ColumnRef) and scan.outputs[inner.column].type.family in TEXT_FAMILIES:
            tree = inner
    return scan.columns[tree.column] if isinstance(tree, ColumnRef) else None


TEXT_FAMILIES = ("varchar", "text", "name")
"""Types whose values are texts as they are: they equal what they equal as text."""


def _is_fixed(tree: Node) -> bool:
    return not columns(tree) and not is_volatile(tree)


def _among(tree: Node, scan: Scan | Virtual, arrays: Arrays) -> tuple[int, Among] | None:
    match tree:
        case Nested() if tree.arguments and (array := arrays(tree)) is not None:
            column = _column_of(tree.arguments[0], scan)
            return None if column is None else (column, Among(array=array))
        case InList() if not tree.is_negated:
            among, equality = Among(tree.items), tree.equality
        case Quantified() if not tree.is_all:
            among, equality = Among(array=tree.array), tree.function
        case _:
            return None
    function = function_with_id(equality)
    families = function.arguments[0], function.arguments[-1]
    operands = among.items if among.array is None else (among.array,)
    column = _column_of(tree.operand, scan)
    is_usable = function.name == "=" and compares_as_is(families) and all(map(_is_fixed, operands))
    return (column, among) if column is not None and is_usable else None


def _along(
    index: Index, table: Table, fixed: dict[int, Node | Among], bounds: dict[int, list[_Edge]]
) -> Access:
    prefix: list[Node | Among] = []
    for part in index.parts:
        value = fixed.get(part.column)
        # With two lists all pairs would have to be looked up, so only one is used.
        if value is None or (isinstance(value, Among) and any(isinstance(each, Among) for each in prefix)):
            break
        prefix.append(value)
    is_unique = index.is_unique or index.id == table.primary
    if len(prefix) == len(index.parts):
        return Access(index.id, tuple(prefix), is_point=is_unique)
    part = index.parts[len(prefix)]
    edges = bounds.get(part.column, [])
    low, high = _edge(edges, (">", ">=")), _edge(edges, ("<", "<="))
    start, end = (high, low) if part.is_descending else (low, high)
    return Access(index.id, tuple(prefix), start, end)


def _edge(edges: Sequence[_Edge], signs: tuple[str, str]) -> SpanEnd | None:
    return next((SpanEnd(each.value, each.sign == signs[1]) for each in edges if each.sign in signs), None)


NOTHING = (0, 0, 0, 0)


def _rank(access: Access, table: Table) -> tuple[int, int, int, int]:
    """Greater is better: a row at most, more columns fixed, a narrower bound, no detour by another index."""
    count = len(access.prefix)
    sides = (access.start is not None) + (access.end is not None)
    is_primary = access.index == table.primary
    if not count and sides < 2 and not is_primary:
        # Half of an index with a lookup for each row is no better than a full scan.
        return NOTHING
    if not count and not sides:
        return NOTHING
    return int(access.is_point) + 1, count, sides, int(is_primary)
