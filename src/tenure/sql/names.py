"""What the names in a statement mean to a session: tables, views, types, functions that ask the session.

Everything that was looked at on the way is remembered: what a plan was made of (`used`, `resolved`) says
later whether it still holds.

Walk: `sql.planning` makes one per statement; the binder asks it; `sql.plan_cache` keeps what it saw.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tenure.base.errors import RetryError
from tenure.catalog.descriptors import (
    AnyDescriptor,
    EnumType,
    Place,
    SchemaEntry,
    State,
    Table,
    TypeRef,
)
from tenure.catalog.resolution import InStore, Path, find
from tenure.expr.asking_functions import LIVENESS
from tenure.expr.build import Typed, call
from tenure.expr.datatype import Type
from tenure.expr.errors import NotSupported, UndefinedObject
from tenure.expr.types import type_of
from tenure.sql.answers import NotShort
from tenure.sql.block import Block
from tenure.sql.errors import UndefinedTable
from tenure.sql.relations import Relation

if TYPE_CHECKING:
    from tenure.sql.session import Session

SESSION_FUNCTIONS = (
    "current_user",
    "current_role",
    "session_user",
    "user",
    "current_catalog",
    "current_schema",
)
"""What SQL writes without brackets."""


LIVENESS_NAME = "sql_liveness_is_alive"
LIVENESS_SCHEMAS = (["tenure_internal"], ["crdb_internal"])
"""The second is how the document on liveness spells it."""


class SessionNames:
    def __init__(self, session: "Session", block: Block) -> None:
        self._session = session
        self._block = block
        self.used: dict[int, AnyDescriptor] = {}
        self.resolved: dict[tuple[str, ...], int | None] = {}

    # ── the catalog, with a memory of what was asked ───────────────────────────────────────────

    def descriptor(self, id: int) -> AnyDescriptor | None:
        found = self._block.catalog.descriptor(id)
        if found is not None:
            self.used[id] = found
        return found

    def id_at(self, place: Place) -> int | None:
        return self._block.catalog.id_at(place)

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None:
        return self._block.catalog.schema_entry(database, name)

    @property
    def path(self) -> Path:
        return self._session.path

    def object(self, name: Sequence[str]) -> AnyDescriptor | None:
        """What a name means; None only if the store, asked again, does not know it either."""
        found = find(self, name, self.path)
        block = self._block
        if found is None and block.past is None and not block.draft:
            stored = find(InStore(self._session.parts.catalog, block.use.txn), name, self.path)
            if stored is not None:
                if self._session.is_inline:
                    raise NotShort
                self._session.parts.leases.renew()
                raise RetryError(f'"{".".join(name)}" is newer than this node\'s schema lease')
        self.resolved[tuple(name)] = None if found is None else found.id
        return found

    # ── what the binder asks ───────────────────────────────────────────────────────────────────

    def relation(self, name: Sequence[str], position: int = 0) -> Relation:
        virtual = self._session.parts.virtual.table(name, self)
        if virtual is not None:
            return virtual
        found = self.object(name)
        if isinstance(found, Table):
            if found.state is State.OFFLINE:
                raise NotSupported(f'relation "{found.name}" is offline: a job is filling it')
            return found
        if found is None:
            raise UndefinedTable(f'relation "{".".join(name)}" does not exist', position=position)
        raise UndefinedTable(f'"{".".join(name)}" is not a table', position=position)

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...] = (), *, is_array: bool) -> Type:
        found = self.object(name)
        if not isinstance(found, EnumType):
            raise UndefinedObject(f'type "{".".join(name)}" does not exist')
        return type_of(TypeRef(found.name, (), is_array=is_array, enum=found.id), self.enum)

    def enum(self, id: int) -> EnumType:
        found = self.descriptor(id)
        assert isinstance(found, EnumType), f"type {id} is gone although something has it"
        return found

    def call(self, name: Sequence[str], arguments: Sequence[Typed]) -> Typed | None:
        if name[-1] == LIVENESS_NAME and list(name[:-1]) in LIVENESS_SCHEMAS:
            return call(LIVENESS, *arguments)
        if name[-1] in SESSION_FUNCTIONS and not arguments:
            return call(name[-1])
        return None
