"""Plans: queries as relational nodes with all names and types resolved.

    SELECT city, count(*) FROM people WHERE age > $1 GROUP BY city ORDER BY 2 DESC

    Sort(#1 desc)
      Aggregate(keys: #0; count(*))
        Project(#0 city)
          Filter(#1 > given 0)
            Scan(people: city, age)

A row is a tuple. The expressions of a node are `expr` trees whose `ColumnRef(n)` is position n of the
row it gets: its input's row, or, of a join, the left row followed by the right one. `ContextValue(n)` is a
value that is fixed while the node runs: the statement's parameters come first, then a number for
each value of an outer row that a subquery or a LATERAL item uses. `Nested(n, ...)` asks `Query.nested[n]`.

Plans are data: frozen, with no reference to a transaction, so they can be kept and run again. What
a plan means is what `sql.rows.runner` does with it; any other way to run it has to give the same.

Walk: `sql.bind` makes them from parse trees, `sql.access` pushes conditions down and chooses indexes,
`sql.rows` and `sql.duck` run them, `sql.explain.plan_text` shows them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

from tenure.catalog.descriptors.definitions import Table
from tenure.expr.tree.expressions import Node
from tenure.expr.types.datatype import Type
from tenure.sql.plans.access import Access as Access
from tenure.sql.plans.access import Among as Among
from tenure.sql.plans.access import Lookup as Lookup
from tenure.sql.plans.access import SpanEnd as SpanEnd
from tenure.sql.plans.frames import DEFAULT_FRAME
from tenure.sql.plans.frames import Frame as Frame
from tenure.sql.plans.frames import FrameEdge as FrameEdge
from tenure.sql.plans.frames import FrameMode as FrameMode


class OutputColumn(NamedTuple):
    """One column of a node's rows."""

    name: str
    type: Type
    table: int = 0
    """The descriptor's id, where it is a table's own column."""
    number: int = 0
    """And the column's id."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of a table; `condition` is over its own outputs."""

    outputs: tuple[OutputColumn, ...]
    table: Table
    columns: tuple[int, ...]
    """The column ids of the outputs."""
    condition: Node | None = None
    access: Access | None = None
    """None: everything, by the primary index. What it fixes still stands in `condition`."""
    is_reverse: bool = False
    """Against the index's order: chosen where a Sort or Limit above asks for it."""


@dataclass(frozen=True, slots=True)
class Virtual:
    """Rows that are computed when they are read: system tables, catalogs. `source` is their key in the
    session's system tables."""

    outputs: tuple[OutputColumn, ...]
    source: str
    columns: tuple[int, ...]
    """Positions among the source's own columns."""
    keys: tuple[int, ...] = ()
    """The columns, among the source's own, by which it finds rows without making all; the best first."""
    condition: Node | None = None
    """Over its own outputs."""
    lookup: Lookup | None = None
    """None: all rows. What it fixes still stands in `condition`."""


@dataclass(frozen=True, slots=True)
class Values:
    """Rows written out; no rows and no outputs but one row: `SELECT 1` is Project over Values(((),))."""

    outputs: tuple[OutputColumn, ...]
    rows: tuple[tuple[Node, ...], ...]


class SetCall(NamedTuple):
    """A set-returning function of `expr.set_function_table`, by its id."""

    function: str
    arguments: tuple[Node, ...]
    results: int = 1
    """How many columns it gives."""


@dataclass(frozen=True, slots=True)
class FunctionScan:
    """FROM f(...), or ROWS FROM (f(...), g(...)) side by side, shorter ones filled with NULL."""

    outputs: tuple[OutputColumn, ...]
    calls: tuple[SetCall, ...]
    has_ordinality: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    input: "Plan"
    condition: Node

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        return self.input.outputs


@dataclass(frozen=True, slots=True)
class Project:
    outputs: tuple[OutputColumn, ...]
    input: "Plan"
    expressions: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ProjectSet:
    """A select list with set-returning functions: per input row as many rows as the longest gives.

    Its rows are the input's columns followed by the columns of the calls (one each).
    """

    outputs: tuple[OutputColumn, ...]
    input: "Plan"
    calls: tuple[SetCall, ...]


class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    """Left rows that have a match: only the left outputs."""
    ANTI = "anti"
    """Left rows that have none (NOT EXISTS): only the left outputs."""


@dataclass(frozen=True, slots=True)
class Join:
    kind: JoinKind
    left: "Plan"
    right: "Plan"
    condition: Node | None = None
    """Over the left row followed by the right row; None: always."""
    lateral: tuple[tuple[int, int], ...] = ()
    """(given number, left position): what the right side takes from each left row. A lookup by index for
    each left row is such a join too."""

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.outputs
        return (*self.left.outputs, *self.right.outputs)


