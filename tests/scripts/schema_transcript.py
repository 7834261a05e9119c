"""Plays transcripts of nodes whose table changes under them.

    == a case begins with its name
    given: 1,10 2,20                 rows of a table t(id, a), which has no index but its primary one
    a1: begin                        a1, a2 are transactions on node a; each binds to its node's lease
    a1: look -> v2 i=delete_only     the table as the transaction sees it from now on: what is on its way
    a1: insert 3,30                  likewise: delete 3, update 3 a=31, select, select a=31 (by the index)
    a1: commit -> ok                 an error by its SQLSTATE
    a: renew                         the node takes a lease on the catalog as it is now
    ddl: add index i -> v2           publishes the first stage; also: add column c 7
    ddl: step -> v3                  publishes the next one, 55P03 if an older lease is in the way
    ddl: fill -> ok                  does the work that is due before the next stage, or 55P03
    now: rows -> 1,10 2,20           what is committed
    now: indexes -> whole            whether every index has what the rows say

Nobody acts by himself: a lease is renewed, and a transaction ended, where the transcript says so.
"""

from collections.abc import Callable

from tenure.base.errors import TenureError
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import ElementState, KeyPart, Table, elements, replace, visible
from tenure.catalog.descriptors.elements import advance, is_adding
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.schema_change.stages import work_before
from tenure.storage.engine import Engine
from tenure.table.read import get, rows, scan
from tenure.table.read import visible as shown
from tenure.table.rows import Layout, Row
from tests.scripts.transcript import Case, played
from tests.unit.schema_change.clusters import SchemaNode
from tests.unit.schema_change.declared import A, B, add_column, created, index_of, table_of
from tests.unit.schema_change.stepping import SteppedEnv

NOBODY = LeaseWaiter(ZERO_AT)
ADDED = ("i", "c")
"""What a case may add: an index on a, a column."""

COLUMNS = {"id": 1, "a": A, "b": B, "c": 4}


def play(case: Case, engine: Engine) -> list[str]:
    """Runs a case; returns its lines with what came of each command."""
    player = _Player(engine)
    return [played(player.run, line) for line in case.lines]


