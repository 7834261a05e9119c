"""Changes of the catalog as a transaction declares them, in few words."""

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.changes.sequence_changes import create_sequence, set_owned_by
from tenure.catalog.changes.table_changes import AddColumn, alter
from tenure.catalog.changes.view_changes import create_view
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    Action,
    AnyDescriptor,
    Check,
    Column,
    Database,
    Depends,
    DescriptorState,
    ElementState,
    Expression,
    ForeignKey,
    Goal,
    Inbound,
    Index,
    KeyPart,
    NameKey,
    OwnedBy,
    Schema,
    SchemaEntry,
    SearchPath,
    Table,
    TypeRef,
    ViewColumn,
    replace,
)
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.expr.tree.build import call, const
from tenure.expr.tree.expressions import to_stored
from tenure.expr.types.type_names import type_of
from tenure.node import Node
from tenure.table.columns import filled_with
from tests.unit.schema_change.clusters import SchemaNode
from tests.unit.table.trees import INT as INT_TYPE
from tests.unit.table.trees import above, constant

INT = TypeRef("int8")
ID, A, B = 1, 2, 3
"""The columns of every table here: id is the primary key, a and b are whole numbers."""


def place(name: str, schema: int = DEFAULT_SCHEMA) -> NameKey:
    return NameKey(DEFAULT_DATABASE, schema, name)


def schema_place(name: str) -> NameKey:
    return NameKey(DEFAULT_DATABASE, 0, name)


def new_table(id: int, name: str, *, schema: int = DEFAULT_SCHEMA) -> Table:
    columns = (Column(ID, "id", INT, is_nullable=False), Column(A, "a", INT), Column(B, "b", INT))
    primary = Index(1, f"{name}_pkey", (KeyPart(ID),), True, primary=1)
    return Table(
        id,
        0,
        ZERO_AT,
        name,
        ROOT,
        DescriptorState.PUBLIC,
        (),
        (),
        DEFAULT_DATABASE,
        schema,
        columns,
        1,
        (primary,),
        next_column=4,
        next_index=2,
    )


def create(node: SchemaNode, use: CatalogUse, name: str = "t", *, schema: int = DEFAULT_SCHEMA) -> int:
    id = node.catalog.fresh_id(use.txn)
    use.draft.create(new_table(id, name, schema=schema))
    return id


def created(node: SchemaNode, name: str = "t", *, schema: int = DEFAULT_SCHEMA) -> int:
    """A table t(id, a, b), made and committed."""
    return node.run(lambda use: create(node, use, name, schema=schema))


def create_schema(node: SchemaNode, use: CatalogUse, name: str) -> int:
    id = node.catalog.fresh_id(use.txn)
    use.draft.create(Schema(id, 0, ZERO_AT, name, ROOT, DescriptorState.PUBLIC, (), (), DEFAULT_DATABASE))
    return id


def table_of(use: CatalogUse, id: int) -> Table:
    """As the transaction has declared it so far, elements on their way included."""
    found = use.draft.declared.get(id) or use.descriptor(id)
    assert isinstance(found, Table), f"no table {id} under this lease"
    return found


def declare(use: CatalogUse, descriptor: AnyDescriptor) -> None:
    use.draft.declare(descriptor, made_from=descriptor.version)


def add_index(
    use: CatalogUse, id: int, *columns: int, name: str = "t_a", unique: bool = False, **more: object
) -> int:
    table = table_of(use, id)
    parts = tuple(KeyPart(column) for column in columns)
    made = Index(table.next_index, name, parts, unique, ElementState.DELETE_ONLY, primary=1, **more)  # type: ignore[arg-type]
    declare(use, replace(table, indexes=(*table.indexes, made), next_index=made.id + 1))
    return made.id


def drop_index(use: CatalogUse, id: int, name: str = "t_a") -> None:
    table = table_of(use, id)
    going = tuple(replace(each, goal=Goal.ABSENT) if each.name == name else each for each in table.indexes)
    declare(use, replace(table, indexes=going))


def add_column(use: CatalogUse, id: int, name: str = "c", *, default: int | None = None) -> int:
    table = table_of(use, id)
    made = Column(
        table.next_column,
        name,
        INT,
        ElementState.DELETE_ONLY,
        default=None if default is None else constant(default),
        filled=None if default is None else filled_with(type_of(INT), default),
    )
    declare(use, replace(table, columns=(*table.columns, made), next_column=made.id + 1))
    return made.id


def drop_column(use: CatalogUse, id: int, name: str = "b") -> None:
    table = table_of(use, id)
    going = tuple(replace(each, goal=Goal.ABSENT) if each.name == name else each for each in table.columns)
    declare(use, replace(table, columns=going))


def add_check(
    use: CatalogUse, id: int, column: int = A, *, above_value: int = 0, name: str = "t_check"
) -> int:
    table = table_of(use, id)
    expression = above(column, above_value)
    made = Check(table.next_constraint, name, expression, ElementState.WRITE_ONLY)
    declare(use, replace(table, checks=(*table.checks, made), next_constraint=made.id + 1))
    return made.id


