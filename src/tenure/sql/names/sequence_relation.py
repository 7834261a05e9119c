"""SELECT ... FROM a sequence: a relation of one row, which says where the sequence stands.

Walk: `sql.names.session_names` gives the binder `sequence_relation`; `sql.tables.virtual` gives its row.
"""

from tenure.catalog.descriptors.definitions import Sequence, TypeRef
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.relations import VirtualTable
from tenure.sql.plans.plan import OutputColumn

KEY = "sequence:"
INT8, BOOL = type_of(TypeRef("int8")), type_of(TypeRef("bool"))
COLUMNS = (OutputColumn("last_value", INT8), OutputColumn("log_cnt", INT8), OutputColumn("is_called", BOOL))


def sequence_relation(sequence: Sequence) -> VirtualTable:
    return VirtualTable(sequence.name, COLUMNS, f"{KEY}{sequence.id}")
