"""Expressions as DuckDB's SQL, each with the type it has in PostgreSQL and the shape it has there.

    price * (1 - discount)      numeric(12,2) * (int4 to numeric - numeric(4,2))
    (t1.c4 * (CAST('1' AS DECIMAL(1,0)) - ...))    DECIMAL(17,4)

Expressions that do not depend on the row are evaluated here, by `expr`, and written as literals: parameters,
now(), intervals, subqueries with one result. So DuckDB has to agree only on expressions over rows, which
seldom involve time zones.

Raises NotShared for everything that is not known to mean the same in DuckDB.

Walk: `sql.duck.rendering` renders plans and asks for their expressions; this asks `sql.duck.functions` for
templates, `sql.duck.numbers` for numeric, and back for subqueries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import reduce
from zoneinfo import ZoneInfo

from tenure.base.errors import TenureError
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.function_table import function_with_id
from tenure.expr.functions.function import Context, Volatility
from tenure.expr.tree.compiled import check, compile, volatility
from tenure.expr.tree.expressions import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    ContextValue,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    Nested,
    Node,
    Not,
    NullIf,
    Or,
    Quantified,
    nodes,
)
from tenure.expr.tree.overload_resolution import BOOL, result_type
from tenure.expr.types.arrays import ArrayOf, flatten
from tenure.expr.types.casts import zoned_cast
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.floats import FloatType
from tenure.expr.types.numbers import NumericType
from tenure.expr.types.type_names import EnumLookup, type_of
from tenure.sql.duck.duck_types import DuckType, NotShared, Value, decimal, literal, quoted, shape_of
from tenure.sql.duck.functions import CASTS, NOT_OF_DATES, PARTS, PATTERNS, TEMPLATES, TRUNCATED
from tenure.sql.duck.numbers import (
    NUMERIC,
    cast_to,
    common_decimal,
    comparable_decimal,
    from_numeric,
    shortened,
    to_numeric,
)
from tenure.sql.plans.trees import comparison, conjuncts, with_sign

SQL_LENGTH_MAX = 500_000
"""The longest SQL of one expression: templates that repeat an argument could grow it without bound."""

_BOOLEAN, _VARCHAR = DuckType("BOOLEAN"), DuckType("VARCHAR")
_TEXT, _NUMERIC = TypeRef("text"), TypeRef("numeric")


@dataclass(frozen=True, slots=True)
class ExpressionScope:
    """The values that expressions can use besides their row."""

    context: Context
    enum: EnumLookup | None
    subquery: Callable[[Nested, "Expressions"], Value]
    """Renders a subquery that depends on the row."""
    takes: Callable[[int], set[int]] = lambda number: set()
    """By a subquery's number: the context values that it takes from outside besides its arguments."""
    outer: Mapping[int, Value] = field(default_factory=dict)
    """Context values that are columns of an enclosing query."""


