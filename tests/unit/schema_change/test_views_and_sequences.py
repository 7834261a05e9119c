"""Views, sequences and generated columns, made and changed through leases while another node is there."""

import pytest

from tenure.base.errors import TenureError
from tenure.catalog.changes.drops import drop_column, drop_objects
from tenure.catalog.changes.object_changes import rename_object, set_comment
from tenure.catalog.changes.table_changes import AddColumn, DropConstraint, SetDefault, alter
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    Depends,
    DescriptorState,
    Sequence,
    View,
)
from tenure.catalog.leases.catalog_use import CatalogUse
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import (
    INT,
    A,
    add_check,
    add_serial,
    create,
    created,
    inconsistent_names,
    make_sequence,
    make_view,
    next_of,
    place,
)
from tests.unit.table.trees import column_value


def view(node: SchemaNode, id: int) -> View:
    found = node.stored(id)
    assert isinstance(found, View)
    return found


def sequence(node: SchemaNode, id: int) -> Sequence:
    found = node.stored(id)
    assert isinstance(found, Sequence)
    return found


# ── views ──────────────────────────────────────────────────────────────────────────────────────


def test_a_view_is_there_for_every_node_when_its_statement_returns(
    node: SchemaNode, other: SchemaNode
) -> None:
    table = created(node)
    made = node.run(lambda use: make_view(node, use, table, A))
    use = other.bind()
    assert use.id_at(place("v")) == made
    found = use.descriptor(made)
    assert isinstance(found, View) and found.version == 1
    use.close()
    assert node.table(table).dependents == (made,)
    assert inconsistent_names(node) == []


def test_a_view_over_a_table_of_the_same_transaction(node: SchemaNode, other: SchemaNode) -> None:
    def both(use: CatalogUse) -> tuple[int, int]:
        table = create(node, use)
        return table, make_view(node, use, table, A)

    table, made = node.run(both)
    assert other.table(table).dependents == (made,)
    assert view(other, made).depends == (Depends(table, (A,)),)


def test_a_renamed_views_former_name_drains(cluster: Cluster, node: SchemaNode, other: SchemaNode) -> None:
    table = created(node)
    made = node.run(lambda use: make_view(node, use, table, A))
    held = other.bind()
    assert held.id_at(place("v")) == made
    held.descriptor(made)
    node.run(lambda use: rename_object(use.draft, use, made, "vv"))
    cluster.settle()
    assert (view(node, made).name, view(node, made).draining) == ("vv", ())
    assert node.names()["vv"] == made and "v" not in node.names()
    held.close()
    assert inconsistent_names(node) == []


def test_a_column_that_a_view_of_another_node_reads_is_in_use(node: SchemaNode, other: SchemaNode) -> None:
    table = created(node)
    made = other.run(lambda use: make_view(other, use, table, A))
    with pytest.raises(TenureError) as refused:
        node.run(lambda use: drop_column(use.draft, use, table, "a"))
    assert (refused.value.sqlstate, refused.value.detail) == (
        "2BP01",
        "view v depends on column a of table t",
    )
    node.run(lambda use: drop_column(use.draft, use, table, "a", is_cascade=True))
    assert view(other, made).state is DescriptorState.DROPPED
    assert [each.name for each in node.table(table).columns] == ["id", "b"]
    assert node.table(table).dependents == ()
    assert inconsistent_names(node) == []


def test_of_a_view_and_the_drop_of_its_table_only_one_commits(node: SchemaNode, other: SchemaNode) -> None:
    table = created(node)
    slow = other.bind()
    make_view(other, slow, table, A)
    node.run(lambda use: drop_objects(use.draft, use, [table]))
    with pytest.raises(TenureError) as refused:
        other.changer.commit(slow)
    assert refused.value.sqlstate == "40001"
    assert "v" not in node.names()


def test_a_view_and_a_check_that_rows_break_go_together(node: SchemaNode, other: SchemaNode) -> None:
    """The view is shown with the last step, and nothing of it is left if that does not come."""
    table = created(node)
    other.put_rows(table, (1, -1, 0))

    def both(use: CatalogUse) -> None:
        make_view(node, use, table, A)
        add_check(use, table)

    with pytest.raises(TenureError) as refused:
        node.run(both)
    assert refused.value.sqlstate == "23514"
    assert "v" not in node.names()
    node.run(lambda use: set_comment(use.draft, use, table, "said"))
    assert node.table(table).dependents == ()
    assert node.table(table).comment == "said"


# ── sequences ──────────────────────────────────────────────────────────────────────────────────


