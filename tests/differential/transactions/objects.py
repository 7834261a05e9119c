"""Indexes, views, sequences, types and schemas: created, changed, used and dropped.

Walk: `writer` asks `Objects.one` for a statement.
"""

from collections.abc import Callable
from random import Random

from tests.differential.transactions.catalog import Catalog, Relation
from tests.differential.transactions.definitions import Definitions
from tests.differential.transactions.literals import INDEXES, SEQUENCES, TYPES, VIEWS

LABELS = ("low", "mid", "high", "top")


class Objects:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._definitions = Definitions(random)

    def one(self, catalog: Catalog, *, is_in_block: bool) -> str:
        forms: list[tuple[float, Callable[[Catalog], str]]] = [
            (6, self._create_index),
            (2, self._drop_index),
            (2, self._create_view),
            (1, self._drop_view),
            (1, self._create_sequence),
            (3, self._use_sequence),
            (0.5, self._drop_sequence),
            (1, self._create_type),
            (1, self._alter_type),
            (0.5, self._drop_type),
            (0.7, self._schema),
        ]
        if not is_in_block:
            # In a block the first counts at once and stays, and the second shows with COMMIT.
            forms.append((0.7, self._restart))
            forms.append((2 if catalog.tables else 0, self._definitions.other_type))
        return self._random.choices([make for _, make in forms], [weight for weight, _ in forms])[0](catalog)

    def _create_index(self, catalog: Catalog) -> str:
        random = self._random
        table = self._table(catalog)
        if table is None or not table.columns:
            return self._definitions.create_table(catalog)
        columns = random.sample(table.columns, min(len(table.columns), random.randint(1, 2)))
        listed = ", ".join(each.name + random.choice(("", "", " DESC")) for each in columns)
        if random.random() < 0.05 and columns[0].kind == "text":
            listed = f"lower({columns[0].name})"
        unique = random.choice(("", "UNIQUE "))
        where = f" WHERE {self._definitions.condition(catalog, table)}" if random.random() < 0.3 else ""
        name = f"{random.choice(INDEXES)} " if random.random() < 0.7 else ""
        return f"CREATE {unique}INDEX {name}ON {table.name} ({listed}){where}"

    def _drop_index(self, catalog: Catalog) -> str:
        names = [each.name for table in catalog.tables for each in table.indexes if not each.is_primary]
        exists = self._random.choice(("", "", "IF EXISTS "))
        return f"DROP INDEX {exists}{self._random.choice(names or [*INDEXES])}"

    def _create_view(self, catalog: Catalog) -> str:
        random, table = self._random, self._table(catalog)
        if table is None or not table.columns:
            return "CREATE VIEW v0 AS SELECT 1 AS a"
        names = [each.name for each in random.sample(table.columns, random.randint(1, len(table.columns)))]
        replace = random.choice(("", "", "OR REPLACE "))
        listed = random.choice((", ".join(names), ", ".join(names), "*"))
        where = f" WHERE {self._definitions.condition(catalog, table)}" if random.random() < 0.4 else ""
        return f"CREATE {replace}VIEW {random.choice(VIEWS)} AS SELECT {listed} FROM {table.name}{where}"

    def _drop_view(self, catalog: Catalog) -> str:
        name = self._random.choice([each.name for each in catalog.views] or [*VIEWS])
        return f"DROP VIEW {name}{self._random.choice(('', ' CASCADE'))}"

    def _create_sequence(self, catalog: Catalog) -> str:
        random = self._random
        options = random.choice(("", " START 10", " INCREMENT 5", " START 7 INCREMENT -2 MAXVALUE 20"))
        return f"CREATE SEQUENCE {random.choice(SEQUENCES)}{options}"

    def _use_sequence(self, catalog: Catalog) -> str:
        random = self._random
        name = random.choice([each.name for each in catalog.sequences] or [*SEQUENCES])
        return random.choice(
            (
                f"SELECT nextval('{name}')",
                f"SELECT nextval('{name}'), nextval('{name}')",
                f"SELECT currval('{name}')",
                "SELECT lastval()",
                f"SELECT setval('{name}', {random.randint(1, 19)})",
            )
        )

    def _restart(self, catalog: Catalog) -> str:
        name = self._random.choice([each.name for each in catalog.sequences] or [*SEQUENCES])
        table = self._table(catalog)
        if table is not None and self._random.random() < 0.4:
            return f"TRUNCATE {table.name} RESTART IDENTITY"
        return f"ALTER SEQUENCE {name} RESTART{self._random.choice(('', ' 5'))}"

    def _drop_sequence(self, catalog: Catalog) -> str:
        name = self._random.choice([each.name for each in catalog.sequences] or [*SEQUENCES])
        return f"DROP SEQUENCE {name}{self._random.choice(('', ' CASCADE'))}"

    def _create_type(self, catalog: Catalog) -> str:
        labels = ", ".join(f"'{each}'" for each in LABELS[: self._random.randint(1, 3)])
        return f"CREATE TYPE {self._random.choice(TYPES)} AS ENUM ({labels})"

    def _alter_type(self, catalog: Catalog) -> str:
        random = self._random
        name, labels = random.choice([*catalog.types] or [("e0", ("low",))])
        if random.random() < 0.4:
            return f"ALTER TYPE {name} RENAME VALUE '{random.choice(labels)}' TO '{random.choice(LABELS)}'"
        place = random.choice(("", f" BEFORE '{random.choice(labels)}'"))
        return f"ALTER TYPE {name} ADD VALUE '{random.choice(LABELS)}'{place}"

    def _drop_type(self, catalog: Catalog) -> str:
        name, _ = self._random.choice([*catalog.types] or [("e0", ())])
        return f"DROP TYPE {name}{self._random.choice(('', ' CASCADE'))}"

    def _schema(self, catalog: Catalog) -> str:
        return self._random.choice(
            ("CREATE SCHEMA extra", "DROP SCHEMA extra", "DROP SCHEMA IF EXISTS extra CASCADE")
        )

    def _table(self, catalog: Catalog) -> Relation | None:
        return self._random.choice(catalog.tables) if catalog.tables else None
