"""x op ANY (SELECT ...) and op ALL, of one value or of a row: gathered once, then asked for each operand.

    x IN (...)            true if one is equal; else NULL if x or one of them is NULL; false of no rows at all
    (a, b) IN (...)       NULL if it is equal to none, but to one as far as neither has a NULL
    (a, b) < ANY (...)    true if it is less than the greatest; else NULL if a NULL comes first somewhere

No evaluation tries all rows. Equality looks up a set. An order comparison needs the least or greatest row
only; if that does not decide, rows that could make the result NULL are found by their values before the first
NULL. ALL is the negation of ANY with the opposite comparison, NULLs included.

Other operators, and comparisons of two types with different values in Python (a date and a timestamp), try
one row after the other.

Invariant (nested-null): IN, ANY and ALL follow PostgreSQL's three-valued logic.

Walk: `sql.rows.nested` asks here for its subqueries of these kinds.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import gt, lt
from typing import Any, TypeAlias

from tenure.base.memory import Holding
from tenure.expr.function_table import function_with_id
from tenure.expr.types.datatype import Type
from tenure.sql.plans.plan import NestedKind, Subquery
from tenure.sql.plans.trees import NEGATIONS, compares_as_is, with_sign
from tenure.sql.rows.ordering import comparable_of, row_key
from tenure.sql.rows.run import QueryRun, RowNode, Tuple

Truth: TypeAlias = bool | None
Answer: TypeAlias = Callable[..., Truth]
"""Takes the operands, one argument each."""


def quantified(subquery: Subquery) -> Callable[[QueryRun, RowNode, Holding], Answer]:
    """Makes, for a run, the function that answers for operands."""
    kinds = [output.type for output in subquery.plan.outputs]
    functions = [function_with_id(each) for each in subquery.functions]
    sign, is_any = functions[0].name, subquery.kind is NestedKind.IN
    families = [(each.arguments[0], each.arguments[-1]) for each in functions]
    if sign in NEGATIONS and all(map(compares_as_is, families)):
        return _compared(sign if is_any else NEGATIONS[sign], kinds, is_negated=not is_any)
    test = _test(subquery.functions, kinds)
    return lambda run, node, holding: _tried(_gathered(run, node, holding), test, stop=is_any)


def _compared(
    sign: str, kinds: Sequence[Type], *, is_negated: bool
) -> Callable[[QueryRun, RowNode, Holding], Answer]:
    """sign ANY (...), or its negation."""
    key = row_key(kinds)

    def gathered(run: QueryRun, node: RowNode, holding: Holding) -> Answer:
        rows = [key(row) for row in _gathered(run, node, holding)]
        match sign:
            case "=" if len(kinds) == 1:
                answer = _in_set({value for (value,) in rows}, comparable_of(kinds[0]))
            case "=":
                answer = _with_key(_AnyEqual(rows), key)
            case "<>":
                answer = _negated(_with_key(_AllEqual(rows, len(kinds)), key))
            case _:
                answer = _with_key(_AnyBeyond(rows, sign), key)
        return _negated(answer) if is_negated else answer

    return gathered


def _gathered(run: QueryRun, node: RowNode, holding: Holding) -> list[Tuple]:
    rows: list[Tuple] = []
    for row in node.start(run):
        holding.add(row)
        rows.append(row)
    return rows


def _with_key(answer: Callable[[Tuple], Truth], key: Callable[[Tuple], Tuple]) -> Answer:
    return lambda *operands: answer(key(operands))


def _negated(answer: Answer) -> Answer:
    def negated(*operands: Any) -> Truth:
        truth = answer(*operands)
        return None if truth is None else not truth

    return negated


# ── equality ───────────────────────────────────────────────────────────────────────────────────


def _in_set(members: set[Any], comparable: Callable[[Any], Any] | None) -> Answer:
    otherwise = None if None in members else False
    is_empty = not members

    def is_in(operand: Any) -> Truth:
        if is_empty:
            return False
        if operand is None:
            return None
        value = operand if comparable is None else comparable(operand)
        return True if value in members else otherwise

    return is_in


Places: TypeAlias = tuple[int, ...]


class _AnyEqual:
    """Rows grouped by the positions without NULL; for each group, sets of the values at the positions asked
    for."""

    def __init__(self, rows: Sequence[Tuple]) -> None:
        self._rows: defaultdict[Places, list[Tuple]] = defaultdict(list)
        for row in rows:
            self._rows[_places(row)].append(row)
        self._sets: dict[tuple[Places, Places], set[Tuple]] = {}

    def __call__(self, operand: Tuple) -> Truth:
        there = _places(operand)
        truth: Truth = False
        for places in self._rows:
            shared = tuple(place for place in places if place in there)
            if tuple([operand[place] for place in shared]) in self._set(places, shared):
                if len(shared) == len(operand):
                    return True
                truth = None
        return truth

    def _set(self, places: Places, shared: Places) -> set[Tuple]:
        members = self._sets.get((places, shared))
        if members is None:
            rows = self._rows[places]
            members = self._sets[places, shared] = {tuple([row[each] for each in shared]) for row in rows}
        return members


def _places(row: Tuple) -> Places:
    """The positions at which it has no NULL."""
    return tuple([place for place, value in enumerate(row) if value is not None])


class _AllEqual:
    """Whether all rows are equal to the operand: for that, no column may have two values."""

    def __init__(self, rows: Sequence[Tuple], width: int) -> None:
        self._is_empty = not rows
        self._values = [{row[place] for row in rows} for place in range(width)]
        self._has_null = any(None in values for values in self._values)
        for values in self._values:
            values.discard(None)

    def __call__(self, operand: Tuple) -> Truth:
        if self._is_empty:
            return True
        pairs = zip(operand, self._values, strict=True)
        if any(value is not None and values and values != {value} for value, values in pairs):
            return False
        return None if self._has_null or None in operand else True


# ── order ──────────────────────────────────────────────────────────────────────────────────────


class _AnyBeyond:
    """(a, b) < ANY (...), and > with the least row in place of the greatest."""

    def __init__(self, rows: Sequence[Tuple], sign: str) -> None:
        self._rows = [(row, _length(row)) for row in rows]
        self._is_before = lt if sign[0] == "<" else gt
        self._counts_equal = sign.endswith("=")
        self._furthest = _furthest(rows, max if sign[0] == "<" else min)
        self._cut = {row[:length] for row, length in self._rows if length < len(row)}
        self._beginnings: dict[int, set[Tuple]] = {}

    def __call__(self, operand: Tuple) -> Truth:
        if not self._rows:
            return False
        if self._is_true(operand):
            return True
        return None if self._meets_null(operand) else False

    def _is_true(self, operand: Tuple) -> bool:
        for value, bound in zip(operand, self._furthest, strict=True):
            if value is None or bound is None:
                return False
            if value != bound:
                return bool(self._is_before(value, bound))
        return self._counts_equal

    def _meets_null(self, operand: Tuple) -> bool:
        """Whether it is equal to some row up to the first NULL of either."""
        length = _length(operand)
        if any(operand[:end] in self._cut for end in range(min(length + 1, len(operand)))):
            return True
        return length < len(operand) and operand[:length] in self._beginning(length)

    def _beginning(self, length: int) -> set[Tuple]:
        beginnings = self._beginnings.get(length)
        if beginnings is None:
            beginnings = {row[:length] for row, its in self._rows if its >= length}
            self._beginnings[length] = beginnings
        return beginnings


def _length(row: Tuple) -> int:
    """How many values it has before its first NULL."""
    return row.index(None) if None in row else len(row)


def _furthest(rows: Sequence[Tuple], extreme: Callable[[Sequence[Any]], Any]) -> Tuple:
    """The greatest or least row, where a NULL is further back than any value.

    A row that sorts before any of them sorts before this one.
    """
    found: list[Any] = []
    for place in range(len(rows[0]) if rows else 0):
        values = [row[place] for row in rows if row[place] is not None]
        found.append(extreme(values) if values else None)
        rows = [row for row in rows if row[place] == found[-1]]
    return tuple(found)


# ── one after the other ────────────────────────────────────────────────────────────────────────

Test: TypeAlias = Callable[[Tuple, Tuple], Truth]


def _tried(rows: Sequence[Tuple], test: Test, *, stop: bool) -> Answer:
    def answer(*operands: Any) -> Truth:
        result: Truth = not stop
        for row in rows:
            truth = test(operands, row)
            if truth is stop:
                return stop
            if truth is None:
                result = None
        return result

    return answer


def _test(functions: Sequence[str], kinds: Sequence[Type]) -> Test:
    """Compares the operands with a row, by the functions of their types."""
    sign = function_with_id(functions[0]).name
    pairs = [_strict(each, kind) for each, kind in zip(functions, kinds, strict=True)]
    if len(pairs) == 1:
        only = pairs[0]
        return lambda operands, row: only(operands[0], row[0])
    if sign in ("=", "<>"):
        return lambda operands, row: _united(pairs, operands, row, decides=sign == "<>")
    equal = [_strict(with_sign(each, "="), kind) for each, kind in zip(functions, kinds, strict=True)]
    strict = [_strict(with_sign(each, sign[0]), kind) for each, kind in zip(functions, kinds, strict=True)]

    def ordered(operands: Tuple, row: Tuple) -> Truth:
        for place, (left, right) in enumerate(zip(operands, row, strict=True)):
            is_equal = equal[place](left, right)
            if is_equal is not True:
                return is_equal if is_equal is None else strict[place](left, right)
        return sign.endswith("=")

    return ordered


def _united(
    pairs: Sequence[Callable[[Any, Any], Truth]], operands: Tuple, row: Tuple, *, decides: bool
) -> Truth:
    truths = [pair(left, right) for pair, left, right in zip(pairs, operands, row, strict=True)]
    if decides in truths:
        return decides
    return None if None in truths else not decides


def _strict(id: str, kind: Type) -> Callable[[Any, Any], Truth]:
    function = function_with_id(id)
    run = function.run(kind, kind) if function.wants_types else function.run
    return lambda left, right: None if left is None or right is None else run(left, right)
