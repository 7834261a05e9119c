"""The common part of DDL statements.

    statement ─► a copy of the transaction's draft ─► changes of `catalog` ─► the draft, if all went well

Nothing is stored before the commit, which hands the draft to the schema changer. Everything is looked up
when the statement runs, so one that was prepared earlier, or is run again, means the catalog of then.

Walk: `statements.ddl.ddl_statements` makes a `Definition` -> `Definition.run` -> a function that gets a
`Definer` -> the modules of `catalog.changes`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenure.base.errors import (
    ActiveTransaction,
    DatatypeMismatch,
    InsufficientPrivilege,
    InvalidObject,
    InvalidTable,
    NotSupported,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from tenure.base.settings import CROSS_DATABASE_REFERENCES
from tenure.catalog.accounts.column_privileges import follow_replacements
from tenure.catalog.accounts.initial_privileges import give_defaults
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.accounts.role_graph import RoleGraph
from tenure.catalog.changes.cross_database import new_references
from tenure.catalog.changes.dependencies import title
from tenure.catalog.changes.table_changes import descriptor_of, table_of
from tenure.catalog.changes.table_parts import staying
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    EnumType,
    Expression,
    NameKey,
    Schema,
    Table,
    TypeRef,
    View,
    is_dropped,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.role_records import LeasedRecord, RecordKey
from tenure.catalog.leases.access_sources import DraftAccess, StoredAccess
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.name_resolution import PG_TEMP, find, schema_at, schemas_of
from tenure.expr.functions.function import Volatility
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.compiled import require_immutable, volatility
from tenure.expr.tree.expressions import ColumnRef, Node, decode, to_stored
from tenure.expr.tree.rewrite import rewrite
from tenure.expr.tree.sql_text import render
from tenure.expr.tree.zoned_constants import depends_on_session, fix_constants
from tenure.expr.types.catalog_types import require_storable
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.binder import bind_scalar, guarded
from tenure.sql.bind.parameters import NoParameters
from tenure.sql.bind.relations import missing_type
from tenure.sql.bind.types import type_at
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.statement import MapChange, Result
from tenure.sql.names.column_types import require_types
from tenure.sql.names.session_names import SessionNames
from tenure.sql.plans.plan import OutputColumn
from tenure.sql.session.answers import ResultColumn
from tenure.sql.statements.ddl.definition_rights import (
    check_changes,
    require_create,
    require_dropper,
    require_owner,
    require_temporary,
)
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.text.parse import Tree, option
from tenure.sql.text.quoting import quoted

SYSTEM_SCHEMAS = ("pg_catalog", "information_schema", "tenure_internal")

MAP_CHANGES = ("CREATE SCHEMA", "ALTER SCHEMA", "DROP SCHEMA")
"""The tags of statements that change a database's map."""

ASKING = ("DROP ", "ALTER ROLE", "REASSIGN OWNED", "UNDROP ")
"""The tags of statements that ask for the rights to all that they change."""


@dataclass(frozen=True, slots=True)
class Definition(MapChange):
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

    @property
    def changes_map(self) -> bool:
        return self.tag in MAP_CHANGES

    def run(self, execution: Execution) -> Result:
        block = execution.block
        if self.not_in_block and block.is_explicit:
            raise ActiveTransaction(f"{self.not_in_block} cannot run inside a transaction block")
        block.txn(self.tag)
        use = block.use
        before, use.draft = use.draft, use.draft.copy()
        try:
            with guarded(self.text):
                definer = Definer(self.node, execution, self.text)
                tag = self.apply(definer, self.tree)
                definer.check_references(before)
                temporary = -1 if use.temporary is None else use.temporary.schema.id
                give_defaults(self.node.catalog.roles, use.txn, use.draft, before, temporary=temporary)
                follow_replacements(self.node.catalog.roles, use.txn, use.draft, before)
                has_asked = self.tag.startswith(ASKING)
                check_changes(
                    use,
                    execution.session.rights(block),
                    before,
                    has_asked=has_asked,
                    name_now=execution.session.access.name_now,
                )
            require_apart(use)
            definer.require_types(before)
        except BaseException:
            use.draft = before
            raise
        for id in before.new_descriptors().keys() - use.draft.new_descriptors().keys():
            use.txn.forget_writes(
                self.node.store.keyspace.table_span(id)
            )  # made and dropped: no rows are left
        execution.session.temporary.track(use, before, block.on_end)
        return Result(tag or self.tag)


