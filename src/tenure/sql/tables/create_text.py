"""Objects as the SQL that makes them: text that Tenure and PostgreSQL read back to the same object.

    CREATE TABLE ...;  ALTER TABLE ... ADD CONSTRAINT ... NOT VALID;  CREATE INDEX ...;  COMMENT ON ...

Expressions are written anew from their trees, with the names that columns have now. A column whose
default is its own sequence's next value is written as `serial` where that makes the very same sequence;
otherwise the sequence is made before the table.

A view's query is given as it was written: where what it reads has been renamed since, it has to be put
right by hand.

Walk: `sql.tables.catalog` calls `statements` for tenure_internal.create_statements, which SHOW CREATE
queries.
"""

from collections.abc import Iterator, Sequence

from tenure.catalog.changes.sequence_changes import RANGES
from tenure.catalog.descriptors.definitions import (
    Action,
    AnyDescriptor,
    Check,
    Column,
    Database,
    Deferral,
    EnumType,
    Expression,
    ForeignKey,
    Index,
    Schema,
    Table,
    View,
    replace,
    visible,
)
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.catalog.name_resolution import PG_TEMP
from tenure.expr.functions.sequence_functions import with_written_name
from tenure.expr.tree.expressions import Cast, decode
from tenure.expr.tree.sql_text import render
from tenure.expr.types.casts import ASSIGNMENT
from tenure.expr.types.type_names import type_of
from tenure.sql.tables.objects import Objects
from tenure.sql.text.quoting import literal, quoted

SERIALS = {"int2": "smallserial", "int4": "serial", "int8": "bigserial"}


def statements(each: AnyDescriptor, descriptors: Objects) -> list[str]:
    """The statements that make an object: mostly one, for a table also those of its parts."""
    match each:
        case Table():
            return table_statements(each, descriptors)
        case View():
            columns = ", ".join(quoted(column.name) for column in each.columns)
            name = descriptors.qualified(each)
            return [f"CREATE VIEW {name} ({columns}) AS {each.query}", *_comment("VIEW", name, each.comment)]
        case Sequence_():
            name = descriptors.qualified(each)
            return [
                f"CREATE SEQUENCE {name} AS {_type(each.value_type.name)}{_options(each)}",
                *_comment("SEQUENCE", name, each.comment),
            ]
        case EnumType():
            labels = ", ".join(literal(member.label) for member in each.members)
            name = descriptors.qualified(each)
            return [f"CREATE TYPE {name} AS ENUM ({labels})", *_comment("TYPE", name, each.comment)]
        case Schema() if each.name.startswith(PG_TEMP):
            return []  # every session has its own
        case Schema():
            name = quoted(each.name)
            return [f"CREATE SCHEMA {name}", *_comment("SCHEMA", name, each.comment)]
        case Database():
            name = quoted(each.name)
            return [f"CREATE DATABASE {name}", *_comment("DATABASE", name, each.comment)]


def table_statements(table: Table, descriptors: Objects, *, has_foreign_keys: bool = True) -> list[str]:
    """Without its foreign keys where the tables they refer to are yet to come."""
    writer = _Writer(table, descriptors)
    sequences = writer.sequences()
    inline = [key for key in visible(table.foreign_keys) if has_foreign_keys and key.is_validated]
    return [
        *(statement for sequence in sequences for statement in statements(sequence, descriptors)),
        writer.create(inline),
        *(writer.owned(sequence) for sequence in sequences),
        *writer.not_valid(has_foreign_keys),
        *(writer.index(each) for each in writer.secondary() if not each.is_constraint),
        *writer.comments(),
    ]


def foreign_key_statements(table: Table, descriptors: Objects) -> list[str]:
    """The foreign keys of a table that is there."""
    writer = _Writer(table, descriptors)
    return [writer.added(each) for each in visible(table.foreign_keys)]


def column_type(column: Column, descriptors: Objects) -> str:
    if not column.type.enum:
        return type_of(column.type).sql_name
    enum = descriptors.by_id[column.type.enum]
    assert isinstance(enum, EnumType)
    return descriptors.qualified(enum) + ("[]" if column.type.is_array else "")


def expression_text(table: Table, expression: Expression, descriptors: Objects) -> str:
    """A default, CHECK or predicate with the names of now."""
    names = {each.id: quoted(each.name) for each in table.columns}
    tree = decode(expression.tree)
    if isinstance(tree, Cast) and tree.context == ASSIGNMENT:
        tree = tree.operand  # assigning to the column adds the cast again
    text = render(tree, names.__getitem__, lambda id: _enum(descriptors, id))
    for id in expression.sequences:
        sequence = descriptors.by_id.get(id)
        if isinstance(sequence, Sequence_):
            name = literal(descriptors.qualified(sequence))
            text = with_written_name(text, id, name)
    return text


