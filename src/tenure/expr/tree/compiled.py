"""Trees compiled to closures: built once, run for every row.

    evaluate = compile(tree, columns)       columns: id -> Type
    evaluate(row, context)                  row: id -> value

A node becomes one Python function of (row, context). What can be decided before the first row is:
constants are unpacked, overloads and casts looked up, the common shapes (a column, a constant, two
arguments) have closures of their own. Time and randomness come from the context alone.

NULL: a strict function is NULL if an argument is; AND and OR use three-valued logic.

Invariant (expr-strict): a strict function never sees NULL and answers NULL to it.
Invariant (expr-lazy): CASE, COALESCE, AND and OR leave what they do not need unevaluated.

Walk: `table` compiles defaults, checks and predicates with `compile`; `sql.rows` and `sql.duck` compile the
expressions of plans.
"""

from collections.abc import Callable, Mapping, Sequence

from tenure.base.errors import DatatypeMismatch, InvalidObject, UndefinedColumn
from tenure.expr.function_table import function_with_id
from tenure.expr.functions.function import Context, Function, Volatility
from tenure.expr.tree.closures import (
    Evaluate,
    Row,
    coalesce,
    extreme,
    first_true,
    null,
    over_members,
    strict,
    strict_of_two,
    three_valued,
    with_context,
    with_zone,
)
from tenure.expr.tree.expressions import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Const,
    ContextValue,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    MakeArray,
    Nested,
    Node,
    Not,
    NullIf,
    Or,
    Quantified,
    nodes,
)
from tenure.expr.tree.overload_resolution import BOOL, result_type
from tenure.expr.types.arrays import ArrayOf, check_shape
from tenure.expr.types.casts import asks_catalog, cast_function, zoned_cast
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.type_names import EnumLookup, type_of

__all__ = ["Context", "Evaluate", "Row", "check", "compile", "require_immutable", "volatility"]

_RANK = {Volatility.IMMUTABLE: 0, Volatility.STABLE: 1, Volatility.VOLATILE: 2}


def compile(tree: Node, columns: Mapping[int, Type], enum: EnumLookup | None = None) -> Evaluate:
    """Raises as `check` does; `enum` gives an enum's descriptor by its id."""
    return _Compiler(columns, enum).compile(tree)[0]


def check(tree: Node, columns: Mapping[int, Type], enum: EnumLookup | None = None) -> Type:
    """Returns the type of the tree. Raises UserErrors for a tree that is wrong."""
    return _Compiler(columns, enum).compile(tree)[1]


def volatility(tree: Node) -> Volatility:
    """That of its most volatile function."""
    found = [function_with_id(node.function).volatility for node in nodes(tree) if isinstance(node, Call)]
    return max(found, key=_RANK.__getitem__, default=Volatility.IMMUTABLE)


def require_immutable(tree: Node, what: str) -> None:
    """`what` is where it stands: "index predicate", "check constraint"."""
    if volatility(tree) is not Volatility.IMMUTABLE:
        raise InvalidObject(f"functions in {what} must be marked IMMUTABLE")


