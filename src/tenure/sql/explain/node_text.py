"""One node of a plan in words: its title, and the lines below it.

Columns are called by their names; values of outer rows by their number, as parameters are.

Walk: `sql.explain.plan_text` asks for each node.
"""

from collections.abc import Iterator, Sequence

from tenure.base.errors import UndefinedObject
from tenure.catalog.descriptors.definitions import EnumType, Index
from tenure.expr.tree.expressions import Node
from tenure.expr.tree.sql_text import render
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.enums import EnumOf
from tenure.sql.plans.plan import (
    Access,
    Aggregate,
    AggregateCall,
    Among,
    Distinct,
    Filter,
    FunctionScan,
    Join,
    JoinKind,
    Limit,
    Lock,
    OutputColumn,
    Plan,
    Project,
    ProjectSet,
    Query,
    Recursive,
    Scan,
    SetKind,
    SetOperation,
    Shared,
    Sort,
    SortKey,
    SpanEnd,
    Values,
    Virtual,
    Window,
    WindowCall,
    Working,
)
from tenure.sql.plans.plan_facts import everything
from tenure.sql.plans.trees import conjoined, conjuncts, equated

_JOINS = {
    JoinKind.INNER: "",
    JoinKind.LEFT: " Left",
    JoinKind.RIGHT: " Right",
    JoinKind.FULL: " Full",
    JoinKind.SEMI: " Semi",
    JoinKind.ANTI: " Anti",
}


class NodeWriter:
    def __init__(self, query: Query) -> None:
        self._enums: dict[int, EnumType] = {}
        for plan in everything(query.plan, query):
            for output in plan.outputs:
                kind = output.type.element if isinstance(output.type, ArrayOf) else output.type
                if isinstance(kind, EnumOf):
                    self._enums[kind.ref.enum] = kind.descriptor

    def title(self, plan: Plan) -> str:
        match plan:
            case Scan():
                return _scan(plan)
            case Virtual():
                return f"Virtual Scan on {plan.source}"
            case Values():
                return "Values Scan" if plan.outputs else "Result"
            case FunctionScan():
                return f"Function Scan on {', '.join(_name(call.function) for call in plan.calls)}"
            case Join():
                return _join(plan)
            case Aggregate():
                return _aggregate(plan)
            case Sort():
                return "Presorted" if plan.is_presorted else "Sort"
            case SetOperation():
                return _set_operation(plan)
            case Shared():
                return f"CTE Scan on {plan.number + 1}"
            case Recursive():
                return "Recursive Union"
            case Working():
                return "WorkTable Scan"
            case Lock():
                return f"LockRows on {plan.table.name}"
            case _:
                return _TITLES[type(plan)]

    def details(self, plan: Plan) -> Iterator[str]:
        match plan:
            case Scan():
                yield from self._scan(plan)
            case Virtual():
                yield from self._virtual(plan)
            case Filter():
                yield f"Filter: {self._text(plan.condition, plan.input.outputs)}"
            case Project():
                yield f"Output: {self._list(plan.expressions, plan.input.outputs)}"
            case Join():
                yield from self._join(plan)
            case Aggregate():
                yield from self._aggregate(plan)
            case Window():
                for call in plan.calls:
                    yield f"Window: {self._call(call, plan.input.outputs)}"
            case Sort():
                yield f"Sort Key: {self._keys(plan.keys, plan.outputs)}"
            case Limit():
                if plan.count is not None:
                    yield f"Count: {self._text(plan.count, ())}"
                if plan.offset is not None:
                    yield f"Offset: {self._text(plan.offset, ())}"
            case Distinct() if plan.on is not None:
                yield f"On: {self._list(plan.on, plan.outputs)}"

    def _text(self, tree: Node, outputs: Sequence[OutputColumn]) -> str:
        return render(tree, lambda place: outputs[place].name or "?column?", self._enum)

    def _enum(self, id: int) -> EnumType:
        if id not in self._enums:
            raise UndefinedObject("an enum of the plan is not known here")
        return self._enums[id]

    def _list(self, trees: Sequence[Node], outputs: Sequence[OutputColumn]) -> str:
        return ", ".join(self._text(tree, outputs) for tree in trees)

    def _keys(self, keys: Sequence[SortKey], outputs: Sequence[OutputColumn]) -> str:
        return ", ".join(self._text(key.node, outputs) + _direction(key) for key in keys)

    # ── scans ──────────────────────────────────────────────────────────────────────────────────

    def _scan(self, plan: Scan) -> Iterator[str]:
        if plan.access is not None and (spans := list(self._spans(plan, plan.access))):
            yield f"Index Cond: {' AND '.join(spans)}"
        if plan.condition is not None:
            yield f"Filter: {self._text(plan.condition, plan.outputs)}"

    def _virtual(self, plan: Virtual) -> Iterator[str]:
        lookup = plan.lookup
        if lookup is not None:
            name = plan.outputs[plan.columns.index(lookup.column)].name
            yield f"Lookup: {self._choice(name, lookup.value)}"
        if plan.condition is not None:
            yield f"Filter: {self._text(plan.condition, plan.outputs)}"

    def _spans(self, plan: Scan, access: Access) -> Iterator[str]:
        index = plan.table.index(access.index)
        names = [plan.table.column(part.column).name for part in index.parts]
        for name, part in zip(names, access.prefix, strict=False):
            yield self._choice(name, part)
        yield from self._bounds(index, access, names)

    def _choice(self, name: str, part: Node | Among) -> str:
        if not isinstance(part, Among):
            return f"{name} = {self._text(part, ())}"
        if part.array is not None:
            return f"{name} = ANY ({self._text(part.array, ())})"
        return f"{name} IN ({self._list(part.items, ())})"

    def _bounds(self, index: Index, access: Access, names: list[str]) -> Iterator[str]:
        place = len(access.prefix)
        if place == len(names):
            return
        low, high = (access.start, access.end)
        if index.parts[place].is_descending:
            low, high = high, low
        if low is not None:
            yield self._bound(names[place], ">", low)
        if high is not None:
            yield self._bound(names[place], "<", high)

    def _bound(self, name: str, sign: str, bound: SpanEnd) -> str:
        return f"{name} {sign}{'=' if bound.is_inclusive else ''} {self._text(bound.value, ())}"

    # ── joins and groups ───────────────────────────────────────────────────────────────────────

    def _join(self, plan: Join) -> Iterator[str]:
        both = (*plan.left.outputs, *plan.right.outputs)
        if plan.lateral:
            bindings = (f"${number + 1} = {both[place].name}" for number, place in plan.lateral)
            yield f"Lookup: {', '.join(bindings)}"
            hashed: list[Node] = []
        else:
            conditions = conjuncts(plan.condition)
            hashed = [part for part in conditions if equated(part, len(plan.left.outputs)) is not None]
        if (together := conjoined(hashed)) is not None:
            yield f"Hash Cond: {self._text(together, both)}"
        rest = conjoined([part for part in conjuncts(plan.condition) if part not in hashed])
        if rest is not None:
            yield f"Join Filter: {self._text(rest, both)}"

    def _aggregate(self, plan: Aggregate) -> Iterator[str]:
        outputs = plan.input.outputs
        if plan.keys and plan.sets is None:
            yield f"Group Key: {self._list(plan.keys, outputs)}"
        for grouped in plan.sets or ():
            yield f"Group Key: {self._list([plan.keys[place] for place in grouped], outputs) or '()'}"
        if plan.calls:
            yield f"Aggregates: {', '.join(self._call(call, outputs) for call in plan.calls)}"

    def _call(self, call: AggregateCall | WindowCall, outputs: Sequence[OutputColumn]) -> str:
        arguments = self._list(call.arguments, outputs) or ("*" if call.function.startswith("count") else "")
        text = f"{_name(call.function)}({arguments})"
        if isinstance(call, AggregateCall):
            return text
        pieces = []
        if call.partition:
            pieces.append(f"PARTITION BY {self._list(call.partition, outputs)}")
        if call.order:
            pieces.append(f"ORDER BY {self._keys(call.order, outputs)}")
        return f"{text} OVER ({' '.join(pieces)})"


