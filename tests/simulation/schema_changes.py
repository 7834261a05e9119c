"""The schema changes of the simulation: each declares something in a transaction's draft.

Names of what is added contain the transaction's number, so that the history of a table tells which
attempt brought what.

Walk: `schema_client` calls one or two of these in a transaction, with rows or without, and commits.
"""

from typing import TYPE_CHECKING

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    Check,
    Column,
    DescriptorState,
    ElementState,
    Expression,
    Goal,
    Index,
    KeyPart,
    NameKey,
    Schema,
    SchemaEntry,
    Table,
    TypeRef,
    place_of,
    replace,
    visible,
)
from tenure.catalog.descriptors.elements import finished
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.expr.tree import build
from tenure.expr.tree.expressions import to_stored
from tenure.expr.types.type_names import type_of
from tenure.kv.transaction import Transaction
from tenure.table.columns import filled_with
from tenure.table.rows import Layout
from tests.simulation import emptying
from tests.simulation.schema_trace import Declared, record_of

if TYPE_CHECKING:
    from tests.simulation.schema_client import SchemaClient

ID, U, W = 1, 2, 3
"""The columns that every table has: its key, a value that is often not null, one that may be."""

INT = type_of(TypeRef("int8"))
TWO_CHANGES = "two changes"
COLUMNS_MAX, INDEXES_MAX = 6, 4
TABLES = ("a", "b", "c")
SCHEMAS = ("public", "s", "t")


def table_of(id: int, version: int, name: str, schema: int, *, database: int = DEFAULT_DATABASE) -> Table:
    columns = (
        Column(ID, "id", TypeRef("int8"), is_nullable=False),
        Column(U, "u", TypeRef("int8")),
        Column(W, "w", TypeRef("int8")),
    )
    primary = Index(1, f"{name}_pkey", (KeyPart(ID),), is_unique=True, primary=1)
    return Table(
        *(id, version, ZERO_AT, name, ROOT, DescriptorState.PUBLIC, (), (), database, schema),
        columns=columns,
        primary=1,
        indexes=(primary,),
        next_column=4,
        next_index=2,
    )


def first_tables(txn: Transaction, catalog: Catalog) -> None:
    """What the world starts with, beside the first databases and schemas."""
    for name in TABLES[:2]:
        table = table_of(catalog.fresh_id(txn), 1, name, DEFAULT_SCHEMA)
        catalog.put(txn, table)
        catalog.put_name(txn, place_of(table), table.id)
    schema = Schema(
        *(
            catalog.fresh_id(txn),
            1,
            ZERO_AT,
            SCHEMAS[1],
            ROOT,
            DescriptorState.PUBLIC,
            (),
            (),
            DEFAULT_DATABASE,
        )
    )
    catalog.put(txn, schema)
    catalog.put_name(txn, place_of(schema), schema.id)
    catalog.put_schema_entry(
        txn, SchemaEntry(DEFAULT_DATABASE, schema.name, schema.id, DescriptorState.PUBLIC)
    )


def _declare(use: CatalogUse, table: Table) -> None:
    if use.draft.is_emptied(table.id):
        done = finished(table)  # none of its rows is older than the change
        assert isinstance(done, Table)
        table = done
    use.draft.declare(table, made_from=use.draft.made_from.get(table.id, table.version))


def _base(use: CatalogUse, table: Table) -> Table:
    """What a further change of the same transaction starts from."""
    declared = use.draft.declared.get(table.id, table)
    assert isinstance(declared, Table)
    return declared


def _number(use: CatalogUse) -> int:
    return record_of(use.txn).id


def no_tables(id: int) -> Layout:
    raise AssertionError("there are no foreign keys here")


# ── of a table ───────────────────────────────────────────────────────────────────────────────────


