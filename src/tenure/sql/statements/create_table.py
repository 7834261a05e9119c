"""CREATE TABLE: columns, keys, constraints, serial and identity columns.

    CREATE TABLE t (id serial PRIMARY KEY, email text UNIQUE, team int REFERENCES teams)

Constraints are declared after the columns; what has no name gets PostgreSQL's: t_pkey, t_email_key,
t_team_fkey, t_check. A serial or identity column gets a sequence that goes with it.

Walk: `sql.planning` -> `create_table` -> `catalog.object_changes.create_table`, then `catalog.changes.alter`
for each constraint; `statements.alter_table` uses the same pieces.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tenure.base.errors import UserError
from tenure.catalog.changes import alter
from tenure.catalog.column_changes import AddColumn
from tenure.catalog.constraint_changes import AddCheck, AddForeignKey, target_key
from tenure.catalog.descriptors import Action, Expression, OwnedBy, Schema, Table, TypeRef
from tenure.catalog.index_changes import AddIndex
from tenure.catalog.object_changes import create_table as create
from tenure.catalog.parts import Change, Part
from tenure.catalog.sequence_changes import SequenceOptions, create_sequence, set_owned_by
from tenure.expr import build
from tenure.expr.errors import NotSupported, UndefinedColumn
from tenure.expr.sequence_functions import NEXT
from tenure.expr.types import type_of
from tenure.sql.parse import SyntaxFault, Tree, child, items, kind, names, option
from tenure.sql.statements.definitions import Definer, UndefinedTable, columns_of, cut

INT8 = type_of(TypeRef("int8"))
SERIALS = {
    "smallserial": "int2",
    "serial2": "int2",
    "serial": "int4",
    "serial4": "int4",
    "bigserial": "int8",
    "serial8": "int8",
}
ACTIONS = {
    "a": Action.NO_ACTION,
    "r": Action.RESTRICT,
    "c": Action.CASCADE,
    "n": Action.SET_NULL,
    "d": Action.SET_DEFAULT,
}


class DuplicateTable(UserError):
    sqlstate = "42P07"


class InvalidTable(UserError):
    sqlstate = "42P16"


@dataclass
class NewColumn:
    """A column as a statement describes it."""

    name: str
    type: TypeRef
    is_nullable: bool = True
    default: Expression | None = None
    identity: str = ""
    generated: Tree | None = None
    sequence: SequenceOptions | None = None
    """Of a serial or identity column: what the sequence is like."""
    constraints: list[Tree] = field(default_factory=list)
    """PRIMARY KEY, UNIQUE, CHECK and REFERENCES that stand beside it."""


def create_table(definer: Definer, tree: Tree) -> str | None:
    relation = tree.relation
    _refuse(tree)
    schema = definer.schema_for([each for each in (relation.catalogname, relation.schemaname) if each])
    if definer.is_taken(schema, relation.relname):
        if tree.if_not_exists:
            definer.notice(f'relation "{relation.relname}" already exists, skipping', "42P07")
            return None
        raise DuplicateTable(f'relation "{relation.relname}" already exists')
    if tree.options or tree.tablespacename:
        definer.notice("storage parameters have no effect")
    elements = items(tree.table_elts)
    columns = [column_of(definer, relation.relname, each) for each in elements if kind(each) == "ColumnDef"]
    constraints = [each for each in elements if kind(each) == "Constraint"]
    constraints += items(tree.constraints)
    if any(kind(each) == "TableLikeClause" for each in elements):
        raise NotSupported("CREATE TABLE ... LIKE is not supported")
    make(definer, schema, relation.relname, columns, constraints)
    return None


def _refuse(tree: Tree) -> None:
    if tree.relation.relpersistence == "t":
        raise NotSupported("temporary tables are not supported")
    if tree.inh_relations or tree.HasField("partspec") or tree.HasField("partbound"):
        raise NotSupported("inheritance and partitions are not supported")
    if tree.HasField("of_typename"):
        raise NotSupported("CREATE TABLE ... OF is not supported")


def make(
    definer: Definer, schema: Schema, name: str, columns: Sequence[NewColumn], constraints: Sequence[Tree]
) -> Table:
    """Makes a table with all that belongs to it."""
    key, key_name = _primary_key(name, columns, constraints)
    id = definer.fresh_id()
    sequences = {each.name: _sequence(definer, schema, name, each) for each in columns if each.sequence}
    row_id = definer.stored(build.call("unique_rowid").node, {})
    adds = [
        AddColumn(
            each.name,
            each.type,
            each.is_nullable and each.name not in {part.column for part in key},
            _next_of(definer, sequences[each.name], each) if each.name in sequences else each.default,
            identity=each.identity,
            generated=_generated(definer, columns, each),
        )
        for each in columns
    ]
    table = create(
        definer.draft,
        definer.known,
        id=id,
        schema=schema.id,
        name=name,
        owner=definer.owner,
        columns=adds,
        row_id=row_id,
        key=key,
        key_name=key_name,
    )
    for column, sequence in sequences.items():
        owned = table.column_named(column) or _declared(table, column)
        set_owned_by(definer.draft, definer.known, sequence, OwnedBy(id, owned.id))
    for each in columns:
        for constraint in each.constraints:
            add_constraint(definer, schema, id, constraint, (each.name,))
    for constraint in constraints:
        add_constraint(definer, schema, id, constraint)
    return definer.draft.declared[id]  # type: ignore[return-value]


def _declared(table: Table, name: str):  # type: ignore[no-untyped-def]
    return next(each for each in table.columns if each.name == name)


# Columns


def column_of(definer: Definer, table: str, tree: Tree) -> NewColumn:
    """Reads a ColumnDef."""
    column = _typed(definer, tree)
    for each in items(tree.constraints):
        match option(each, "contype"):
            case "CONSTR_NULL":
                pass
            case "CONSTR_NOTNULL":
                column.is_nullable = False
            case "CONSTR_DEFAULT":
                if column.default is not None or column.sequence is not None:
                    raise SyntaxFault(
                        f'multiple default values specified for column "{column.name}" of table "{table}"'
                    )
                column.default = definer.default(child(each, "raw_expr"), column.name, column.type)
            case "CONSTR_IDENTITY":
                column.identity = "always" if each.generated_when == "a" else "by default"
                column.is_nullable = False
                column.sequence = sequence_options(definer, each.options, column.type)
            case "CONSTR_GENERATED":
                column.generated = child(each, "raw_expr")
            case "CONSTR_ATTR_DEFERRABLE" | "CONSTR_ATTR_DEFERRED":
                raise NotSupported("deferrable constraints are not supported")
            case "CONSTR_ATTR_NOT_DEFERRABLE" | "CONSTR_ATTR_IMMEDIATE":
                pass
            case _:
                column.constraints.append(each)
    if tree.HasField("coll_clause"):
        _check_collation(names(tree.coll_clause.collname))
    return column


def _check_collation(name: list[str]) -> None:
    if name[-1] not in ("C", "POSIX", "default", "ucs_basic"):
        raise NotSupported(
            f'collation "{name[-1]}" is not supported', hint='Text is ordered as by COLLATE "C".'
        )


def _typed(definer: Definer, tree: Tree) -> NewColumn:
    name = names(tree.type_name.names)
    serial = SERIALS.get(name[-1]) if len(name) == 1 else None
    if serial is None:
        return NewColumn(tree.colname, definer.type_ref(tree.type_name), not tree.is_not_null)
    if tree.type_name.array_bounds:
        raise NotSupported("array of serial is not implemented")
    ref = TypeRef(serial)
    return NewColumn(tree.colname, ref, is_nullable=False, sequence=SequenceOptions(type=ref))


def sequence_options(definer: Definer, nodes: Sequence[Tree], ref: TypeRef | None = None) -> SequenceOptions:
    """START, INCREMENT, MINVALUE, MAXVALUE, CACHE, CYCLE, AS."""
    found: dict[str, object] = {"type": ref}
    for each in items(nodes):
        value = child(each, "arg")
        match each.defname:
            case "start":
                found["start"] = whole(value)
            case "increment":
                found["increment"] = whole(value)
            case "minvalue":
                found["minimum" if value is not None else "has_no_minimum"] = (
                    whole(value) if value is not None else True
                )
            case "maxvalue":
                found["maximum" if value is not None else "has_no_maximum"] = (
                    whole(value) if value is not None else True
                )
            case "cache":
                found["cache"] = whole(value)
            case "cycle":
                found["is_cycle"] = bool(value.boolval) if kind(value) == "Boolean" else True
            case "as":
                found["type"] = definer.type_ref(value)
            case "owned_by" | "sequence_name" | "restart" | "logged":
                pass
            case other:
                raise NotSupported(f"sequence option {other} is not supported")
    return SequenceOptions(**found)  # type: ignore[arg-type]


def whole(value: Tree) -> int:
    """A number, which PostgreSQL's grammar gives as Integer or, if it is large, as Float."""
    if kind(value) == "A_Const":
        value = getattr(value, value.WhichOneof("val"))
    return int(value.ival) if kind(value) == "Integer" else int(value.fval)