def test_a_serial_column_is_added_to_a_table_with_rows(node: SchemaNode, other: SchemaNode) -> None:
    table = created(node)
    other.put_rows(table, *((number, 0, 0) for number in range(5)))
    made = node.run(lambda use: add_serial(node, use, table))
    other.put_rows(table, (5, 0, 0))
    values = [row[3] for row in node.shown(table)]
    assert len(set(values)) == 6 and None not in values
    assert sequence(node, made).state is DescriptorState.PUBLIC
    assert (sequence(node, made).dependents, node.table(table).sequences) == ((table,), (made,))
    assert node.open_jobs() == []
    assert inconsistent_names(node) == []


def test_a_serial_column_that_cannot_come_leaves_no_sequence(node: SchemaNode, other: SchemaNode) -> None:
    table = created(node)
    other.put_rows(table, (1, -1, 0))

    def both(use: CatalogUse) -> int:
        made = add_serial(node, use, table)
        add_check(use, table)
        return made

    with pytest.raises(TenureError) as refused:
        node.run(both)
    assert refused.value.sqlstate == "23514"
    assert "t_n_seq" not in node.names()
    assert node.table(table).sequences == ()
    assert [each.name for each in node.table(table).columns] == ["id", "a", "b"]
    assert inconsistent_names(node) == []


def test_a_default_of_another_sequence_that_cannot_come_is_forgotten(
    node: SchemaNode, other: SchemaNode
) -> None:
    table = created(node)
    made = node.run(lambda use: make_sequence(node, use))
    other.put_rows(table, (1, -1, 0))

    def both(use: CatalogUse) -> None:
        alter(use.draft, use, table, AddColumn("n", INT, default=next_of(made)))
        add_check(use, table)

    with pytest.raises(TenureError) as refused:
        node.run(both)
    assert refused.value.sqlstate == "23514"
    assert sequence(node, made).dependents == ()


def test_an_owned_sequence_goes_with_its_column_while_others_insert(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    table = created(node)
    made = node.run(lambda use: add_serial(node, use, table))
    held = other.bind()
    other.insert(held, table, 1, 0, 0)
    held.commit()
    node.run(lambda use: drop_column(use.draft, use, table, "n"))
    other.put_rows(table, (2, 0, 0))
    assert sequence(node, made).state is DescriptorState.DROPPED
    assert node.table(table).sequences == ()
    assert node.shown(table) == [(1, 0, 0), (2, 0, 0)]
    assert "t_n_seq" not in node.names()


def test_a_default_is_changed_to_a_sequence(node: SchemaNode, other: SchemaNode) -> None:
    table = created(node)
    made = node.run(lambda use: make_sequence(node, use))
    node.run(lambda use: alter(use.draft, use, table, SetDefault("b", next_of(made))))
    other.put_rows(table, (1, 0))
    assert other.shown(table) == [(1, 0, 1)]
    node.run(lambda use: drop_objects(use.draft, use, [made], is_cascade=True))
    other.put_rows(table, (2, 0))
    assert other.shown(table) == [(1, 0, 1), (2, 0, None)]


# ── generated columns ──────────────────────────────────────────────────────────────────────────


def test_a_generated_column_is_added_to_a_table_with_rows(node: SchemaNode, other: SchemaNode) -> None:
    table = created(node)
    other.put_rows(table, (1, 10, 0), (2, None, 0))
    node.run(lambda use: alter(use.draft, use, table, AddColumn("g", INT, generated=column_value(A))))
    other.put_rows(table, (3, 30, 0))
    assert node.shown(table) == [(1, 10, 0, 10), (2, None, 0, None), (3, 30, 0, 30)]
    assert node.wrong_indexes(table) == []


def test_a_generated_column_is_added_to_a_table_that_was_just_made_and_filled(node: SchemaNode) -> None:
    def all_of_it(use: CatalogUse) -> int:
        table = create(node, use)
        node.insert(use, table, 1, 10, 0)
        alter(use.draft, use, table, AddColumn("g", INT, is_nullable=False, generated=column_value(A)))
        node.insert(use, table, 2, 20, 0)
        return table

    table = node.run(all_of_it)
    assert node.shown(table) == [(1, 10, 0, 10), (2, 20, 0, 20)]


def test_comments_are_one_version(node: SchemaNode, other: SchemaNode) -> None:
    table = created(node)
    before = node.table(table).version
    node.run(lambda use: set_comment(use.draft, use, table, "said"))
    assert (other.table(table).version, other.table(table).comment) == (before + 1, "said")
    node.run(lambda use: set_comment(use.draft, use, DEFAULT_DATABASE, "main"))
    stored = other.stored(DEFAULT_DATABASE)
    assert stored is not None and stored.comment == "main"
    with pytest.raises(TenureError):
        node.run(lambda use: alter(use.draft, use, table, DropConstraint("nope")))