class Definer:
    """The catalog, the draft and the session of a DDL statement."""

    def __init__(self, node: DefinitionServices, execution: Execution, text: str = "") -> None:
        self.node = node
        self.execution = execution
        self.text = text
        self.session = execution.session
        self.names = SessionNames(execution.session, execution.block)
        self._records: dict[RecordKey, LeasedRecord | None] = {}
        """Those that were read, as they are in the store."""
        self._rights: Rights | None = None
        """By the roles as the draft has them."""

    def looking_first_in(self, schema: Schema) -> "Definer":
        """The same with a schema in front of the search path: for the elements of CREATE SCHEMA."""
        inner = Definer(self.node, self.execution, self.text)
        path = self.names.path
        inner.names.path = path._replace(database=schema.database, schemas=(schema.name, *path.schemas))
        return inner

    def in_database(self, database: int) -> "Definer":
        """The same for names of another database."""
        inner = Definer(self.node, self.execution, self.text)
        inner.names.path = self.names.path._replace(database=database)
        return inner

    @property
    def use(self) -> CatalogUse:
        return self.execution.block.use

    @property
    def draft(self) -> Draft:
        return self.use.draft

    @property
    def owner(self) -> str:
        return self.session.user

    @property
    def rights(self) -> Rights:
        """What the current user may do, by the newest lease and what this transaction has granted."""
        if not self.draft:
            return self.session.rights(self.execution.block)
        if self._rights is None:
            self._rights = self.session.rights(self.execution.block)
        return self._rights

    def require_dropper(self, descriptor: AnyDescriptor) -> None:
        require_dropper(self.use, self.rights, descriptor)

    def require_owner(self, descriptor: AnyDescriptor) -> None:
        require_owner(self.use, self.rights, descriptor)

    def require_create(self, schema: Schema) -> None:
        require_create(self.use, self.rights, schema)

    def role_graph(self) -> RoleGraph:
        """The roles as the transaction reads them: a concurrent change of them makes it retry."""
        return DraftAccess(StoredAccess(self.node.catalog, self.use.txn), self.draft).roles

    def record(self, key: RecordKey) -> LeasedRecord | None:
        """A role, a membership or privileges, as the transaction has changed or reads it."""
        change = self.draft.records.get(key)
        return self._stored(key) if change is None else change.record

    def set_record(self, key: RecordKey, record: LeasedRecord | None) -> None:
        self.draft.set_record(key, record, former=self._stored(key))
        if key[0] != "privileges":
            self._rights = None

    def _stored(self, key: RecordKey) -> LeasedRecord | None:
        if key not in self._records:
            self._records[key] = self.node.catalog.roles.get(self.use.txn, key)
        return self._records[key]

    def read_ahead(self, keys: Iterable[RecordKey]) -> None:
        """Reads many records together, before each is asked for."""
        wanted = list(keys)
        found = self.node.catalog.roles.get_many(self.use.txn, wanted)
        self._records.update(zip(wanted, found, strict=True))

    def fresh_id(self) -> int:
        return self.node.changer.fresh_id()

    def notice(self, message: str, sqlstate: str = "00000", *, detail: str = "") -> None:
        self.session.notice(message, "NOTICE", sqlstate, detail=detail)

    # ── references across databases ────────────────────────────────────────────────────────────

    @property
    def may_cross_databases(self) -> bool:
        return self.node.settings.current()[CROSS_DATABASE_REFERENCES]

    def now(self, id: int) -> AnyDescriptor | None:
        """A descriptor with what was declared of it so far."""
        return descriptor_of(self.draft, self.use, id)

    def check_references(self, before: Draft) -> None:
        """Refuses references to other databases that this statement has made."""
        after = self.draft
        changed = [each for id, each in after.declared.items() if before.declared.get(id) is not each]
        if not changed or self.may_cross_databases:
            return

        def find_before(id: int) -> AnyDescriptor | None:
            self.use.draft = before
            try:
                return self.now(id)
            finally:
                self.use.draft = after

        for each in new_references(changed, self.now, find_before):
            raise NotSupported(
                f"cross-database references are not implemented: {title(each.user)} to {title(each.used)}",
                hint=f"The cluster setting {CROSS_DATABASE_REFERENCES.name} allows them.",
            )

    def require_types(self, before: Draft) -> None:
        """Refuses temporary tables, and copies of them, whose type another session has dropped."""
        own = self.draft.declared
        for id, table in own.items():
            if not isinstance(table, Table) or is_dropped(table) or before.declared.get(id) is table:
                continue
            if self.draft.is_new(id) or self.names.is_temporary(table):
                require_types(table, (each for each in table.columns if each.type.enum not in own), self.now)

    # ── names ──────────────────────────────────────────────────────────────────────────────────

    def schema_for(self, qualifier: Sequence[str], *, is_temporary: bool = False) -> Schema:
        """Where a new object goes: the schema named, or the first of the search path that is there."""
        if is_temporary or self._names_temporary(qualifier):
            return self._temporary_schema(qualifier)
        if qualifier and self.is_system_schema(qualifier[-1]):
            raise InsufficientPrivilege(
                f'permission denied for schema "{qualifier[-1]}"',
                detail="System catalog modifications are currently disallowed.",
            )
        path = self.names.path
        found = schemas_of(self.names, qualifier, path if qualifier else path._replace(temporary=0))
        if found:
            self.names.require_connect(found[0])
            return found[0]
        self.names.require_database()
        if qualifier:
            raise UndefinedSchema(f'schema "{".".join(qualifier)}" does not exist')
        raise UndefinedSchema("no schema has been selected to create in")

    def _names_temporary(self, qualifier: Sequence[str]) -> bool:
        path = self.names.path
        if qualifier:
            return qualifier[-1] == PG_TEMP or self.is_temporary_schema(
                schema_at(self.names, path, qualifier[-1])
            )
        found = (
            each for each in path.names() if each == PG_TEMP or schema_at(self.names, path, each) is not None
        )
        return next(found, "") == PG_TEMP

    def _temporary_schema(self, qualifier: Sequence[str]) -> Schema:
        path = self.names.path
        if qualifier and not self._names_temporary(qualifier):
            raise InvalidTable("cannot create temporary relation in non-temporary schema")
        require_temporary(self.use, self.rights, path.database)
        schema = self.session.temporary.schema(self.use, database=path.database, owner=self.owner)
        self.names.path = path._replace(temporary=schema.id)
        return schema

    def is_temporary_schema(self, schema: Schema | None) -> bool:
        return schema is not None and schema.id == self.session.temporary.schema_id

    def is_system_schema(self, name: str) -> bool:
        return name in SYSTEM_SCHEMAS or self.session.system_tables.has_schema(name)

    def object(self, name: Sequence[str], *, waits: bool = True) -> AnyDescriptor | None:
        """The object of a name in the draft; waits for the end of a change of it that is under way."""
        found = self.names.object(name)
        if found is None or found.id in self.draft.declared:
            return None if found is None else self.draft.declared[found.id]
        if waits and isinstance(found, Table | EnumType) and found.job:
            self.node.changer.await_change(self.use, found)
        return found

    def relation(
        self, name: Sequence[str], position: int = 0, *, waits: bool = True
    ) -> Table | View | SequenceDescriptor:
        """Anything that can stand in FROM. Raises UndefinedTable (42P01)."""
        found = self.object(name, waits=waits)
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

    def enum(self, name: Sequence[str], *, waits: bool = True) -> EnumType:
        found = self.object(name, waits=waits)
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
        if self.record(("role", name)) is None:
            raise UndefinedObject(f'role "{name}" does not exist')
        return name

    def is_taken(self, schema: Schema, name: str) -> bool:
        """Whether something that can be used has the name."""
        id = self.use.id_at(NameKey(schema.database, schema.id, name))
        found = None if id is None else self.use.descriptor(id)
        return found is not None and not is_dropped(found)

    def contents(self, database: int, schema: int) -> list[int]:
        """The objects of a schema, read from the store, so that a concurrent addition makes the transaction
        retry."""
        names = self.node.catalog.names_in(self.use.txn, database, schema)
        return [each.id for each in names]

    # ── types and expressions ──────────────────────────────────────────────────────────────────

    def type_ref(self, tree: Tree) -> TypeRef:
        return require_storable(type_at(tree, self.names).ref)

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


