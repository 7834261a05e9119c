"""Definitions as text, as pg_get_expr, pg_get_constraintdef, pg_get_indexdef and pg_get_viewdef give it.

    CHECK ((price > 0))       FOREIGN KEY (a) REFERENCES users(id) ON DELETE CASCADE

Names are written bare where the reader's search path finds the object by them, and with their schema
elsewhere.

Walk: `sql.tables.pg_catalog` puts these into rows; `sql.tables.catalog_answers` answers functions with them.
"""

from collections.abc import Sequence

from tenure.catalog.descriptors.definitions import (
    Action,
    Check,
    Column,
    Contained,
    EnumType,
    Expression,
    ForeignKey,
    Index,
    Schema,
    Table,
    TypeRef,
    View,
    replace,
    visible,
)
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.catalog.name_resolution import PG_TEMP
from tenure.expr.functions.sequence_functions import with_written_name
from tenure.expr.tree.expressions import Cast, decode
from tenure.expr.tree.postgres_text import postgres_text
from tenure.expr.types.casts import ASSIGNMENT
from tenure.expr.types.catalog_types import NodeText
from tenure.expr.types.type_names import type_of
from tenure.sql.tables.create_text import deferral_text
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader
from tenure.sql.tables.pg_catalog.shapes import shapes
from tenure.sql.tables.view_text import view_text
from tenure.sql.text.quoting import literal, quoted


