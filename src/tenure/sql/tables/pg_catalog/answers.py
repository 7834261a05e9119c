"""The functions about the catalog that clients call: pg_get_constraintdef(oid), pg_table_is_visible(oid), ...

Each finds its object by number, as the relations do, and is NULL if there is none.

Walk: `sql.tables.all` hands `CatalogAnswers` to the node's tables, which make one for a statement that calls
such a function.
"""

from collections.abc import Callable, Mapping, Sequence

from tenure.base.errors import UndefinedColumn, UndefinedTable
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Check,
    Contained,
    Database,
    EnumType,
    ForeignKey,
    Index,
    Table,
    View,
    visible,
)
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.expr.functions.catalog_functions import SEQUENCE_DATA
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import TYPE_OIDS, Reg
from tenure.sql.names.object_numbers import (
    CLASS_CATALOG,
    constraint_oid,
    enum_of,
    index_constraint_oid,
    not_null_oid,
    part_of,
    part_oid,
)
from tenure.sql.names.regs import INDEX_NAME, INDEX_NAMED, find
from tenure.sql.names.sequence_names import path_of
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables import table_changes
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.pg_catalog import functions, operators
from tenure.sql.tables.pg_catalog.classes import relation_id, shown_columns, shown_indexes
from tenure.sql.tables.pg_catalog.default_privileges import default_items
from tenure.sql.tables.pg_catalog.definition_text import Definitions, checks_of
from tenure.sql.tables.pg_catalog.descriptions import comments_of
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader
from tenure.sql.tables.pg_catalog.sequences import sequence_data
from tenure.sql.tables.pg_catalog.shapes import shapes
from tenure.sql.tables.pg_catalog.signals import SIGNALS, send
from tenure.sql.text.quoting import quoted


class _Catalog(CatalogReader):
    """One statement's look at the catalog."""

    def __init__(self, reader: TableReader) -> None:
        super().__init__(reader)
        self.definitions = Definitions(self)
        self._role_names: dict[int, str] | None = None

    @property
    def role_names(self) -> dict[int, str]:
        if self._role_names is None:
            self._role_names = {role.id: role.name for role in self.roles}
        return self._role_names

    def object(self, oid: int) -> AnyDescriptor | None:
        """An object, or the table that a part belongs to."""
        return self.objects.by_id.get(relation_id(oid))

    def index(self, oid: int) -> tuple[Table, Index] | None:
        part = part_of(oid)
        table = None if part is None else self.objects.by_id.get(part.table)
        if part is not None and isinstance(table, Table):
            for index in shown_indexes(table):
                if index.id == part.number:
                    return table, index
        return None


class CatalogAnswers:
    """Answers by name, for one statement."""

    def __init__(self, node: NodeView, reader: TableReader) -> None:
        self._node = node
        self._catalog = _Catalog(reader)

    def __call__(self, name: str, arguments: tuple[Datum, ...]) -> Datum:
        if name in SIGNALS:
            return send(self._node, self._catalog.reader, SIGNALS[name], arguments[0])
        if name == SEQUENCE_DATA:
            return sequence_data(self._node, self._catalog, arguments[0])
        if name in OF_FUNCTIONS:
            return OF_FUNCTIONS[name](*arguments)
        if name in REG_FINDERS:
            return REG_FINDERS[name](arguments[0], self._type_oid)
        if name == table_changes.NAME:
            return table_changes.table_changes(self._node, self._catalog.reader, *arguments)
        return ANSWERS[name](self._catalog, *arguments)

    def _type_oid(self, name: str) -> int:
        reader = self._catalog.reader
        return find(reader.session, reader.block, "regtype", name).oid


def _user_name(catalog: _Catalog, oid: int) -> str:
    return catalog.role_names.get(oid, f"unknown (OID={oid})")