@dataclass(frozen=True, slots=True)
class SortKey:
    node: Node
    is_descending: bool = False
    nulls_first: bool = False
    """PostgreSQL's default: NULLs last ascending, first descending; always spelled out here."""


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate of `expr.aggregates.aggregate_table`, by its id."""

    function: str
    arguments: tuple[Node, ...]
    type: Type
    is_distinct: bool = False
    order: tuple[SortKey, ...] = ()
    condition: Node | None = None
    """FILTER (WHERE ...)."""

    def rewritten(self, change: Callable[[Node], Node]) -> "AggregateCall":
        """The same call with its expressions changed."""
        return replace(
            self,
            arguments=tuple(change(each) for each in self.arguments),
            order=tuple(replace(each, node=change(each.node)) for each in self.order),
            condition=None if self.condition is None else change(self.condition),
        )


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Groups: its rows are the keys followed by the calls. Without keys: one row, also of no rows.

    `sets`, for GROUPING SETS, ROLLUP and CUBE: the positions of `keys` in each set; the other keys
    are NULL in its rows. After the calls comes, for each of `groupings`, the number that GROUPING(...)
    of those key positions gives.
    """

    outputs: tuple[OutputColumn, ...]
    input: "Plan"
    keys: tuple[Node, ...]
    calls: tuple[AggregateCall, ...]
    sets: tuple[tuple[int, ...], ...] | None = None
    groupings: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function of `expr.aggregates.window_functions`, or an aggregate over a window, by its id."""

    function: str
    arguments: tuple[Node, ...]
    type: Type
    partition: tuple[Node, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: Frame = DEFAULT_FRAME
    is_aggregate: bool = False
    condition: Node | None = None

    def rewritten(self, change: Callable[[Node], Node]) -> "WindowCall":
        """The same call with its expressions changed; those of its frame have no columns."""
        return replace(
            self,
            arguments=tuple(change(each) for each in self.arguments),
            partition=tuple(change(each) for each in self.partition),
            order=tuple(replace(each, node=change(each.node)) for each in self.order),
            condition=None if self.condition is None else change(self.condition),
        )


@dataclass(frozen=True, slots=True)
class Window:
    """Its rows are the input's columns followed by one per call; the order of rows is any."""

    outputs: tuple[OutputColumn, ...]
    input: "Plan"
    calls: tuple[WindowCall, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """Equal rows keep the input's order."""

    input: "Plan"
    keys: tuple[SortKey, ...]
    is_presorted: bool = False
    """The input comes in this order by itself, along an index: there is nothing to sort, as long as
    nobody else makes its rows."""

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        return self.input.outputs


@dataclass(frozen=True, slots=True)
class Limit:
    """int8 expressions without columns; NULL is no limit. A negative one is an error (2201W, 2201X)."""

    input: "Plan"
    count: Node | None = None
    offset: Node | None = None
    ties: tuple[SortKey, ...] = ()
    """WITH TIES: the sort's keys, by which rows are equal to the last one."""

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        return self.input.outputs


@dataclass(frozen=True, slots=True)
class Distinct:
    """The first of each set of equal rows; equal on `on`, or on everything."""

    input: "Plan"
    on: tuple[Node, ...] | None = None

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        return self.input.outputs


class SetKind(Enum):
    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True, slots=True)
class SetOperation:
    """Both sides have the same types."""

    outputs: tuple[OutputColumn, ...]
    kind: SetKind
    is_all: bool
    left: "Plan"
    right: "Plan"


@dataclass(frozen=True, slots=True)
class Shared:
    """A reference to `Query.shared[number]`: a WITH query, run once however often it is read."""

    outputs: tuple[OutputColumn, ...]
    number: int


@dataclass(frozen=True, slots=True)
class Recursive:
    """WITH RECURSIVE: `step` reads the rows of the round before as `Working(number)`."""

    outputs: tuple[OutputColumn, ...]
    number: int
    start: "Plan"
    step: "Plan"
    is_all: bool


@dataclass(frozen=True, slots=True)
class Working:
    outputs: tuple[OutputColumn, ...]
    number: int


@dataclass(frozen=True, slots=True)
class Lock:
    """FOR UPDATE, FOR SHARE: locks the rows of a table as they pass. `key` are the positions of its
    primary key's columns."""

    input: "Plan"
    table: Table
    key: tuple[int, ...]
    is_shared: bool = False
    wait: str = "wait"
    """"wait", "nowait" or "skip"."""

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        return self.input.outputs


