"""CREATE TABLE: columns, keys, checks, foreign keys and defaults, as one new descriptor.

    CREATE TABLE t (id serial PRIMARY KEY, email text UNIQUE, team int REFERENCES teams)

Constraints without a name get PostgreSQL's: t_pkey, t_email_key, t_team_fkey, t_check. A serial or
identity column gets a sequence that goes with it.

Walk: `statements.ddl.ddl_statements` -> `create_table` -> `catalog.changes.object_changes.create_table`, then
`catalog.changes.table_changes.alter` for each constraint.
"""

from collections.abc import Sequence

from tenure.base.errors import DuplicateColumn, InvalidTable, NotSupported, UndefinedColumn
from tenure.catalog.changes.column_changes import SetNotNull
from tenure.catalog.changes.object_changes import create_table as create
from tenure.catalog.changes.sequence_changes import set_owned_by
from tenure.catalog.changes.table_changes import alter
from tenure.catalog.changes.table_parts import NamedKeyColumn
from tenure.catalog.changes.table_parts import column_of as named_column
from tenure.catalog.descriptors.definitions import Expression, OwnedBy, Schema, Table
from tenure.catalog.descriptors.drafts import OnCommit
from tenure.expr.tree import build
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.statements.ddl.naming import index_name, require_free
from tenure.sql.statements.ddl.repeated_keys import Declared, merged
from tenure.sql.statements.ddl.tables.column_definitions import (
    NOT_DEFERRED,
    NewColumn,
    addition,
    column_of,
    make_sequence,
)
from tenure.sql.statements.ddl.tables.constraint_definitions import add_constraint
from tenure.sql.statements.ddl.tables.create_table_like import CopiedParts, copied
from tenure.sql.text.parse import Tree, items, kind, names, option


def create_table(definer: Definer, tree: Tree) -> str | None:
    relation = tree.relation
    _refuse(tree)
    schema = definer.schema_for(path_of(relation)[:-1], is_temporary=relation.relpersistence == "t")
    on_commit = on_commit_of(definer, schema, option(tree, "oncommit"))
    if not tree.if_not_exists:
        _require_one_key(tree)
    if skips(definer, schema, relation.relname, if_not_exists=tree.if_not_exists):
        return None
    if tree.options or tree.tablespacename or tree.access_method:
        definer.notice("storage parameters have no effect")
    columns: list[NewColumn] = []
    constraints: list[Tree] = []
    likes: list[CopiedParts] = []
    for each in items(tree.table_elts):
        match kind(each):
            case "ColumnDef":
                columns.append(column_of(definer, relation.relname, each))
            case "Constraint":
                constraints.append(each)
            case "TableLikeClause":
                likes.append(copied(definer, each))
                columns += likes[-1].columns
    constraints += items(tree.constraints)
    table = make_table(definer, schema, relation.relname, columns, constraints, likes)
    for like in likes:
        like.finish(definer, schema, table.id)
    if on_commit is not None:
        definer.draft.on_commit[table.id] = on_commit
    return None


ON_COMMIT = {"ONCOMMIT_DELETE_ROWS": OnCommit.DELETE_ROWS, "ONCOMMIT_DROP": OnCommit.DROP}


def on_commit_of(definer: Definer, schema: Schema, clause: str) -> OnCommit | None:
    """What ON COMMIT says of a new table; None if its rows stay."""
    is_given = clause not in ("ONCOMMIT_NOOP", "ON_COMMIT_ACTION_UNDEFINED", "")
    if is_given and not definer.is_temporary_schema(schema):
        raise InvalidTable("ON COMMIT can only be used on temporary tables")
    return ON_COMMIT.get(clause)


def skips(definer: Definer, schema: Schema, name: str, *, if_not_exists: bool) -> bool:
    """Whether IF NOT EXISTS leaves nothing to do. Raises DuplicateRelation (42P07) without it."""
    if if_not_exists and definer.is_taken(schema, name):
        definer.notice(f'relation "{name}" already exists, skipping', "42P07")
        return True
    require_free(definer, schema, name)
    return False


def _refuse(tree: Tree) -> None:
    if tree.inh_relations or tree.HasField("partspec") or tree.HasField("partbound"):
        raise NotSupported("inheritance and partitions are not supported")
    if tree.HasField("of_typename"):
        raise NotSupported("CREATE TABLE ... OF is not supported")


