"""Tables that are taken back, and a dictionary of what they had."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from tenure.catalog.descriptors.definitions import EnumType, Table
from tenure.expr.functions.function import Context
from tenure.table.consistency import check_indexes
from tenure.table.rows import Layout
from tests.unit.bulk.imports import Importing


class Resetting:
    """A table `t` of a session, and its rows at the times that were remembered."""

    def __init__(self, importing: Importing) -> None:
        self.importing = importing
        self.done, self.say, self.rows = importing.done, importing.say, importing.rows
        self.history: dict[str, list[tuple[Any, ...]]] = {}

    def now(self) -> str:
        """The present time, whose rows are remembered."""
        ((at,),) = self.rows("SELECT cluster_logical_timestamp()::text")
        assert at is not None
        self.history[at] = self.rows()
        return at

    def reset_after(self, before: Iterable[str], after: Iterable[str]) -> str:
        """Makes the table, changes it and takes it back to the time between; returns that."""
        for statement in before:
            self.done(statement)
        at = self.now()
        for statement in after:
            self.done(statement)
        self.reset(at)
        return at

    def reset(self, at: str) -> None:
        self.done(f"ALTER TABLE t RESET TO SYSTEM TIME '{at}'")

    def refused(self, at: str) -> str:
        """The SQLSTATE with which a reset is refused, after which nothing has changed."""
        before = self.rows()
        said = self.say(f"ALTER TABLE t RESET TO SYSTEM TIME '{at}'")
        assert self.rows() == before
        return said.sqlstate

    def check(self) -> None:
        """All remembered times have what they had, by every index."""
        for at, rows in self.history.items():
            assert self.rows(f"SELECT * FROM t AS OF SYSTEM TIME '{at}' ORDER BY 1") == rows
        self.check_indexes()

    def check_indexes(self) -> None:
        node = self.importing.node
        ((id,),) = self.rows("SELECT 't'::regclass::oid::int8")
        snapshot = node.store.snapshot()
        table = node.catalog.get(snapshot, int(id or 0))
        assert isinstance(table, Table)

        def enum(id: int) -> EnumType:
            found = node.catalog.get(snapshot, id)
            assert isinstance(found, EnumType)
            return found

        layout = Layout(table, node.store.keyspace, enum)
        context = Context(0, 0, lambda: UUID(int=0), lambda: 0)
        assert check_indexes(snapshot, layout, context, left=range(table.next_index)) == []
