"""Functions whose argument is the name of a sequence: nextval('s'), currval, setval, pg_get_serial_sequence.

A constant name is looked up when the statement is planned, and stands for the sequence's id from then on:
so a default means the same sequence, also when that is renamed. A name that is known only when the
statement runs is refused (0A000), except by pg_get_serial_sequence, which draws no value.

Walk: `sql.names.session_names` -> `bind`; `statements.ddl.views` asks `written_name` what a view depends on.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tenure.base.errors import (
    InvalidName,
    NotSupported,
    SyntaxFault,
    UndefinedColumn,
    UndefinedTable,
    WrongObjectType,
)
from tenure.catalog.changes.table_parts import find_column
from tenure.catalog.descriptors.definitions import AnyDescriptor, Schema, Table, TypeRef
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.expr.functions.sequence_functions import CURRENT, LAST, NEXT, SET
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import Cast, Const
from tenure.expr.types.type_names import type_of
from tenure.sql.text.parse import tokens
from tenure.sql.text.quoting import quoted
from tenure.sql.text.tenure_statements import TokenReader

INT8, TEXT = type_of(TypeRef("int8")), type_of(TypeRef("text"))
OF_SEQUENCES = {("nextval", 1): NEXT, ("currval", 1): CURRENT, ("setval", 2): SET, ("setval", 3): SET}

SequenceIds = Mapping[tuple[str, ...], int]
"""Names that stand for objects already: those of a view's query."""


class ObjectNames(Protocol):
    """Resolves names and ids in the catalog: `sql.names.session_names` implements it."""

    def object(self, name: Sequence[str]) -> AnyDescriptor | None: ...

    def descriptor(self, id: int) -> AnyDescriptor | None: ...


def bind(
    names: ObjectNames, name: str, arguments: Sequence[Typed], sequence_ids: SequenceIds
) -> Typed | None:
    """The call, with the sequence by its id; None if it is no function of sequences."""
    if name == "lastval" and not arguments:
        return build.call(LAST)
    if name == "pg_get_serial_sequence" and len(arguments) == 2:
        # Of other arguments it is the function of `expr.functions.catalog_functions`.
        return _serial_sequence(names, *arguments)
    function = OF_SEQUENCES.get((name, len(arguments)))
    if function is None:
        return None
    path = path_of(_constant(arguments[0], name))
    id = sequence_ids.get(path) or _sequence(names, path)
    return build.call(function, build.const(id, INT8), *arguments[1:])


def written_name(name: str, arguments: Sequence[Typed]) -> tuple[str, ...] | None:
    """The name of the sequence in a call, if it has one."""
    if (name, len(arguments)) not in OF_SEQUENCES:
        return None
    return path_of(_constant(arguments[0], name))


def _text(argument: Typed) -> str | None:
    """The text of a constant."""
    node = argument.node
    while isinstance(node, Cast):
        node = node.operand
    return node.packed if isinstance(node, Const) and isinstance(node.packed, str) else None


def _constant(argument: Typed, function: str) -> str:
    text = _text(argument)
    if text is not None:
        return text
    raise NotSupported(
        f"{function}() of a name that is not a constant is not supported",
        hint=f"Write the name as a constant: {function}('name').",
    )


def path_of(text: str) -> tuple[str, ...]:
    """The parts of a name as people write it: public."My Seq"."""
    try:
        reader = TokenReader(text, tokens(text))
        path = reader.names()
        reader.end()
    except SyntaxFault as error:
        raise InvalidName("invalid name syntax") from error
    return tuple(path)


def _sequence(names: ObjectNames, path: tuple[str, ...]) -> int:
    found = names.object(path)
    if found is None:
        raise UndefinedTable(f'relation "{".".join(path)}" does not exist')
    if not isinstance(found, SequenceDescriptor):
        raise WrongObjectType(f'"{path[-1]}" is not a sequence')
    return found.id


def _serial_sequence(names: ObjectNames, table_argument: Typed, column_argument: Typed) -> Typed | None:
    table_name, column_name = _text(table_argument), _text(column_argument)
    if table_name is None or column_name is None:
        return None
    path = path_of(table_name)
    table = names.object(path)
    if not isinstance(table, Table):
        raise UndefinedTable(f'relation "{".".join(path)}" does not exist')
    column = find_column(table, column_name)
    if column is None:
        raise UndefinedColumn(f'column "{column_name}" of relation "{table.name}" does not exist')
    for id in table.sequences:
        sequence = names.descriptor(id)
        owner = sequence.owned_by if isinstance(sequence, SequenceDescriptor) else None
        if owner is not None and owner.column == column.id:
            assert isinstance(sequence, SequenceDescriptor)
            schema = names.descriptor(sequence.schema)
            assert isinstance(schema, Schema), "a sequence is in a schema"
            return build.const(f"{quoted(schema.name)}.{quoted(sequence.name)}", TEXT)
    return build.const(None, TEXT)
