"""CREATE TABLE ... (LIKE other INCLUDING ...): the definitions copied from another table.

Names, types and NOT NULL always; the rest as INCLUDING says. Nothing connects the two afterwards. Indexes
get new names, checks keep theirs, and foreign keys are not copied, as in PostgreSQL.

Walk: `statements.ddl.tables.create_table` -> `copied`, and `CopiedParts.finish` once the table is there.
"""

from dataclasses import dataclass

from tenure.base.errors import WrongObjectType
from tenure.catalog.accounts.privileges import SELECT
from tenure.catalog.changes.column_changes import SetColumnComment
from tenure.catalog.changes.constraint_changes import AddCheck
from tenure.catalog.changes.index_changes import AddIndex
from tenure.catalog.changes.sequence_changes import SequenceOptions
from tenure.catalog.changes.table_changes import alter, owned_sequences
from tenure.catalog.changes.table_parts import NamedKeyColumn
from tenure.catalog.descriptors.definitions import Column, Expression, Index, Schema, Table, View, visible
from tenure.catalog.descriptors.elements import finished
from tenure.expr.tree.expressions import ColumnRef, Node, decode, to_stored
from tenure.expr.tree.rewrite import rewrite
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.statements.ddl.naming import index_name, names_in
from tenure.sql.statements.ddl.tables.column_definitions import NewColumn
from tenure.sql.text.parse import Tree, expression

COMMENTS, CONSTRAINTS, DEFAULTS, GENERATED, IDENTITY, INDEXES = (1 << bit for bit in (0, 2, 3, 4, 5, 6))
"""PostgreSQL's CREATE_TABLE_LIKE_*."""


@dataclass(frozen=True)
class CopiedParts:
    source: Table | None
    """None for a view, which has nothing but columns."""
    options: int
    columns: list[NewColumn]
    key: tuple[str, ...]

    @property
    def has_deferrable_key(self) -> bool:
        source = self.source
        return bool(self.key) and source is not None and source.index(source.primary).is_deferrable

    def finish(self, definer: Definer, schema: Schema, id: int) -> None:
        """Adds what refers to the new table's columns."""
        source = self.source
        if source is None:
            return
        table = definer.declared(id)
        here = {each.name: each.id for each in visible(table.columns)}
        ids = {each.id: here[each.name] for each in _columns(source)}
        if self.options & CONSTRAINTS:
            for check in visible(source.checks):
                if not check.not_null:
                    copy = AddCheck(check.name, _moved(check.expression, ids))
                    alter(definer.draft, definer.use, id, copy)
        if self.options & INDEXES:
            for index in visible(source.indexes):
                if index.id != source.primary:
                    _add_index(definer, schema, id, source, index, ids)
        if self.options & COMMENTS:
            for column in _columns(source):
                if column.comment:
                    alter(definer.draft, definer.use, id, SetColumnComment(column.name, column.comment))


def _add_index(
    definer: Definer, schema: Schema, id: int, source: Table, index: Index, ids: dict[int, int]
) -> None:
    key_columns = tuple(
        NamedKeyColumn(source.column(each.column).name, each.is_descending) for each in index.parts
    )
    table = definer.declared(id)
    label = "key" if index.is_constraint else "idx"
    name = index_name(
        definer, schema, table.name, [each.column for each in key_columns], label, names_in(table)
    )
    predicate = None if index.predicate is None else _moved(index.predicate, ids)
    copy = AddIndex(
        *(name, key_columns, index.is_unique, predicate),
        is_constraint=index.is_constraint,
        is_deferrable=index.is_deferrable,
    )
    alter(definer.draft, definer.use, id, copy)


def copied(definer: Definer, tree: Tree) -> CopiedParts:
    relation = definer.relation(path_of(tree.relation), tree.relation.location + 1)
    if not definer.names.is_temporary(relation):
        definer.rights.require(relation, SELECT)
    if isinstance(relation, View):
        return CopiedParts(None, 0, [NewColumn(each.name, each.type) for each in relation.columns], ())
    if not isinstance(relation, Table):
        raise WrongObjectType(f'relation "{relation.name}" is invalid in LIKE clause')
    # Nothing connects the two: the block's own changes of the source count as done.
    source = finished(relation)
    assert isinstance(source, Table), "a table that is changed stays one"
    options = tree.options
    columns = [_column(definer, source, each, options) for each in _columns(source)]
    primary = source.index(source.primary)
    has_key = options & INDEXES and primary.is_constraint
    key = tuple(source.column(part.column).name for part in primary.parts) if has_key else ()
    return CopiedParts(source, options, columns, key)


def _column(definer: Definer, table: Table, column: Column, options: int) -> NewColumn:
    new = NewColumn(column.name, column.type, column.is_nullable)
    if column.identity and options & IDENTITY:
        new.identity = column.identity
        new.sequence = _options_like(definer, table, column)
    elif column.generated is not None and options & GENERATED:
        new.generated = expression(definer.text_of(column.generated, table))
    elif column.generated is None and not column.identity and options & DEFAULTS:
        new.default = column.default
    return new


def _options_like(definer: Definer, table: Table, column: Column) -> SequenceOptions:
    for sequence in owned_sequences(definer.draft, definer.use, table, column.id):
        return SequenceOptions(
            sequence.value_type,
            sequence.start,
            sequence.increment,
            sequence.minimum,
            sequence.maximum,
            sequence.cache,
            sequence.is_cycle,
        )
    return SequenceOptions(type=column.type)


def _columns(table: Table) -> list[Column]:
    return [each for each in visible(table.columns) if not each.is_hidden]


def _moved(stored: Expression, ids: dict[int, int]) -> Expression:
    def by_id(node: Node) -> Node | None:
        return ColumnRef(ids[node.column]) if isinstance(node, ColumnRef) else None

    return to_stored(rewrite(decode(stored.tree), by_id), stored.text)
