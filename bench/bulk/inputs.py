"""CSV files to import, made by DuckDB: rows that follow from their number, in an order that is nobody's.

    id          an int8, each once
    text        a text of 18 characters
    composite   a region of twenty, a timestamp and an int8
    skewed      an int8: nine tenths lie close together, the rest is spread thin a million times as far

Whatever the key is, a row has an int8, a text, a numeric(12, 2) and a timestamp, and is about 55 bytes long.

Walk: `bench.bulk.importing` calls `write`, and makes the tables with what a `Shape` says.
"""

from pathlib import Path
from typing import NamedTuple

import duckdb

TYPES = {
    "id": "bigint",
    "name": "text",
    "price": "numeric(12, 2)",
    "sold_at": "timestamp",
    "region": "int",
}
VALUES = {
    "id": "i",
    "name": "'k ' || md5(i::varchar)[1:16]",
    "price": "(i * 7919 % 100000000 / 100)::decimal(12, 2)",
    "sold_at": "timestamp '2024-01-01' + to_seconds(i * 37 % 31536000)",
    "region": "i * 7 % 20",
}


class Shape(NamedTuple):
    columns: tuple[str, ...]
    key: tuple[str, ...]
    id: str = "i"

    @property
    def definitions(self) -> str:
        return ", ".join(f"{name} {TYPES[name]} NOT NULL" for name in self.columns)

    @property
    def primary_key(self) -> str:
        return f"PRIMARY KEY ({', '.join(self.key)})"

    @property
    def duck_columns(self) -> str:
        types = ", ".join(f"'{name}': '{TYPES[name]}'" for name in self.columns)
        return f"{{{types}}}"


PLAIN = ("id", "name", "price", "sold_at")
SHAPES = {
    "id": Shape(PLAIN, ("id",)),
    "text": Shape(PLAIN, ("name",)),
    "composite": Shape(("region", *PLAIN), ("region", "sold_at", "id")),
    "skewed": Shape(PLAIN, ("id",), "CASE WHEN i % 10 = 0 THEN i * 1000003 ELSE i END"),
}


def write(path: Path, shape: Shape, rows: int) -> None:
    values = VALUES | {"id": shape.id}
    chosen = ", ".join(values[name] for name in shape.columns)
    query = f"SELECT {chosen} FROM range({rows}) t(i) ORDER BY hash(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT csv, HEADER false)")


def sort_bare(path: Path, shape: Shape, target: Path) -> int:
    """The limit: DuckDB reads, sorts and writes, and checks nothing. Returns how many rows."""
    source = f"read_csv('{path}', header=false, columns={shape.duck_columns})"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * FROM {source} ORDER BY {', '.join(shape.key)}) TO '{target}' "
            "(FORMAT parquet, COMPRESSION snappy)"
        )
        found = connection.execute(f"SELECT count(*) FROM '{target}'").fetchone()
    target.unlink()
    assert found is not None
    return int(found[0])
