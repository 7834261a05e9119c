"""Databases, schemas and types, made and changed through leases while another node is there."""

import pytest

from tenure.base.errors import OutcomeUnknown, RetryError, TenureError
from tenure.catalog.changes.database_conversion import convert_to_schema
from tenure.catalog.changes.drops import drop_database, drop_objects, drop_schemas
from tenure.catalog.changes.object_changes import (
    add_enum_value,
    create_database,
    create_enum,
    create_table,
    rename_object,
)
from tenure.catalog.changes.table_changes import AddColumn, NamedKeyColumn
from tenure.catalog.changes.undrops import undrop
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    DescriptorState,
    EnumType,
    NameKey,
    TypeRef,
)
from tenure.catalog.leases.catalog_use import CatalogUse
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import create_schema, created, inconsistent_names
from tests.unit.table.trees import row_id


def moods(node: SchemaNode, use: CatalogUse, *labels: str) -> int:
    id = node.catalog.fresh_id(use.txn)
    create_enum(use.draft, use, id=id, schema=DEFAULT_SCHEMA, name="mood", owner=ROOT, labels=labels)
    return id


def people(node: SchemaNode, use: CatalogUse, mood: int, *, schema: int = DEFAULT_SCHEMA) -> int:
    id = node.catalog.fresh_id(use.txn)
    columns = (
        AddColumn("id", TypeRef("int8"), is_nullable=False),
        AddColumn("mood", TypeRef("mood", enum=mood) if mood else TypeRef("text")),
    )
    create_table(
        use.draft,
        use,
        id=id,
        schema=schema,
        name="people",
        owner=ROOT,
        columns=columns,
        row_id=row_id(),
        key=(NamedKeyColumn("id"),),
    )
    return id


def database(node: SchemaNode, use: CatalogUse, name: str) -> tuple[int, int]:
    id, schema = node.catalog.fresh_id(use.txn), node.catalog.fresh_id(use.txn)
    create_database(use.draft, use, id=id, schema=schema, name=name, owner=ROOT)
    return id, schema


def test_a_label_is_written_only_when_every_node_can_read_it(node: SchemaNode, other: SchemaNode) -> None:
    mood = node.run(lambda use: moods(node, use, "sad", "happy"))
    table = node.run(lambda use: people(node, use, mood))
    other.put_rows(table, (1, "sad"))
    node.run(lambda use: add_enum_value(use.draft, use, mood, "fine", before="happy"))
    node.put_rows(table, (2, "fine"))
    assert other.shown(table) == [(1, "sad"), (2, "fine")]
    stored = node.stored(mood)
    assert isinstance(stored, EnumType)
    assert [member.label for member in stored.members] == ["sad", "fine", "happy"]
    assert (stored.job, stored.referents) == (0, (table,))
    assert stored.version == 4, "made, used by a table, the label to be read, the label to be written"


def test_a_label_and_a_row_that_uses_it_come_with_one_transaction(
    node: SchemaNode, other: SchemaNode
) -> None:
    mood = node.run(lambda use: moods(node, use, "sad"))
    table = node.run(lambda use: people(node, use, mood))

    def both(use: CatalogUse) -> None:
        node.insert(use, table, 1, "sad")
        add_enum_value(use.draft, use, mood, "happy")

    node.run(both)
    other.put_rows(table, (2, "happy"))
    assert node.shown(table) == [(1, "sad"), (2, "happy")]


def test_a_type_that_a_table_uses_stays(node: SchemaNode, other: SchemaNode) -> None:
    mood = node.run(lambda use: moods(node, use, "sad"))
    table = node.run(lambda use: people(node, use, mood))
    with pytest.raises(TenureError) as refused:
        node.run(lambda use: drop_objects(use.draft, use, [mood]))
    assert refused.value.sqlstate == "2BP01"
    other.run(lambda use: drop_objects(use.draft, use, [table]))
    node.run(lambda use: drop_objects(use.draft, use, [mood]))
    stored = node.stored(mood)
    assert stored is not None and stored.state is DescriptorState.DROPPED
    assert inconsistent_names(node) == []


def test_a_database_is_renamed_and_its_former_name_is_free_afterwards(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id, _ = node.run(lambda use: database(node, use, "shop"))
    other.run(lambda use: rename_object(use.draft, use, id, "store"))
    cluster.settle()
    use = node.bind()
    assert use.id_at(NameKey(0, 0, "store")) == id
    assert use.id_at(NameKey(0, 0, "shop")) is None
    use.close()
    again, _ = node.run(lambda use: database(node, use, "shop"))
    assert again != id
    assert inconsistent_names(node) == []


def test_a_database_goes_with_its_schemas(node: SchemaNode, other: SchemaNode) -> None:
    id, schema = node.run(lambda use: database(node, use, "shop"))
    other.run(lambda use: drop_database(use.draft, use, id, [schema], []))
    for each in (id, schema):
        stored = node.stored(each)
        assert stored is not None and stored.state is DescriptorState.DROPPED
    assert not any(entry.name == "shop" for entry in node.catalog.names(node.store.snapshot()))
    assert inconsistent_names(node) == []


def test_a_database_becomes_a_schema_of_another(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id, schema = node.run(lambda use: database(node, use, "shop"))
    table = node.run(lambda use: people(node, use, 0, schema=schema))
    other.put_rows(table, (1,))

    def convert(use: CatalogUse) -> int:
        made = node.catalog.fresh_id(use.txn)
        convert_to_schema(
            use.draft, use, id, parent=DEFAULT_DATABASE, schema=made, schemas=[schema], contents=[table]
        )
        return made

    made = node.run(convert)
    cluster.settle()
    use = other.bind()
    assert use.id_at(NameKey(DEFAULT_DATABASE, made, "people")) == table
    use.close()
    assert other.shown(table) == [(1, None)]
    stored = node.stored(id)
    assert stored is not None and stored.state is DescriptorState.DROPPED
    assert inconsistent_names(node) == []


def test_a_dropped_table_is_back_with_its_rows(node: SchemaNode, other: SchemaNode) -> None:
    table = created(node)
    other.put_rows(table, (1, 1, 1))
    node.run(lambda use: drop_objects(use.draft, use, [table]))
    other.run(lambda use: undrop(use.draft, use, [table]))
    node.put_rows(table, (2, 2, 2))
    assert other.shown(table) == [(1, 1, 1), (2, 2, 2)]
    assert inconsistent_names(node) == []


def test_a_table_does_not_come_back_into_a_schema_that_goes(node: SchemaNode, other: SchemaNode) -> None:
    schema = node.run(lambda use: create_schema(node, use, "app"))
    table = created(node, schema=schema)
    node.run(lambda use: drop_objects(use.draft, use, [table]))
    slow = other.bind()
    undrop(slow.draft, slow, [table])
    node.run(lambda use: drop_schemas(use.draft, use, [schema], [table]))
    with pytest.raises(RetryError):
        other.changer.commit(slow)
    assert inconsistent_names(node) == []


def test_what_fails_after_the_commit_is_no_refusal(node: SchemaNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a session would do it again, and what it wrote would be there twice."""

    def fail(*_: object) -> None:
        raise RetryError("somebody was in the way")

    monkeypatch.setattr(node.leases, "install", fail)
    with pytest.raises(OutcomeUnknown):
        node.once(lambda use: moods(node, use, "sad"))
    monkeypatch.undo()
    names = [entry.name for entry in node.catalog.names(node.store.snapshot())]
    assert names.count("mood") == 1
