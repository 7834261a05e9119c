"""Constants are evaluated before the first row, as PostgreSQL does when it plans.

    UPDATE t SET small = 40000 WHERE false        fails (22003), although no row is changed
    CASE WHEN id < 0 THEN 1 / 0 END               fails (22012) for any ids
    CASE WHEN false THEN 1 / 0 END                does not: the branch is left out first

An expression is folded from the leaves up. Constants and the statement's parameters have a value; so has an
immutable function whose arguments have values, and a strict function with a NULL argument is NULL. AND, OR,
CASE and COALESCE do not fold operands that an earlier value makes irrelevant. Everything else varies. Folding
is a check: rows evaluate the expression again, as plans are shared by statements with other constants
(decision 0047).

An error of the class 0A000 is left for the row that needs the value: PostgreSQL would have one.

Walk: `sql.plans.constant_errors` keeps the expressions that `has_constants`; `sql.rows.runner` runs their
`folds`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from tenure.base.errors import NotSupported, UserError
from tenure.expr.function_table import function_with_id
from tenure.expr.functions.function import Context, Volatility
from tenure.expr.tree.compiled import check, compile
from tenure.expr.tree.expressions import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Const,
    ContextValue,
    InList,
    Nested,
    Node,
    Or,
    children,
    nodes,
)
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.casts import asks_catalog, zoned_cast
from tenure.expr.types.datatype import Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.type_names import EnumLookup, type_of

VARIES: Any = object()
Fold: TypeAlias = Callable[[Context], Any]
"""Gives the value, or VARIES. Raises as evaluating it does."""

_STABLE = frozenset(
    (
        *("to_char", "to_number", "to_date", "make_timestamptz", "convert_from", "convert_to", "pg_typeof"),
        *("enum_first", "enum_last", "enum_range", "overlaps"),
    )
)
"""Functions that depend on their arguments alone, but are stable in PostgreSQL, which does not fold them."""
_STRINGS = ("text", "varchar", "char", "name", "unknown")
_READ_BY_SETTINGS = ("date", "time", "timestamp", "timestamptz", "interval")
"""Types whose texts depend on settings in PostgreSQL: casts from and to strings are stable."""


def has_constants(tree: Node, parameters: int) -> bool:
    """Whether there is something to fold; `parameters` is how many context values are the statement's own."""
    return any(
        all(_is_known(each, parameters) for each in children(node)) and not _is_leaf(node)
        for node in nodes(tree)
    )


def folds(trees: Iterable[Node], parameters: int, enum: EnumLookup | None) -> tuple[Fold, ...]:
    folder = _Folder(parameters, enum)
    return tuple(folder.fold(each) for each in trees if has_constants(each, parameters))


def is_lazy(tree: Node) -> bool:
    """Whether evaluating it may leave out a part that is folded."""
    return any(isinstance(each, And | Or | Case | Coalesce | InList) for each in nodes(tree))


def _is_known(node: Node, parameters: int) -> bool:
    return isinstance(node, Const) or (isinstance(node, ContextValue) and node.number < parameters)


def _is_leaf(node: Node) -> bool:
    return isinstance(node, Const | ContextValue | ColumnRef)


class _Folder:
    def __init__(self, parameters: int, enum: EnumLookup | None) -> None:
        self._parameters = parameters
        self._enum = enum

    def fold(self, tree: Node) -> Fold:
        return self._folded(tree) or self._value(tree)

    def _folded(self, tree: Node) -> Fold | None:
        """None if the tree is constant as a whole: its parent evaluates it in one piece."""
        if _is_leaf(tree):
            return None if _is_known(tree, self._parameters) else _varies
        found = [self._folded(each) for each in children(tree)]
        if not any(found) and self._is_foldable(tree):
            return None
        folds = [run or self._value(each) for each, run in zip(children(tree), found, strict=True)]
        match tree:
            case And() | Or():
                return _logic(folds, decided_by=isinstance(tree, Or))
            case Case():
                return _case(folds, len(tree.branches))
            case Coalesce():
                return _coalesce(folds)
            case Call() if not function_with_id(tree.function).is_strict:
                return _rest(folds, is_strict=False)
            case _:
                return _rest(folds, is_strict=isinstance(tree, Call | Cast))

    def _value(self, tree: Node) -> Fold:
        evaluate = compile(tree, {}, self._enum)

        def value(context: Context) -> Any:
            try:
                return evaluate((), context)
            except UserError as error:
                if error.sqlstate == NotSupported.sqlstate:
                    return VARIES
                raise

        return value

    def _is_foldable(self, tree: Node) -> bool:
        match tree:
            case Call():
                function = function_with_id(tree.function)
                return function.volatility is Volatility.IMMUTABLE and function.name not in _STABLE
            case Cast():
                return self._is_fixed(tree)
            case Nested():
                return False
            case _:
                return True

    def _is_fixed(self, tree: Cast) -> bool:
        """Whether a cast gives the same in every session. A literal is read at once in any case."""
        source, target = check(tree.operand, {}, self._enum), type_of(tree.type, self._enum)
        if source.family == "unknown":
            return True
        if asks_catalog(source, target) or zoned_cast(source, target, tree.context) is not None:
            return False
        by_text = [each for each in (source, target) if each.family in _STRINGS]
        return len(by_text) != 1 or not any(_depends_on_settings(each) for each in (source, target))


def _depends_on_settings(kind: Type) -> bool:
    return kind.family in _READ_BY_SETTINGS or isinstance(kind, ArrayOf | EnumOf)


def _varies(context: Context) -> Any:
    return VARIES


def _rest(folds: Sequence[Fold], *, is_strict: bool) -> Fold:
    def rest(context: Context) -> Any:
        values = [each(context) for each in folds]
        return None if is_strict and None in values else VARIES

    return rest


def _logic(folds: Sequence[Fold], *, decided_by: bool) -> Fold:
    def logic(context: Context) -> Any:
        values = []
        for each in folds:
            value = each(context)
            if value is decided_by:
                return value
            values.append(value)
        if VARIES in values:
            return VARIES
        return None if None in values else not decided_by

    return logic


def _case(folds: Sequence[Fold], count: int) -> Fold:
    def case(context: Context) -> Any:
        has_varied = False
        for at in range(count):
            condition = folds[2 * at](context)
            if condition is VARIES:
                has_varied = True
                folds[2 * at + 1](context)
            elif condition is True:
                value = folds[2 * at + 1](context)
                return VARIES if has_varied else value
        value = folds[2 * count](context) if len(folds) > 2 * count else None
        return VARIES if has_varied else value

    return case


def _coalesce(folds: Sequence[Fold]) -> Fold:
    def coalesce(context: Context) -> Any:
        has_varied = False
        for each in folds:
            value = each(context)
            if value is VARIES:
                has_varied = True
            elif value is not None:
                return VARIES if has_varied else value
        return VARIES if has_varied else None

    return coalesce