def add_foreign_key(
    use: CatalogUse,
    id: int,
    target: int,
    *,
    column: int = A,
    name: str = "t_fkey",
    on_delete: Action = Action.NO_ACTION,
) -> None:
    """That a column refers to the other table's id."""
    table = table_of(use, id)
    is_new = use.draft.is_new(id)
    state = ElementState.PUBLIC if is_new else ElementState.WRITE_ONLY
    made = ForeignKey(table.next_constraint, name, (column,), target, (ID,), on_delete, state=state)
    declare(use, replace(table, foreign_keys=(*table.foreign_keys, made), next_constraint=made.id + 1))
    other = table_of(use, target)
    declare(use, replace(other, inbound=(*other.inbound, Inbound(id, made.id))))


def rename(use: CatalogUse, id: int, name: str) -> None:
    former = use.draft.declared.get(id) or use.descriptor(id)
    assert former is not None
    use.draft.move(former, replace(former, name=name))


def set_schema(use: CatalogUse, id: int, schema: int) -> None:
    former = table_of(use, id)
    use.draft.move(former, replace(former, schema=schema))


def drop(use: CatalogUse, id: int) -> None:
    former = use.draft.declared.get(id) or use.descriptor(id)
    assert former is not None
    use.draft.drop(former)


def index_of(table: Table, column: int) -> int:
    """The public index that begins with a column."""
    return next(
        each.id
        for each in table.indexes
        if each.parts[0].column == column and each.state is ElementState.PUBLIC
    )


def inconsistent_names(node: SchemaNode | Node) -> list[str]:
    """What is wrong with names and maps, compared with what the descriptors say."""
    snapshot = node.store.snapshot()
    descriptors = {each.id: each for each in node.catalog.list(snapshot)}
    expected: dict[NameKey, int] = {}
    wrong: list[str] = []
    for each in descriptors.values():
        for where in _places(each):
            if where in expected:
                wrong.append(f"{where} stands for {expected[where]} and for {each.id}")
            expected[where] = each.id
    found = {NameKey(each.database, each.schema, each.name): each.id for each in node.catalog.names(snapshot)}
    wrong += [
        f"{where}: {found.get(where)}, not {expected.get(where)}"
        for where in found.keys() | expected.keys()
        if found.get(where) != expected.get(where)
    ]
    for database in [each for each in descriptors.values() if isinstance(each, Database)]:
        wrong += _wrong_map(node, database, descriptors)
    wrong += [
        f"{each.id} has no parent" for each in descriptors.values() if not _has_parent(each, descriptors)
    ]
    return wrong


def _places(descriptor: AnyDescriptor) -> set[NameKey]:
    """Said once more, in other words than the product's."""
    where = set(descriptor.draining)
    if descriptor.state is not DescriptorState.DROPPED:
        match descriptor:
            case Database():
                where.add(NameKey(0, 0, descriptor.name))
            case Schema():
                where.add(NameKey(descriptor.database, 0, descriptor.name))
            case _:
                where.add(NameKey(descriptor.database, descriptor.schema, descriptor.name))
    return where


def _wrong_map(
    node: SchemaNode | Node, database: Database, descriptors: dict[int, AnyDescriptor]
) -> list[str]:
    expected: dict[str, SchemaEntry] = {}
    for each in descriptors.values():
        if isinstance(each, Schema) and each.database == database.id:
            for where in _places(each):
                is_shown = each.state is DescriptorState.PUBLIC and where.name == each.name
                state = DescriptorState.PUBLIC if is_shown else DescriptorState.DROPPED
                expected[where.name] = SchemaEntry(database.id, where.name, each.id, state)
    found = {each.name: each for each in node.catalog.schema_map(node.store.snapshot(), database.id)}
    return [] if found == expected else [f"the map of {database.name}: {found}, not {expected}"]


def _has_parent(descriptor: AnyDescriptor, descriptors: dict[int, AnyDescriptor]) -> bool:
    if descriptor.state is DescriptorState.DROPPED or isinstance(descriptor, Database):
        return True
    parent = descriptors.get(descriptor.database if isinstance(descriptor, Schema) else descriptor.schema)
    return parent is not None and parent.state is not DescriptorState.DROPPED


def make_view(node: SchemaNode, use: CatalogUse, table: int, *columns: int, name: str = "v") -> int:
    id = node.catalog.fresh_id(use.txn)
    create_view(
        use.draft,
        use,
        id=id,
        schema=DEFAULT_SCHEMA,
        name=name,
        owner=ROOT,
        query="SELECT a FROM t",
        columns=[ViewColumn(f"c{each}", INT) for each in columns],
        path=SearchPath(DEFAULT_DATABASE, ("public",)),
        depends=[Depends(table, columns)],
    )
    return id


def make_sequence(node: SchemaNode, use: CatalogUse, name: str = "s") -> int:
    id = node.catalog.fresh_id(use.txn)
    create_sequence(use.draft, use, id=id, schema=DEFAULT_SCHEMA, name=name, owner=ROOT)
    return id


def next_of(sequence: int) -> Expression:
    return to_stored(call("tenure_nextval", const(sequence, INT_TYPE)).node, "nextval")


def add_serial(node: SchemaNode, use: CatalogUse, table: int, column: str = "n") -> int:
    """ALTER TABLE ... ADD COLUMN ... serial."""
    id = make_sequence(node, use, f"t_{column}_seq")
    altered = alter(use.draft, use, table, AddColumn(column, INT, is_nullable=False, default=next_of(id)))
    set_owned_by(use.draft, use, id, OwnedBy(table, altered.columns[-1].id))
    return id
