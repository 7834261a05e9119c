"""Plans as DuckDB's SQL: one nested SELECT for each node that needs one.

    Sort(#1 desc)                     SELECT t2.c0, t2.c1 FROM (
      Aggregate(keys #0; count())       SELECT t1.c0 AS c0, count(*) AS c1 FROM (
        Scan(people: city)                SELECT t0.c7 AS c0 FROM d104 AS t0) AS t1
                                        GROUP BY ...) AS t2 ORDER BY t2.c1 DESC NULLS FIRST

The SQL is made of the bound plan, never of the user's text: names are numbers, values are literals that
`duck_types.literal` writes. Tables appear as d<id> with columns c<id>; the engine defines them when it runs
the query.

Order: a Sort only notes what rows are sorted by; it is written where it counts, at a Limit and at the
very top. Nodes in between carry the keys along as columns o0, o1, ... beside those of their own.

Walk: `sql.duck.offload` -> `render` -> `sql.duck.expressions`; `sql.duck.aggregates` has the aggregates and
windows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import Table
from tenure.expr.functions.function import Context
from tenure.expr.tree.expressions import ColumnRef, Nested
from tenure.expr.tree.overload_resolution import BOOL
from tenure.expr.types.type_names import EnumLookup
from tenure.sql.duck.aggregates import aggregate_sql, window_sql
from tenure.sql.duck.duck_types import DuckType, NotShared, Value, literal, shape_of
from tenure.sql.duck.expressions import Expressions, ExpressionScope, unified
from tenure.sql.plans.free_values import FreeValues
from tenure.sql.plans.plan import (
    Aggregate,
    Distinct,
    Filter,
    FunctionScan,
    Join,
    JoinKind,
    Limit,
    NestedKind,
    Plan,
    Project,
    Query,
    Scan,
    SetOperation,
    Shared,
    Sort,
    SortKey,
    Subquery,
    Values,
    Window,
)
from tenure.sql.plans.trees import rows_compared


@dataclass(frozen=True, slots=True)
class Rendered:
    select: str
    withs: tuple[tuple[str, str], ...]
    """WITH queries by name, in an order in which they can be made."""
    tables: Mapping[int, "Used"]
    """The tables that d<id> means."""
    columns: tuple[Value, ...]
    """Types and shapes of the results."""
    is_first: bool = False
    """Whether of the rows of a table only the first few in some order are wanted."""


@dataclass(slots=True)
class Used:
    table: Table
    columns: set[int] = field(default_factory=set)
    scans: list[Scan | None] = field(default_factory=list)
    """Each time it is read; None if what is read depends on another row."""

    @property
    def times(self) -> int:
        return len(self.scans)


class Relation(NamedTuple):
    """Something to select from, with the columns that the selecting query may name."""

    source: str
    columns: tuple[Value, ...]
    order: tuple["Term", ...] = ()
    """The keys that its rows are sorted by."""
    is_join: bool = False
    """Whether the source is a join of several, not one thing with a name."""


class Term(NamedTuple):
    """A key to sort by, and which way."""

    key: str
    way: str


def render(query: Query, plan: Plan, context: Context, enum: EnumLookup | None = None) -> Rendered | None:
    """The SQL of a plan within a query; None if any part of it might have another meaning in DuckDB.

    It holds for this execution: values that the context gives are written into it.
    """
    renderer = _Renderer(query, context, enum)
    try:
        relation = renderer.relation(plan, {})
    except NotShared:
        return None
    withs = tuple((f"s{number}", sql) for number, (sql, _) in renderer.shared.items())
    return Rendered(_top(relation), withs, renderer.tables, relation.columns, renderer.is_first)


class _Renderer:
    def __init__(self, query: Query, context: Context, enum: EnumLookup | None) -> None:
        self.query = query
        self.free = FreeValues(query)
        self.context = context
        self.enum = enum
        self.tables: dict[int, Used] = {}
        self.shared: dict[int, tuple[str, tuple[Value, ...]]] = {}
        """WITH queries: their SQL and columns."""
        self.is_first = False
        self._names = 0

    def relation(self, plan: Plan, outer: Mapping[int, Value]) -> Relation:
        match plan:
            case Scan():
                return self._scan(plan, outer)
            case Values():
                return self._values(plan, outer)
            case FunctionScan():
                return self._series(plan, outer)
            case Filter():
                input = self.relation(plan.input, outer)
                where = self._over(input, outer).condition(plan.condition)
                return self._select(input, input.columns, f" WHERE {where}")
            case Project():
                return self._project(plan, outer)
            case Join():
                return self._join(plan, outer)
            case Aggregate() | Window():
                return self._grouped(plan, outer)
            case Sort():
                input = self.relation(plan.input, outer)
                return input._replace(order=(*self._order(input, plan.keys, outer), *input.order))
            case Limit():
                return self._limit(plan, outer)
            case Distinct():
                return self._distinct(plan, outer)
            case SetOperation():
                return self._set(plan, outer)
            case Shared():
                return self._with(plan)
            case _:
                raise NotShared(type(plan).__name__)

    # ── the parts of a SELECT ──────────────────────────────────────────────────────────────────

    def _name(self) -> str:
        self._names += 1
        return f"t{self._names}"

    def _over(self, input: Relation, outer: Mapping[int, Value]) -> Expressions:
        return self._expressions(input.columns, outer)

    def _expressions(self, columns: Sequence[Value], outer: Mapping[int, Value]) -> Expressions:
        return Expressions(
            columns, ExpressionScope(self.context, self.enum, self._subquery, self._takes, outer)
        )

    def _select(
        self, input: Relation, columns: Sequence[Value], tail: str = "", distinct: str = ""
    ) -> Relation:
        """SELECT columns FROM input ..., under a new name; what rows are sorted by comes along."""
        if any(each.digits for each in columns):
            raise NotShared("numbers whose digits after the point differ")
        select_list = [f"{each.sql} AS c{at}" for at, each in enumerate(columns)]
        select_list += [f"{key} AS o{at}" for at, (key, _) in enumerate(input.order)]
        name = self._name()
        source = (
            f"(SELECT {distinct}{', '.join(select_list) or '1 AS one'} FROM {input.source}{tail}) AS {name}"
        )
        order = tuple(Term(f"{name}.o{at}", way) for at, (_, way) in enumerate(input.order))
        return Relation(source, _named(name, columns), order)

    def _order(
        self, input: Relation, keys: Sequence[SortKey], outer: Mapping[int, Value]
    ) -> tuple[Term, ...]:
        over = self._over(input, outer)
        terms = []
        for key in keys:
            value = over.render(key.node)
            if not value.shape.is_plain:
                raise NotShared("an order of values that only pass through")
            way = "DESC" if key.is_descending else "ASC"
            terms.append(Term(value.sql, f"{way} NULLS {'FIRST' if key.nulls_first else 'LAST'}"))
        return tuple(terms)

    # ── where rows come from ───────────────────────────────────────────────────────────────────

    def _scan(self, plan: Scan, outer: Mapping[int, Value]) -> Relation:
        relation = self._scanned(plan, outer)
        if plan.condition is None:
            return relation
        where = self._over(relation, outer).condition(plan.condition)
        return self._select(relation, relation.columns, f" WHERE {where}")

    def _scanned(self, plan: Scan, outer: Mapping[int, Value]) -> Relation:
        """A table's rows, under any condition."""
        used = self.tables.setdefault(plan.table.id, Used(plan.table))
        if used.table != plan.table:
            raise NotShared("two versions of a table")
        used.columns.update(plan.columns)
        used.scans.append(None if outer else plan)
        name = self._name()
        columns = tuple(
            Value(f"{name}.c{id}", output.type, shape_of(output.type))
            for id, output in zip(plan.columns, plan.outputs, strict=True)
        )
        return Relation(f"d{plan.table.id} AS {name}", columns)

    def _values(self, plan: Values, outer: Mapping[int, Value]) -> Relation:
        name = self._name()
        over = self._expressions((), outer)
        rows = [[over.render(each) for each in row] for row in plan.rows]
        if not plan.outputs:
            values_sql = ", ".join("(1)" for _ in rows)
            return Relation(f"(VALUES {values_sql}) AS {name}" if rows else _nothing(name, ()), ())
        if not rows:
            columns = [literal(output.type, None) for output in plan.outputs]
            return Relation(_nothing(name, columns), _named(name, columns))
        united = [unified([row[at] for row in rows]) for at in range(len(plan.outputs))]
        listed = ", ".join(
            f"({', '.join(cells)})" for cells in zip(*[sqls for _, _, sqls in united], strict=True)
        )
        names = ", ".join(f"c{at}" for at in range(len(united)))
        columns = [Value("", kind, shape) for kind, shape, _ in united]
        return Relation(f"(VALUES {listed}) AS {name}({names})", _named(name, columns))

    def _series(self, plan: FunctionScan, outer: Mapping[int, Value]) -> Relation:
        """generate_series of whole numbers that are known."""
        call = plan.calls[0]
        family = call.function.removeprefix("generate_series(").partition(",")[0]
        if len(plan.calls) > 1 or plan.has_ordinality or family not in ("int4", "int8"):
            raise NotShared("a set-returning function")
        over = self._expressions((), outer)
        numbers = [over.value(each)[1] for each in call.arguments]
        if None in numbers or not call.function.startswith("generate_series("):
            raise NotShared("a series without end")
        name, shape = self._name(), shape_of(plan.outputs[0].type)
        series = f"generate_series({', '.join(map(str, numbers))}) AS g(x)"
        inner = f"SELECT CAST(x AS {shape.sql}) AS c0 FROM {series}"
        return Relation(f"({inner}) AS {name}", _named(name, [Value("", plan.outputs[0].type, shape)]))

    def _with(self, plan: Shared) -> Relation:
        if plan.number not in self.shared:
            relation = self.relation(self.query.shared[plan.number], {})
            self.shared[plan.number] = _top(relation), relation.columns
        name = self._name()
        return Relation(f"s{plan.number} AS {name}", _named(name, self.shared[plan.number][1]))

    # ── rows from rows ─────────────────────────────────────────────────────────────────────────

    def _project(self, plan: Project, outer: Mapping[int, Value]) -> Relation:
        input = self.relation(plan.input, outer)
        places = [each.column for each in plan.expressions if isinstance(each, ColumnRef)]
        if len(places) == len(plan.expressions):
            return input._replace(columns=tuple(input.columns[place] for place in places))
        over = self._over(input, outer)
        return self._select(input, [over.render(each) for each in plan.expressions])

    def _join(self, plan: Join, outer: Mapping[int, Value]) -> Relation:
        left = self.relation(plan.left, outer)._replace(order=())
        inner = {**outer, **{number: left.columns[place] for number, place in plan.lateral}}
        if plan.lateral and plan.kind not in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI):
            raise NotShared("a lateral join of this kind")
        conditions: list[str] = []
        is_lookup = bool(plan.lateral) and isinstance(plan.right, Scan)
        if is_lookup and isinstance(plan.right, Scan):
            # Each left row's lookup in an index: for DuckDB a join like any other.
            right = self._scanned(plan.right, inner)
            if plan.right.condition is not None:
                conditions.append(self._over(right, inner).condition(plan.right.condition))
        else:
            right = self.relation(plan.right, inner)._replace(order=())
            if plan.lateral and right.is_join:
                right = self._select(right, right.columns)
        both = (*left.columns, *right.columns)
        if plan.condition is not None:
            conditions.append(self._expressions(both, outer).condition(plan.condition))
        on = " AND ".join(conditions) or "TRUE"
        is_lateral = bool(plan.lateral) and not is_lookup
        if plan.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self._semi(plan.kind, left, right, on, is_lateral=is_lateral)
        lateral = "LATERAL " if is_lateral else ""
        word = {
            JoinKind.INNER: "INNER",
            JoinKind.LEFT: "LEFT",
            JoinKind.RIGHT: "RIGHT",
            JoinKind.FULL: "FULL",
        }
        source = f"{left.source} {word[plan.kind]} JOIN {lateral}{_one_source(right)} ON {on}"
        return Relation(source, both, is_join=True)

    def _semi(
        self, kind: JoinKind, left: Relation, right: Relation, on: str, *, is_lateral: bool
    ) -> Relation:
        if is_lateral:
            word = "EXISTS" if kind is JoinKind.SEMI else "NOT EXISTS"
            return self._select(
                left, left.columns, f" WHERE {word} (SELECT 1 FROM {right.source} WHERE {on})"
            )
        word = "SEMI" if kind is JoinKind.SEMI else "ANTI"
        source = f"{left.source} {word} JOIN {_one_source(right)} ON {on}"
        return self._select(Relation(source, left.columns), left.columns)

    def _grouped(self, plan: Aggregate | Window, outer: Mapping[int, Value]) -> Relation:
        input = self.relation(plan.input, outer)._replace(order=())
        over = self._over(input, outer)
        if isinstance(plan, Window):
            added = [window_sql(call, over) for call in plan.calls]
            return self._select(input, [*input.columns, *added])
        calls_sql = aggregate_sql(plan, over)
        prepared = self._select(input, calls_sql.prepared)
        columns, tail = calls_sql.finish(prepared.columns)
        return self._select(prepared, columns, tail)

    def _limit(self, plan: Limit, outer: Mapping[int, Value]) -> Relation:
        if plan.ties:
            raise NotShared("WITH TIES")
        input = self.relation(plan.input, outer)
        over = self._expressions((), outer)
        tail = _order_by(input.order)
        for word, node in ((" LIMIT ", plan.count), (" OFFSET ", plan.offset)):
            number = None if node is None else over.value(node)[1]
            if number is not None:
                if number < 0:
                    raise NotShared("a negative limit")
                tail += f"{word}{number}"
        self.is_first = self.is_first or (plan.count is not None and _sorts_rows(plan.input))
        return self._select(input, input.columns, tail)

    def _distinct(self, plan: Distinct, outer: Mapping[int, Value]) -> Relation:
        input = self.relation(plan.input, outer)
        over = self._over(input, outer)
        keys = input.columns if plan.on is None else [over.render(each) for each in plan.on]
        if not keys or not all(each.shape.is_plain for each in keys):
            raise NotShared("distinct values that only pass through")
        if plan.on is None and not input.order:
            return self._select(input, input.columns, distinct="DISTINCT ")
        on = f"DISTINCT ON ({', '.join(each.sql for each in keys)}) "
        return self._select(input, input.columns, _order_by(input.order), distinct=on)

    def _set(self, plan: SetOperation, outer: Mapping[int, Value]) -> Relation:
        sides = [self.relation(each, outer) for each in (plan.left, plan.right)]
        pairs = zip(sides[0].columns, sides[1].columns, strict=True)
        united = [unified(pair) for pair in pairs]
        must_compare = not (plan.is_all and plan.kind.value == "union")
        if not united or (must_compare and not all(shape.is_plain for _, shape, _ in united)):
            raise NotShared("a set of values that only pass through")
        selects = []
        for side, relation in enumerate(sides):
            select_list = ", ".join(f"{sqls[side]} AS c{at}" for at, (_, _, sqls) in enumerate(united))
            selects.append(f"(SELECT {select_list} FROM {relation.source})")
        word = plan.kind.value.upper() + (" ALL" if plan.is_all else "")
        name = self._name()
        columns = [Value("", kind, shape) for kind, shape, _ in united]
        return Relation(f"({selects[0]} {word} {selects[1]}) AS {name}", _named(name, columns))

    # ── subqueries ─────────────────────────────────────────────────────────────────────────────

    def _takes(self, number: int) -> set[int]:
        nested = self.query.nested[number]
        return {*self.free.givens(nested.plan)} - {*nested.takes}

    def _subquery(self, tree: Nested, over: Expressions) -> Value:
        """A subquery that depends on the row: DuckDB knows correlated ones."""
        nested: Subquery = self.query.nested[tree.number]
        arguments = [over.render(each) for each in tree.arguments]
        outer_arguments = arguments[len(arguments) - len(nested.takes) :]
        outer = {**over.scope.outer, **dict(zip(nested.takes, outer_arguments, strict=True))}
        inner = self.relation(nested.plan, outer)
        match nested.kind:
            case NestedKind.EXISTS:
                return Value(f"EXISTS (SELECT 1 FROM {inner.source})", BOOL, DuckType("BOOLEAN"))
            case NestedKind.SCALAR:
                (column,) = inner.columns
                return column._replace(
                    sql=f"(SELECT {column.sql} FROM {inner.source}{_order_by(inner.order)})"
                )
            case NestedKind.IN | NestedKind.ALL if nested.takes:
                return self._compared(nested, arguments[: len(nested.functions)], inner, outer)
            case NestedKind.IN:
                if over.scope.outer:
                    # With a correlated IN, a NULL of one row makes DuckDB answer NULL for other rows, too.
                    raise NotShared("IN (a subquery that depends on the row)")
                if len(nested.functions) > 1:
                    raise NotShared("a row among the rows of a subquery")
                ((column,), (function,)) = inner.columns, nested.functions
                over.called(function, (arguments[0], column))
                if not function.startswith("=(") or arguments[0].shape != column.shape:
                    raise NotShared("a comparison with a subquery")
                sql = f"({arguments[0].sql} IN (SELECT {column.sql} FROM {inner.source}))"
                return Value(sql, BOOL, DuckType("BOOLEAN"))
            case _:
                raise NotShared(f"a subquery of kind {nested.kind.value}")

    def _compared(
        self, nested: Subquery, operands: Sequence[Value], inner: Relation, outer: Mapping[int, Value]
    ) -> Value:
        """op ANY and op ALL in three-valued logic: is there a row that decides, or one that makes it NULL?

        DuckDB's own ANY of a subquery that depends on the row lets a NULL of one row count for others.
        """
        width = len(operands)
        both = self._expressions((*operands, *inner.columns), outer)
        places = [ColumnRef(place) for place in range(2 * width)]
        compared = both.condition(rows_compared(nested.functions, places[:width], places[width:]))
        is_any = nested.kind is NestedKind.IN
        decides = compared if is_any else f"NOT {compared}"
        decided = f"EXISTS (SELECT 1 FROM {inner.source} WHERE {decides})"
        is_open = f"EXISTS (SELECT 1 FROM {inner.source} WHERE {compared} IS NULL)"
        words = ("TRUE", "FALSE") if is_any else ("FALSE", "TRUE")
        sql = f"(CASE WHEN {decided} THEN {words[0]} WHEN {is_open} THEN NULL ELSE {words[1]} END)"
        return Value(sql, BOOL, DuckType("BOOLEAN"))


def _sorts_rows(plan: Plan) -> bool:
    """Whether a table's own rows are sorted, rather than something made of many."""
    is_sorted = False
    while isinstance(plan, Sort | Project | Filter):
        is_sorted = is_sorted or isinstance(plan, Sort)
        plan = plan.input
    return is_sorted and isinstance(plan, Scan)


def _one_source(relation: Relation) -> str:
    """The source as the right side of a join."""
    return f"({relation.source})" if relation.is_join else relation.source


def _top(relation: Relation) -> str:
    columns = ", ".join(f"{each.sql} AS c{at}" for at, each in enumerate(relation.columns)) or "1 AS one"
    return f"SELECT {columns} FROM {relation.source}{_order_by(relation.order)}"


def _named(name: str, columns: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(each._replace(sql=f"{name}.c{at}") for at, each in enumerate(columns))


def _nothing(name: str, columns: Sequence[Value]) -> str:
    select_list = ", ".join(f"{each.sql} AS c{at}" for at, each in enumerate(columns)) or "1 AS one"
    return f"(SELECT {select_list} WHERE FALSE) AS {name}"


def _order_by(order: Sequence[Term]) -> str:
    return f" ORDER BY {', '.join(f'{key} {way}' for key, way in order)}" if order else ""