class _Compiler:
    def __init__(self, columns: Mapping[int, Type], enum: EnumLookup | None) -> None:
        self.columns = columns
        self.enum = enum

    def compile(self, tree: Node) -> tuple[Evaluate, Type]:
        match tree:
            case Const():
                return self._const(tree)
            case ColumnRef():
                return self._column(tree)
            case ContextValue() | Nested():
                return self._from_context(tree)
            case Call():
                return self._call(tree)
            case Cast():
                return self._cast(tree)
            case And() | Or():
                return self._logic(tree)
            case Not() | IsNull() | IsTruth() | IsDistinct():
                return self._test(tree), BOOL
            case Case():
                return self._case(tree)
            case Coalesce() | Extreme() | NullIf():
                return self._choice(tree)
            case InList():
                return self._in(tree), BOOL
            case Quantified():
                return self._quantified(tree), BOOL
            case MakeArray():
                return self._array(tree)

    def _const(self, tree: Const) -> tuple[Evaluate, Type]:
        kind = type_of(tree.type, self.enum)
        value = kind.unpack(tree.packed)
        return (lambda row, context: value), kind

    def _column(self, tree: ColumnRef) -> tuple[Evaluate, Type]:
        column = tree.column
        if column not in self.columns:
            raise UndefinedColumn(f"column {column} does not exist")
        return (lambda row, context: row[column]), self.columns[column]

    def _from_context(self, tree: ContextValue | Nested) -> tuple[Evaluate, Type]:
        number, kind = tree.number, type_of(tree.type, self.enum)
        if isinstance(tree, ContextValue):
            return (lambda row, context: context.context_values[number]), kind
        arguments = [self.compile(each)[0] for each in tree.arguments]
        return (
            lambda row, context: context.nested[number](context, *[each(row, context) for each in arguments])
        ), kind

    def _call(self, tree: Call) -> tuple[Evaluate, Type]:
        function = function_with_id(tree.function)
        operands = [self.compile(each) for each in tree.arguments]
        types = [kind for _, kind in operands]
        _check_arguments(function, types)
        run = function.run(*types) if function.wants_types else function.run
        evaluates = [evaluate for evaluate, _ in operands]
        kind = result_type(function, types)
        if function.wants_context:
            return with_context(run, evaluates, is_strict=function.is_strict), kind
        if not function.is_strict:
            return (lambda row, context: run(*[each(row, context) for each in evaluates])), kind
        if len(operands) == 2:
            return self._binary(run, tree, evaluates), kind
        return strict(run, evaluates), kind

    def _binary(self, run: Callable[..., Datum], tree: Call, evaluates: list[Evaluate]) -> Evaluate:
        left, right = tree.arguments
        if isinstance(left, ColumnRef) and isinstance(right, Const) and right.packed is not None:
            column, value = left.column, evaluates[1]({}, _NO_CONTEXT)

            def of_column_and_const(row: Row, context: Context) -> Datum:
                operand = row[column]
                return None if operand is None else run(operand, value)

            return of_column_and_const
        return strict_of_two(run, *evaluates)

    def _cast(self, tree: Cast) -> tuple[Evaluate, Type]:
        operand, source = self.compile(tree.operand)
        target = type_of(tree.type, self.enum)
        if asks_catalog(source, target):
            family = target.family
            return with_context(
                lambda context, value: context.object(family, value), [operand], is_strict=True
            ), target
        if (zoned := zoned_cast(source, target, tree.context)) is not None:
            return with_zone(zoned, operand), target
        convert = cast_function(source, target, tree.context)
        return (operand if convert is None else strict(convert, [operand])), target

    def _logic(self, tree: And | Or) -> tuple[Evaluate, Type]:
        # As in PostgreSQL, a constant that decides the result wins before any row is evaluated, in any
        # position.
        ordered = sorted(tree.operands, key=_varies)
        operands = [self._condition(each) for each in ordered]
        return three_valued(operands, stop=isinstance(tree, Or)), BOOL

    def _test(self, tree: Not | IsNull | IsTruth | IsDistinct) -> Evaluate:
        if isinstance(tree, IsDistinct):
            return self._distinct(tree)
        if isinstance(tree, IsNull):
            operand, wanted = self.compile(tree.operand)[0], not tree.is_negated
            return lambda row, context: (operand(row, context) is None) is wanted
        condition = self._condition(tree.operand)
        if isinstance(tree, Not):
            return lambda row, context: None if (truth := condition(row, context)) is None else not truth
        sought, wanted = tree.truth, not tree.is_negated
        return lambda row, context: (condition(row, context) is sought) is wanted

    def _distinct(self, tree: IsDistinct) -> Evaluate:
        equal, left, right = self._equality(tree.equality, tree.left, tree.right)
        is_negated = tree.is_negated

        def distinct(row: Row, context: Context) -> bool:
            a, b = left(row, context), right(row, context)
            is_same = (a is None and b is None) if a is None or b is None else equal(a, b)
            return bool(is_same) is is_negated

        return distinct

    def _case(self, tree: Case) -> tuple[Evaluate, Type]:
        typed_branches = [(self._condition(when), self.compile(then)) for when, then in tree.branches]
        otherwise = self.compile(tree.otherwise) if tree.otherwise is not None else None
        kind = _same([then[1] for _, then in typed_branches] + ([otherwise[1]] if otherwise else []))
        branches = [(when, then[0]) for when, then in typed_branches]
        return first_true(branches, otherwise[0] if otherwise else null), kind

    def _choice(self, tree: Coalesce | Extreme | NullIf) -> tuple[Evaluate, Type]:
        if isinstance(tree, NullIf):
            return self._nullif(tree)
        typed_operands = [self.compile(each) for each in tree.operands]
        kind = _same([each for _, each in typed_operands])
        operands = [evaluate for evaluate, _ in typed_operands]
        if isinstance(tree, Coalesce):
            return coalesce(operands), kind
        return extreme(operands, kind, max if tree.is_greatest else min), kind

    def _nullif(self, tree: NullIf) -> tuple[Evaluate, Type]:
        equal, left, right = self._equality(tree.equality, tree.left, tree.right)
        result, kind = self.compile(tree.result)

        def nullif(row: Row, context: Context) -> Datum:
            a, b = left(row, context), right(row, context)
            if a is not None and b is not None and equal(a, b):
                return None
            return result(row, context)

        return nullif, kind

    def _in(self, tree: InList) -> Evaluate:
        operand, _ = self.compile(tree.operand)
        found = not tree.is_negated
        if fixed := self._fixed_items(tree):
            self._equality(tree.equality, tree.operand, tree.items[0])  # all others are of its type
            return lambda row, context: (
                None if (sought := operand(row, context)) is None else (sought in fixed) is found
            )
        items = [self._equality(tree.equality, tree.operand, each) for each in tree.items]

        def is_in(row: Row, context: Context) -> bool | None:
            sought = operand(row, context)
            if sought is None:
                return None
            result: bool | None = not found
            for equal, _, item in items:
                value = item(row, context)
                if value is None:
                    result = None
                elif equal(sought, value):
                    return found
            return result

        return is_in

    def _fixed_items(self, tree: InList) -> frozenset[Datum]:
        """The items if they can be looked up in a set: constants without NULL, of a type that Python compares
        right."""
        if not all(isinstance(each, Const) and each.packed is not None for each in tree.items):
            return frozenset()
        operands = [self.compile(each) for each in (tree.operand, *tree.items)]
        types = [kind for _, kind in operands]
        if len({kind.family for kind in types}) > 1 or not types[0].compares_natively:
            return frozenset()
        return frozenset(evaluate({}, _NO_CONTEXT) for evaluate, _ in operands[1:])

    def _quantified(self, tree: Quantified) -> Evaluate:
        operand, left = self.compile(tree.operand)
        array, kind = self.compile(tree.array)
        if not isinstance(kind, ArrayOf):
            raise DatatypeMismatch("op ANY/ALL (array) requires array on right side")
        run = _runner(function_with_id(tree.function), [left, kind.element])
        return over_members(run, operand, array, stop=not tree.is_all)

    def _array(self, tree: MakeArray) -> tuple[Evaluate, Type]:
        kind = type_of(tree.type, self.enum)
        compiled = [self.compile(each) for each in tree.elements]
        elements = [evaluate for evaluate, _ in compiled]
        has_arrays = any(isinstance(of, ArrayOf) for _, of in compiled)

        def make(row: Row, context: Context) -> Datum:
            result = tuple(each(row, context) for each in elements)
            if has_arrays:
                if not any(result):
                    return ()
                check_shape(result)
            return result

        return make, kind

    def _equality(self, id: str, left: Node, right: Node) -> tuple[Callable[..., Datum], Evaluate, Evaluate]:
        (a, left_type), (b, right_type) = self.compile(left), self.compile(right)
        return _runner(function_with_id(id), [left_type, right_type]), a, b

    def _condition(self, tree: Node) -> Evaluate:
        evaluate, kind = self.compile(tree)
        if kind.family != "bool":
            raise DatatypeMismatch(f"a condition must be type boolean, not type {kind.sql_name}")
        return evaluate


