"""RETURNING: the values that a writing statement returns for each row.

    RETURNING old.price, new.price, name      the row before the statement, after it, and as it now is

`old` and `new` stand to the right of everything else in sight, and only by their names. The row that is
not there, `old` of a new one and `new` of a deleted one, has NULLs.

Walk: `statements.dml.writes` -> `plan_returning`; `statements.dml.writing` evaluates what it returns.
"""

from collections.abc import Sequence

from tenure.base.errors import DuplicateAlias, SyntaxFault
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.tree.cheap_expressions import cost
from tenure.sql.bind import from_clause as bind_from
from tenure.sql.bind import targets as bind_targets
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.execution.planner import Planner
from tenure.sql.session.answers import ResultColumn
from tenure.sql.statements.dml.write_expressions import compiled_over, folds_of, refuse_nested
from tenure.sql.statements.dml.writing import Returning
from tenure.sql.text.parse import Tree, child, items, option

_SIDES = {"RETURNING_OPTION_OLD": "old", "RETURNING_OPTION_NEW": "new"}


def plan_returning(planner: Planner, level: QueryLevel, table: Table, tree: Tree) -> Returning | None:
    clause = child(tree, "returning_clause")
    if clause is None:
        return None
    starts = _show_sides(level, table, _names(level, items(clause.options)))
    bound = bind_targets.bind(clause.exprs, level, "RETURNING")
    for each in bound:
        bind_targets.decide_unknown(each)
    trees = [each.typed.node for each in bound]
    refuse_nested(trees)
    outputs = bind_targets.outputs(bound, level)
    columns = tuple(ResultColumn(each.name, each.type, each.table, each.number) for each in outputs)
    evaluates = tuple(compiled_over(planner, level, each) for each in trees)
    return Returning(columns, evaluates, folds_of(planner, trees), sides_at=starts, steps=cost(trees))


def _names(level: QueryLevel, options: Sequence[Tree]) -> dict[str, str]:
    """The names of the two: from WITH (OLD AS ...), else `old` and `new` if those names are free."""
    in_sight = {each.name for each in level.items if each.has_name}
    chosen: dict[str, str] = {}
    for each in options:
        side = _SIDES[option(each, "option")]
        if side in chosen:
            raise SyntaxFault(
                f"{side.upper()} cannot be specified multiple times", position=each.location + 1
            )
        if each.value in in_sight:
            raise DuplicateAlias(
                f'table name "{each.value}" specified more than once', position=each.location + 1
            )
        chosen[side] = each.value
        in_sight.add(each.value)
    for side in ("old", "new"):
        if side not in chosen and side not in in_sight:
            chosen[side] = side
    return chosen


def _show_sides(level: QueryLevel, table: Table, names: dict[str, str]) -> tuple[int | None, int | None]:
    """Puts them in sight; returns where the columns of each begin."""
    starts: dict[str, int] = {}
    for side, name in names.items():
        _, (item,) = bind_from.table_item(table, level, [name], None)
        item.has_columns, item.path = False, ()  # the table's own name means the table
        level.items.append(item)
        starts[side] = item.start
    return starts.get("old"), starts.get("new")
