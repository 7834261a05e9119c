"""GROUP BY, and where the placeholders for aggregates, windows and sets go.

    SELECT city, count(*) + 1, rank() OVER (ORDER BY city) FROM people GROUP BY city

    FROM's row          (city, age, ...)
    Aggregate's row     (city, count)
    Window's row        (city, count, rank)

Expressions were bound over FROM's row. Here they are rewritten for the row they will get: a subexpression
that is a key becomes the key's column, a placeholder its call's column. Any other column is an error, unless
the primary key of its table is among the keys, which determines it.

Walk: `sql.bind.select`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from tenure.base.errors import GroupingFault, NotSupported, TooComplex, WindowFault
from tenure.catalog.descriptors.definitions import replace
from tenure.expr.aggregates.aggregate_table import aggregate_with_id, aggregates_named
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef, Const, Nested, Node
from tenure.expr.tree.rewrite import rewrite
from tenure.sql.bind.grouping import AGGREGATE, GROUPING, SET, WINDOW, standing_for
from tenure.sql.bind.locations import location_of
from tenure.sql.bind.scope import Item, QueryLevel
from tenure.sql.bind.targets import SelectTarget, by_name_or_number, check_equality
from tenure.sql.bind.values import INT4, TEXT
from tenure.sql.plans.plan import Aggregate, AggregateCall, Filter, OutputColumn, Plan, ProjectSet, Window
from tenure.sql.text.parse import Tree, items, kind, option

SETS_MAX = 4096
"""Grouping sets of one query, as in PostgreSQL."""

ANY_VALUE = aggregates_named("any_value")[0].id

Set = tuple[int, ...]
"""Positions of keys."""


@dataclass
class GroupingKeys:
    """Two targets of the select list are two keys, even if their expressions are equal: GROUPING SETS may
    have one in a set and not the other."""

    keys: list[Typed] = field(default_factory=list)
    targets: list[SelectTarget | None] = field(default_factory=list)
    """For each key: the target of the select list that it is, if any."""
    sets: list[Set] | None = None

    def key(self, typed: Typed, target: SelectTarget | None) -> int:
        for at, each in enumerate(self.keys):
            if self.targets[at] is target and (target is not None or each.node == typed.node):
                return at
        self.keys.append(typed)
        self.targets.append(target)
        return len(self.keys) - 1

    def key_of(self, target: SelectTarget) -> int | None:
        return next((at for at, each in enumerate(self.targets) if each is target), None)


def bind(tree: Tree, level: QueryLevel, targets: list[SelectTarget]) -> GroupingKeys | None:
    if not len(tree.group_clause):
        return None
    groups = GroupingKeys()
    grouping_sets = [_sets(each, level, targets, groups) for each in items(tree.group_clause)]
    found: list[Set] = []
    for chosen in product(*grouping_sets):
        found.append(tuple(dict.fromkeys(key for each in chosen for key in each)))
        if len(found) > SETS_MAX:
            raise TooComplex(f"too many grouping sets present (maximum {SETS_MAX})")
    if tree.group_distinct:
        found = list({frozenset(each): each for each in found}.values())
    if len(found) > 1 or len(found[0]) < len(groups.keys):
        groups.sets = found
    return groups


def _sets(tree: Tree, level: QueryLevel, targets: list[SelectTarget], groups: GroupingKeys) -> list[Set]:
    """The sets that one item of GROUP BY stands for."""
    if kind(tree) == "RowExpr" and option(tree, "row_format") == "COERCE_IMPLICIT_CAST":
        inner = [_sets(each, level, targets, groups) for each in items(tree.args)]
        return [_union(each) for each in product(*inner)]
    if kind(tree) != "GroupingSet":
        return [(groups.key(*_key(tree, level, targets)),)]
    grouping_sets = [_sets(each, level, targets, groups) for each in items(tree.content)]
    match option(tree, "kind"):
        case "GROUPING_SET_EMPTY":
            return [()]
        case "GROUPING_SET_SETS":
            return [each for part in grouping_sets for each in part]
        case "GROUPING_SET_ROLLUP":
            units = [part[0] for part in grouping_sets]
            return [_union(units[:count]) for count in range(len(units), -1, -1)]
        case _:
            units = [part[0] for part in grouping_sets]
            if len(units) > 12:
                raise TooComplex("CUBE is limited to 12 elements", position=tree.location + 1)
            return [
                _union([unit for at, unit in enumerate(units) if not mask >> (len(units) - 1 - at) & 1])
                for mask in range(1 << len(units))
            ]


def _union(sets: Iterable[Set]) -> Set:
    return tuple(dict.fromkeys(key for each in sets for key in each))


def _key(tree: Tree, level: QueryLevel, targets: list[SelectTarget]) -> tuple[Typed, SelectTarget | None]:
    target = by_name_or_number(tree, level, targets, "GROUP BY")
    if target is None:
        typed = level.bind(tree, "GROUP BY")
        if typed.type.family == "unknown":
            typed = build.coerce(typed, TEXT)
        target = next((each for each in targets if each.typed == typed), None)
    else:
        if target.typed.type.family == "unknown":
            target.typed = build.coerce(target.typed, TEXT)
        typed = target.typed
        if standing_for(AGGREGATE, typed.node):
            raise GroupingFault(
                "aggregate functions are not allowed in GROUP BY", position=target.location + 1
            )
        if standing_for(WINDOW, typed.node):
            raise WindowFault("window functions are not allowed in GROUP BY", position=target.location + 1)
    if standing_for(SET, typed.node):
        raise NotSupported(
            "set-returning functions in GROUP BY are not supported", position=location_of(tree) + 1
        )
    check_equality(typed.type, location_of(tree))
    return typed, target


# From FROM's row to the row that expressions get


def placed(
    plan: Plan,
    level: QueryLevel,
    groups: GroupingKeys | None,
    having: Node | None,
    targets: list[SelectTarget],
) -> tuple[Plan, "Mover"]:
    """Puts the nodes for aggregates and windows upon a plan; and returns how expressions move."""
    calls = level.calls
    is_grouped = groups is not None or having is not None or bool(calls.aggregates or calls.groupings)
    mover = Mover(level, (groups or GroupingKeys()) if is_grouped else None)
    if mover.groups is not None:
        free = [each.typed.node for each in targets if mover.groups.key_of(each) is None]
        mover.find_dependent([*free, *(() if having is None else (having,))])
        plan = _aggregate(plan, level, mover)
        if having is not None:
            plan = Filter(plan, mover.move(having))
    mover.width = len(plan.outputs)
    if calls.windows:
        windows = tuple(each.rewritten(mover.move) for each in calls.windows)
        added = tuple(OutputColumn("?column?", each.type) for each in windows)
        plan = Window((*plan.outputs, *added), plan, windows)
    return plan, mover


def _aggregate(plan: Plan, level: QueryLevel, mover: "Mover") -> Aggregate:
    groups, calls = mover.groups, level.calls
    assert groups is not None
    outputs = [_output(each, level) for each in groups.keys]
    outputs += [OutputColumn("?column?", each.type) for each in calls.aggregates]
    outputs += [OutputColumn("grouping", INT4) for _ in calls.groupings]
    return Aggregate(
        tuple(outputs),
        plan,
        tuple(each.node for each in groups.keys),
        tuple(calls.aggregates),
        None if groups.sets is None else tuple(groups.sets),
        tuple(mover.grouping_keys(*each) for each in calls.groupings),
    )


def _output(key: Typed, level: QueryLevel) -> OutputColumn:
    if isinstance(key.node, ColumnRef):
        return level.outputs[key.node.column]
    return OutputColumn("?column?", key.type)


def sets_upon(plan: Plan, level: QueryLevel, mover: "Mover") -> Plan:
    """Puts the nodes for functions that give sets upon a plan."""
    uses = level.calls.sets
    for depth in range(max((each.depth for each in uses), default=-1) + 1):
        chosen = [at for at, each in enumerate(uses) if each.depth == depth]
        start = len(plan.outputs)
        calls = tuple(
            uses[at].call._replace(arguments=tuple(mover.move(each) for each in uses[at].call.arguments))
            for at in chosen
            if uses[at].column == 0
        )
        added = tuple(OutputColumn("?column?", uses[at].type) for at in chosen)
        plan = ProjectSet((*plan.outputs, *added), plan, calls)
        mover.sets |= {number: start + at for at, number in enumerate(chosen)}
    return plan


@dataclass
class Mover:
    """Moves expressions from FROM's row to the row that they get."""

    level: QueryLevel
    groups: GroupingKeys | None
    """None: nothing is grouped, so columns stay where they are."""
    width: int = 0
    """The width of the row before windows."""
    sets: dict[int, int] = field(default_factory=dict)
    """Where the column of each set-returning call is."""
    dependent: dict[int, int] = field(default_factory=dict)
    """Columns that the keys fix: the placeholder of the aggregate that takes any value of the group."""
    start: int = 0
    """Where the row begins: other columns may stand to the left of it."""

    def move_target(self, target: SelectTarget) -> Node:
        key = None if self.groups is None else self.groups.key_of(target)
        return self.move(target.typed.node) if key is None else ColumnRef(self.start + key)

    def move(self, node: Node) -> Node:
        calls = self.level.calls
        is_as_bound = self.groups is None and not (calls.windows or calls.sets or self.start)
        return node if is_as_bound else rewrite(node, self._change)

    def _change(self, node: Node) -> Node | None:
        key = self._key_equal_to(node)
        if key is not None:
            return ColumnRef(self.start + key)
        if isinstance(node, ColumnRef):
            return self._column(node)
        return None

    def _key_equal_to(self, node: Node) -> int | None:
        if self.groups is None or isinstance(node, Const):
            return None
        return next((at for at, each in enumerate(self.groups.keys) if each.node == node), None)

    def _column(self, node: ColumnRef) -> Node:
        position = self.dependent.get(node.column, node.column)
        kind_of_call, number = position >> 24 << 24, position & 0xFFFFFF
        keys = 0 if self.groups is None else len(self.groups.keys)
        if kind_of_call == AGGREGATE:
            return ColumnRef(self.start + keys + number)
        if kind_of_call == GROUPING:
            return ColumnRef(self.start + keys + len(self.level.calls.aggregates) + number)
        if kind_of_call == WINDOW:
            return ColumnRef(self.start + self.width + number)
        if kind_of_call == SET:
            return ColumnRef(self.sets[number])
        return ColumnRef(self.start + node.column)

    def grouping_keys(self, arguments: tuple[Node, ...], locations: tuple[int, ...]) -> Set:
        found = []
        for each, location in zip(arguments, locations, strict=True):
            key = self._key_equal_to(each)
            if key is None:
                raise GroupingFault(
                    "arguments to GROUPING must be grouping expressions of the associated query level",
                    position=location + 1,
                )
            found.append(key)
        return tuple(found)

    # Columns that are no keys

    def find_dependent(self, trees: Iterable[Node]) -> None:
        """Adds an aggregate for each column that the keys determine. Raises GroupingFault (42803) for
        others."""
        calls = self.level.calls
        for tree in trees:
            self._look_at(tree, in_subquery=False)
        for call in tuple(calls.aggregates):
            # The direct arguments of an ordered-set aggregate are the same for the whole group.
            for argument in call.arguments[: aggregate_with_id(call.function).direct_count]:
                self._look_at(argument, in_subquery=False)
        for window in calls.windows:
            window.rewritten(lambda node: self._look_at(node, in_subquery=False))

    def _look_at(self, tree: Node, *, in_subquery: bool) -> Node:
        def look(node: Node) -> Node | None:
            if self._key_equal_to(node) is not None:
                return node
            if isinstance(node, Nested) and not in_subquery:
                arguments = tuple(self._look_at(each, in_subquery=True) for each in node.arguments)
                return replace(node, arguments=arguments)
            if isinstance(node, ColumnRef) and node.column < AGGREGATE:
                self._depend(node, in_subquery=in_subquery)
                return node
            return None

        return rewrite(tree, look)

    def _depend(self, node: ColumnRef, *, in_subquery: bool) -> None:
        assert self.groups is not None
        item = _item_of(self.level, node.column)
        if item is not None and self._is_fixed(item):
            same = AggregateCall(ANY_VALUE, (node,), self.level.row[node.column])
            stand_in = self.level.calls.aggregate(same, -1).node
            assert isinstance(stand_in, ColumnRef)
            self.dependent[node.column] = stand_in.column
            assert item.table is not None
            self.level.binding.keys_relied_on.add(item.table.id)
            return
        name = self.level.outputs[node.column].name
        if item is not None:
            name = f"{item.name}.{item.columns[node.column - item.start].name}"
        location = self.level.locations.get(node.column, -1)
        if in_subquery:
            raise GroupingFault(
                f'subquery uses ungrouped column "{name}" from outer query', position=location + 1
            )
        raise GroupingFault(
            f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function',
            position=location + 1,
        )

    def _is_fixed(self, item: Item) -> bool:
        """Whether the primary key of an item's table is among the keys, of every set."""
        assert self.groups is not None
        if item.table is None:
            return False
        primary = item.table.index(item.table.primary)
        if primary.is_deferrable:
            return False
        places = {each.origin.number: at for at, each in enumerate(item.columns)}
        for part in primary.parts:
            key = self._key_equal_to(ColumnRef(item.start + places[part.column]))
            if key is None or any(key not in each for each in self.groups.sets or ()):
                return False
        return True


def _item_of(level: QueryLevel, position: int) -> Item | None:
    for item in level.all_items:
        if item.start <= position < item.start + len(item.columns):
            return item
    return None
