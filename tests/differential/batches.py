"""Statements that only mean something together: cursors, views, tables that are made, changed and dropped.

Each batch is asked in order, and ends early where the two sides go different ways; `undone` says what
takes away whatever it may have left.

Walk: `run` takes a batch now and then.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.differential.expressions import COMPARABLE, Maker
from tests.differential.queries import scope_of
from tests.differential.sides import Statement
from tests.differential.values import ENUM, NASTY, TAME, quoted

MOVES = (
    *("NEXT", "3", "ALL", "PRIOR", "FIRST", "LAST", "ABSOLUTE 2", "ABSOLUTE -2", "ABSOLUTE 0", "RELATIVE 2"),
    *("RELATIVE -1", "RELATIVE 0", "FORWARD 2", "BACKWARD 2", "FORWARD ALL", "BACKWARD ALL", "0", "-1"),
)
KINDS = ("int4", "int8", "int2", "text", "varchar(10)", "numeric(10,2)", "bool", "date", "timestamptz", ENUM)
NAMES = ("a", "b", "c", "d", "e")


class Batch(NamedTuple):
    statements: list[Statement]
    undone: list[str]


class Batches:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._count = 0

    def cursor(self) -> Batch:
        random = self._random
        maker = Maker(random, scope_of("a"))
        where = _literal(maker, lambda: f" WHERE {maker.condition(1)}") if random.random() < 0.5 else ""
        # Without either, PostgreSQL decides by its plan whether there is a way back.
        scroll = random.choice(("SCROLL ", "NO SCROLL "))
        query = f"SELECT a.id, a.t, a.n FROM a{where} ORDER BY a.id"
        steps = [
            f"{random.choice(('FETCH', 'FETCH', 'FETCH', 'MOVE'))} {random.choice(MOVES)} FROM c"
            for _ in range(random.randint(1, 6))
        ]
        texts = ["BEGIN", f"DECLARE c {scroll}CURSOR FOR {query}", *steps, "CLOSE c", "COMMIT"]
        return Batch([_plain(each) for each in texts], ["ROLLBACK"])

    def view(self) -> Batch:
        random, name = self._random, self._name("v")
        maker = Maker(random, scope_of("a"))
        kinds = [maker.some_type(COMPARABLE) for _ in range(2)]
        columns = [_literal(maker, lambda kind=kind: maker.of(kind, 2)) for kind in kinds]  # type: ignore[misc]
        where = _literal(maker, lambda: maker.condition(1))
        made = f"SELECT a.id, {columns[0]} AS c0, {columns[1]} AS c1 FROM a WHERE {where}"
        outer = Maker(random, [(f"{name}.id", "int4"), (f"{name}.c0", kinds[0]), (f"{name}.c1", kinds[1])])
        condition = _literal(outer, lambda: outer.condition(1))
        texts = [
            f"CREATE VIEW {name} AS {made}",
            f"SELECT * FROM {name} ORDER BY id",
            f"SELECT {name}.c1, a.t FROM {name} JOIN a ON a.id = {name}.id WHERE {condition} ORDER BY a.id",
            f"CREATE VIEW {name}_2 AS SELECT c0, count(*) AS n FROM {name} GROUP BY c0",
            f"SELECT n FROM {name}_2 ORDER BY n",
            random.choice((f"DROP VIEW {name}", f"DROP VIEW {name} CASCADE")),
            f"SELECT n FROM {name}_2 ORDER BY n",
        ]
        return Batch([_plain(each) for each in texts], [f"DROP VIEW IF EXISTS {name}_2, {name} CASCADE"])

    def table(self) -> Batch:
        random, name = self._random, self._name("q")
        kinds = {each: random.choice(KINDS) for each in NAMES[: random.randint(2, 4)]}
        columns = [f"{each} {kind}{self._constraint(each, kind)}" for each, kind in kinds.items()]
        key = random.choice(("id int4 PRIMARY KEY", "id serial PRIMARY KEY", "id int4"))
        texts = [f"CREATE TABLE {name} ({', '.join([key, *columns])})"]
        for at in range(1, random.randint(2, 4)):
            texts.append(self._insert(name, kinds, at))
        for _ in range(random.randint(1, 4)):
            texts += [self._alteration(name, kinds), self._insert(name, kinds, random.randint(1, 9))]
        # Without a key, an id may be there twice.
        order = " ORDER BY id" if "KEY" in key else ""
        texts += [f"SELECT * FROM {name}{order}", f"DROP TABLE {name}"]
        return Batch([_plain(each) for each in texts], [f"DROP TABLE IF EXISTS {name} CASCADE"])

    def _constraint(self, column: str, kind: str) -> str:
        value = quoted(self._random.choice(TAME[kind]))
        return self._random.choice(
            ("", "", "", " NOT NULL", " UNIQUE", f" DEFAULT {value}", f" CHECK ({column} <> {value})")
        )

    def _insert(self, name: str, kinds: dict[str, str], id: int) -> str:
        values = [
            "DEFAULT" if self._random.random() < 0.1 else quoted(self._value(kind)) for kind in kinds.values()
        ]
        return f"INSERT INTO {name} (id, {', '.join(kinds)}) VALUES ({', '.join([str(id), *values])})"

    def _value(self, kind: str) -> str | None:
        if self._random.random() < 0.15:
            return None
        return self._random.choice(NASTY[kind] if self._random.random() < 0.2 else TAME[kind])

    def _alteration(self, name: str, kinds: dict[str, str]) -> str:
        random = self._random
        column = random.choice([*kinds])
        other = random.choice(NAMES)
        kind, value = random.choice(KINDS), quoted(random.choice(TAME[kinds[column]]))
        forms: list[tuple[str, Callable[[], None]]] = [
            (f"ADD COLUMN {other} {kind}", lambda: _add(kinds, other, kind)),
            (f"ADD COLUMN {other} {kind} DEFAULT NULL NOT NULL", lambda: None),
            (f"ALTER COLUMN {column} SET NOT NULL", lambda: None),
            (f"ALTER COLUMN {column} DROP NOT NULL", lambda: None),
            (f"ALTER COLUMN {column} SET DEFAULT {value}", lambda: None),
            (f"ALTER COLUMN {column} DROP DEFAULT", lambda: None),
            (f"ADD CONSTRAINT {name}_{column}_own CHECK ({column} IS NOT NULL OR id > 2)", lambda: None),
            (f"ADD UNIQUE ({column})", lambda: None),
            (f"DROP CONSTRAINT {name}_{column}_own", lambda: None),
            (f"DROP CONSTRAINT IF EXISTS {name}_{column}_key", lambda: None),
            (f"RENAME COLUMN {column} TO {other}", lambda: self._rename(kinds, column, other)),
        ]
        if random.random() < 0.25:
            unique = random.choice(("", "", "UNIQUE "))
            way = random.choice(("", " DESC"))
            return f"CREATE {unique}INDEX ON {name} ({column}{way}, id)"
        text, follow = random.choice(forms)
        follow()
        return f"ALTER TABLE {name} {text}"

    @staticmethod
    def _rename(kinds: dict[str, str], column: str, other: str) -> None:
        if other not in kinds:
            kinds[other] = kinds.pop(column)

    def _name(self, prefix: str) -> str:
        """A new one each time: what others do with a name that was given up is not asked here."""
        self._count += 1
        return f"{prefix}{self._count}"


def _literal(maker: Maker, make: Callable[[], str]) -> str:
    """What is stored has no parameters."""
    while "§" in (text := make()):
        maker.parameters.clear()
    return text


def _plain(text: str) -> Statement:
    is_ordered = "ORDER BY" in text or text.startswith("FETCH")
    return Statement(text, kind="write", is_ordered=is_ordered, has_one_error=False)


def _add(kinds: dict[str, str], column: str, kind: str) -> None:
    kinds.setdefault(column, kind)