def _varies(tree: Node) -> bool:
    return any(isinstance(each, ColumnRef | Nested) or _is_volatile(each) for each in nodes(tree))


def _is_volatile(node: Node) -> bool:
    return isinstance(node, Call) and function_with_id(node.function).volatility is Volatility.VOLATILE


_NO_CONTEXT = Context(0, 0, lambda: _refuse(), lambda: _refuse())


def _refuse() -> Datum:
    raise AssertionError("a constant asks nothing of the context")


def _runner(function: Function, types: Sequence[Type]) -> Callable[..., Datum]:
    _check_arguments(function, types)
    result: Callable[..., Datum] = function.run(*types) if function.wants_types else function.run
    return result


def _check_arguments(function: Function, types: Sequence[Type]) -> None:
    """Raises DatatypeMismatch unless the arguments have the function's very types."""
    expected = list(function.arguments)
    if function.is_variadic:
        expected += [expected[-1]] * (len(types) - len(expected))
    is_right = len(expected) == len(types) and all(
        family == kind.family
        or family in ("any", "anyelement", "anycompatible", "anynonarray")
        or (family in ("anyarray", "anycompatiblearray") and kind.category == "A")
        or (family == "anyenum" and kind.category == "E")
        for family, kind in zip(expected, types, strict=True)
    )
    if not is_right:
        type_names = ", ".join(each.sql_name for each in types)
        raise DatatypeMismatch(f"function {function.id} is called with ({type_names})")


def _same(types: Sequence[Type]) -> Type:
    known_types = [each for each in types if each.family != "unknown"] or list(types)
    if len({each.family for each in known_types}) > 1:
        names = ", ".join(each.sql_name for each in known_types)
        raise DatatypeMismatch(f"the alternatives have different types: {names}")
    return known_types[0]
