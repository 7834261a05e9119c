"""Rows of all types as text, and what PostgreSQL makes of them."""

import random
import struct
from typing import Any
from uuid import UUID

import psycopg

from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import parse_type_name, type_of
from tenure.pipeline.writing.cells import Cells
from tenure.pipeline.writing.formats import OutColumn
from tenure.table.arrow import Unrepresentable, array
from tests.postgres_server import Server
from tests.unit.expr.pools import POOLS

ROWS = 400
TYPES = (
    *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "numeric(12,2)", "numeric(38,20)"),
    *("text", "varchar(20)", "char(6)", "bytea", "uuid", "date", "time", "timestamp", "timestamptz"),
    *("interval", "json", "jsonb", "text[]", "int4[]", "numeric[]", "timestamptz[]", "bool[]"),
)
TEXTS = (
    "",
    " ",
    "a",
    'q"q',
    "a,b",
    "x\ny",
    "x\ry",
    "\\.",
    "\\",
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\tx",
    "é€😀",
    "NULL",
    "|",
)


class World:
    """A table of PostgreSQL's with a column of each type, and its rows here."""

    def __init__(self, server: Server, seed: int = 1) -> None:
        rng = random.Random(seed)
        self.kinds: list[Type] = [type_of(parse_type_name(name)) for name in TYPES]
        self.columns = [OutColumn(f"c{place}", kind.ref) for place, kind in enumerate(self.kinds)]
        self.texts = [[text_for(name, rng) for name in TYPES] for _ in range(ROWS)]
        self.connection = psycopg.connect(server.dsn, autocommit=True)
        self.connection.execute("SET timezone = 'UTC'")
        listed = ", ".join(f"c{place} {name}" for place, name in enumerate(TYPES))
        self.connection.execute(f"CREATE TEMP TABLE world (n serial, {listed})")
        names = ", ".join(column.name for column in self.columns)
        marks = ", ".join(f"%s::text::{name}" for name in TYPES)
        with self.connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO world ({names}) VALUES ({marks})", self.texts)
        self.rows = [
            [None if text is None else kind.parse(text) for kind, text in zip(self.kinds, row, strict=True)]
            for row in self.texts
        ]

    def copied(self, options: str, *columns: int) -> bytes:
        """What COPY TO gives for some columns, or all."""
        names = ", ".join(f"c{place}" for place in columns or range(len(TYPES)))
        with self.connection.cursor() as cursor:
            copy = f"COPY (SELECT {names} FROM world ORDER BY n) TO STDOUT (FORMAT csv {options})"
            with cursor.copy(copy) as out:
                return b"".join(bytes(each) for each in out)

    def cells(self, *columns: int) -> list[Cells]:
        """As a scan gives them: arrays, and what is odd."""
        return [self._cells(place) for place in columns or range(len(TYPES))]

    def _cells(self, place: int) -> Cells:
        kind = self.kinds[place]
        packed = [kind.pack(row[place]) for row in self.rows]
        odd: dict[int, Any] = {}
        for row, value in enumerate(packed):
            try:
                array(kind, [value])
            except Unrepresentable:
                odd[row] = kind.unpack(value)
        return Cells(
            kind, array(kind, [None if row in odd else each for row, each in enumerate(packed)]), odd
        )


def text_for(name: str, rng: random.Random) -> str | None:
    if rng.random() < 0.1:
        return None
    family = name.partition("(")[0]
    match family:
        case "text" | "varchar" | "char":
            text = rng.choice(TEXTS)
            return text if family != "char" else text[:6]
        case "float8" | "float4" if rng.random() < 0.7:
            return _float(family, rng)
        case "numeric" if name != "numeric":
            return rng.choice(["0", "NaN", "0.01", "-0.5", "123456789.25", "1e-19", "-99999.99", "7"])
        case "uuid":
            return str(UUID(int=rng.getrandbits(128)))
        case "bytea":
            return "\\x" + rng.randbytes(rng.randrange(6)).hex()
        case "date" | "timestamp" | "timestamptz":
            day = f"{rng.randrange(1, 9999):04d}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
            return day if family == "date" else f"{day} {_clock(rng)}" + "+00" * (family == "timestamptz")
        case "time":
            return _clock(rng)
        case "text[]":
            return rng.choice(["{}", '{"a,b",NULL,"q\\"q",""}', "{{a,b},{c,d}}", "{NULL}"])
        case "numeric[]" | "int4[]":
            return rng.choice(["{}", "{1,NULL,3}", "{{1},{2}}"])
        case "bool[]":
            return rng.choice(["{t,f,NULL}", "{}"])
        case "timestamptz[]":
            return '{"2024-02-29 12:00:00.5+00",NULL}'
        case "json" | "jsonb":
            return rng.choice(
                ['{"a": [1, 2.50, null], "b": "x\\ny"}', "[]", '"a\\"b"', "1e3", '{ "z":1,\n"a":2}']
            )
    return rng.choice(POOLS[family])


def _float(family: str, rng: random.Random) -> str:
    value: float = rng.choice(
        [
            rng.uniform(-1e7, 1e7),
            float(rng.randrange(-(10**6), 10**6)),
            rng.random() * 10.0 ** rng.randrange(-30, 30),
        ]
    )
    if family == "float4":
        (value,) = struct.unpack("f", struct.pack("f", value))
    return repr(value)


def _clock(rng: random.Random) -> str:
    fraction = rng.choice(["", ".5", ".123456", ".000001", ".120"])
    return f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}{fraction}"
