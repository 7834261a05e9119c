"""A table with a base in the lake and a delta in the store, asked of DuckDB and read row by row.

Walk: the tests of `sql.duck` fill a table with `insert_rows`, and compare with `AskedTable.agree`.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from tenure.base.memory import lone_account
from tenure.catalog.descriptors.definitions import Table, TypeRef
from tenure.kv.transaction import Transaction
from tenure.sql.duck.duck_types import Value, shape_of
from tenure.sql.duck.offload import Duck
from tenure.sql.duck.rendering import Rendered, Used
from tenure.sql.rows.run import QueryRun
from tenure.table.read import Source, at, rows, visible
from tests.unit.pipeline.lakes import Lake
from tests.unit.table.tables import ID, A, B, column, table
from tests.unit.table.trees import CONTEXT


def duck_table() -> Table:
    columns = [
        column(ID, "id", is_nullable=False),
        column(A, "a", TypeRef("numeric", (20, 2))),
        column(B, "b", TypeRef("text")),
    ]
    return table(columns=columns)


class AskedTable:
    """Columns of a table, asked of DuckDB and read row by row."""

    def __init__(self, lake: Lake, duck: Duck, version: Table | None = None) -> None:
        self.lake, self.duck = lake, duck
        self.version = version or lake.table
        self.layout = lake._layouts.of(self.version)

    def by_duck(
        self,
        source: Source,
        *columns: int,
        check: Callable[[], None] = lambda: None,
        where: str = "",
        is_joined: bool = False,
        is_first: bool = False,
    ) -> list[str] | None:
        found = self.stream(
            source, *columns, check=check, where=where, is_joined=is_joined, is_first=is_first
        )
        return None if found is None else sorted(map(repr, found))

    def stream(
        self,
        source: Source,
        *columns: int,
        check: Callable[[], None] = lambda: None,
        where: str = "",
        is_joined: bool = False,
        is_first: bool = False,
    ) -> Iterator[tuple[Any, ...]] | None:
        kinds = [self.layout.columns[id].type for id in columns]
        named = ", ".join(f"t.c{id} AS c{place}" for place, id in enumerate(columns)) or "1 AS one"
        name = f"d{self.version.id}"
        used = Used(self.version, {*columns}, [None])
        if is_joined:
            used = Used(self.version, {*columns, ID}, [None, None])
            where = f" JOIN {name} AS u ON u.c{ID} = t.c{ID}{where}"
        rendered = Rendered(
            f"SELECT {named} FROM {name} AS t{where}",
            (),
            {self.version.id: used},
            tuple(Value("", kind, shape_of(kind)) for kind in kinds),
            is_first,
        )
        run = QueryRun(
            CONTEXT, source, lambda of: self.layout, lambda key, sought: (), check, lone_account(1 << 30)
        )
        return self.duck.answer(rendered, run)

    def by_rows(self, source: Source, *columns: int) -> list[str]:
        found = [visible(self.layout, row) for row in rows(source, self.layout)]
        return sorted(repr(tuple(row[id] for id in columns)) for row in found)

    def agree(self, source: Source, *columns: int) -> bool:
        """Whether DuckDB answered; if so, rightly."""
        found = self.by_duck(source, *columns)
        assert found is None or found == self.by_rows(source, *columns)
        return found is not None

    def agree_joined(self, source: Source, *columns: int) -> bool:
        """The same of the table joined with itself, row by row."""
        return self.by_duck(source, *columns, is_joined=True) == self.by_rows(source, *columns)

    def agree_first(self, source: Source, count: int) -> bool:
        """The same of its first rows in an order."""
        order = f" ORDER BY t.c{ID} DESC LIMIT {count}"
        found = self.by_duck(source, ID, where=order, is_first=True)
        ids = sorted((visible(self.layout, row)[ID] for row in rows(source, self.layout)), reverse=True)
        return found == sorted(repr((id,)) for id in ids[:count])


def insert_rows(lake: Lake, *ids: int, text: str = "row") -> None:
    writer = lake.writer()

    def work(txn: Transaction) -> None:
        for id in ids:
            writer.insert(txn, {ID: id, A: Decimal(id), B: f"{text} {id}"})

    lake.write(work)


def change_row(lake: Lake, id: int, text: str) -> None:
    def work(txn: Transaction) -> None:
        row = at(txn, lake.layout, lake.layout.key({ID: id}))
        assert row is not None
        lake.writer().update(txn, row, {**visible(lake.layout, row), B: text})

    lake.write(work)
