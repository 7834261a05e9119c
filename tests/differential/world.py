"""The tables that statements are about, and how they are filled, by seed.

    w             one row per nasty value or so, of every type
    a, b, p       tame values that repeat: for joins, groups, windows
    parent, child, item, note      for writes: keys, CHECKs, defaults, foreign keys with all actions

Walk: `run` creates the world on both sides; `writes` changes the last four and has them filled anew.
"""

from collections.abc import Iterator
from random import Random

from tests.differential.values import ENUM, ENUM_LABELS, NASTY, TAME, TYPES, quoted

SHORT = {
    **{"bool": "b", "int2": "i2", "int4": "i4", "int8": "i8", "float4": "f4", "float8": "f8", "numeric": "n"},
    **{"numeric(10,2)": "n2", "text": "t", "varchar(10)": "v", "char(5)": "c", "bytea": "by", "uuid": "u"},
    **{"date": "d", "time": "tm", "timestamp": "ts", "timestamptz": "tz", "interval": "iv", "json": "j"},
    **{"jsonb": "jb", "int4[]": "ai", "text[]": "at", "numeric[]": "an", ENUM: "e", f"{ENUM}[]": "ae"},
}
"""The column of each type."""

COLUMNS = {short: kind for kind, short in SHORT.items()}
READ_TABLES: dict[str, dict[str, str]] = {
    "w": {"id": "int4", **COLUMNS},
    "a": {"id": "int4", **COLUMNS},
    "b": {"id": "int8", "a_id": "int4", **COLUMNS},
    "p": {"k": "text", "m": "int4", "x": "int4", "f": "float8", "t": "text"},
}
KEYS = {"w": ("id",), "a": ("id",), "b": ("id",), "p": ("k", "m")}

WIDE_ROWS, TAME_ROWS = 24, 30

WRITTEN = ("parent", "child", "item", "note")
WRITTEN_KEYS = {"parent": "id", "child": "id", "item": "k, m", "note": "id"}


def schema() -> list[str]:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    labels = ", ".join(map(quoted, ENUM_LABELS))
    return [
        f"CREATE TYPE {ENUM} AS ENUM ({labels})",
        f"CREATE TABLE w (id int4 PRIMARY KEY, {columns})",
        f"CREATE TABLE a (id int4 PRIMARY KEY, {columns})",
        f"CREATE TABLE b (id int8 PRIMARY KEY, a_id int4, {columns})",
        "CREATE TABLE p (k text, m int4, x int4, f float8, t text, PRIMARY KEY (k, m))",
        "CREATE INDEX a_i4 ON a (i4)",
        "CREATE INDEX a_t_i8 ON a (t, i8 DESC)",
        "CREATE INDEX a_n ON a (n) WHERE i4 > 0",
        "CREATE INDEX b_a_id ON b (a_id)",
        "CREATE INDEX b_e ON b (e, d)",
        "CREATE INDEX p_x ON p (x)",
        *_written(),
    ]


def _written() -> Iterator[str]:
    yield (
        "CREATE TABLE parent (id int4 PRIMARY KEY, name varchar(8) NOT NULL UNIQUE, n numeric(6,2)"
        f" DEFAULT 1.5, e {ENUM} DEFAULT 'ok', tags text[] DEFAULT '{{}}', doc jsonb,"
        " at timestamp DEFAULT '2024-01-01', CHECK (n > 0), UNIQUE (e, n))"
    )
    yield (
        "CREATE TABLE child (id int4 PRIMARY KEY, p_cascade int4 REFERENCES parent ON DELETE CASCADE"
        " ON UPDATE CASCADE, p_null int4 REFERENCES parent ON DELETE SET NULL ON UPDATE SET NULL,"
        " p_default int4 DEFAULT 1 REFERENCES parent ON DELETE SET DEFAULT ON UPDATE SET DEFAULT,"
        " p_restrict int4 REFERENCES parent ON DELETE RESTRICT, p_none varchar(8) REFERENCES parent (name),"
        " v int4 NOT NULL DEFAULT 7, CONSTRAINT v_small CHECK (v < 100))"
    )
    yield (
        "CREATE TABLE item (k text, m int2, price numeric(8,2), amount int4 DEFAULT 1,"
        " total numeric GENERATED ALWAYS AS (price * amount) STORED, c char(3), f float4, u uuid,"
        " flag bool DEFAULT true, PRIMARY KEY (k, m))"
    )
    yield "CREATE UNIQUE INDEX item_flag ON item (amount) WHERE flag"
    yield (
        "CREATE TABLE note (id serial PRIMARY KEY, body text DEFAULT 'none' NOT NULL, day date, t time,"
        " iv interval, by bytea, j json, f float8, i8 int8)"
    )


def fill(random: Random) -> Iterator[str]:
    """The INSERTs of the tables that are only read."""
    for table, pool, count in (("w", NASTY, WIDE_ROWS), ("a", TAME, TAME_ROWS), ("b", TAME, TAME_ROWS)):
        rows = []
        for id in range(1, count + 1):
            values = [_value(random, pool[kind], id, is_wide=table == "w") for kind in TYPES]
            if table == "b":
                values.insert(0, quoted(random.choice([None, *map(str, range(1, TAME_ROWS + 3))])))
            rows.append(f"({', '.join([str(id), *values])})")
        yield f"INSERT INTO {table} VALUES {', '.join(rows)}"
    rows = []
    for key in ("k1", "k2", "k3", "ü"):
        for member in range(random.randrange(2, 8)):
            x, f = random.choice(["NULL", "1", "2", "3"]), random.choice(["NULL", "0.5", "-0", "0", "2.5"])
            rows.append(f"('{key}', {member}, {x}, '{f}'::float8, {quoted(random.choice(TAME['text']))})")
    yield f"INSERT INTO p VALUES {', '.join(rows)}".replace("'NULL'::float8", "NULL")


def _value(random: Random, pool: list[str], id: int, *, is_wide: bool) -> str:
    """Of nasty values every one comes at least once, if there are rows enough."""
    if random.random() < 0.12:
        return "NULL"
    return quoted(pool[id % len(pool)] if is_wide else random.choice(pool))


def refill() -> list[str]:
    """What brings the tables that are written back to where they began."""
    return [
        "TRUNCATE parent, child, item, note",
        "INSERT INTO parent (id, name, n, e) VALUES (1, 'one', 1, 'sad'), (2, 'two', 2, 'ok'),"
        " (3, 'three', 3, 'happy'), (4, 'four', 4, NULL), (5, 'five', 5, 'ok')",
        "INSERT INTO child (id, p_cascade, p_null, p_default, p_restrict, p_none) VALUES"
        " (1, 2, 2, 2, NULL, NULL), (2, 3, NULL, 3, NULL, 'five'), (3, NULL, 4, 1, 1, NULL),"
        " (4, NULL, 4, 4, 1, 'one')",
        "INSERT INTO item (k, m, price, amount, c, f) VALUES ('a', 1, 1.5, 1, 'x', 0.1), "
        " ('a', 2, 2.25, 2, 'y', 1e10), ('b', 1, NULL, 3, NULL, NULL), ('', 7, 0.01, 4, 'xyz', -0)",
        "INSERT INTO note (id, body, day, f, i8) VALUES (-1, 'first', '2024-02-29', 'NaN', 1),"
        " (-2, '', NULL, 1e300, -9223372036854775808), (-3, 'third', '1999-12-31', -0.0, NULL)",
    ]