class Expressions:
    """Renders the expressions over one row."""

    def __init__(self, columns: Sequence[Value], scope: ExpressionScope) -> None:
        self.columns = columns
        self.scope = scope

    def condition(self, tree: Node) -> str:
        value = self.render(tree)
        if value.type.family != "bool":
            raise NotShared("a condition that is no boolean")
        return value.sql

    def render(self, tree: Node) -> Value:
        value = self._fixed(tree) if self._is_fixed(tree) else self._render(tree)
        if len(value.sql) > SQL_LENGTH_MAX:
            raise NotShared("an expression too long")
        return value

    # ── independent of rows ──────────────────────────────────────────────────────────────────────

    def _is_fixed(self, tree: Node) -> bool:
        if any(map(self._differs, nodes(tree))):
            return False
        if volatility(tree) is Volatility.VOLATILE:
            raise NotShared("a volatile function")
        return True

    def _differs(self, node: Node) -> bool:
        """Whether its value may be another one for each row."""
        match node:
            case ColumnRef():
                return True
            case ContextValue():
                return node.number in self.scope.outer
            case Nested():
                return not self.scope.takes(node.number).isdisjoint(self.scope.outer)
            case _:
                return False

    def _fixed(self, tree: Node) -> Value:
        kind, value = self.value(tree)
        return literal(kind, value)

    def value(self, tree: Node) -> tuple[Type, Datum]:
        """The value of an expression that needs no row. Its errors are left to the rows executor."""
        try:
            kind = check(tree, {}, self.scope.enum)
            return kind, compile(tree, {}, self.scope.enum)((), self.scope.context)
        except TenureError as error:
            raise NotShared("an expression that fails") from error

    # ── over rows ──────────────────────────────────────────────────────────────────────────────

    def _render(self, tree: Node) -> Value:
        match tree:
            case ColumnRef():
                return self.columns[tree.column]
            case ContextValue():
                return self.scope.outer[tree.number]
            case Nested():
                return self.scope.subquery(tree, self)
            case Call():
                return self._call(tree)
            case Cast():
                return self._cast(tree)
            case And():
                return _truth(" AND ".join(self.condition(each) for each in tree.operands))
            case Or():
                return _truth(either([self._conjuncts(each) for each in tree.operands]))
            case Not() | IsNull() | IsTruth() | IsDistinct():
                return self._test(tree)
            case Case() | Coalesce() | NullIf() | Extreme():
                return self._choice(tree)
            case InList():
                return self._in(tree)
            case Quantified():
                return self._any(tree)
            case _:
                raise NotShared(f"{type(tree).__name__} over rows")

    def _conjuncts(self, tree: Node) -> list[str]:
        """What is fixed as a whole stays whole: evaluated alone, a part of it may fail."""
        return [self.condition(each) for each in ([tree] if self._is_fixed(tree) else conjuncts(tree))]

    def _call(self, tree: Call) -> Value:
        if (result := self._with_unit(tree)) is not None:
            return result
        arguments = [self._argument(tree.function, each) for each in tree.arguments]
        try:
            return self.called(tree.function, arguments, self._pattern(tree))
        except NotShared:
            if (result := self._with_short_constant(tree, arguments)) is None:
                raise
            return result

    def _with_short_constant(self, tree: Call, arguments: Sequence[Value]) -> Value | None:
        """A decimal compared with a constant of so many digits that no decimal holds both."""
        found = comparison(tree)
        if found is None or found.sign == "=" or found.families != ("numeric", "numeric"):
            return None
        for each, value in ((found, arguments[0]), (found.turned, arguments[1])):
            if value.shape.is_plain and not self._is_fixed(each.left) and self._is_fixed(each.right):
                kind, number = self.value(each.right)
                sign, short = shortened(each.sign, number, value.shape.scale)
                return self.called(with_sign(tree.function, sign), (value, literal(kind, short)))
        return None

    def _argument(self, id: str, tree: Node) -> Value:
        """A literal beside a char(n) has no length, but as little to say about its spaces."""
        if not id.endswith("(char,char)") or not self._is_fixed(tree):
            return self.render(tree)
        kind, value = self.value(tree)
        return Value(quoted(value.rstrip(" ")), kind, _VARCHAR) if value is not None else literal(kind, None)

    def called(self, id: str, arguments: Sequence[Value], template: str | None = None) -> Value:
        """A function of arguments that are rendered already."""
        if not all(each.shape.is_plain for each in arguments):
            raise NotShared(f"{id} of values that only pass through")
        kind = result_type(function_with_id(id), [each.type for each in arguments])
        if id in NUMERIC:
            sql, shape = NUMERIC[id](*arguments)
            if kind.family == "numeric" and any(each.digits for each in arguments):
                raise NotShared("numbers whose digits after the point differ")
            return Value(sql, kind, shape)
        template = template or TEMPLATES.get(id)
        if template is None:
            raise NotShared(id)
        return Value(template.format(*[each.sql for each in arguments]), kind, shape_of(kind))

    def _pattern(self, tree: Call) -> str | None:
        """The faster template of LIKE, for a pattern that is known and escapes nothing."""
        if tree.function not in PATTERNS or not self._is_fixed(tree.arguments[1]):
            return None
        _, pattern = self.value(tree.arguments[1])
        return PATTERNS[tree.function] if pattern is not None and "\\" not in pattern else None

    def _with_unit(self, tree: Call) -> Value | None:
        """date_trunc, extract and date_part, by the word they are given; None if it is none of these."""
        name, _, types = tree.function.partition("(")
        if name not in ("date_trunc", "extract", "date_part"):
            return None
        of = types.rstrip(")").partition(",")[2]
        if of == "timestamptz":
            self._require_utc()
        if of not in ("date", "timestamp", "timestamptz") or not self._is_fixed(tree.arguments[0]):
            raise NotShared(tree.function)
        _, unit = self.value(tree.arguments[0])
        argument = self.render(tree.arguments[1])
        kind = result_type(function_with_id(tree.function), [type_of(_TEXT), argument.type])
        if name == "date_trunc":
            if unit not in TRUNCATED:
                raise NotShared(f"date_trunc to {unit}")
            return Value(f"date_trunc('{unit}', {argument.sql})", kind, argument.shape)
        if unit not in PARTS or (of == "date" and unit in NOT_OF_DATES):
            raise NotShared(f"{name} of {unit}")
        shape = decimal(5, 0) if name == "extract" else shape_of(kind)
        return Value(cast_to(f"date_part('{unit}', {argument.sql})", shape), kind, shape)

    def _cast(self, tree: Cast) -> Value:
        operand = self.render(tree.operand)
        target = type_of(tree.type, self.scope.enum)
        source = operand.type
        if isinstance(target, NumericType):
            number = Value(*_with_type(to_numeric(operand, target), target))
            return number if target.precision is not None else number._replace(digits=operand.digits)
        if isinstance(source, NumericType):
            return Value(*_with_type(from_numeric(operand, target), target))
        if target.ref == source.ref:
            return operand
        if target.ref.modifiers or target.ref.is_array or source.ref.is_array:
            raise NotShared(f"a cast to {target.sql_name}")
        if source.family == target.family and not isinstance(target, EnumOf):
            if source.family == "char":
                raise NotShared("char that keeps its spaces")
            return operand._replace(type=target)
        template = CASTS.get((source.family, target.family))
        if template is not None and zoned_cast(source, target, tree.context) is not None:
            self._require_utc()
        if template is None:
            raise NotShared(f"a cast from {source.sql_name} to {target.sql_name}")
        return Value(template.format(operand.sql), target, shape_of(target))

    def _require_utc(self) -> None:
        """DuckDB has instants in UTC: a function of the session's time zone agrees only if that is UTC."""
        if not is_utc(self.scope.context.zone):
            raise NotShared("a session's time zone")

    def _test(self, tree: Not | IsNull | IsTruth | IsDistinct) -> Value:
        match tree:
            case Not():
                return _truth(f"NOT {self.condition(tree.operand)}")
            case IsNull():
                return _truth(f"{self.render(tree.operand).sql} IS {_not(tree.is_negated)}NULL")
            case IsTruth():
                truth = {True: "TRUE", False: "FALSE", None: "NULL"}[tree.truth]
                is_word = "" if tree.is_negated else "NOT "
                return _truth(f"{self.condition(tree.operand)} IS {is_word}DISTINCT FROM {truth}")
            case IsDistinct():
                left, right = self._comparable(tree.equality, tree.left, tree.right)
                return _truth(f"{left} IS {_not(tree.is_negated)}DISTINCT FROM {right}")

    def _comparable(self, equality: str, left: Node, right: Node) -> tuple[str, str]:
        """Both sides of an equality, of one type that DuckDB compares."""
        a, b = self.render(left), self.render(right)
        self.called(equality, (a, b))
        if a.shape == b.shape:
            return a.sql, b.sql
        if not isinstance(a.type, NumericType):
            raise NotShared(f"{equality} of different shapes")
        both = comparable_decimal(a.shape, b.shape)
        return cast_to(a.sql, both), cast_to(b.sql, both)

    def _choice(self, tree: Case | Coalesce | NullIf | Extreme) -> Value:
        match tree:
            case Case():
                return self._case(tree)
            case Coalesce():
                values = [self.render(each) for each in tree.operands]
                kind, shape, sqls = unified(values)
                return Value(f"coalesce({', '.join(sqls)})", kind, shape)
            case NullIf():
                equal = self.called(tree.equality, (self.render(tree.left), self.render(tree.right)))
                result = self.render(tree.result)
                return result._replace(sql=f"CASE WHEN {equal.sql} THEN NULL ELSE {result.sql} END")
            case Extreme():
                values = [self.render(each) for each in tree.operands]
                kind, shape, sqls = unified(values)
                if not shape.is_plain or isinstance(kind, FloatType):
                    raise NotShared("the greatest of values that only pass through, or of 0 and -0")
                return Value(f"{'greatest' if tree.is_greatest else 'least'}({', '.join(sqls)})", kind, shape)

    def _case(self, tree: Case) -> Value:
        conditions = [self.condition(when) for when, _ in tree.branches]
        values = [self.render(then) for _, then in tree.branches]
        if tree.otherwise is not None:
            values.append(self.render(tree.otherwise))

        def written(cells: Sequence[str]) -> str:
            branches = [f"WHEN {when} THEN {then}" for when, then in zip(conditions, cells, strict=False)]
            otherwise = f" ELSE {cells[-1]}" if tree.otherwise is not None else ""
            return f"CASE {' '.join(branches)}{otherwise} END"

        if not _differ_in_digits(values):
            kind, shape, sqls = unified(values)
            return Value(written(sqls), kind, shape)
        shape = reduce(comparable_decimal, (each.shape for each in values))
        sql = written([cast_to(each.sql, shape) for each in values])
        digits = written([str(each.shape.scale) for each in values])
        return Value(sql, type_of(_NUMERIC), shape, digits)

    def _in(self, tree: InList) -> Value:
        operand = self.render(tree.operand)
        items = [self._argument(tree.equality, each) for each in tree.items]
        return self.among(tree.equality, operand, items, is_negated=tree.is_negated)

    def among(
        self, equality: str, operand: Value, items: Sequence[Value], *, is_negated: bool = False
    ) -> Value:
        """operand [NOT] IN (items): as so many equalities, which DuckDB turns into a set by itself."""
        if all(item.shape == operand.shape and item.type.family == operand.type.family for item in items):
            self.called(equality, (operand, operand))
            listed = ", ".join(item.sql for item in items)
            return _truth(f"{operand.sql} {_not(is_negated)}IN ({listed})")
        equalities = " OR ".join(self.called(equality, (operand, item)).sql for item in items)
        return _truth(f"NOT ({equalities})" if is_negated else equalities)

    def _any(self, tree: Quantified) -> Value:
        """= ANY of an array that is known, or <> ALL: a list of its members."""
        name = tree.function.partition("(")[0]
        if not self._is_fixed(tree.array) or (name, tree.is_all) not in (("=", False), ("<>", True)):
            raise NotShared("op ANY (array)")
        kind, array = self.value(tree.array)
        assert isinstance(kind, ArrayOf)
        operand = self.render(tree.operand)
        if array is None:
            return literal(BOOL, None)
        items = [literal(kind.element, each) for each in flatten(array)]
        if not items:
            return literal(BOOL, tree.is_all)
        equality = "=" + tree.function.removeprefix(name)
        return self.among(equality, operand, items, is_negated=tree.is_all)