_TITLES: dict[type[Plan], str] = {
    Filter: "Filter",
    Project: "Result",
    ProjectSet: "ProjectSet",
    Window: "WindowAgg",
    Limit: "Limit",
    Distinct: "Unique",
}


def _scan(plan: Scan) -> str:
    if plan.access is None:
        backwards = " Backward" if plan.is_reverse else ""
        return f"Seq Scan{backwards} on {plan.table.name}"
    index = plan.table.index(plan.access.index)
    word = "Point Lookup" if plan.access.is_point else "Index Scan"
    return f"{word}{' Backward' if plan.is_reverse else ''} using {index.name} on {plan.table.name}"


def _join(plan: Join) -> str:
    kind = _JOINS[plan.kind]
    if plan.lateral:
        return f"Nested Loop{kind}{' Join' if kind else ''}"
    width = len(plan.left.outputs)
    if any(equated(part, width) is not None for part in conjuncts(plan.condition)):
        return f"Hash{kind} Join"
    return f"Nested Loop{kind}{' Join' if kind else ''}"


def _aggregate(plan: Aggregate) -> str:
    if plan.sets is not None:
        return "MixedAggregate"
    return "HashAggregate" if plan.keys else "Aggregate"


def _set_operation(plan: SetOperation) -> str:
    if plan.kind is SetKind.UNION:
        return "Append" if plan.is_all else "Union"
    return f"HashSetOp {plan.kind.value.capitalize()}{' All' if plan.is_all else ''}"


def _name(function: str) -> str:
    return function.partition("(")[0]


def _direction(key: SortKey) -> str:
    text = " DESC" if key.is_descending else ""
    if key.nulls_first is not key.is_descending:
        text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return text
