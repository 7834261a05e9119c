"""What people do in one block: they clean rows up and constrain them, swap tables, replace columns.

Statements chosen one by one seldom make such a sequence, and it is where rows and definitions meet.

Walk: `writer` takes an episode now and then, and says its statements one after the other.
"""

from collections.abc import Callable
from random import Random

from tests.differential.sides import Statement
from tests.differential.transactions.catalog import Catalog, Column, Relation
from tests.differential.transactions.definitions import ACTIONS, Definitions
from tests.differential.transactions.literals import COLUMNS, CONSTRAINTS, INDEXES, TABLES, value
from tests.differential.transactions.rows import Rows, written


class Episodes:
    def __init__(self, random: Random, rows: Rows) -> None:
        self._random, self._rows = random, rows
        self._definitions = Definitions(random)

    def one(self, catalog: Catalog) -> list[Statement]:
        table = self._rows.table(catalog)
        forms: tuple[Callable[[Catalog, Relation], list[str]], ...] = (
            *(self._unique, self._required, self._checked, self._referring, self._orphaned, self._unbound),
            *(self._new_column, self._replaced_column, self._swapped, self._index_again, self._emptied),
            *(self._taken_back, self._key_moved),
        )
        return [written(text) for text in self._random.choice(forms)(catalog, table)]

    def _unique(self, catalog: Catalog, table: Relation) -> list[str]:
        """Duplicates go, then there may be none."""
        column = self._column(table)
        first, later = self._random.sample(("<", ">"), 2)
        clean = (
            f"DELETE FROM {table.name} x USING {table.name} y WHERE x.{column.name} = y.{column.name}"
            f" AND x.id {first} y.id"
        )
        keep = f"UPDATE {table.name} SET {column.name} = NULL WHERE id {later} 2"
        return [
            self._random.choice((clean, clean, keep)),
            self._random.choice(
                (
                    f"ALTER TABLE {table.name} ADD UNIQUE ({column.name})",
                    f"CREATE UNIQUE INDEX {self._index()} ON {table.name} ({column.name})",
                    f"CREATE UNIQUE INDEX {self._index()} ON {table.name} ({column.name}) WHERE id > 1",
                )
            ),
        ]

    def _required(self, catalog: Catalog, table: Relation) -> list[str]:
        column = self._column(table)
        clean = self._random.choice(
            (
                f"UPDATE {table.name} SET {column.name} = {self._value(catalog, column)}",
                f"DELETE FROM {table.name}",
            )
        )
        return [
            f"{clean} WHERE {column.name} IS NULL",
            f"ALTER TABLE {table.name} ALTER COLUMN {column.name} SET NOT NULL",
        ]

    def _checked(self, catalog: Catalog, table: Relation) -> list[str]:
        condition = self._definitions.condition(catalog, table)
        return [
            f"DELETE FROM {table.name} WHERE NOT ({condition})",
            f"ALTER TABLE {table.name} ADD CONSTRAINT {self._constraint()} CHECK ({condition})",
        ]

    def _referring(self, catalog: Catalog, table: Relation) -> list[str]:
        """Rows that refer to nothing go, or get what they refer to."""
        column, target = self._number(table), self._rows.table(catalog)
        clean = self._random.choice(
            (
                f"DELETE FROM {table.name} WHERE {column.name} NOT IN (SELECT id FROM {target.name})",
                f"UPDATE {table.name} SET {column.name} = NULL",
                f"UPDATE {table.name} SET {column.name} = (SELECT min(id) FROM {target.name})",
                f"INSERT INTO {target.name} (id) SELECT DISTINCT {column.name} FROM {table.name}"
                f" WHERE {column.name} IS NOT NULL ON CONFLICT DO NOTHING",
            )
        )
        return [clean, self._foreign_key(table, column, target)]

    def _orphaned(self, catalog: Catalog, table: Relation) -> list[str]:
        """What is referred to goes before, or after, anything refers to it."""
        column, target = self._number(table), self._rows.table(catalog)
        gone = self._random.choice(
            (
                f"DELETE FROM {target.name} WHERE id = {self._random.randint(0, 5)}",
                f"UPDATE {target.name} SET id = id + 100 WHERE id = {self._random.randint(0, 5)}",
                f"DELETE FROM {target.name}",
            )
        )
        texts = [gone, self._foreign_key(table, column, target)]
        return texts if self._random.random() < 0.6 else texts[::-1]

    def _unbound(self, catalog: Catalog, table: Relation) -> list[str]:
        """A constraint goes, and rows come that it forbade."""
        names = [each.name for each in table.constraints if each.kind != "p"]
        insert = self._rows.change(catalog.only(table.name)).text
        return [
            f"ALTER TABLE {table.name} DROP CONSTRAINT {self._random.choice(names or [*CONSTRAINTS])}",
            f"INSERT INTO {table.name} SELECT * FROM {table.name} WHERE false",
            insert if "$1" not in insert and "STDIN" not in insert else f"DELETE FROM {table.name}",
        ]

    def _new_column(self, catalog: Catalog, table: Relation) -> list[str]:
        name = self._random.choice(COLUMNS)
        after = self._random.choice(
            (
                f"ALTER TABLE {table.name} ALTER COLUMN {name} SET NOT NULL",
                f"ALTER TABLE {table.name} ADD UNIQUE ({name})",
                f"CREATE INDEX ON {table.name} ({name})",
                f"ALTER TABLE {table.name} DROP COLUMN {name}",
            )
        )
        return [
            f"ALTER TABLE {table.name} ADD COLUMN {name} integer{self._random.choice(('', ' DEFAULT 3'))}",
            f"UPDATE {table.name} SET {name} = {self._random.choice(('id', '5', 'id + 1'))}",
            after,
        ]

    def _replaced_column(self, catalog: Catalog, table: Relation) -> list[str]:
        column = self._column(table)
        return [
            f"ALTER TABLE {table.name} RENAME COLUMN {column.name} TO former",
            f"ALTER TABLE {table.name} ADD COLUMN {column.name} {column.kind}",
            f"UPDATE {table.name} SET {column.name} = former",
            f"ALTER TABLE {table.name} DROP COLUMN former",
        ]

    def _swapped(self, catalog: Catalog, table: Relation) -> list[str]:
        condition = self._definitions.condition(catalog, table)
        return [
            f"CREATE TABLE fresh (LIKE {table.name}{self._random.choice(('', ' INCLUDING ALL'))})",
            f"INSERT INTO fresh SELECT * FROM {table.name} WHERE {condition}",
            f"DROP TABLE {table.name}",
            f"ALTER TABLE fresh RENAME TO {self._random.choice(TABLES[:-1])}",
        ]

    def _index_again(self, catalog: Catalog, table: Relation) -> list[str]:
        name = self._index()
        return [
            f"DROP INDEX IF EXISTS {name}",
            f"CREATE INDEX {name} ON {table.name} ({self._column(table).name})",
            f"DROP INDEX {name}",
            f"CREATE {self._random.choice(('', 'UNIQUE '))}INDEX {name} ON {table.name} (id)",
        ]

    def _emptied(self, catalog: Catalog, table: Relation) -> list[str]:
        change = self._rows.change(catalog.only(table.name)).text
        return [
            f"TRUNCATE {table.name}{self._random.choice(('', ' CASCADE'))}",
            change if "$1" not in change and "STDIN" not in change else f"DELETE FROM {table.name}",
            self._definitions.alteration(catalog.only(table.name)),
        ]

    def _taken_back(self, catalog: Catalog, table: Relation) -> list[str]:
        inner = self._random.choice((self._unique, self._required, self._new_column, self._referring))
        return [
            f"SELECT count(*) FROM {table.name}",
            "SAVEPOINT s0",
            *inner(catalog, table),
            "ROLLBACK TO s0",
            *inner(catalog, table),
        ]

    def _key_moved(self, catalog: Catalog, table: Relation) -> list[str]:
        key = table.constraint("p")
        texts = [] if key is None else [f"ALTER TABLE {table.name} DROP CONSTRAINT {key.name}"]
        return [*texts, f"ALTER TABLE {table.name} ADD PRIMARY KEY ({self._column(table).name})"]

    def _foreign_key(self, table: Relation, column: Column, target: Relation) -> str:
        action = self._random.choice(("DELETE", "DELETE", "UPDATE")), self._random.choice(ACTIONS)
        return (
            f"ALTER TABLE {table.name} ADD FOREIGN KEY ({column.name}) REFERENCES {target.name} (id)"
            f" ON {action[0]} {action[1]}"
        )

    def _column(self, table: Relation) -> Column:
        return self._random.choice([each for each in table.written if each.name != "id"] or [*table.columns])

    def _number(self, table: Relation) -> Column:
        numbers = [each for each in table.written if each.kind == "integer" and each.name != "id"]
        return self._random.choice(numbers or [*table.columns])

    def _value(self, catalog: Catalog, column: Column) -> str:
        return value(self._random, column.kind, catalog)

    def _index(self) -> str:
        return self._random.choice(INDEXES)

    def _constraint(self) -> str:
        return self._random.choice(CONSTRAINTS)