class _Player:
    def __init__(self, engine: Engine) -> None:
        env = SteppedEnv()
        env.is_still = True
        self._nodes = {name: SchemaNode(engine, env) for name in ("ddl", "a", "b")}
        self._ddl = self._nodes["ddl"]
        with env.still():
            env.is_still = False
            for node in self._nodes.values():
                env.add(node.step_leases)
            self._table = created(self._ddl)
        self._uses: dict[str, CatalogUse] = {}

    def run(self, who: str, command: str) -> str:
        verb, _, rest = command.partition(" ")
        if who == "given":
            verb, rest = "given", command
        action: Callable[[str, str], str | None] = getattr(self, f"_{verb}")
        try:
            return action(who, rest) or ""
        except TenureError as error:
            return error.sqlstate

    def _given(self, who: str, rest: str) -> None:
        node = self._ddl
        use = node.bind()
        for row in rest.split():
            node.insert(use, self._table, *map(int, row.split(",")))
        use.commit()

    # ── transactions ───────────────────────────────────────────────────────────────────────────

    def _node(self, who: str) -> SchemaNode:
        return self._nodes[who.rstrip("0123456789")]

    def _begin(self, who: str, _: str) -> None:
        self._uses[who] = self._node(who).bind()

    def _look(self, who: str, _: str) -> str:
        assert self._uses[who].txn.read_at  # from here on it sees the rows of this time, too
        return _described(table_of(self._uses[who], self._table))

    def _insert(self, who: str, rest: str) -> None:
        self._node(who).insert(self._uses[who], self._table, *map(int, rest.split(",")))

    def _delete(self, who: str, rest: str) -> str:
        with self._node(who).writer(self._uses[who], self._table) as writer:
            row = self._row(who, writer.layout, rest)
            if row is None:
                return "no row"
            writer.delete(self._uses[who].txn, row)
        return "ok"

    def _update(self, who: str, rest: str) -> str:
        key, _, change = rest.partition(" ")
        name, _, value = change.partition("=")
        with self._node(who).writer(self._uses[who], self._table) as writer:
            row = self._row(who, writer.layout, key)
            if row is None:
                return "no row"
            writer.update(self._uses[who].txn, row, {COLUMNS[name]: int(value)})
        return "ok"

    def _row(self, who: str, layout: Layout, key: str) -> Row | None:
        return get(self._uses[who].txn, layout, [int(key)])

    def _select(self, who: str, rest: str) -> str:
        use = self._uses[who]
        layout = self._node(who).layout(use, self._table)
        if not rest:
            return _listed(layout, rows(use.txn, layout))
        name, _, value = rest.partition("=")
        index = index_of(layout.table, COLUMNS[name])
        return _listed(layout, scan(use.txn, layout, index, prefix=(int(value),)))

    def _commit(self, who: str, _: str) -> str:
        self._uses[who].commit()
        return "ok"

    def _rollback(self, who: str, _: str) -> None:
        self._uses[who].close()

    def _end(self, who: str, transaction: str) -> None:
        """What a node does to a transaction that others have waited for too long."""
        assert self._node(who).leases.end(self._uses[transaction], "it held up a schema change")

    def _renew(self, who: str, _: str) -> None:
        self._node(who).leases.renew()
        self._node(who).leases.narrow()

    # ── the change ─────────────────────────────────────────────────────────────────────────────

    def _add(self, who: str, rest: str) -> str:
        kind, name, *more = rest.split()
        table = self._ddl.table(self._table)
        use = self._ddl.bind()
        if kind == "column":
            add_column(use, self._table, name, default=int(more[0]))
            declared = table_of(use, self._table)
        else:
            index = replace(table.indexes[0], id=2, name=name, parts=(KeyPart(A),), is_unique=False)
            index = replace(index, state=ElementState.DELETE_ONLY)
            declared = replace(table, indexes=(*table.indexes, index), next_index=3)
        use.close()
        return self._publish(declared)

    def _step(self, who: str, _: str) -> str:
        following = advance(self._ddl.table(self._table))
        assert isinstance(following, Table)
        return self._publish(following)

    def _publish(self, table: Table) -> str:
        settled = self._ddl.publisher.settle([table.id], NOBODY, timeout=0.0)
        self._ddl.transact(lambda txn: self._ddl.publisher.publish(txn, [table], settled))
        return f"v{self._ddl.table(table.id).version}"

    def _fill(self, who: str, _: str) -> str:
        table = self._ddl.table(self._table)
        self._ddl.publisher.settle([table.id], NOBODY, timeout=0.0)
        snapshot = self._ddl.store.snapshot()
        for work in work_before(table):
            for _batch in self._ddl.worker.do(work, table, snapshot, self._ddl.store.transact):
                pass
        return "ok"

    # ── what there is ──────────────────────────────────────────────────────────────────────────

    def _rows(self, who: str, _: str) -> str:
        return " ".join(",".join(map(_text, row)) for row in self._ddl.shown(self._table)) or "nothing"

    def _indexes(self, who: str, _: str) -> str:
        return "; ".join(self._ddl.wrong_indexes(self._table)) or "whole"


def _described(table: Table) -> str:
    on_their_way = [f"{each.name}={each.state.value}" for each in elements(table) if is_adding(each)]
    there = [each.name for each in visible(table.indexes)] + [each.name for each in visible(table.columns)]
    known = [f"{name}=public" for name in there if name in ADDED]
    return " ".join([f"v{table.version}", *on_their_way, *known])


def _listed(layout: Layout, found: object) -> str:
    listed = [",".join(map(_text, shown(layout, row).values())) for row in found]  # type: ignore[attr-defined]
    return " ".join(listed) or "nothing"


def _text(value: object) -> str:
    return "-" if value is None else str(value)
