"""Column pruning: scans give only the columns that are needed, and the nodes above are renumbered.

    pruned(plan, {1, 3})     a plan with fewer outputs, and where each old one that is left now stands

Walk: `sql.access.planner` calls `whole` last; `pruned` asks for each node which of its columns are needed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tenure.expr.tree.expressions import ColumnRef, Node, columns
from tenure.sql.plans.plan import (
    Aggregate,
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
    SetKind,
    SetOperation,
    Sort,
    SortKey,
    Virtual,
    Window,
    expressions,
    inputs,
    with_inputs,
)
from tenure.sql.plans.trees import is_volatile, moved

Places = dict[int, int]
"""Old positions to new ones."""


def whole(plan: Plan) -> Plan:
    """The same outputs, all of them, by fewer columns below."""
    return _exactly(plan, _same(len(plan.outputs)))


def pruned(plan: Plan, needed: set[int]) -> tuple[Plan, Places]:
    match plan:
        case Scan() | Virtual():
            return _source(plan, needed)
        case Project():
            return _project(plan, needed)
        case Join():
            return _join(plan, needed)
        case Filter() | Sort() | Limit() | Lock():
            return _passing(plan, needed)
        case Aggregate():
            return _aggregate(plan, needed)
        case Window() | ProjectSet():
            return _widening(plan, needed)
        case SetOperation() if plan.kind is SetKind.UNION and plan.is_all:
            return _union_all(plan, needed)
        case Distinct() if plan.on is not None:
            below, places = pruned(plan.input, needed | _used(plan.on))
            on = tuple(moved(node, places) for node in plan.on)
            return replace(plan, input=below, on=on), places
        case _:
            return with_inputs(plan, [whole(each) for each in inputs(plan)]), _same(len(plan.outputs))


def _same(count: int) -> Places:
    return {place: place for place in range(count)}


def _used(trees: Iterable[Node]) -> set[int]:
    return {place for tree in trees for place in columns(tree)}


def _kept(needed: Iterable[int]) -> Places:
    return {old: new for new, old in enumerate(sorted(needed))}


def _source(plan: Scan | Virtual, needed: set[int]) -> tuple[Plan, Places]:
    needed = needed | _used(expressions(plan))
    places = _kept(needed)
    outputs = tuple(plan.outputs[old] for old in places)
    kept = tuple(plan.columns[old] for old in places)
    condition = None if plan.condition is None else moved(plan.condition, places)
    return replace(plan, outputs=outputs, columns=kept, condition=condition), places


def _project(plan: Project, needed: set[int]) -> tuple[Plan, Places]:
    volatile = {place for place, node in enumerate(plan.expressions) if is_volatile(node)}
    kept = _kept(needed | volatile)
    below, places = pruned(plan.input, _used(plan.expressions[old] for old in kept))
    expressions = tuple(moved(plan.expressions[old], places) for old in kept)
    outputs = tuple(plan.outputs[old] for old in kept)
    picked = [node.column for node in expressions if isinstance(node, ColumnRef)]
    if isinstance(below, Project) and len(expressions) == len(picked) and sorted(picked) == _all_of(below):
        # Of two projections in a row, the upper one only reorders columns: they become one.
        expressions, below = tuple(below.expressions[place] for place in picked), below.input
        picked = [node.column for node in expressions if isinstance(node, ColumnRef)]
    if outputs == below.outputs and picked == _all_of(below) == list(range(len(expressions))):
        return below, kept
    return replace(plan, outputs=outputs, input=below, expressions=expressions), kept


def _all_of(plan: Plan) -> list[int]:
    return list(range(len(plan.outputs)))


def _join(plan: Join, needed: set[int]) -> tuple[Plan, Places]:
    width = len(plan.left.outputs)
    wanted = needed | (set() if plan.condition is None else columns(plan.condition))
    left_wanted = {place for place in wanted if place < width} | {place for _, place in plan.lateral}
    left, left_places = pruned(plan.left, left_wanted)
    right, right_places = pruned(plan.right, {place - width for place in wanted if place >= width})
    shift = len(left.outputs)
    both = left_places | {width + old: shift + new for old, new in right_places.items()}
    joined = replace(
        plan,
        left=left,
        right=right,
        condition=None if plan.condition is None else moved(plan.condition, both),
        lateral=tuple((number, left_places[place]) for number, place in plan.lateral),
    )
    is_half = plan.kind in (JoinKind.SEMI, JoinKind.ANTI)
    return joined, left_places if is_half else both


def _passing(plan: Filter | Sort | Limit | Lock, needed: set[int]) -> tuple[Plan, Places]:
    used = needed | _used(expressions(plan)) | (set(plan.key) if isinstance(plan, Lock) else set())
    below, places = pruned(plan.input, used)
    match plan:
        case Filter():
            return Filter(below, moved(plan.condition, places)), places
        case Sort():
            return replace(plan, input=below, keys=_keys(plan.keys, places)), places
        case Limit():
            return replace(plan, input=below, ties=_keys(plan.ties, places)), places
        case Lock():
            return replace(plan, input=below, key=tuple(places[each] for each in plan.key)), places


def _moving(places: Places) -> Callable[[Node], Node]:
    return lambda node: moved(node, places)


def _keys(keys: Sequence[SortKey], places: Places) -> tuple[SortKey, ...]:
    return tuple(replace(key, node=moved(key.node, places)) for key in keys)


def _aggregate(plan: Aggregate, needed: set[int]) -> tuple[Plan, Places]:
    """Keys stay, as they make the groups; unused calls are removed."""
    keys, end = len(plan.keys), len(plan.keys) + len(plan.calls)
    kept = _kept(place for place in range(len(plan.outputs)) if not keys <= place < end or place in needed)
    calls = [plan.calls[old - keys] for old in kept if keys <= old < end]
    slim = replace(plan, calls=tuple(calls), outputs=tuple(plan.outputs[old] for old in kept))
    below, places = pruned(plan.input, _used(expressions(slim)))
    return replace(
        slim,
        input=below,
        keys=tuple(moved(node, places) for node in slim.keys),
        calls=tuple(call.rewritten(_moving(places)) for call in calls),
    ), kept


def _widening(plan: Window | ProjectSet, needed: set[int]) -> tuple[Plan, Places]:
    """Nodes that add columns to those of their input."""
    width = len(plan.input.outputs)
    below, places = pruned(plan.input, {each for each in needed if each < width} | _used(expressions(plan)))
    shift = len(below.outputs) - width
    kept = places | {old: old + shift for old in range(width, len(plan.outputs))}
    outputs = (*below.outputs, *plan.outputs[width:])
    if isinstance(plan, Window):
        calls = tuple(call.rewritten(_moving(places)) for call in plan.calls)
        return replace(plan, outputs=outputs, input=below, calls=calls), kept
    sets = tuple(
        call._replace(arguments=tuple(moved(node, places) for node in call.arguments)) for call in plan.calls
    )
    return replace(plan, outputs=outputs, input=below, calls=sets), kept


def _union_all(plan: SetOperation, needed: set[int]) -> tuple[Plan, Places]:
    kept = _kept(needed)
    sides = [_exactly(side, kept) for side in (plan.left, plan.right)]
    outputs = tuple(plan.outputs[old] for old in kept)
    return replace(plan, outputs=outputs, left=sides[0], right=sides[1]), kept


def _exactly(plan: Plan, kept: Places) -> Plan:
    """The plan with these outputs and no others, in this order."""
    below, places = pruned(plan, set(kept))
    picked = [places[old] for old in kept]
    return below if picked == list(range(len(below.outputs))) else projected(below, picked)


def projected(plan: Plan, picked: Sequence[int]) -> Project:
    return Project(tuple(plan.outputs[at] for at in picked), plan, tuple(map(ColumnRef, picked)))
