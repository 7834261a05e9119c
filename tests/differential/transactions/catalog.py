"""What is defined: tables, columns, constraints, indexes, views, sequences, types. Asked of either side.

Walk: `writer` asks PostgreSQL before each statement it writes; `play` compares both sides in the end.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.differential.sides import Side

SCHEMAS = "('public', 'extra')"


class Queries(NamedTuple):
    """How a side is asked; the answers have the same columns."""

    columns: str
    constraints: str
    indexes: str
    types: str


POSTGRES = Queries(
    f"""
SELECT n.nspname, c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       a.attgenerated <> '', a.attidentity <> '', a.atthasdef
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname IN {SCHEMAS} AND c.relkind IN ('r', 'v', 'S')
ORDER BY n.nspname, c.relname, a.attnum""",
    f"""
SELECT n.nspname, c.relname, k.conname, k.contype, k.convalidated
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN {SCHEMAS} AND k.contype IN ('c', 'f', 'p', 'u')
ORDER BY n.nspname, c.relname, k.conname""",
    f"""
SELECT n.nspname, t.relname, c.relname, i.indisunique, i.indisprimary
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname IN {SCHEMAS} ORDER BY n.nspname, t.relname, c.relname""",
    f"""
SELECT n.nspname, t.typname, e.enumlabel
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace JOIN pg_enum e ON e.enumtypid = t.oid
WHERE n.nspname IN {SCHEMAS} ORDER BY n.nspname, t.typname, e.enumsortorder""",
)
TENURE = Queries(
    """
SELECT t.schema_name, t.table_name, CASE t.type WHEN 'table' THEN 'r' WHEN 'view' THEN 'v' ELSE 'S' END,
       c.column_name, c.data_type, NOT c.is_nullable, c.generation_expression IS NOT NULL,
       c.identity IS NOT NULL, c.column_default IS NOT NULL OR c.generation_expression IS NOT NULL
FROM tenure_internal.tables t
LEFT JOIN tenure_internal.columns c ON c.table_id = t.id AND NOT c.is_hidden
WHERE t.database_name = current_database() ORDER BY t.schema_name, t.table_name, c.ordinal_position""",
    """
SELECT t.schema_name, t.table_name, k.constraint_name, lower(left(k.constraint_type, 1)), k.validated
FROM tenure_internal.constraints k JOIN tenure_internal.tables t ON t.id = k.table_id
WHERE t.database_name = current_database() ORDER BY t.schema_name, t.table_name, k.constraint_name""",
    """
SELECT t.schema_name, t.table_name, i.index_name, NOT i.non_unique, i.is_primary
FROM tenure_internal.indexes i JOIN tenure_internal.tables t ON t.id = i.table_id
JOIN tenure_internal.columns c ON c.table_id = t.id AND c.column_name = i.column_name AND NOT c.is_hidden
WHERE t.database_name = current_database() AND i.seq_in_index = 1
ORDER BY t.schema_name, t.table_name, i.index_name""",
    """
SELECT e.schema_name, e.name, unnest(e.values)
FROM tenure_internal.enums e WHERE e.database_name = current_database() ORDER BY e.schema_name, e.name""",
)
TRUE = "t"


class Column(NamedTuple):
    name: str
    kind: str
    is_required: bool = False
    is_generated: bool = False
    is_identity: bool = False
    has_default: bool = False


class Constraint(NamedTuple):
    name: str
    kind: str
    is_validated: bool


class Index(NamedTuple):
    name: str
    is_unique: bool
    is_primary: bool


class Relation(NamedTuple):
    name: str
    """As a statement says it: with the schema, if that is not on the path."""
    kind: str
    columns: tuple[Column, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    indexes: tuple[Index, ...] = ()

    @property
    def written(self) -> list[Column]:
        """The columns that can be given values."""
        return [each for each in self.columns if not each.is_generated and not each.is_identity]

    def constraint(self, kind: str) -> Constraint | None:
        return next((each for each in self.constraints if each.kind == kind), None)


MISSING = Relation("t0", "r", (Column("id", "integer"),))
"""What a statement is about when there is nothing."""


class Catalog(NamedTuple):
    relations: tuple[Relation, ...] = ()
    types: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def tables(self) -> list[Relation]:
        return [each for each in self.relations if each.kind == "r"]

    @property
    def views(self) -> list[Relation]:
        return [each for each in self.relations if each.kind == "v"]

    @property
    def sequences(self) -> list[Relation]:
        return [each for each in self.relations if each.kind == "S"]

    def labels(self, kind: str) -> tuple[str, ...]:
        return dict(self.types).get(kind, ())

    def facts(self) -> Iterator[str]:
        """Everything in it, a line each."""
        for relation in self.relations:
            yield f"relation {relation.name} {relation.kind}"
            for column in relation.columns:
                flags = [name for name, is_set in column._asdict().items() if is_set is True]
                yield f"column {relation.name}.{column.name} {column.kind} {' '.join(flags)}"
            yield from (
                f"constraint {relation.name}.{' '.join(map(str, each))}" for each in relation.constraints
            )
            yield from (f"index {relation.name}.{' '.join(map(str, each))}" for each in relation.indexes)
        yield from (f"type {name} {' '.join(labels)}" for name, labels in self.types)

    def without(self, *names: str) -> "Catalog":
        return self._replace(relations=tuple(each for each in self.relations if each.name not in names))

    def only(self, *names: str) -> "Catalog":
        return Catalog(tuple(each for each in self.relations if each.name in names))


def read(side: Side, queries: Queries = POSTGRES) -> Catalog:
    """The catalog as the side's transaction sees it."""
    constraints: dict[str, list[Constraint]] = {}
    for schema, table, name, kind, is_validated in _rows(side, queries.constraints):
        found = Constraint(name, kind, is_validated == TRUE)
        constraints.setdefault(_name(schema, table), []).append(found)
    indexes: dict[str, list[Index]] = {}
    for schema, table, name, is_unique, is_primary in _rows(side, queries.indexes):
        index = Index(name, is_unique == TRUE, is_primary == TRUE)
        indexes.setdefault(_name(schema, table), []).append(index)
    relations: dict[tuple[str, str], list[Column]] = {}
    for schema, relation, sort, column, kind, *flags in _rows(side, queries.columns):
        columns = relations.setdefault((_name(schema, relation), sort), [])
        if column and sort != "S":
            columns.append(Column(column, kind.removeprefix("public."), *(each == TRUE for each in flags)))
    types: dict[str, list[str]] = {}
    for schema, name, label in _rows(side, queries.types):
        types.setdefault(_name(schema, name), []).append(label)
    return Catalog(
        tuple(
            Relation(
                name, sort, tuple(columns), tuple(constraints.get(name, ())), tuple(indexes.get(name, ()))
            )
            for (name, sort), columns in relations.items()
        ),
        tuple((name, tuple(labels)) for name, labels in types.items()),
    )


def _rows(side: Side, text: str) -> list[list[str]]:
    return [[(each or b"").decode() for each in row] for row in side.must(text).rows]


def _name(schema: str, name: str) -> str:
    return name if schema == "public" else f"{schema}.{name}"
