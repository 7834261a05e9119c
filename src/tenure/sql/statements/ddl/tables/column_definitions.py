"""Columns as CREATE TABLE and ADD COLUMN describe them.

A serial or identity column gets a sequence of its own, which goes with it; its default asks for the
sequence's next value.

Walk: `statements.ddl.tables.create_table` and `statements.ddl.tables.alter_columns` -> `column_of`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tenure.base.errors import InvalidParameter, NotSupported, SyntaxFault
from tenure.catalog.changes.column_changes import AddColumn
from tenure.catalog.changes.sequence_changes import SequenceOptions, create_sequence
from tenure.catalog.descriptors.definitions import Expression, Schema, TypeRef
from tenure.expr.functions.sequence_functions import NEXT
from tenure.expr.tree import build
from tenure.expr.tree.expressions import Const, decode
from tenure.expr.types.type_names import type_of
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.naming import sequence_name
from tenure.sql.statements.ddl.sequence_options import options_of
from tenure.sql.text.parse import Tree, child, items, names, option

INT8 = type_of(TypeRef("int8"))
SERIALS = {
    "smallserial": "int2",
    "serial2": "int2",
    "serial": "int4",
    "serial4": "int4",
    "bigserial": "int8",
    "serial8": "int8",
}
NOT_DEFERRED = "unique constraints that are INITIALLY DEFERRED are checked at the end of each statement"
"""A notice, not an error: clients ask for it by habit, and an earlier check is at least as strict."""
NOT_ENFORCED = "constraints that are NOT ENFORCED are not supported"
ATTRIBUTES = (
    "CONSTR_ATTR_NOT_DEFERRABLE",
    "CONSTR_ATTR_IMMEDIATE",
    "CONSTR_ATTR_ENFORCED",
)
C_COLLATIONS = ("C", "POSIX", "default", "ucs_basic", "C.utf8")


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
    """The options of the sequence of a serial or identity column."""
    constraints: list[Tree] = field(default_factory=list)
    """PRIMARY KEY, UNIQUE, CHECK and REFERENCES that stand beside it."""


def column_of(definer: Definer, table: str, tree: Tree) -> NewColumn:
    """Reads a ColumnDef."""
    column = _typed(definer, tree)
    if tree.HasField("coll_clause"):
        check_collation(names(tree.coll_clause.collname))
    says_null = False
    for each in items(tree.constraints):
        match option(each, "contype"):
            case "CONSTR_NULL":
                says_null = True
            case "CONSTR_NOTNULL":
                column.is_nullable = False
            case "CONSTR_DEFAULT":
                _require_no_default(column, table)
                column.default = definer.default(child(each, "raw_expr"), column.name, column.type)
            case "CONSTR_IDENTITY":
                _require_no_default(column, table)
                column.identity = identity_of(each.generated_when)
                column.is_nullable = False
                column.sequence = identity_options(definer, column.name, column.type, each.options)
            case "CONSTR_GENERATED":
                _require_no_default(column, table)
                if each.generated_kind == "v":
                    raise NotSupported("virtual generated columns are not supported", hint="Say STORED.")
                column.generated = child(each, "raw_expr")
            case "CONSTR_ATTR_NOT_ENFORCED":
                raise NotSupported(NOT_ENFORCED)
            case "CONSTR_ATTR_DEFERRABLE" | "CONSTR_ATTR_DEFERRED" as attribute:
                _defer(column, is_at_first=attribute == "CONSTR_ATTR_DEFERRED")
            case _ if option(each, "contype") in ATTRIBUTES:
                pass
            case _:
                column.constraints.append(each)
    if says_null and not column.is_nullable:
        raise SyntaxFault(
            f'conflicting NULL/NOT NULL declarations for column "{column.name}" of table "{table}"'
        )
    if column.default is not None and is_null(column.default):
        column.default = None
    return column


def _defer(column: NewColumn, *, is_at_first: bool) -> None:
    """DEFERRABLE or INITIALLY DEFERRED after a constraint that stands beside a column is about that one."""
    if not column.constraints:
        clause = "INITIALLY DEFERRED" if is_at_first else "DEFERRABLE"
        raise SyntaxFault(f"misplaced {clause} clause")
    constraint = type(column.constraints[-1])()
    constraint.CopyFrom(column.constraints[-1])
    constraint.deferrable = True
    constraint.initdeferred = constraint.initdeferred or is_at_first
    column.constraints[-1] = constraint


def is_null(default: Expression) -> bool:
    """Whether a DEFAULT says NULL, which is what a column without one has."""
    node = decode(default.tree)
    return isinstance(node, Const) and node.packed is None


def _require_no_default(column: NewColumn, table: str) -> None:
    """A column has one source of values."""
    what = f'specified for column "{column.name}" of table "{table}"'
    if column.identity:
        raise SyntaxFault(f"both default and identity {what}")
    if column.generated is not None:
        raise SyntaxFault(f"both default and generation expression {what}")
    if column.default is not None or column.sequence is not None:
        raise SyntaxFault(f"multiple default values {what}")


def check_collation(name: list[str]) -> None:
    if name[-1] not in C_COLLATIONS:
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


def identity_of(generated_when: str) -> str:
    return "always" if generated_when == "a" else "by default"


def identity_options(
    definer: Definer, column: str, type: TypeRef, options: Sequence[Tree]
) -> SequenceOptions:
    if type.name not in ("int2", "int4", "int8") or type.is_array:
        raise InvalidParameter("identity column type must be smallint, integer, or bigint")
    return options_of(definer, options, type)


def make_sequence(
    definer: Definer, schema: Schema, table: str, column: str, options: SequenceOptions, owner: str
) -> int:
    """Makes the sequence of a serial or identity column; the caller connects the two."""
    id = definer.fresh_id()
    create_sequence(
        definer.draft,
        definer.use,
        id=id,
        schema=schema.id,
        name=sequence_name(definer, schema, table, column),
        owner=owner,
        options=options,
    )
    return id


def next_of(definer: Definer, sequence: int, type: TypeRef) -> Expression:
    """The default of a serial column: the sequence's next value."""
    value = build.call(NEXT, build.const(sequence, INT8))
    return definer.stored(build.assign(value, definer.type_of(type)).node, {})


def generated_of(
    definer: Definer, columns: Sequence[tuple[int, str, TypeRef]], column: NewColumn
) -> Expression | None:
    """The expression of a generated column over the columns that are not generated themselves."""
    if column.generated is None:
        return None
    typed = definer.over_table(column.generated, columns, "GENERATED")
    return definer.generated(typed, column.type, columns)


def addition(
    definer: Definer,
    column: NewColumn,
    columns: Sequence[tuple[int, str, TypeRef]],
    sequence: int | None,
    filled: bytes | None = None,
) -> AddColumn:
    default = column.default if sequence is None else next_of(definer, sequence, column.type)
    return AddColumn(
        column.name,
        column.type,
        column.is_nullable,
        default,
        filled,
        identity=column.identity,
        generated=generated_of(definer, columns, column),
    )