def _index_named(catalog: _Catalog, path: Sequence[str]) -> int | None:
    """The oid of an index, for regclass."""
    *schema, name = path
    found = {
        table.schema: part_oid(table.id, index.id)
        for table in catalog.objects.by_id.named(name)
        if isinstance(table, Table) and table.database == catalog.database
        for index in shown_indexes(table)
        if index.name == name
    }
    if not schema:
        return next((found[id] for id in catalog.definitions.path() if id in found), None)
    names = {id: _name(catalog, id) for id in found}
    return next((found[id] for id, each in names.items() if each == schema[-1]), None)


def _name(catalog: CatalogReader, id: int) -> str:
    found = catalog.objects.by_id.get(id)
    return "" if found is None else found.name


def _index_name(catalog: _Catalog, oid: int) -> str | None:
    """As regclass shows it."""
    found = catalog.index(oid)
    if found is None:
        return None
    table, index = found
    name = quoted(index.name)
    is_visible = catalog.definitions.is_index_visible(table, index)
    return name if is_visible else f"{quoted(catalog.objects.schema_of(table))}.{name}"


# ── visibility ─────────────────────────────────────────────────────────────────────────────────


def _is_table_visible(catalog: _Catalog, oid: int) -> bool | None:
    found = catalog.index(oid)
    if found is not None:
        return catalog.definitions.is_index_visible(*found)
    each = catalog.objects.by_id.get(oid)
    if isinstance(each, Table | View | Sequence_):
        return catalog.definitions.is_visible(each)
    system = catalog.reader.session.system_tables.name_of(oid)
    if system is None:
        return None
    schema, _, _ = system.rpartition(".")
    return not schema or schema in catalog.reader.session.path.names()


def _is_type_visible(catalog: _Catalog, oid: int) -> bool | None:
    if any(oid in oids for oids in TYPE_OIDS.values()):
        return True
    each = catalog.objects.by_id.get(enum_of(oid))
    return catalog.definitions.is_visible(each) if isinstance(each, EnumType) else None


def _is_system_visible(catalog: _Catalog, oid: int) -> bool:
    """Functions, operators and collations are all in pg_catalog."""
    return True


def _default_acl(catalog: _Catalog, kind: str, owner: int) -> tuple[str, ...]:
    return default_items(kind, catalog.role_names.get(owner, str(owner)))


def _my_temp_schema(catalog: _Catalog) -> int:
    return catalog.reader.session.temporary.schema_id or 0


def _is_publishable(catalog: _Catalog, relation: Reg) -> bool | None:
    each = catalog.objects.by_id.get(relation.oid)
    return None if each is None else isinstance(each, Table)


# ── definitions ────────────────────────────────────────────────────────────────────────────────


def _view_definition(catalog: _Catalog, sought: int | str, *style: object) -> str | None:
    each = catalog.object(sought) if isinstance(sought, int) else _relation_named(catalog, sought)
    return catalog.definitions.view(each) if isinstance(each, View) else None


def _constraint_definition(catalog: _Catalog, oid: int, is_pretty: bool = False) -> str | None:
    table = catalog.object(oid)
    if not isinstance(table, Table):
        return None
    for index in shown_indexes(table):
        if index_constraint_oid(table.id, index.id) == oid:
            return catalog.definitions.constraint(table, index)
    constraints: list[Check | ForeignKey] = [*checks_of(table), *visible(table.foreign_keys)]
    for each in constraints:
        if constraint_oid(table.id, each.id) == oid:
            return catalog.definitions.constraint(table, each, is_pretty=is_pretty)
    for column in shown_columns(table):
        if not_null_oid(table.id, column.id) == oid:
            return f"NOT NULL {quoted(column.name)}"
    return None


def _index_definition(catalog: _Catalog, oid: int, column: int = 0, is_pretty: bool = False) -> str | None:
    found = catalog.index(oid)
    if found is None:
        return None
    table, index = found
    if not column:
        return catalog.definitions.index(table, index, is_pretty=is_pretty)
    if not 1 <= column <= len(index.parts):
        return ""
    return quoted(table.column(index.parts[column - 1].column).name)


