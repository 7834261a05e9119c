"""pg_sequence and pg_sequences: the definitions of sequences, and how far they have come.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator
from functools import partial

from tenure.catalog.accounts.privileges import SELECT, USAGE
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import Reg
from tenure.expr.types.type_names import type_of
from tenure.sql.names.object_numbers import type_oid
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, ObjectRows, Row
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition

SEQUENCE, SEQUENCES = shape("pg_sequence"), shape("pg_sequences")
UNKNOWN_STATE = (None, None, None)


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    rows = ObjectRows((Sequence_,), _sequence)
    yield SEQUENCE.defined(rows.all, {"seqrelid": rows.of})
    yield SEQUENCES.defined(partial(_sequences, node))


def _sequence(each: Sequence_, catalog: CatalogReader) -> Iterator[Row]:
    yield SEQUENCE.row(
        seqrelid=each.id,
        seqtypid=type_oid(each.value_type),
        seqstart=each.start,
        seqincrement=each.increment,
        seqmax=each.maximum,
        seqmin=each.minimum,
        seqcache=each.cache,
        seqcycle=each.is_cycle,
    )


def sequence_data(node: NodeView, catalog: CatalogReader, relation: Reg) -> tuple[Datum, ...]:
    """The columns of pg_get_sequence_data: NULLs of what is no sequence, or may not be read."""
    each = catalog.objects.by_id.get(relation.oid)
    if not isinstance(each, Sequence_):
        return UNKNOWN_STATE
    return _state(node, catalog.reader, catalog.rights, each)


def _state(node: NodeView, reader: TableReader, rights: Rights, each: Sequence_) -> tuple[Datum, ...]:
    if not rights.held(each) & (SELECT | USAGE):
        return UNKNOWN_STATE
    return (*node.sequences.state(reader.block.source, each), None)


def _sequences(node: NodeView, reader: TableReader) -> Rows:
    """The last value is NULL before the first, and for those who may neither read nor use the sequence."""
    catalog, rights = CatalogReader(reader), reader.session.rights(reader.block)
    for each in catalog.objects.of(Sequence_):
        if each.database != catalog.database:
            continue
        value, is_called, _ = _state(node, reader, rights, each)
        last = value if is_called else None
        yield SEQUENCES.row(
            schemaname=catalog.objects.schema_of(each),
            sequencename=each.name,
            sequenceowner=each.owner,
            data_type=Reg(type_oid(each.value_type), type_of(each.value_type).sql_name),
            start_value=each.start,
            min_value=each.minimum,
            max_value=each.maximum,
            increment_by=each.increment,
            cycle=each.is_cycle,
            cache_size=each.cache,
            last_value=last,
        )
