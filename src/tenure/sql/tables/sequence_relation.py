"""SELECT ... FROM a sequence: one row that says where it stands.

Walk: `sql.names.session_names` gives the binder `sequence_relation`; a run asks for the row with `rows`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.catalog.descriptors.definitions import Sequence, TypeRef
from tenure.expr.types.datatype import Datum
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.relations import VirtualTable
from tenure.sql.plans.plan import OutputColumn

if TYPE_CHECKING:
    from tenure.sql.session.execution import Execution

KEY = "sequence:"
INT8, BOOL = type_of(TypeRef("int8")), type_of(TypeRef("bool"))
COLUMNS = (OutputColumn("last_value", INT8), OutputColumn("log_cnt", INT8), OutputColumn("is_called", BOOL))


def sequence_relation(sequence: Sequence) -> VirtualTable:
    return VirtualTable(sequence.name, COLUMNS, f"{KEY}{sequence.id}")


def rows(key: str, execution: "Execution") -> Iterator[tuple[Datum, ...]]:
    sequence = execution.block.descriptor(int(key.removeprefix(KEY)))
    assert isinstance(sequence, Sequence), "the sequence was there when the statement was planned"
    last_value, is_called = execution.session.parts.sequences.state(execution.block.source, sequence)
    yield last_value, 0, is_called