def _differ_in_digits(values: Sequence[Value]) -> bool:
    """Whether these are decimals of different scales, each of its own."""
    return len({each.shape.scale for each in values}) > 1 and all(
        each.type.family == "numeric" and each.shape.is_plain and not each.digits for each in values
    )


def is_utc(zone: tzinfo) -> bool:
    return zone is UTC or (isinstance(zone, ZoneInfo) and zone.key in ("UTC", "Etc/UTC"))


def unified(values: Sequence[Value]) -> tuple[Type, DuckType, list[str]]:
    """Alternatives as one type and shape."""
    kind = values[0].type
    if len({each.type.family for each in values}) > 1 or any(each.digits for each in values):
        raise NotShared("alternatives of different types")
    if len({each.shape for each in values}) == 1 and len({each.type for each in values}) == 1:
        return kind, values[0].shape, [each.sql for each in values]
    if isinstance(kind, NumericType):
        shape = common_decimal([each.shape for each in values])
        return type_of(_NUMERIC), shape, [cast_to(each.sql, shape) for each in values]
    if kind.family in ("varchar", "text"):
        return kind, values[0].shape, [each.sql for each in values]
    raise NotShared("alternatives of different shapes")


def _with_type(sql_and_shape: tuple[str, DuckType], kind: Type) -> tuple[str, Type, DuckType]:
    return sql_and_shape[0], kind, sql_and_shape[1]


def either(alternatives: Sequence[Sequence[str]]) -> str:
    """An OR of ANDs. What all alternatives share comes first and once: a scan can filter by it.

    `access.disjunctions` does the same for plans, which know no constants that were lifted out of the text.
    """
    shared = [part for part in alternatives[0] if all(part in each for each in alternatives[1:])]
    rest = [[part for part in each if part not in shared] for each in alternatives]
    if not all(rest):
        return " AND ".join(shared)
    options = " OR ".join(
        conditions[0] if len(conditions) == 1 else f"({' AND '.join(conditions)})" for conditions in rest
    )
    return " AND ".join([*shared, f"({options})"]) if shared else options


def _truth(sql: str) -> Value:
    return Value(f"({sql})", BOOL, _BOOLEAN)


def _not(is_negated: bool) -> str:
    return "NOT " if is_negated else ""