Plan: TypeAlias = (
    Scan
    | Virtual
    | Values
    | FunctionScan
    | Filter
    | Project
    | ProjectSet
    | Join
    | Aggregate
    | Window
    | Sort
    | Limit
    | Distinct
    | SetOperation
    | Shared
    | Recursive
    | Working
    | Lock
)


class NestedKind(Enum):
    SCALAR = "scalar"
    """Its one value; NULL of no row; an error (21000) of several."""
    EXISTS = "exists"
    IN = "in"
    """operands op ANY (...), by `functions`: the first arguments are the operands."""
    ALL = "all"
    ARRAY = "array"
    """ARRAY(SELECT ...)."""


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query inside an expression. Its arguments: the operands (of IN and ALL), then its outer values."""

    kind: NestedKind
    plan: Plan
    takes: tuple[int, ...] = ()
    """The numbers of its outer values; without any it has one result for the whole statement."""
    functions: tuple[str, ...] = ()
    """The comparisons, by id, of IN and ALL: one for each operand and column. Those of rows have one sign."""
    type: Type | None = None
    """The type of the value, for SCALAR and ARRAY."""


@dataclass(frozen=True, slots=True)
class Query:
    """A whole SELECT (or the reading part of a statement that writes)."""

    plan: Plan
    parameters: tuple[Type, ...] = ()
    """The types of the statement's parameters, which are the context values 0, 1, ..."""
    givens: int = 0
    """The number of context values in all."""
    nested: tuple[Subquery, ...] = ()
    shared: tuple[Plan, ...] = ()
    constants: tuple[Node, ...] = ()
    """Expressions as they were bound that have constants to be folded before anything is read."""

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        return self.plan.outputs


def inputs(plan: Plan) -> tuple[Plan, ...]:
    match plan:
        case Join() | SetOperation():
            return plan.left, plan.right
        case Recursive():
            return plan.start, plan.step
        case Scan() | Virtual() | Values() | FunctionScan() | Shared() | Working():
            return ()
        case _:
            return (plan.input,)


def with_inputs(plan: Plan, inputs: Sequence[Plan]) -> Plan:
    """The same node over other inputs with the same outputs."""
    match plan:
        case Join() | SetOperation():
            return replace(plan, left=inputs[0], right=inputs[1])
        case Recursive():
            return replace(plan, start=inputs[0], step=inputs[1])
        case Scan() | Virtual() | Values() | FunctionScan() | Shared() | Working():
            return plan
        case _:
            return replace(plan, input=inputs[0])


def walk(plan: Plan) -> Iterator[Plan]:
    yield plan
    for each in inputs(plan):
        yield from walk(each)


def expressions(plan: Plan) -> tuple[Node, ...]:
    """The expressions of a node itself, not of its inputs."""
    match plan:
        case Scan() | Virtual() | Filter() | Join():
            return () if plan.condition is None else (plan.condition,)
        case Values():
            return tuple(node for row in plan.rows for node in row)
        case FunctionScan() | ProjectSet():
            return tuple(node for call in plan.calls for node in call.arguments)
        case Project():
            return plan.expressions
        case Aggregate():
            return (*plan.keys, *(node for call in plan.calls for node in of_call(call)))
        case Window():
            return tuple(node for call in plan.calls for node in (*of_call(call), *_of_window(call)))
        case Sort():
            return tuple(key.node for key in plan.keys)
        case Limit():
            ties = (key.node for key in plan.ties)
            return (*(node for node in (plan.count, plan.offset) if node is not None), *ties)
        case Distinct():
            return plan.on or ()
        case _:
            return ()


def access_nodes(plan: Plan) -> tuple[Node, ...]:
    """The expressions that say which part of an index a Scan reads, or of a system table."""
    if isinstance(plan, Virtual):
        return () if plan.lookup is None else plan.lookup.nodes
    return plan.access.nodes if isinstance(plan, Scan) and plan.access is not None else ()


def of_call(call: AggregateCall | WindowCall) -> tuple[Node, ...]:
    """The expressions over the row, except the partition of a window."""
    ordered = tuple(key.node for key in call.order)
    return (*call.arguments, *ordered, *(() if call.condition is None else (call.condition,)))


def _of_window(call: WindowCall) -> tuple[Node, ...]:
    offsets = (call.frame.start_offset, call.frame.end_offset)
    return (*call.partition, *(node for node in offsets if node is not None))
