"""Rows of pg_catalog that are the same in every database: those of PostgreSQL 18, in files of this folder.

A file has the names of its columns in its first line, with the usual value of each behind an equals sign, and
values as COPY writes them. An empty field has the usual value. A function is its oid and its name.
`tests.clients.catalogs.postgres_rows` writes the files.

Walk: `sql.tables.pg_catalog.functions` and `sql.tables.pg_catalog.operators` ask for `declared_rows`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.formats.copy_escapes import unescaped
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.system_types import Reg, RegType
from tenure.expr.types.type_names import type_of
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.object_rows import Row
from tenure.sql.tables.pg_catalog.shapes import Shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition

FOLDER = Path(__file__).parent / "rows"
NULL = "\\N"
TEXT = type_of(TypeRef("text"))


def declared_rows(shape: Shape) -> Iterator[tuple[dict[str, Datum], dict[str, Datum]]]:
    """The values of each row by column, and what its line says besides."""
    types = {each.name: each.type for each in shape.columns}
    header, *lines = (FOLDER / f"{shape.name}.tsv").read_text().splitlines()
    usual = dict(each.partition("=")[::2] for each in header.split("\t"))
    names = list(usual)
    for line in lines:
        fields = zip(names, line.split("\t"), strict=True)
        values = {name: text or usual[name] for name, text in fields}
        more = {name: _value(TEXT, values.pop(name)) for name in names if name not in types}
        yield {name: _value(types[name], text) for name, text in values.items()}, more


def fixed_definition(shape: Shape, rows: Callable[[], Sequence[Row]], *keys: str) -> VirtualDefinition:
    """A relation whose rows are made once, and found by these columns."""
    places = {each.name: place for place, each in enumerate(shape.columns)}
    made = cache(rows)

    @cache
    def by_value(place: int) -> dict[Datum, list[Row]]:
        found = defaultdict(list)
        for row in made():
            found[row[place]].append(row)
        return found

    def find(place: int, reader: TableReader, values: Sequence[Datum]) -> Rows:
        return (row for value in dict.fromkeys(values) for row in by_value(place).get(value, ()))

    return shape.defined(lambda reader: made(), {key: partial(find, places[key]) for key in keys})


def _value(kind: Type, text: str) -> Datum:
    if text == NULL:
        return None
    if isinstance(kind, RegType):
        oid, _, name = text.partition(" ")
        return Reg(int(oid), name)
    return kind.parse(unescaped(text))