class Definitions:
    def __init__(self, catalog: CatalogReader) -> None:
        self._catalog = catalog
        self._path: list[int] | None = None

    # ── names ──────────────────────────────────────────────────────────────────────────────────

    def shown(self, each: Contained) -> str:
        """Its name, with its schema if the search path does not find it by the name alone."""
        name = quoted(each.name)
        return name if self.is_visible(each) else f"{quoted(self.schema_name(each))}.{name}"

    def schema_name(self, each: Contained) -> str:
        return self._catalog.objects.schema_of(each)

    def is_visible(self, each: Contained) -> bool:
        """Whether its bare name means it."""
        is_type = isinstance(each, EnumType)
        if not is_type and each.name in shapes():
            return False
        if each.schema in self.path()[:1]:
            return True  # nothing comes before it
        found = [
            other.schema
            for other in self._named(each.name)
            if other.name == each.name and isinstance(other, EnumType) is is_type
        ]
        return self._is_first(each.schema, found)

    def is_index_visible(self, table: Table, index: Index) -> bool:
        found = [other.schema for other in self._named(index.name) if not isinstance(other, EnumType)]
        return self._is_first(table.schema, found)

    def _named(self, name: str) -> list[Contained]:
        database = self._catalog.database
        return [
            each
            for each in self._catalog.objects.by_id.named(name)
            if isinstance(each, Contained) and each.database == database
        ]

    def _is_first(self, schema: int, others: Sequence[int]) -> bool:
        first = next((each for each in self.path() if each == schema or each in others), None)
        return first == schema

    def path(self) -> list[int]:
        """The schemas of the search path, by id."""
        if self._path is None:
            session = self._catalog.reader.session
            temporary = session.temporary.schema_id
            self._path = [temporary] if temporary else []
            for name in session.path.names():
                self._path += [temporary] if name == PG_TEMP else self._schemas(name)
        return self._path

    def _schemas(self, name: str) -> list[int]:
        catalog = self._catalog
        return [
            each.id
            for each in catalog.objects.by_id.named(name)
            if isinstance(each, Schema) and each.name == name and each.database == catalog.database
        ]

    def type_name(self, ref: TypeRef) -> str:
        if not ref.enum:
            return type_of(ref).sql_name
        enum = self._catalog.objects.by_id[ref.enum]
        assert isinstance(enum, EnumType)
        return self.shown(enum) + ("[]" if ref.is_array else "")

    # ── expressions ────────────────────────────────────────────────────────────────────────────

    def default(self, table: Table, column: Column) -> NodeText | None:
        """Of a default or a generated column; an identity has none."""
        expression = column.generated or (None if column.identity else column.default)
        return None if expression is None else self.node_text(table, expression)

    def node_text(self, table: Table, expression: Expression) -> NodeText:
        plain = self.expression(table, expression)
        return NodeText(plain, self.expression(table, expression, is_pretty=True))

    def expression(self, table: Table, expression: Expression, *, is_pretty: bool = False) -> str:
        names = {each.id: quoted(each.name) for each in table.columns}
        tree = decode(expression.tree)
        if isinstance(tree, Cast) and tree.context == ASSIGNMENT:
            tree = tree.operand
        text = postgres_text(tree, names.__getitem__, self._enum, is_pretty=is_pretty)
        for id in expression.sequences:
            sequence = self._catalog.objects.by_id.get(id)
            if isinstance(sequence, Sequence_):
                text = with_written_name(text, id, literal(self.shown(sequence)))
        return text

    def _enum(self, id: int) -> EnumType:
        """With the name that an expression has to write."""
        found = self._catalog.objects.by_id[id]
        assert isinstance(found, EnumType)
        return replace(found, name=self.shown(found))

    # ── constraints and indexes ────────────────────────────────────────────────────────────────

    def constraint(self, table: Table, each: Index | Check | ForeignKey, *, is_pretty: bool = False) -> str:
        match each:
            case Index():
                word = "PRIMARY KEY" if each.id == table.primary else "UNIQUE"
                deferrable = " DEFERRABLE" if each.is_deferrable else ""
                return f"{word} ({_names(table, [part.column for part in each.parts])}){deferrable}"
            case Check():
                text = f"CHECK ({self.expression(table, each.expression, is_pretty=is_pretty)})"
            case ForeignKey():
                text = self._reference(table, each)
        return text if each.is_validated else f"{text} NOT VALID"

    def _reference(self, table: Table, key: ForeignKey) -> str:
        target = table if key.target == table.id else self._catalog.objects.by_id[key.target]
        assert isinstance(target, Table)
        text = f"FOREIGN KEY ({_names(table, key.columns)}) REFERENCES "
        text += f"{self.shown(target)}({_names(target, key.target_columns)})"
        for word, action in (("UPDATE", key.on_update), ("DELETE", key.on_delete)):
            if action is not Action.NO_ACTION:
                text += f" ON {word} {action.value.upper()}"
        return text + deferral_text(key)

    def index(self, table: Table, index: Index, *, is_pretty: bool = False) -> str:
        """`is_pretty`: with the table's bare name where that is found, and without needless brackets."""
        unique = "UNIQUE " if index.is_unique or index.id == table.primary else ""
        on = self.shown(table) if is_pretty else self.qualified(table)
        columns = ", ".join(
            quoted(table.column(part.column).name) + (" DESC" if part.is_descending else "")
            for part in index.parts
        )
        text = f"CREATE {unique}INDEX {quoted(index.name)} ON {on} USING btree ({columns})"
        if index.predicate is None:
            return text
        return f"{text} WHERE {self.expression(table, index.predicate, is_pretty=is_pretty)}"

    def qualified(self, each: Contained) -> str:
        return f"{quoted(self.schema_name(each))}.{quoted(each.name)}"

    def view(self, view: View) -> str:
        """The query as it was written, but for names that mean nothing to the reader; PostgreSQL writes all
        anew."""
        text = view_text(view, self._catalog.objects.by_id.get, self)
        return f" {text.strip().removesuffix(';')};"


def not_null_name(table: Table, column: Column) -> str:
    """PostgreSQL's name for the constraint, which has none here."""
    return f"{table.name}_{column.name}_not_null"


def has_constraint(table: Table, index: Index) -> bool:
    return index.is_constraint or index.id == table.primary


def checks_of(table: Table) -> list[Check]:
    return [each for each in visible(table.checks) if not each.not_null]


def _names(table: Table, columns: Sequence[int]) -> str:
    return ", ".join(quoted(table.column(each).name) for each in columns)