def make_table(
    definer: Definer,
    schema: Schema,
    name: str,
    columns: Sequence[NewColumn],
    constraints: Sequence[Tree],
    likes: Sequence[CopiedParts] = (),
) -> Table:
    """Makes a table with all that belongs to it."""
    _require_distinct(columns)
    key, key_name = _primary_key(name, columns, constraints, likes)
    key_name, declared = merged(key, key_name, _declared(columns, constraints))
    if key and key_name:
        require_free(definer, schema, key_name)
    id = definer.fresh_id()
    sequences = {
        each.name: make_sequence(definer, schema, name, each.name, each.sequence, definer.owner)
        for each in columns
        if each.sequence
    }
    plain_columns = [
        (at, each.name, each.type) for at, each in enumerate(columns, 1) if each.generated is None
    ]
    table = create(
        definer.draft,
        definer.use,
        id=id,
        schema=schema.id,
        name=name,
        owner=definer.owner,
        columns=[addition(definer, each, plain_columns, sequences.get(each.name)) for each in columns],
        row_id=row_id_default(definer),
        key=key,
        is_key_deferrable=_is_key_deferrable(definer, columns, constraints, likes),
        key_name=key_name or index_name(definer, schema, name, (), "pkey", ()),
    )
    for column, sequence in sequences.items():
        set_owned_by(definer.draft, definer.use, sequence, OwnedBy(id, named_column(table, column).id))
    for each in declared:
        _add_constraint(definer, schema, id, each)
    return definer.declared(id)


def _declared(columns: Sequence[NewColumn], constraints: Sequence[Tree]) -> list[Declared]:
    """All constraints but the primary key."""
    found = [Declared(tree, (column.name,)) for column in columns for tree in column.constraints]
    found += [Declared(tree) for tree in constraints]
    return [each._replace(tree=_validated(each.tree)) for each in found if not _is_primary(each.tree)]


def _validated(tree: Tree) -> Tree:
    """Drops NOT VALID, which has no meaning for a table without rows."""
    if not tree.skip_validation:
        return tree
    constraint = type(tree)()
    constraint.CopyFrom(tree)
    constraint.skip_validation = False
    return constraint


def _add_constraint(definer: Definer, schema: Schema, id: int, declared: Declared) -> None:
    tree, beside = declared
    if option(tree, "contype") == "CONSTR_NOTNULL" and not beside:
        alter(definer.draft, definer.use, id, SetNotNull(names(tree.keys)[0]))
    else:
        add_constraint(definer, schema, id, tree, beside)


def row_id_default(definer: Definer) -> Expression:
    """The hidden column that numbers the rows of a table without a primary key."""
    return definer.stored(build.call("unique_rowid").node, {})


def _require_distinct(columns: Sequence[NewColumn]) -> None:
    names_before: set[str] = set()
    for each in columns:
        if each.name in names_before:
            raise DuplicateColumn(f'column "{each.name}" specified more than once')
        names_before.add(each.name)


def _require_one_key(tree: Tree) -> None:
    """Refuses two primary keys before anything else is looked up, as PostgreSQL does."""
    elements = items(tree.table_elts)
    beside = [
        each for column in elements if kind(column) == "ColumnDef" for each in items(column.constraints)
    ]
    others = [each for each in elements if kind(each) == "Constraint"]
    if sum(map(_is_primary, [*beside, *others])) > 1:
        raise _several_keys(tree.relation.relname)


def _several_keys(table: str) -> InvalidTable:
    return InvalidTable(f'multiple primary keys for table "{table}" are not allowed')


def _is_primary(constraint: Tree) -> bool:
    return option(constraint, "contype") == "CONSTR_PRIMARY"


def _is_key_deferrable(
    definer: Definer, columns: Sequence[NewColumn], constraints: Sequence[Tree], likes: Sequence[CopiedParts]
) -> bool:
    trees = [*(each for column in columns for each in column.constraints), *constraints]
    declared = [each for each in trees if _is_primary(each)]
    if any(each.initdeferred for each in declared):
        definer.notice(NOT_DEFERRED)
    return any(each.deferrable for each in declared) or any(like.has_deferrable_key for like in likes)


def _primary_key(
    table: str, columns: Sequence[NewColumn], constraints: Sequence[Tree], likes: Sequence[CopiedParts]
) -> tuple[tuple[NamedKeyColumn, ...], str]:
    found: list[tuple[tuple[str, ...], str]] = [
        ((column.name,), each.conname)
        for column in columns
        for each in column.constraints
        if _is_primary(each)
    ]
    found += [(tuple(names(each.keys)), each.conname) for each in constraints if _is_primary(each)]
    found += [(like.key, "") for like in likes if like.key]
    if len(found) > 1:
        raise _several_keys(table)
    if not found:
        return (), ""
    key, name = found[0]
    there = {each.name for each in columns}
    for each in key:
        if each not in there:
            raise UndefinedColumn(f'column "{each}" named in key does not exist')
    return tuple(map(NamedKeyColumn, key)), name
