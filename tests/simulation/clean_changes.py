"""Cleaning up and constraining in one transaction: rows that are in the way go, then a unique index comes.

Whoever has removed what is in the way must not be told of it. So such a change may be refused only if another
transaction has written to the table since it was read.

Walk: `schema_client.SHAPES` has `clean_and_constrain`; `schema_predicates.check` calls `needless_refusals`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.catalog.descriptors.definitions import ElementState, Index, KeyPart, Table, replace
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.expr.types.datatype import Datum
from tenure.table import read
from tests.simulation.predicates import Violation
from tests.simulation.schema_changes import ID, INDEXES_MAX, U
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.schema_trace import Cleaned, Declared, record_of

if TYPE_CHECKING:
    from tests.simulation.schema_client import SchemaClient

KIND = "clean and constrain"
OF_CONSTRAINTS = "23"
"""What the codes of broken constraints begin with."""


def clean_and_constrain(client: "SchemaClient", use: CatalogUse, declared: Declared) -> bool:
    """Deletes or changes all but one of equal rows, adds some, and makes the column unique."""
    table = client.some_table(use)
    if table is None or len(table.indexes) >= INDEXES_MAX:
        return False
    _clean_up(client, use, table)
    declared.cleaned = Cleaned(table.id, use.txn.read_at)
    name = f"i{record_of(use.txn).id}_{table.next_index}"
    index = Index(
        table.next_index, name, (KeyPart(U),), True, ElementState.DELETE_ONLY, primary=table.primary
    )
    constrained = replace(table, indexes=(*table.indexes, index), next_index=table.next_index + 1)
    use.draft.declare(constrained, made_from=table.version)
    declared.elements.append((table.id, name))
    return True


def _clean_up(client: "SchemaClient", use: CatalogUse, table: Table) -> None:
    layout = client.layout(table)
    writer = client.writer(table)
    taken: set[object] = set()
    for row in list(read.rows(use.txn, layout)):
        client.pause()
        value, key = row.values[U], row.values[ID]
        assert isinstance(key, int)
        if value not in taken:
            taken.add(value)
        elif any(check.is_enforced for check in layout.checks) or client.maybe(0.5):
            writer.delete(use.txn, row)
            client.note(use, table, key, None)
        else:
            values: dict[int, Datum] = {U: 100 + key}  # nobody else gives such a value
            writer.update(use.txn, row, values)
            client.note(use, table, key, values)
    writer.finish(use.txn)


def needless_refusals(index: SchemaIndex) -> Iterator[Violation]:
    """A change that was refused for rows that its own transaction had removed."""
    for declared in index.trace.declared:
        cleaned, txn = declared.cleaned, declared.use.txn
        if cleaned is None:
            continue
        index.trace.seen["cleaned up and constrained" if declared.outcome == "done" else "clean-up lost"] += 1
        if declared.sqlstate.startswith(OF_CONSTRAINTS) and not _is_disturbed(index, declared, cleaned):
            message = f"t{txn.id}: refused ({declared.sqlstate}) for rows that it had removed"
            yield Violation("clean", message, declared.ended, (txn.id,))


def _is_disturbed(index: SchemaIndex, declared: Declared, cleaned: Cleaned) -> bool:
    return any(
        record.txn.landed_at is not None
        and record.txn.landed_at > cleaned.read_at
        and record.txn.landed <= declared.ended
        and any(effect.table == cleaned.table for effect in record.effects)
        for record in index.trace.uses.values()
    )