def constraint_text(table: Table, each: Index | Check | ForeignKey, descriptors: Objects) -> str:
    """The definition of a constraint, as after CONSTRAINT name."""
    writer = _Writer(table, descriptors)
    match each:
        case Index():
            word = "PRIMARY KEY" if each.id == table.primary else "UNIQUE"
            deferrable = " DEFERRABLE" if each.is_deferrable else ""
            return f"{word} ({writer.names([part.column for part in each.parts])}){deferrable}"
        case Check():
            return f"CHECK ({expression_text(table, each.expression, descriptors)})"
        case ForeignKey():
            return writer.reference(each)


def deferral_text(key: ForeignKey) -> str:
    match key.deferral:
        case Deferral.NEVER:
            return ""
        case Deferral.ON_REQUEST:
            return " DEFERRABLE"
        case Deferral.AT_FIRST:
            return " DEFERRABLE INITIALLY DEFERRED"


def index_text(table: Table, index: Index, descriptors: Objects) -> str:
    return _Writer(table, descriptors).index(index)


class _Writer:
    def __init__(self, table: Table, descriptors: Objects) -> None:
        self._table = table
        self._descriptors = descriptors
        self._name = descriptors.qualified(table)

    def create(self, foreign_keys: Sequence[ForeignKey]) -> str:
        table, descriptors = self._table, self._descriptors
        primary = table.index(table.primary)
        is_hidden = any(table.column(part.column).is_hidden for part in primary.parts)
        constraints: list[Index | Check | ForeignKey] = [] if is_hidden else [primary]
        constraints += [each for each in self.secondary() if each.is_constraint]
        constraints += [each for each in visible(table.checks) if each.is_validated and not each.not_null]
        constraints += foreign_keys
        lines = [self._column(each) for each in self._columns()]
        lines += [
            f"CONSTRAINT {quoted(each.name)} {constraint_text(table, each, descriptors)}"
            for each in constraints
        ]
        return f"CREATE TABLE {self._name} (\n    " + ",\n    ".join(lines) + "\n)"

    def _columns(self) -> list[Column]:
        return [each for each in visible(self._table.columns) if not each.is_hidden]

    def _column(self, column: Column) -> str:
        own = self._own_sequence(column)
        is_serial = own is not None and self._is_serial(column, own)
        kind = SERIALS[column.type.name] if is_serial else column_type(column, self._descriptors)
        words = [quoted(column.name), kind]
        if not column.is_nullable:
            words.append("NOT NULL")
        if column.generated is not None:
            text = expression_text(self._table, column.generated, self._descriptors)
            words.append(f"GENERATED ALWAYS AS ({text}) STORED")
        elif column.identity:
            assert own is not None, "an identity column has its sequence"
            words.append(f"GENERATED {column.identity.upper()} AS IDENTITY{self._identity(column, own)}")
        elif column.default is not None and not is_serial:
            words.append(f"DEFAULT {expression_text(self._table, column.default, self._descriptors)}")
        return " ".join(words)

    def _own_sequence(self, column: Column) -> Sequence_ | None:
        """The sequence that the column owns and takes its default from."""
        for id in () if column.default is None else column.default.sequences:
            found = self._descriptors.by_id.get(id)
            owned = found.owned_by if isinstance(found, Sequence_) else None
            if owned is not None and (owned.table, owned.column) == (self._table.id, column.id):
                assert isinstance(found, Sequence_)
                return found
        return None

    def _is_serial(self, column: Column, own: Sequence_) -> bool:
        return (
            not column.identity
            and not column.is_nullable
            and column.type.name in SERIALS
            and own.value_type == column.type
            and not _options(own)
            and self._has_usual_name(column, own)
        )

    def _has_usual_name(self, column: Column, own: Sequence_) -> bool:
        usual = f"{self._table.name}_{column.name}_seq"
        return own.name == usual and own.schema == self._table.schema

    def _identity(self, column: Column, own: Sequence_) -> str:
        name = (
            "" if self._has_usual_name(column, own) else f" SEQUENCE NAME {self._descriptors.qualified(own)}"
        )
        options = f"{name}{_options(own)}".strip()
        return f" ({options})" if options else ""

    def sequences(self) -> list[Sequence_]:
        """Those that have to be there before the table: its columns' own that `serial` would not make."""
        owned = ((each, self._own_sequence(each)) for each in self._columns() if not each.identity)
        return [own for column, own in owned if own is not None and not self._is_serial(column, own)]

    def owned(self, sequence: Sequence_) -> str:
        assert sequence.owned_by is not None
        column = self._table.column(sequence.owned_by.column)
        name = self._descriptors.qualified(sequence)
        return f"ALTER SEQUENCE {name} OWNED BY {self._name}.{quoted(column.name)}"

    def secondary(self) -> list[Index]:
        return [each for each in visible(self._table.indexes) if each.id != self._table.primary]

    def not_valid(self, has_foreign_keys: bool) -> Iterator[str]:
        yield from (
            self.added(each)
            for each in visible(self._table.checks)
            if not each.is_validated and not each.not_null
        )
        if has_foreign_keys:
            yield from (
                self.added(each) for each in visible(self._table.foreign_keys) if not each.is_validated
            )

    def added(self, each: Check | ForeignKey) -> str:
        text = constraint_text(self._table, each, self._descriptors)
        end = "" if each.is_validated else " NOT VALID"
        return f"ALTER TABLE {self._name} ADD CONSTRAINT {quoted(each.name)} {text}{end}"

    def reference(self, key: ForeignKey) -> str:
        target = self._table if key.target == self._table.id else self._descriptors.by_id[key.target]
        assert isinstance(target, Table)
        there = _Writer(target, self._descriptors)
        text = f"FOREIGN KEY ({self.names(key.columns)}) REFERENCES {there._name}"
        text += f" ({there.names(key.target_columns)})"
        if key.on_update is not Action.NO_ACTION:
            text += f" ON UPDATE {key.on_update.value.upper()}"
        if key.on_delete is not Action.NO_ACTION:
            text += f" ON DELETE {key.on_delete.value.upper()}"
        return text + deferral_text(key)

    def names(self, columns: Sequence[int]) -> str:
        return ", ".join(quoted(self._table.column(each).name) for each in columns)

    def index(self, index: Index) -> str:
        key_columns = ", ".join(
            quoted(self._table.column(part.column).name) + (" DESC" if part.is_descending else "")
            for part in index.parts
        )
        kind = "UNIQUE INDEX" if index.is_unique else "INDEX"
        text = f"CREATE {kind} {quoted(index.name)} ON {self._name} ({key_columns})"
        if index.predicate is None:
            return text
        return f"{text} WHERE ({expression_text(self._table, index.predicate, self._descriptors)})"

    def comments(self) -> Iterator[str]:
        table = self._table
        yield from _comment("TABLE", self._name, table.comment)
        for column in self._columns():
            yield from _comment("COLUMN", f"{self._name}.{quoted(column.name)}", column.comment)
        for index in visible(table.indexes):
            schema = quoted(self._descriptors.schema_of(table))
            if index.is_constraint or index.id == table.primary:
                yield from _comment("CONSTRAINT", f"{quoted(index.name)} ON {self._name}", index.comment)
            else:
                yield from _comment("INDEX", f"{schema}.{quoted(index.name)}", index.comment)
        constraints: list[Check | ForeignKey] = [*visible(table.checks), *visible(table.foreign_keys)]
        for each in constraints:
            yield from _comment("CONSTRAINT", f"{quoted(each.name)} ON {self._name}", each.comment)


