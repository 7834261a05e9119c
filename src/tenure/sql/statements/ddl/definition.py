"""The common part of DDL statements.

    statement ─► a copy of the transaction's draft ─► changes of `catalog` ─► the draft, if all went well

Nothing is stored before the commit, which hands the draft to the schema changer. Everything is looked up
when the statement runs, so one that was prepared earlier, or is run again, means the catalog of then.

Walk: `statements.ddl.ddl_statements` makes a `Definition` -> `Definition.run` -> a function that gets a
`Definer` -> the modules of `catalog.changes`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenure.base.errors import (
    ActiveTransaction,
    DatatypeMismatch,
    InsufficientPrivilege,
    InvalidObject,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from tenure.catalog.changes.table_changes import table_of
from tenure.catalog.changes.table_parts import staying
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    EnumType,
    Expression,
    NameKey,
    Schema,
    Table,
    TypeRef,
    View,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.leases.catalog_use import Use
from tenure.catalog.name_resolution import find, schemas_of
from tenure.expr.functions.function import Volatility
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.compiled import require_immutable, volatility
from tenure.expr.tree.expressions import ColumnRef, Node, decode, to_stored
from tenure.expr.tree.rewrite import rewrite
from tenure.expr.tree.sql_text import render
from tenure.expr.tree.zoned_constants import depends_on_session, fix_constants
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.binder import bind_scalar, guarded
from tenure.sql.bind.parameters import NoParameters
from tenure.sql.bind.relations import missing_type
from tenure.sql.bind.types import type_at
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.statement import Result
from tenure.sql.names.session_names import SessionNames
from tenure.sql.plans.plan import OutputColumn
from tenure.sql.session.answers import ResultColumn
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.text.parse import Tree, option
from tenure.sql.text.quoting import quoted

SYSTEM_SCHEMAS = ("pg_catalog", "information_schema", "tenure_internal")


@dataclass(frozen=True, slots=True)
class Definition:
    """A DDL statement: `apply` returns its tag if that depends on what it did."""

    node: DefinitionServices
    tag: str
    tree: Tree
    apply: "Callable[[Definer, Tree], str | None]"
    text: str = ""
    not_in_block: str = ""
    """Its name in the error that it cannot run inside a transaction block."""
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    parameters: ClassVar[tuple[Type, ...]] = ()
    is_short: ClassVar[bool] = False

    def run(self, execution: Execution) -> Result:
        block = execution.block
        if self.not_in_block and block.is_explicit:
            raise ActiveTransaction(f"{self.not_in_block} cannot run inside a transaction block")
        block.txn(self.tag)
        use = block.use
        before, use.draft = use.draft, use.draft.copy()
        try:
            with guarded(self.text):
                tag = self.apply(Definer(self.node, execution, self.text), self.tree)
        except BaseException:
            use.draft = before
            raise
        return Result(tag or self.tag)


class Definer:
    """The catalog, the draft and the session of a DDL statement."""

    def __init__(self, node: DefinitionServices, execution: Execution, text: str = "") -> None:
        self.node = node
        self.execution = execution
        self.text = text
        self.session = execution.session
        self.names = SessionNames(execution.session, execution.block)

    def looking_first_in(self, schema: Schema) -> "Definer":
        """The same with a schema in front of the search path: for the elements of CREATE SCHEMA."""
        inner = Definer(self.node, self.execution, self.text)
        path = self.names.path
        inner.names.path = path._replace(database=schema.database, schemas=(schema.name, *path.schemas))
        return inner

    @property
    def use(self) -> Use:
        return self.execution.block.use

    @property
    def draft(self) -> Draft:
        return self.use.draft

    @property
    def owner(self) -> str:
        return self.session.user

    def fresh_id(self) -> int:
        return self.node.changer.fresh_id()

    def notice(self, message: str, sqlstate: str = "00000", *, detail: str = "") -> None:
        self.session.notice(message, "NOTICE", sqlstate, detail=detail)

    # ── names ──────────────────────────────────────────────────────────────────────────────────

    def schema_for(self, qualifier: Sequence[str]) -> Schema:
        """Where a new object goes: the schema named, or the first of the search path that is there."""
        if qualifier and self.is_system_schema(qualifier[-1]):
            raise InsufficientPrivilege(
                f'permission denied for schema "{qualifier[-1]}"',
                detail="System catalog modifications are currently disallowed.",
            )
        found = schemas_of(self.names, qualifier, self.names.path)
        if found:
            return found[0]
        if qualifier:
            raise UndefinedSchema(f'schema "{".".join(qualifier)}" does not exist')
        raise UndefinedSchema("no schema has been selected to create in")

    def is_system_schema(self, name: str) -> bool:
        return name in SYSTEM_SCHEMAS or self.session.system_tables.has_schema(name)

    def object(self, name: Sequence[str]) -> AnyDescriptor | None:
        """The object of a name in the draft; waits for the end of a change of it that is under way."""
        found = self.names.object(name)
        if found is None or found.id in self.draft.declared:
            return None if found is None else self.draft.declared[found.id]
        if isinstance(found, Table | EnumType) and found.job:
            self.node.changer.await_change(self.use, found)
        return found

    def relation(self, name: Sequence[str], position: int = 0) -> Table | View | SequenceDescriptor:
        """Anything that can stand in FROM. Raises UndefinedTable (42P01)."""
        found = self.object(name)
        if isinstance(found, Table | View | SequenceDescriptor):
            return found
        if self.session.system_tables.table(name, self.names.path) is not None:
            raise InsufficientPrivilege(f'permission denied: "{name[-1]}" is a system catalog')
        raise UndefinedTable(f'relation "{".".join(name)}" does not exist', position=position)

    def table(self, name: Sequence[str], position: int = 0) -> Table:
        found = self.relation(name, position)
        if not isinstance(found, Table):
            raise WrongObjectType(f'"{name[-1]}" is not a table')
        return found

    def sequence(self, name: Sequence[str]) -> SequenceDescriptor:
        found = self.relation(name)
        if not isinstance(found, SequenceDescriptor):
            raise WrongObjectType(f'"{name[-1]}" is not a sequence')
        return found

    def enum(self, name: Sequence[str]) -> EnumType:
        found = self.object(name)
        if isinstance(found, EnumType):
            return found
        if found is None:
            raise missing_type(name)
        raise WrongObjectType(f"{'.'.join(name)} is not an enum")

    def qualifies(self, descriptor: AnyDescriptor) -> bool:
        """Whether messages name it with its schema: its name alone does not find it."""
        found = find(self.use, [descriptor.name], self.names.path)
        return found is None or found.id != descriptor.id

    def declared(self, id: int) -> Table:
        """A table with what was declared of it so far."""
        return table_of(self.draft, self.use, id)

    def role(self, tree: Tree) -> str:
        """The role that a RoleSpec names, which must be there."""
        match option(tree, "roletype"):
            case "ROLESPEC_CSTRING":
                name: str = tree.rolename
            case "ROLESPEC_PUBLIC":
                raise UndefinedObject('role "public" does not exist')
            case _:
                return self.owner
        return self.role_named(name)

    def role_named(self, name: str) -> str:
        if self.node.users.get(self.use.txn, name) is None:
            raise UndefinedObject(f'role "{name}" does not exist')
        return name

    def is_taken(self, schema: Schema, name: str) -> bool:
        """Whether something that can be used has the name."""
        id = self.use.id_at(NameKey(schema.database, schema.id, name))
        found = None if id is None else self.use.descriptor(id)
        return found is not None and found.state is not DescriptorState.DROPPED

    def contents(self, database: int, schema: int) -> list[int]:
        """The objects of a schema, read from the store, so that a concurrent addition makes the transaction
        retry."""
        names = self.node.catalog.names_in(self.use.txn, database, schema)
        return [each.id for each in names]

    # ── types and expressions ──────────────────────────────────────────────────────────────────

    def type_ref(self, tree: Tree) -> TypeRef:
        return type_at(tree, self.names).ref

    def type_of(self, ref: TypeRef) -> Type:
        return type_of(ref, self.names.enum)

    def default(self, tree: Tree, column: str, ref: TypeRef) -> Expression:
        """A DEFAULT for a column of this type."""
        typed = bind_scalar(tree, (), self.names, NoParameters(), "DEFAULT")
        target = self.type_of(ref)
        try:
            assigned = build.assign(typed, target)
        except DatatypeMismatch as error:
            raise DatatypeMismatch(
                f'column "{column}" is of type {target.sql_name} but default expression is of type '
                f"{typed.type.sql_name}",
                hint="You will need to rewrite or cast the expression.",
            ) from error
        return self.stored(assigned.node, {})

    def over_table(self, tree: Tree, columns: Sequence[tuple[int, str, TypeRef]], what: str) -> Typed:
        """An expression over columns that are given by id, name and type."""
        outputs = [OutputColumn(name, self.type_of(ref)) for _, name, ref in columns]
        typed = bind_scalar(tree, outputs, self.names, NoParameters(), what)
        ids = [id for id, _, _ in columns]

        def by_id(node: Node) -> Node | None:
            return ColumnRef(ids[node.column]) if isinstance(node, ColumnRef) else None

        return Typed(rewrite(typed.node, by_id), typed.type)

    def condition(self, tree: Tree, columns: Sequence[tuple[int, str, TypeRef]], what: str) -> Expression:
        """A CHECK or a predicate, which depends on its row alone."""
        typed = self.over_table(tree, columns, what)
        node = self._fixed(build.condition(typed, f"argument of {what}"))
        is_index = what == "WHERE"
        require_immutable(node, "index predicate" if is_index else "check constraint")
        if is_index and depends_on_session(node, self._types(columns), self.names.enum):
            raise InvalidObject("functions in index predicate must be marked IMMUTABLE")
        return self.stored(node, {id: name for id, name, _ in columns})

    def generated(
        self, typed: Typed, ref: TypeRef, columns: Sequence[tuple[int, str, TypeRef]]
    ) -> Expression:
        """GENERATED ALWAYS AS (...) STORED, which depends on its row alone."""
        node = self._fixed(build.assign(typed, self.type_of(ref)).node)
        if volatility(node) is not Volatility.IMMUTABLE or depends_on_session(
            node, self._types(columns), self.names.enum
        ):
            raise InvalidObject("generation expression is not immutable")
        return self.stored(node, {id: name for id, name, _ in columns})

    def _types(self, columns: Sequence[tuple[int, str, TypeRef]]) -> dict[int, Type]:
        return {id: self.type_of(ref) for id, _, ref in columns}

    def _fixed(self, node: Node) -> Node:
        return fix_constants(node, self.session.zone, self.names.enum)

    def text_of(self, expression: Expression, table: Table) -> str:
        """A stored expression by the names that its columns have by now."""
        names = {each.id: quoted(each.name) for each in table.columns}
        return render(decode(expression.tree), names.__getitem__, self.names.enum)

    def stored(self, node: Node, names: dict[int, str]) -> Expression:
        node = self._fixed(node)
        text = render(node, lambda id: quoted(names[id]), self.names.enum)
        return to_stored(node, text)


def columns_of(table: Table) -> list[tuple[int, str, TypeRef]]:
    """The columns after all declared changes, including those still being added."""
    return [(each.id, each.name, each.type) for each in staying(table.columns) if not each.is_hidden]


def path_of(tree: Tree) -> list[str]:
    """The parts of a RangeVar's name."""
    return [each for each in (tree.catalogname, tree.schemaname, tree.relname) if each]
