"""What depends on the session: cursors that are fetched in parts, prepared statements, read-only modes.

Walk: `writer` asks `Talk` for a statement, and tells it what succeeded.
"""

import re
from random import Random

from tests.differential.sides import Statement
from tests.differential.transactions.catalog import Catalog
from tests.differential.transactions.rows import Rows, ordered, written

MOVES = (
    *("NEXT", "1", "2", "3", "ALL", "FORWARD 2", "FORWARD ALL", "0", "RELATIVE 1"),
    *("PRIOR", "FIRST", "LAST", "ABSOLUTE 2", "BACKWARD 1", "BACKWARD ALL", "RELATIVE -1", "ABSOLUTE 0"),
)
FORWARD_MOVES = MOVES[:9]
CURSORS, PREPARED = ("c0", "c1"), ("p0", "p1")
BEGINS = (
    *["BEGIN"] * 8,
    "START TRANSACTION",
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN READ ONLY",
    "BEGIN READ WRITE",
)
LONELY_BEGINS = (*BEGINS, "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE")
"""Beside others, a deferrable transaction may have to wait for them."""
SETTINGS = (
    "SET default_transaction_read_only = on",
    "SET default_transaction_read_only = off",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SHOW default_transaction_read_only",
    "SHOW transaction_read_only",
)
BLOCK_SETTINGS = (
    "SET TRANSACTION READ ONLY",
    "SET TRANSACTION READ WRITE",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET transaction_read_only = on",
    "SHOW transaction_read_only",
    "SHOW transaction_isolation",
    "SHOW transaction_deferrable",
    "SET LOCAL default_transaction_read_only = on",
)


class Talk:
    def __init__(self, random: Random, rows: Rows) -> None:
        self._random, self._rows = random, rows
        self._cursors: dict[str, bool] = {}
        """Those declared, and whether they go back; some may be over."""
        self._prepared: dict[str, int] = {}

    @property
    def has_cursors(self) -> bool:
        return bool(self._cursors)

    def cursor(self, catalog: Catalog) -> Statement:
        random = self._random
        if not self._cursors or random.random() < 0.2:
            return self._declare(catalog)
        name = random.choice([*self._cursors])
        if random.random() < 0.1:
            return written(f"CLOSE {name}")
        moves = MOVES if self._cursors[name] or random.random() < 0.05 else FORWARD_MOVES
        verb = random.choice(("FETCH", "FETCH", "FETCH", "MOVE"))
        return ordered(f"{verb} {random.choice(moves)} FROM {name}")

    def _declare(self, catalog: Catalog) -> Statement:
        random = self._random
        name, scroll = random.choice(CURSORS), random.choice(("SCROLL ", "NO SCROLL "))
        hold = " WITH HOLD" if random.random() < 0.2 else ""
        self._cursors[name] = scroll == "SCROLL "
        query = self._rows.ordered_query(self._rows.table(catalog))
        return written(f"DECLARE {name} {scroll}CURSOR{hold} FOR {query}")

    def prepared(self, catalog: Catalog) -> Statement:
        random = self._random
        if not self._prepared or random.random() < 0.3:
            return self._prepare(catalog)
        name = random.choice([*self._prepared])
        if random.random() < 0.07:
            return written(f"DEALLOCATE {name}")
        given = ", ".join(str(random.randint(0, 5)) for _ in range(self._prepared[name]))
        return ordered(f"EXECUTE {name}({given})" if given else f"EXECUTE {name}")

    def _prepare(self, catalog: Catalog) -> Statement:
        random = self._random
        name, table = random.choice(PREPARED), self._rows.table(catalog)
        if random.random() < 0.5:
            query = self._rows.ordered_query(table, f" WHERE {table.columns[0].name}::text <> $1::text")
            self._prepared[name] = 1
            return written(f"PREPARE {name} AS {query}")
        change = self._rows.change(catalog)
        # An ON CONFLICT that finds no constraint fails here when it is prepared, in PostgreSQL when it runs.
        while change.parameters or not re.match("(INSERT(?!.*ON CONFLICT)|UPDATE|DELETE)", change.text):
            change = self._rows.change(catalog)
        self._prepared[name] = 0
        return written(f"PREPARE {name} AS {change.text}")

    def begin(self, *, is_alone: bool) -> Statement:
        return written(self._random.choice(LONELY_BEGINS if is_alone else BEGINS))

    def setting(self, *, is_in_block: bool) -> Statement:
        return written(self._random.choice(BLOCK_SETTINGS if is_in_block else SETTINGS))