def add_index(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    base = _base(use, table)
    columns = [column.id for column in visible(base.columns) if column.id != ID]
    if len(base.indexes) >= INDEXES_MAX or not columns:
        return False
    is_unique = client.maybe(0.4)
    parts = (KeyPart(columns[client.pick(len(columns))], client.maybe(0.3)),)
    name = f"i{_number(use)}_{base.next_index}"
    index = Index(base.next_index, name, parts, is_unique, ElementState.DELETE_ONLY, primary=base.primary)
    _declare(use, replace(base, indexes=(*base.indexes, index), next_index=base.next_index + 1))
    declared.elements.append((table.id, name))
    return True


def drop_index(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    base = _base(use, table)
    found = [each for each in visible(base.indexes) if each.id != base.primary and each.goal is Goal.PUBLIC]
    if not found:
        return False
    chosen = found[client.pick(len(found))]
    _declare(use, replace(base, indexes=_going(base.indexes, {chosen.id})))
    return True


def _going(indexes: tuple[Index, ...], ids: set[int]) -> tuple[Index, ...]:
    return tuple(replace(each, goal=Goal.ABSENT) if each.id in ids else each for each in indexes)


def constant(value: int) -> Expression:
    return to_stored(build.const(value, INT).node, str(value))


def add_column(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    base = _base(use, table)
    if len(base.columns) >= COLUMNS_MAX:
        return False
    id, value = base.next_column, client.pick(5)
    column = Column(
        id,
        f"c{_number(use)}_{id}",
        TypeRef("int8"),
        ElementState.DELETE_ONLY,
        is_nullable=client.maybe(0.5),
        default=constant(value),
        filled=filled_with(INT, value),
    )
    _declare(use, replace(base, columns=(*base.columns, column), next_column=id + 1))
    declared.elements.append((table.id, column.name))
    return True


def drop_column(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    base = _base(use, table)
    found = [each for each in visible(base.columns) if each.id > W and each.goal is Goal.PUBLIC]
    if not found:
        return False
    chosen = found[client.pick(len(found))].id
    on_it = {index.id for index in base.indexes if any(part.column == chosen for part in index.parts)}
    columns = tuple(replace(each, goal=Goal.ABSENT) if each.id == chosen else each for each in base.columns)
    _declare(use, replace(base, columns=columns, indexes=_going(base.indexes, on_it)))
    return True


def set_not_null(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    base = _base(use, table)
    column = base.column(W)
    if not column.is_nullable:
        shown = tuple(replace(each, is_nullable=True) if each.id == W else each for each in base.columns)
        _declare(use, replace(base, columns=shown))
        return True
    tree = build.is_null(build.column(W, INT), is_negated=True).node
    return _add_check(client, use, base, to_stored(tree, "w is not null"), declared, not_null=W)


def add_check(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    base = _base(use, table)
    if base is not table:
        return False  # of a check that this very transaction has declared, nothing would be left to see
    if base.checks:
        going = tuple(replace(each, goal=Goal.ABSENT) for each in base.checks)
        _declare(use, replace(base, checks=going))
        return True
    tree = build.call("<", build.column(U, INT), build.const(2 + client.pick(4), INT)).node
    return _add_check(client, use, base, to_stored(tree, "u < ..."), declared)


def _add_check(
    client: "SchemaClient",
    use: CatalogUse,
    base: Table,
    tree: Expression,
    declared: Declared,
    *,
    not_null: int = 0,
) -> bool:
    id = base.next_constraint
    name = f"k{_number(use)}_{id}"
    check = Check(id, name, tree, ElementState.WRITE_ONLY, not_null=not_null)
    _declare(use, replace(base, checks=(*base.checks, check), next_constraint=id + 1))
    if not not_null:
        declared.elements.append((base.id, name))
    return True


def rename(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    base = _base(use, table)
    others = [name for name in TABLES if name != base.name]
    use.draft.move(base, replace(base, name=others[client.pick(len(others))]))
    return True


def move(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    """Takes a table into another schema."""
    base = _base(use, table)
    schema = client.some_schema(use)
    if schema is None or schema.id == base.schema or not _is_there(client, use, schema.id):
        return False
    use.draft.move(base, replace(base, schema=schema.id))
    return True


def drop(client: "SchemaClient", use: CatalogUse, table: Table, declared: Declared) -> bool:
    use.draft.drop(_base(use, table))
    return True


# ── of names and schemas ─────────────────────────────────────────────────────────────────────────


def create(client: "SchemaClient", use: CatalogUse, declared: Declared) -> bool:
    schema = client.some_schema(use)
    if schema is None or not _is_there(client, use, schema.id):
        return False
    id = client.process.catalog.fresh_id(use.txn)
    use.draft.create(table_of(id, 0, TABLES[client.pick(len(TABLES))], schema.id))
    return True


def create_schema(client: "SchemaClient", use: CatalogUse, declared: Declared) -> bool:
    name = SCHEMAS[1 + client.pick(len(SCHEMAS) - 1)]
    id = client.process.catalog.fresh_id(use.txn)
    use.draft.create(Schema(id, 0, ZERO_AT, name, ROOT, DescriptorState.PUBLIC, (), (), DEFAULT_DATABASE))
    return True


def drop_schema(client: "SchemaClient", use: CatalogUse, declared: Declared) -> bool:
    """RESTRICT or CASCADE; what is in it is read in the transaction, so that nothing is overlooked."""
    schema = client.some_schema(use)
    catalog = client.process.catalog
    if schema is None or schema.id == DEFAULT_SCHEMA or not _is_there(client, use, schema.id):
        return False
    inside = list(catalog.names_in(use.txn, DEFAULT_DATABASE, schema.id))
    if inside and client.maybe(0.5):
        return False
    for entry in inside:
        table = use.descriptor(entry.id)
        if not isinstance(table, Table) or table.state is not DescriptorState.PUBLIC:
            return False  # on its way out, or in, by somebody else
        if NameKey(DEFAULT_DATABASE, schema.id, entry.name) != place_of(table) or table.draining:
            return False
        use.draft.drop(table)
    use.draft.drop(schema)
    return True


def rename_schema(client: "SchemaClient", use: CatalogUse, declared: Declared) -> bool:
    schema = client.some_schema(use)
    if schema is None or schema.id == DEFAULT_SCHEMA:
        return False
    use.draft.move(schema, replace(schema, name="t" if schema.name == "s" else "s"))
    return True


def _is_there(client: "SchemaClient", use: CatalogUse, schema: int) -> bool:
    """Asked in the transaction: whoever drops it meanwhile and this one cannot both commit."""
    stored = client.process.catalog.get(use.txn, schema)
    return stored is not None and stored.state is DescriptorState.PUBLIC


OF_TABLE = {
    "add index": add_index,
    "drop index": drop_index,
    "add column": add_column,
    "drop column": drop_column,
    "set not null": set_not_null,
    "add check": add_check,
    "rename": rename,
    "move": move,
    "drop": drop,
    emptying.KIND: emptying.truncate,
}
ADDING = ("add index", "add column", "set not null", "add check")
PLAIN_KINDS = tuple(kind for kind in OF_TABLE if kind not in ("rename", "move", "drop"))
"""What leaves the name alone."""

OF_CATALOG = {
    "create": create,
    "create schema": create_schema,
    "drop schema": drop_schema,
    "rename schema": rename_schema,
}