def _serial_sequence(catalog: _Catalog, table_name: str, column_name: str) -> str | None:
    table = _relation_named(catalog, table_name)
    if not isinstance(table, Table):
        raise UndefinedTable(f'relation "{table_name}" does not exist')
    column = table.column_named(column_name)
    if column is None:
        raise UndefinedColumn(f'column "{column_name}" of relation "{table.name}" does not exist')
    for id in table.sequences:
        sequence = catalog.objects.by_id.get(id)
        owner = sequence.owned_by if isinstance(sequence, Sequence_) else None
        if isinstance(sequence, Sequence_) and owner is not None and owner.column == column.id:
            return catalog.definitions.qualified(sequence)
    return None


def _relation_named(catalog: _Catalog, name: str) -> AnyDescriptor | None:
    *schema, plain = path_of(name)
    found = [
        each
        for each in catalog.objects.by_id.named(plain)
        if isinstance(each, Contained) and each.name == plain and each.database == catalog.database
    ]
    if schema:
        return next((each for each in found if catalog.objects.schema_of(each) == schema[-1]), None)
    by_schema = {each.schema: each for each in found}
    return next((by_schema[each] for each in catalog.definitions.path() if each in by_schema), None)


# ── comments ───────────────────────────────────────────────────────────────────────────────────


def _description(catalog: _Catalog, oid: int, catalog_name: str = "") -> str | None:
    wanted = shapes()[catalog_name].oid if catalog_name in shapes() else 0
    for id in {relation_id(oid), enum_of(oid), oid}:
        each = catalog.objects.by_id.get(id)
        for number, of, column, text in () if each is None else comments_of(each):
            if number == oid and not column and wanted in (0, of) and text:
                return text
    return None


def _column_description(catalog: _Catalog, oid: int, number: int) -> str | None:
    each = catalog.objects.by_id.get(oid)
    for of, of_catalog, column, text in () if each is None else comments_of(each):
        if (of, of_catalog, column) == (oid, CLASS_CATALOG, number) and number and text:
            return text
    return None


def _shared_description(catalog: _Catalog, oid: int, catalog_name: str) -> str | None:
    each = catalog.objects.by_id.get(oid)
    if not isinstance(each, Database) or catalog_name != "pg_database":
        return None
    return each.comment or None


OF_FUNCTIONS: Mapping[str, Callable[[int], Datum]] = {
    "pg_get_function_arguments": functions.function_arguments,
    "pg_get_function_identity_arguments": functions.function_identity,
    "pg_get_function_result": functions.function_result,
    "pg_get_functiondef": functions.function_definition,
}
REG_FINDERS: Mapping[str, Callable[[Datum, functions.TypeOid], Reg | None]] = {
    "regproc": functions.procedure_named,
    "regprocedure": functions.procedure_with_types,
    "regoperator": operators.operator_with_types,
}
ANSWERS: Mapping[str, Callable[..., Datum]] = {
    INDEX_NAMED: _index_named,
    INDEX_NAME: _index_name,
    "pg_get_userbyid": _user_name,
    "obj_description": _description,
    "shobj_description": _shared_description,
    "col_description": _column_description,
    "pg_get_viewdef": _view_definition,
    "pg_get_constraintdef": _constraint_definition,
    "pg_get_indexdef": _index_definition,
    "pg_get_serial_sequence": _serial_sequence,
    "pg_relation_is_publishable": _is_publishable,
    "pg_my_temp_schema": _my_temp_schema,
    "acldefault": _default_acl,
    "pg_table_is_visible": _is_table_visible,
    "pg_type_is_visible": _is_type_visible,
    **{
        f"pg_{kind}_is_visible": _is_system_visible
        for kind in (
            *("function", "operator", "opclass", "opfamily", "collation", "conversion", "statistics_obj"),
            *("ts_config", "ts_dict", "ts_parser", "ts_template"),
        )
    },
}
