"""What a node has leased, versions that no lease is told of, and answers that are lost."""

from tenure.base.errors import Disconnected
from tenure.catalog.leases.lease_rows import LeaseRow
from tenure.storage.engine import Group, Outcome
from tests.unit.kv.breaking import Deliver
from tests.unit.schema_change.clusters import SchemaNode


def rows_of(node: SchemaNode) -> list[LeaseRow]:
    return [row for row in node.lease_rows() if row.session == node.liveness.session().id]


def bump(node: SchemaNode, id: int) -> None:
    """Gives a table its next version, and says nothing to any lease."""

    def publish(txn: object) -> None:
        table = node.catalog.get(txn, id)  # type: ignore[arg-type]
        assert table is not None
        node.publisher.publish(txn, [table], {id: table.modified_at})  # type: ignore[arg-type]

    node.store.transact(publish)


def cut(group: Group, deliver: Deliver) -> list[Outcome]:
    """For a wire: the commit arrives, and its answer does not."""
    deliver(group)
    raise Disconnected("cut")
