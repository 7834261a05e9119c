"""Descriptors taken all at once under a lease that is known to have them, and reads that pin none."""

import pytest

from tenure.catalog.descriptors.definitions import replace
from tenure.catalog.leases.catalog_use import CatalogUse
from tests.unit.catalog.leasing import bump
from tests.unit.schema_change.clusters import SchemaNode
from tests.unit.schema_change.declared import created


def _takes(node: SchemaNode, use: CatalogUse, id: int) -> bool:
    """Whether a plan that was made of this table may be used as it is."""
    is_taken = use.take_known({id: node.table(id)})
    assert (id in use.pins) == is_taken
    return is_taken


def test_a_kept_plan_pins_what_its_lease_has(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    assert _takes(node, use, id)
    with node.leases.hold([id], timeout=0.0) as is_free:
        assert not is_free
    use.close()


@pytest.mark.invariant("I10")
def test_a_kept_plan_does_not_pin_what_a_publisher_holds(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    with node.leases.hold([id], timeout=0.0) as is_free:
        assert is_free and not _takes(node, use, id)
    assert _takes(node, use, id)
    use.close()


@pytest.mark.invariant("I16")
def test_a_kept_plan_does_not_pin_under_a_lease_that_is_closed(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    node.leases.renew()
    assert not _takes(node, use, id)
    use.close()


def test_a_kept_plan_does_not_pin_for_a_transaction_that_was_ended(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    assert node.leases.end(use, "somebody waits")
    assert not _takes(node, use, id)
    use.close()


def test_a_kept_plan_is_not_taken_beside_descriptors_that_were_asked_for(node: SchemaNode) -> None:
    id, other = created(node), created(node, "other")
    use = node.bind()
    use.descriptor(other)
    assert not _takes(node, use, id)
    use.close()


def test_a_kept_plan_is_not_taken_by_a_transaction_that_has_changed_its_table(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    changed = replace(node.table(id), name="renamed")
    use.draft.declare(changed, made_from=changed.version)
    assert not _takes(node, use, id)
    assert use.descriptor(id) == changed
    use.close()


@pytest.mark.invariant("I16")
def test_what_was_given_up_is_pinned_again_before_it_is_handed_out(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    use.descriptor(id)
    use.give_up([id])
    assert id not in use.pins
    assert use.descriptor(id) is not None and id in use.pins
    use.close()


@pytest.mark.invariant("I10")
def test_a_glance_is_not_believed_once_its_lease_is_closed(node: SchemaNode) -> None:
    id = created(node)
    lease = node.leases.peek()
    assert lease is not None
    assert node.leases.was_good(lease, [id], node.store.clock.now())
    bump(node, id)
    node.leases.renew()
    assert not node.leases.was_good(lease, [id], node.store.clock.now())
