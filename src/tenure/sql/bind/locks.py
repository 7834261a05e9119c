"""FOR UPDATE, FOR SHARE: which tables' rows a SELECT locks as they pass.

Rows are locked after they were sorted and before they are counted, so that ORDER BY ... LIMIT 1 FOR
UPDATE SKIP LOCKED takes the first that is free. The columns of the primary keys come along hidden. Locking
needs the privilege UPDATE, as in PostgreSQL.

Walk: `sql.bind.select` binds the clauses and puts `Lock` nodes in place.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.errors import NotSupported, SyntaxFault, UndefinedTable
from tenure.catalog.accounts.privileges import UPDATE
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef
from tenure.sql.bind.relations import ViewQuery
from tenure.sql.bind.scope import Item, Locking, QueryLevel
from tenure.sql.bind.targets import SelectTarget
from tenure.sql.plans.plan import Lock, Plan
from tenure.sql.text.parse import Tree, items, option

_STRENGTHS = {
    "LCS_FORKEYSHARE": "FOR KEY SHARE",
    "LCS_FORSHARE": "FOR SHARE",
    "LCS_FORNOKEYUPDATE": "FOR NO KEY UPDATE",
    "LCS_FORUPDATE": "FOR UPDATE",
}
_WAITS = {"LockWaitBlock": "wait", "LockWaitSkip": "skip", "LockWaitError": "nowait"}


class LockedTable(NamedTuple):
    table: Table
    item: Item
    locking: Locking


def clauses(tree: Tree) -> tuple[Locking, ...]:
    lock_clauses = []
    for each in items(tree.locking_clause):
        relations = items(each.locked_rels)
        for relation in relations:
            if relation.schemaname:
                raise SyntaxFault(
                    f"{_STRENGTHS[option(each, 'strength')]} must specify unqualified relation names",
                    position=relation.location + 1,
                )
        location = relations[0].location if relations else -1
        lock_clauses.append(
            Locking(
                _STRENGTHS[option(each, "strength")],
                _WAITS[option(each, "wait_policy")],
                tuple(relation.relname for relation in relations),
                location,
            )
        )
    return tuple(lock_clauses)


def bind(tree: Tree, level: QueryLevel) -> list[LockedTable]:
    if not level.locks:
        return []
    for is_there, what in (
        (len(tree.distinct_clause), "DISTINCT clause"),
        (len(tree.group_clause), "GROUP BY clause"),
        (tree.HasField("having_clause"), "HAVING clause"),
        (level.calls.aggregates, "aggregate functions"),
        (level.calls.windows, "window functions"),
        (level.calls.sets, "set-returning functions in the target list"),
    ):
        if is_there:
            refuse(level, what)
    return [each for locking in level.locks for each in _tables(locking, level)]


def refuse(level: QueryLevel, what: str) -> None:
    if level.locks:
        raise NotSupported(f"{level.locks[0].strength} is not allowed with {what}")


def refuse_values(level: QueryLevel) -> None:
    if level.locks:
        raise NotSupported(f"{level.locks[0].strength} cannot be applied to VALUES")


def _tables(locking: Locking, level: QueryLevel) -> list[LockedTable]:
    for name in locking.relations:
        if not any(each.name == name for each in level.all_items):
            raise UndefinedTable(
                f'relation "{name}" in {locking.strength} clause not found in FROM clause',
                position=locking.location + 1,
            )
    found = []
    for item in level.all_items:
        if item.source and item.name in locking.relations:
            raise NotSupported(
                f"{locking.strength} cannot be applied to {item.source}", position=locking.location + 1
            )
        if locking.relations and item.name not in locking.relations:
            continue
        if isinstance(item.relation, ViewQuery) and item.relation.id:
            level.names.require(item.relation.id, UPDATE)
        if item.table is None:
            continue
        if item.is_nullable:
            raise NotSupported(f"{locking.strength} cannot be applied to the nullable side of an outer join")
        level.names.require(item.table.id, UPDATE)
        found.append(LockedTable(item.table, item, locking))
    return found


def add_keys(locks: Sequence[LockedTable], targets: list[SelectTarget], level: QueryLevel) -> None:
    """Makes hidden targets of the primary keys' columns that are not there anyway."""
    for each in locks:
        for named in _key(each):
            if not any(target.typed.node == named.node for target in targets):
                targets.append(SelectTarget("?key?", named, -1, is_hidden=True))


def _key(locked: LockedTable) -> list[Typed]:
    table = locked.table
    wanted = [part.column for part in table.index(table.primary).parts]
    by_id = {each.origin.number: each.typed for each in locked.item.columns}
    return [by_id[id] for id in wanted]


def locked(plan: Plan, locks: Sequence[LockedTable], targets: Sequence[SelectTarget]) -> Plan:
    places: dict[ColumnRef, int] = {}
    for at, target in enumerate(targets):
        if isinstance(target.typed.node, ColumnRef):
            places.setdefault(target.typed.node, at)
    for each in locks:
        key = tuple(places[typed.node] for typed in _key(each) if isinstance(typed.node, ColumnRef))
        plan = Lock(plan, each.table, key, each.locking.is_shared, each.locking.wait)
    return plan
