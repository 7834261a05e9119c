"""INSERT, UPDATE, DELETE, COPY and SELECT of the tables that are there.

Rows are asked for in an order of all their columns, so that a cursor's parts are determined.

Walk: `writer` asks `Rows.change` and `Rows.query`; `talk` takes queries for cursors and prepared statements.
"""

from collections.abc import Callable
from random import Random

from tests.differential.sides import Statement
from tests.differential.transactions.catalog import MISSING, Catalog, Column, Relation
from tests.differential.transactions.definitions import Definitions
from tests.differential.transactions.literals import literal, value

RETURNING_SHARE = 0.25


class Rows:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._definitions = Definitions(random)

    def change(self, catalog: Catalog) -> Statement:
        forms: list[tuple[float, Callable[[Catalog, Relation], Statement]]] = [
            (5, self._insert),
            (1, self._upsert),
            (0.7, self._insert_from),
            (3, self._update),
            (2.5, self._delete),
            (1, self._copy_in),
        ]
        make = self._random.choices([make for _, make in forms], [weight for weight, _ in forms])[0]
        return make(catalog, self.table(catalog))

    def table(self, catalog: Catalog) -> Relation:
        tables = [each for each in catalog.tables if each.columns]
        return self._random.choice(tables) if tables else MISSING

    def query(self, catalog: Catalog) -> Statement:
        random = self._random
        readable = [each for each in (*catalog.tables, *catalog.tables, *catalog.views) if each.columns]
        table = random.choice(readable) if readable else MISSING
        form = random.random()
        where = f" WHERE {self._definitions.condition(catalog, table)}" if random.random() < 0.5 else ""
        if form < 0.15:
            return written(f"SELECT count(*), count({table.columns[0].name}) FROM {table.name}{where}")
        if form < 0.25:
            other = random.choice(readable) if readable else MISSING
            pair = f"x.{random.choice(table.columns).name}, y.{random.choice(other.columns).name}"
            return written(
                f"SELECT {pair} FROM {table.name} x JOIN {other.name} y"
                f" ON x.{table.columns[0].name}::text = y.{other.columns[0].name}::text"
            )
        if form < 0.32:
            return ordered(f"COPY ({self.ordered_query(table, where)}) TO STDOUT")
        return ordered(self.ordered_query(table, where))

    def ordered_query(self, table: Relation, where: str = "") -> str:
        places = ", ".join(str(at) for at, _ in enumerate(table.columns, 1))
        return f"SELECT * FROM {table.name}{where} ORDER BY {places}"

    def _insert(self, catalog: Catalog, table: Relation) -> Statement:
        random, columns = self._random, self._some_columns(table)
        if not columns:
            return written(f"INSERT INTO {table.name} DEFAULT VALUES{self._returning(table)}")
        if random.random() < 0.15:
            return self._insert_with_parameters(catalog, table, columns)
        rows = [self._row(catalog, columns) for _ in range(random.choice((1, 1, 1, 2, 3)))]
        names = ", ".join(each.name for each in columns)
        return written(f"INSERT INTO {table.name} ({names}) VALUES {', '.join(rows)}{self._returning(table)}")

    def _insert_with_parameters(self, catalog: Catalog, table: Relation, columns: list[Column]) -> Statement:
        names = ", ".join(each.name for each in columns)
        marks = ", ".join(f"${at}" for at, _ in enumerate(columns, 1))
        found = [literal(self._random, each.kind, catalog) for each in columns]
        values = tuple(None if each == "NULL" else each.strip("'") for each in found)
        text = f"INSERT INTO {table.name} ({names}) VALUES ({marks}){self._returning(table)}"
        return written(text)._replace(parameters=values)

    def _upsert(self, catalog: Catalog, table: Relation) -> Statement:
        random, columns = self._random, self._some_columns(table)
        if not columns:
            return self._insert(catalog, table)
        names = ", ".join(each.name for each in columns)
        changed = random.choice(columns)
        then = random.choice(
            (
                "DO NOTHING",
                f"(id) DO UPDATE SET {changed.name} = excluded.{changed.name}",
                f"(id) DO UPDATE SET {changed.name} = {literal(random, changed.kind, catalog)}",
            )
        )
        values = self._row(catalog, columns)
        return written(
            f"INSERT INTO {table.name} ({names}) VALUES {values} ON CONFLICT {then}{self._returning(table)}"
        )

    def _insert_from(self, catalog: Catalog, table: Relation) -> Statement:
        random, columns, other = self._random, self._some_columns(table), self.table(catalog)
        sources = [
            random.choice([each.name for each in other.columns if each.kind == column.kind] or ["NULL"])
            for column in columns
        ]
        if not columns:
            return self._insert(catalog, table)
        sources = [
            f"{source} + 10" if column.name == "id" and source != "NULL" else source
            for source, column in zip(sources, columns, strict=True)
        ]
        names = ", ".join(each.name for each in columns)
        places = ", ".join(str(at) for at, _ in enumerate(columns, 1))
        query = f"SELECT {', '.join(sources)} FROM {other.name} ORDER BY {places}"
        return written(f"INSERT INTO {table.name} ({names}) {query}")

    def _update(self, catalog: Catalog, table: Relation) -> Statement:
        random = self._random
        column = random.choice(table.written or [*table.columns])
        new = literal(random, column.kind, catalog)
        if column.kind in ("integer", "bigint") and random.random() < 0.2:
            new = f"{column.name} + 10"
        if random.random() < 0.1:
            new = "DEFAULT"
        where, returning = self._where(catalog, table), self._returning(table)
        return written(f"UPDATE {table.name} SET {column.name} = {new}{where}{returning}")

    def _delete(self, catalog: Catalog, table: Relation) -> Statement:
        where, returning = self._where(catalog, table), self._returning(table)
        return written(f"DELETE FROM {table.name}{where}{returning}")

    def _copy_in(self, catalog: Catalog, table: Relation) -> Statement:
        random, columns = self._random, self._some_columns(table)
        if not columns:
            return self._insert(catalog, table)
        lines = []
        for _ in range(random.randint(1, 3)):
            found = [literal(random, each.kind, catalog) for each in columns]
            lines.append("\t".join("\\N" if each == "NULL" else each.strip("'") for each in found))
        if random.random() < 0.05:
            lines.append("1\t2\t3\t4\t5\t6\t7")
        names = ", ".join(each.name for each in columns)
        return written(f"COPY {table.name} ({names}) FROM STDIN")._replace(copied="\n".join(lines) + "\n")

    def _some_columns(self, table: Relation) -> list[Column]:
        """Most often all of them; what must be given is left out seldom."""
        random = self._random
        return [each for each in table.written if random.random() < (0.97 if each.is_required else 0.8)]

    def _row(self, catalog: Catalog, columns: list[Column]) -> str:
        random = self._random
        found = ["DEFAULT" if random.random() < 0.04 else self._filled(catalog, each) for each in columns]
        return f"({', '.join(found)})"

    def _filled(self, catalog: Catalog, column: Column) -> str:
        if column.is_required and self._random.random() < 0.95:
            return value(self._random, column.kind, catalog)
        return literal(self._random, column.kind, catalog)

    def _where(self, catalog: Catalog, table: Relation) -> str:
        random = self._random
        if random.random() < 0.12:
            return ""
        if random.random() < 0.5 and table.columns[0].name == "id":
            return f" WHERE id = {value(random, table.columns[0].kind, catalog)}"
        return f" WHERE {self._definitions.condition(catalog, table)}"

    def _returning(self, table: Relation) -> str:
        return " RETURNING *" if self._random.random() < RETURNING_SHARE else ""


def written(text: str) -> Statement:
    return Statement(text, kind="write", has_one_error=False)


def ordered(text: str) -> Statement:
    return Statement(text, kind="write", is_ordered=True, has_one_error=False)