def require_apart(use: CatalogUse) -> None:
    """Refuses uses between temporary and permanent objects, which the used one would list."""
    temporary = use.temporary
    if temporary is None or not use.draft:
        return
    declared = [each for each in use.draft.declared.values() if not is_dropped(each)]
    own = {each.id for each in declared if getattr(each, "schema", 0) == temporary.schema.id}
    own |= temporary.by_id.keys()
    for each in declared:
        for user in (*getattr(each, "dependents", ()), *getattr(each, "referents", ())):
            if (user in own) is not (each.id in own):
                kinds = ("temporary", "permanent") if user in own else ("permanent", "temporary")
                name = next((descriptor.name for descriptor in declared if descriptor.id == user), "")
                raise NotSupported(
                    f'{kinds[0]} "{name}" cannot use {kinds[1]} "{each.name}"',
                    detail="A default cannot call a sequence of the other kind.",
                )


def columns_of(table: Table) -> list[tuple[int, str, TypeRef]]:
    """The columns after all declared changes, including those still being added."""
    return [(each.id, each.name, each.type) for each in staying(table.columns) if not each.is_hidden]


def path_of(tree: Tree) -> list[str]:
    """The parts of a RangeVar's name."""
    return [each for each in (tree.catalogname, tree.schemaname, tree.relname) if each]