def _sequence(definer: Definer, schema: Schema, table: str, column: NewColumn) -> int:
    id = definer.fresh_id()
    assert column.sequence is not None
    create_sequence(
        definer.draft,
        definer.known,
        id=id,
        schema=schema.id,
        name=definer.free_name(schema, table, column.name, "seq"),
        owner=definer.owner,
        options=column.sequence,
    )
    return id


def _next_of(definer: Definer, sequence: int, column: NewColumn) -> Expression:
    """The default of a serial column: the sequence's next value."""
    value = build.call(NEXT, build.const(sequence, INT8))
    return definer.stored(build.assign(value, definer.type_of(column.type)).node, {})


def _generated(definer: Definer, columns: Sequence[NewColumn], column: NewColumn) -> Expression | None:
    if column.generated is None:
        return None
    known = [(at, each.name, each.type) for at, each in enumerate(columns, 1) if each.generated is None]
    typed = definer.over_table(column.generated, known, "GENERATED")
    return definer.generated(typed, column.type, {id: name for id, name, _ in known})


# Constraints


def _primary_key(
    table: str, columns: Sequence[NewColumn], constraints: Sequence[Tree]
) -> tuple[tuple[Part, ...], str]:
    found: list[tuple[tuple[str, ...], str]] = []
    for column in columns:
        for each in column.constraints:
            if option(each, "contype") == "CONSTR_PRIMARY":
                found.append(((column.name,), each.conname))
    for each in constraints:
        if option(each, "contype") == "CONSTR_PRIMARY":
            found.append((tuple(names(each.keys)), each.conname))
    if len(found) > 1:
        raise InvalidTable(f'multiple primary keys for table "{table}" are not allowed')
    if not found:
        return (), ""
    key, name = found[0]
    there = {each.name for each in columns}
    for each in key:
        if each not in there:
            raise UndefinedColumn(f'column "{each}" named in key does not exist')
    return tuple(Part(each) for each in key), name or cut(f"{table}", "_pkey")


