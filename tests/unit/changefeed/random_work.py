"""Random statements on one table: rows and schema change in any order."""

import random
from collections.abc import Callable

from tests.unit.changefeed.feeding import Feeding

KEYS = 12


class RandomWork:
    """Statements may fail: a column may be gone, a key taken."""

    def __init__(self, feeding: Feeding, rng: random.Random, *, with_lake: bool = True) -> None:
        self.feeding = feeding
        self._rng = rng
        self._number = 0
        self._with_lake = with_lake
        feeding.done("CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL DEFAULT 0, s text)")

    def step(self) -> None:
        self._number += 1
        if self._rng.random() < 0.7:
            self.feeding.talk.say(self._row_statement())
            return
        act = self._rng.choice([self._change_schema, self._block, self._block, self._empty, self._move])
        act()

    def _row_statement(self) -> str:
        key, value = self._rng.randrange(KEYS), self._number
        return self._rng.choice(
            [
                f"UPSERT INTO t (k, v, s) VALUES ({key}, {value}, 's{value}')",
                f"UPSERT INTO t (k, v) VALUES ({key}, {value}), ({(key + 1) % KEYS}, {value})",
                f"UPDATE t SET v = {value} WHERE k = {key}",
                f"UPDATE t SET v = v + 1 WHERE k < {key}",
                f"DELETE FROM t WHERE k = {key}",
            ]
        )

    def _ddl(self) -> str:
        name = f"c{self._rng.randrange(4)}"
        other = f"c{self._rng.randrange(4)}"
        return self._rng.choice(
            [
                f"ALTER TABLE t ADD COLUMN {name} int",
                f"ALTER TABLE t ADD COLUMN {name} int DEFAULT {self._number}",
                f"ALTER TABLE t ADD COLUMN {name} int GENERATED ALWAYS AS (v * 2) STORED",
                f"ALTER TABLE t DROP COLUMN {name}",
                f"ALTER TABLE t DROP COLUMN {name}",
                f"ALTER TABLE t RENAME COLUMN {name} TO {other}",
                f"ALTER TABLE t ALTER COLUMN {name} TYPE text",
                f"ALTER TABLE t ALTER COLUMN {name} SET DEFAULT 9",
                f"CREATE INDEX i{self._number} ON t (v)",
                "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (k, v)",
                "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (k)",
                "COMMENT ON TABLE t IS 'x'",
                "GRANT SELECT ON t TO public",
            ]
        )

    def _change_schema(self) -> None:
        self.feeding.talk.say(self._ddl())

    def _block(self) -> None:
        say = self.feeding.talk.say
        say("BEGIN")
        for _ in range(self._rng.randrange(1, 4)):
            say(self._row_statement() if self._rng.random() < 0.6 else self._ddl())
        say("COMMIT" if self._rng.random() < 0.8 else "ROLLBACK")

    def _empty(self) -> None:
        if self._rng.random() < 0.4:
            self.feeding.talk.say("TRUNCATE t")

    def _move(self) -> None:
        """Flushes, or imports."""
        if not self._with_lake or self._rng.random() < 0.5:
            return
        choices: list[Callable[[], None]] = [self.feeding.flush, self._import]
        self._rng.choice(choices)()

    def _import(self) -> None:
        name = f"{self.feeding.schema}-{self._number}.csv"
        self.feeding.file(name, f"{100 + self._number},1\n{200 + self._number},2\n")
        self.feeding.talk.say(f"IMPORT INTO t (k, v) CSV DATA ('{name}')")