def _comment(kind: str, name: str, text: str) -> Iterator[str]:
    if text:
        yield f"COMMENT ON {kind} {name} IS {literal(text)}"


def _options(sequence: Sequence_) -> str:
    """The options that differ from the defaults."""
    lowest, highest = RANGES[sequence.value_type.name]
    is_up = sequence.increment > 0
    minimum, maximum = (1, highest) if is_up else (lowest, -1)
    text = "" if sequence.increment == 1 else f" INCREMENT BY {sequence.increment}"
    if sequence.minimum != minimum:
        text += f" MINVALUE {sequence.minimum}"
    if sequence.maximum != maximum:
        text += f" MAXVALUE {sequence.maximum}"
    if sequence.start != (sequence.minimum if is_up else sequence.maximum):
        text += f" START WITH {sequence.start}"
    if sequence.cache != 1:
        text += f" CACHE {sequence.cache}"
    return text + (" CYCLE" if sequence.is_cycle else "")


def _type(name: str) -> str:
    return {"int2": "smallint", "int4": "integer", "int8": "bigint"}[name]


def _enum(descriptors: Objects, id: int) -> EnumType:
    """With its schema and in quotes, as an expression has to write its name."""
    found = descriptors.by_id[id]
    assert isinstance(found, EnumType)
    return replace(found, name=descriptors.qualified(found))
