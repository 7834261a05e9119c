"""DML over tables with keys, CHECKs, defaults, generated columns and foreign keys: much of it has to fail.

Batches come as they are or in a transaction; `run` compares the whole tables after each.

Walk: `run` asks for a `batch`, and for `world.refill` between them.
"""

from random import Random

from tests.differential.expressions import Maker, Scope, numbered
from tests.differential.sides import Statement
from tests.differential.values import TAME

Columns = dict[str, tuple[str, list[str]]]

INTS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "NULL", "1", "40000", "100"]
NAMES = [
    "'one'",
    "'two'",
    "'six'",
    "'seven'",
    "'eight'",
    "'nine'",
    "'longer than 8'",
    "NULL",
    "''",
    "'spaces      '",
]
NUMBERS = ["1.5", "2", "2.255", "9999.99", "99999", "0", "-1", "NULL", "'NaN'", "7", "8.125", "9", "11", "12"]
TABLES: dict[str, Columns] = {
    "parent": {
        "id": ("int4", INTS),
        "name": ("varchar(10)", NAMES),
        "n": ("numeric(10,2)", NUMBERS),
        "e": ("mood", ["'sad'", "'ok'", "'happy'", "NULL", "'no label'", "DEFAULT"]),
        "tags": ("text[]", ["'{}'", "'{a,b}'", "ARRAY['x', NULL]", "NULL", "DEFAULT"]),
        "doc": ("jsonb", ["'{\"a\": 1}'", "NULL", "'[1, 2]'", "'{'"]),
        "at": ("timestamp", ["'2024-02-29 12:00:00'", "DEFAULT", "NULL", "date '2024-01-01'"]),
    },
    "child": {
        "id": ("int4", [str(each) for each in range(1, 15)]),
        "p_cascade": ("int4", INTS[:6]),
        "p_null": ("int4", INTS[:6]),
        "p_default": ("int4", [*INTS[:6], "DEFAULT"]),
        "p_restrict": ("int4", ["1", "2", "NULL", "NULL", "NULL"]),
        "p_none": ("varchar(10)", ["NULL", "NULL", "'one'", "'five'", "'nobody'"]),
        "v": ("int4", ["1", "50", "99", "100", "NULL", "DEFAULT"]),
    },
    "item": {
        "k": ("text", ["'a'", "'b'", "''", "'ü'", "NULL"]),
        "m": ("int2", ["1", "2", "3", "7", "32767", "40000", "1.5"]),
        "price": ("numeric(10,2)", ["1", "0.005", "999999.99", "1000000", "NULL", "2.675"]),
        "amount": ("int4", ["1", "2", "10", "11", "12", "13", "NULL", "2147483647"]),
        "c": ("char(5)", ["'x'", "'xyz'", "'toolong'", "'x    '", "NULL"]),
        "f": ("float4", ["0.1", "1e39", "'-0'", "'NaN'", "16777217", "NULL"]),
        "u": ("uuid", ["NULL", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'x'"]),
        "flag": ("bool", ["true", "false", "NULL", "DEFAULT", "'yes'"]),
    },
    "note": {
        "id": ("int4", [str(each) for each in range(-6, 0)]),
        "body": ("text", ["'x'", "''", "NULL", "DEFAULT", "'日本'", "5"]),
        "day": ("date", ["'2024-02-29'", "'2023-02-29'", "NULL", "timestamp '2024-01-01 10:00'"]),
        "t": ("time", ["'12:34:56.789'", "NULL"]),
        "iv": ("interval", ["'1 mon -1 day'", "'1.5 hours'", "NULL"]),
        "by": ("bytea", ["'\\x00ff'", "'abc'", "NULL"]),
        "j": ("json", ["'{\"a\":  1}'", "'nope'", "NULL"]),
        "f": ("float8", ["1e-320", "'-Infinity'", "0.1", "NULL", "1"]),
        "i8": ("int8", ["9223372036854775807", "-1", "NULL", "1.5", "9223372036854775808"]),
    },
}
KEYS = {"parent": ["id", "name", "e, n"], "child": ["id"], "item": ["k, m"], "note": ["id"]}


class Writes:
    def __init__(self, random: Random) -> None:
        self._random = random

    def batch(self) -> list[Statement]:
        statements = [self._one() for _ in range(self._random.randint(2, 6))]
        form = self._random.random()
        if form < 0.6:
            return statements
        end = self._random.choice(("COMMIT", "COMMIT", "ROLLBACK"))
        if form < 0.8:
            return [_plain("BEGIN"), *statements, _plain(end)]
        at = self._random.randrange(len(statements))
        rescued = [_plain("SAVEPOINT s"), *statements[at:], _plain("ROLLBACK TO SAVEPOINT s")]
        return [_plain("BEGIN"), *statements[:at], *rescued, _plain(end)]

    def _one(self) -> Statement:
        table = self._random.choice(("parent", "parent", "child", "child", "item", "item", "note"))
        choice = self._random.random()
        if choice < 0.4:
            return self._insert(table)
        if choice < 0.43:
            return self._insert_select(table)
        if choice < 0.47:
            return self._copy(table)
        if choice < 0.75:
            return self._update(table)
        if choice < 0.97:
            return self._delete(table)
        tables = self._random.choice(("item", "parent", "parent, child", "note", "child", "parent CASCADE"))
        return _plain(f"TRUNCATE {tables}")

    def _value(self, kind: str, pool: list[str], maker: Maker, *, is_kind: bool) -> str:
        """Mostly of the column's own; sometimes an expression, or a parameter that it gives the type to."""
        chance = self._random.random()
        text = self._random.choice(pool[: max(3, len(pool) // 2)] if chance < 0.7 else pool)
        if not is_kind and chance < 0.06:
            return maker.of(kind, 1)
        return text

    def _insert(self, table: str) -> Statement:
        random, columns = self._random, TABLES[table]
        maker = Maker(random, [])
        key = [each.strip() for each in KEYS[table][0].split(",")]
        chosen = [*key, *random.sample([each for each in columns if each not in key], random.randint(1, 4))]
        if table == "parent" and "name" not in chosen and random.random() < 0.9:
            chosen.append("name")
        if table == "note" and random.random() < 0.3:
            chosen.remove("id")
        rows = [
            "(" + ", ".join(self._value(*columns[each], maker, is_kind=False) for each in chosen) + ")"
            for _ in range(random.choice((1, 1, 1, 2, 3)))
        ]
        text = f"INSERT INTO {table} ({', '.join(chosen)}) VALUES {', '.join(rows)}"
        return self._done(text + self._conflict(table, maker) + self._returning(table, maker), maker)

    def _insert_select(self, table: str) -> Statement:
        maker = Maker(self._random, _scope("parent"))
        text = {
            "parent": "INSERT INTO parent (id, name, n) SELECT id + 10, 'x' || id, n FROM parent WHERE {}",
            "child": "INSERT INTO child (id, p_cascade, v) SELECT id + 20, id, 5 FROM parent WHERE {}",
            "item": "INSERT INTO item (k, m, price) SELECT name, id, n FROM parent WHERE {}",
            "note": "INSERT INTO note (id, body, i8) SELECT -10 - id, name, n FROM parent WHERE {}",
        }[table]
        return self._done(text.replace("{}", maker.condition(1)) + self._returning(table, maker), maker)

    def _copy(self, table: str) -> Statement:
        """COPY ... FROM STDIN, of texts as they may come."""
        random, columns = self._random, TABLES[table]
        key = [each.strip() for each in KEYS[table][0].split(",")]
        chosen = [*key, *random.sample([each for each in columns if each not in key], random.randint(1, 3))]
        is_csv = random.random() < 0.4
        lines = []
        for _ in range(random.randint(1, 3)):
            fields = [_copied(random.choice(columns[each][1]), is_csv=is_csv) for each in chosen]
            lines.append(("," if is_csv else "\t").join(fields))
        if random.random() < 0.1:
            lines.append(random.choice(("x", "", "\\.", "1\t2\t3\t4\t5\t6\t7", '"open')))
        text = f"COPY {table} ({', '.join(chosen)}) FROM STDIN{' WITH (FORMAT csv)' if is_csv else ''}"
        return Statement(text, kind="write", has_one_error=False, copied="\n".join(lines) + "\n")

    def _conflict(self, table: str, maker: Maker) -> str:
        random = self._random
        if random.random() < 0.55:
            return ""
        target = random.choice(KEYS[table])
        if random.random() < 0.35:
            return f" ON CONFLICT{random.choice(('', f' ({target})'))} DO NOTHING"
        column = random.choice([each for each in TABLES[table] if each not in ("id", "k", "m")])
        maker.scope = [*_scope(table, f"{table}."), *_scope(table, "excluded.")]
        value = random.choice([f"excluded.{column}", maker.of(TABLES[table][column][0], 1), "DEFAULT"])
        where = f" WHERE {maker.condition(0)}" if random.random() < 0.25 else ""
        return f" ON CONFLICT ({target}) DO UPDATE SET {column} = {value}{where}"

    def _update(self, table: str) -> Statement:
        random, columns = self._random, TABLES[table]
        maker = Maker(random, _scope(table, f"{table}."))
        changes = []
        for column in random.sample([*columns], random.choice((1, 1, 2))):
            kind, pool = columns[column]
            text = maker.of(kind, 2) if random.random() < 0.4 else random.choice(pool)
            changes.append(f"{column} = {text}")
        source = ""
        if random.random() < 0.2 and table != "parent":
            source = " FROM parent AS other"
            join = {
                "child": "child.p_cascade = other.id",
                "item": "item.m = other.id",
                "note": "note.i8 = other.id",
            }
            where = f" WHERE {join[table]}"
        else:
            where = random.choice((f" WHERE {self._key(table)}", f" WHERE {maker.condition(1)}", ""))
        text = f"UPDATE {table} SET {', '.join(changes)}{source}{where}"
        return self._done(text + self._returning(table, maker), maker)

    def _delete(self, table: str) -> Statement:
        random = self._random
        maker = Maker(random, _scope(table, f"{table}."))
        if random.random() < 0.2 and table == "child":
            text = f"DELETE FROM child USING parent WHERE parent.id = child.p_null AND {maker.condition(0)}"
        else:
            text = f"DELETE FROM {table} WHERE " + random.choice((self._key(table), maker.condition(1)))
        return self._done(text + self._returning(table, maker), maker)

    def _key(self, table: str) -> str:
        if table == "item":
            return f"k = {self._random.choice(TABLES['item']['k'][1][:4])}"
        low = -6 if table == "note" else 1
        return f"{table}.id = {self._random.randint(low, low + 6)}"

    def _returning(self, table: str, maker: Maker) -> str:
        if self._random.random() < 0.6:
            return ""
        maker.scope = _scope(table, f"{table}.")
        made = maker.of(maker.some_type(), 1)
        return self._random.choice((f" RETURNING {table}.*", f" RETURNING {made} AS made"))

    def _done(self, text: str, maker: Maker) -> Statement:
        text, given = numbered(text, maker.parameters)
        return Statement(text, given, kind="write", has_one_error=False)


def _scope(table: str, prefix: str = "") -> Scope:
    return [(f"{prefix}{name}", kind) for name, (kind, _) in TABLES[table].items() if kind in TAME]


def _copied(text: str, *, is_csv: bool) -> str:
    """A literal of SQL as COPY has it; an expression stays as it is, and is read as a text."""
    if text in ("NULL", "DEFAULT"):
        return "" if is_csv else "\\N"
    value = text[1:-1].replace("''", "'") if text.startswith("'") else text
    if is_csv:
        return '"' + value.replace('"', '""') + '"' if set(value) & set(',"') or not value else value
    return value.replace("\\", "\\\\").replace("\t", "\\t")


def _plain(text: str) -> Statement:
    return Statement(text, kind="write")