def add_constraint(
    definer: Definer, schema: Schema, table: int, tree: Tree, columns: tuple[str, ...] = ()
) -> None:
    """Declares one constraint of a table that is there; PRIMARY KEY of a new table is there already."""
    for change in changes_of(definer, schema, table, tree, columns):
        alter(definer.draft, definer.known, table, change)


def changes_of(
    definer: Definer, schema: Schema, id: int, tree: Tree, columns: tuple[str, ...]
) -> Iterator[Change]:
    table = definer.draft.declared.get(id) or definer.known.descriptor(id)
    assert isinstance(table, Table)
    if tree.deferrable or tree.initdeferred:
        raise NotSupported("deferrable constraints are not supported")
    match option(tree, "contype"):
        case "CONSTR_PRIMARY" | "CONSTR_NULL":
            return
        case "CONSTR_UNIQUE":
            if tree.nulls_not_distinct:
                raise NotSupported("NULLS NOT DISTINCT is not supported")
            keys = columns or tuple(names(tree.keys))
            name = tree.conname or definer.constraint_name(schema, table, *keys, "key")
            yield AddIndex(name, tuple(map(Part, keys)), is_unique=True, is_constraint=True)
        case "CONSTR_CHECK":
            expression = definer.condition(child(tree, "raw_expr"), columns_known(table), "CHECK")
            name = tree.conname or definer.constraint_name(
                schema, table, *check_columns(table, expression), "check"
            )
            yield AddCheck(name, expression, is_validated=not tree.skip_validation)
        case "CONSTR_FOREIGN":
            yield foreign_key(definer, schema, table, tree, columns)
        case other:
            raise NotSupported(f"{other.removeprefix('CONSTR_')} constraints are not supported")


def columns_known(table: Table) -> list[tuple[int, str, TypeRef]]:
    """All columns of a table as it is declared: those of a new one are on their way still."""
    return columns_of(table) or [
        (each.id, each.name, each.type) for each in table.columns if not each.is_hidden
    ]


def check_columns(table: Table, expression: Expression) -> tuple[str, ...]:
    """A CHECK over one column is named by it."""
    read = [each.name for each in table.columns if each.id in expression.columns]
    return tuple(read) if len(read) == 1 else ()


def foreign_key(
    definer: Definer, schema: Schema, table: Table, tree: Tree, columns: tuple[str, ...]
) -> AddForeignKey:
    keys = columns or tuple(names(tree.fk_attrs))
    path = [
        each for each in (tree.pktable.catalogname, tree.pktable.schemaname, tree.pktable.relname) if each
    ]
    target = table if path == [table.name] else definer.object(path)
    if not isinstance(target, Table):
        raise UndefinedTable(f'relation "{".".join(path)}" does not exist')
    if tree.fk_matchtype == "f":
        raise NotSupported("MATCH FULL is not supported")
    if tree.fk_del_set_cols:
        raise NotSupported("ON DELETE SET of some columns is not supported")
    declared = definer.draft.declared.get(target.id)
    target = declared if isinstance(declared, Table) else target
    return AddForeignKey(
        tree.conname or definer.constraint_name(schema, table, *keys, "fkey"),
        keys,
        target.id,
        target_key(target, tuple(names(tree.pk_attrs))),
        ACTIONS[tree.fk_del_action or "a"],
        ACTIONS[tree.fk_upd_action or "a"],
        is_validated=not tree.skip_validation,
    )
