"""CONFIGURE ZONE: how long history is kept, for everything or for one object.

    ALTER { RANGE DEFAULT | DATABASE d | SCHEMA [d.]s | TABLE t | INDEX i | INDEX t@i }
        CONFIGURE ZONE { USING gc.ttlseconds = n [, ...] | DISCARD }

A zone is written in the statement's transaction, so a block can roll it back, and a table that the block has
created can be given one. An object's owner may change its zone, superusers any.

Walk: `statements.ddl.ddl_statements` -> `plan_configure` -> `catalog.changes.zone_changes`; SHOW ZONE
CONFIGURATION uses `read_target` and `find_target`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tenure.base.errors import (
    InvalidParameter,
    NotSupported,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
)
from tenure.catalog.changes.table_parts import staying
from tenure.catalog.changes.zone_changes import check_ttl, configure, discard
from tenure.catalog.descriptors.definitions import AnyDescriptor, Index, Table
from tenure.catalog.descriptors.zones import DEFAULT_ZONE, ZoneKey
from tenure.expr.types.datatype import Type
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Result
from tenure.sql.session.answers import ResultColumn
from tenure.sql.statements.ddl.databases import database_named, require_users_own
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.ddl.naming import index as index_named
from tenure.sql.statements.ddl.schemas import find_schema, schema_named
from tenure.sql.text.tenure_statements import TokenReader

TAG = "CONFIGURE ZONE"
GC_TTL = "gc.ttlseconds"
KINDS = ("range", "database", "schema", "table", "index")


class ZoneTarget(NamedTuple):
    """What a statement names: its kind, its name, and an index that is named after its table."""

    kind: str
    path: tuple[str, ...] = ()
    index_name: str = ""


class FoundTarget(NamedTuple):
    key: ZoneKey
    descriptor: AnyDescriptor | None = None
    """None: the default of everything."""


def read_target(reader: TokenReader) -> ZoneTarget:
    kind = next((each for each in KINDS if reader.take(each)), "")
    if not kind:
        raise reader.fault()
    if kind == "range":
        reader.expect("default")
        return ZoneTarget(kind)
    path = tuple(reader.names())
    index = reader.name() if kind == "index" and reader.take("@") else ""
    return ZoneTarget(kind, path, index)


def find_target(definer: Definer, target: ZoneTarget) -> FoundTarget:
    """The object that is named, as the transaction sees it."""
    path = target.path
    match target.kind:
        case "range":
            return FoundTarget(DEFAULT_ZONE)
        case "database":
            database = database_named(definer, ".".join(path))
            return FoundTarget((database.id, 0), database)
        case "schema" if len(path) == 2:
            schema = find_schema(definer, database_named(definer, path[0]).id, path[1])
            found = schema or schema_named(definer, ".".join(path))
            return FoundTarget((found.id, 0), found)
        case "schema":
            schema = schema_named(definer, ".".join(path))
            return FoundTarget((schema.id, 0), schema)
        case "table":
            table = _table(definer, path)
            definer.names.require_permanent("this statement")
            return FoundTarget((table.id, 0), table)
        case _:
            table, index = _index(definer, target)
            definer.names.require_permanent("this statement")
            return FoundTarget((table.id, index.id), table)


def _table(definer: Definer, path: tuple[str, ...]) -> Table:
    """Without waiting for a change of it that is under way: the zone is no part of the table."""
    found = definer.names.object(path)
    if isinstance(found, Table):
        return found
    if found is not None:
        raise WrongObjectType(f'"{path[-1]}" is not a table')
    if definer.session.system_tables.table(path, definer.names.path) is not None:
        raise WrongObjectType(f'"{path[-1]}" is a system table', hint="It has no history of its own.")
    raise UndefinedTable(f'relation "{".".join(path)}" does not exist')


def _index(definer: Definer, target: ZoneTarget) -> tuple[Table, Index]:
    if not target.index_name:
        return index_named(definer, target.path)
    table = _table(definer, target.path)
    for each in staying(table.indexes):
        if each.name == target.index_name:
            return table, each
    raise UndefinedObject(f'table "{table.name}" has no index "{target.index_name}"')


def plan_configure(node: DefinitionServices, planner: Planner, reader: TokenReader) -> "ConfigureZone":
    reader.expect("alter")
    target = read_target(reader)
    reader.expect("configure", "zone")
    if planner.as_of:
        raise NotSupported("AS OF SYSTEM TIME is not supported in statements that define")
    if reader.take("discard"):
        reader.end()
        return ConfigureZone(node, planner.text, target, None)
    reader.expect("using")
    ttl_seconds = _read_values(reader)[GC_TTL]
    return ConfigureZone(node, planner.text, target, ttl_seconds)


def _read_values(reader: TokenReader) -> dict[str, int]:
    """Name = value, ...; each name once."""
    values: dict[str, int] = {}
    while not values or reader.take(","):
        name = ".".join(reader.names())
        if name not in VALUES:
            raise InvalidParameter(f'unknown zone parameter "{name}"', hint=f"There is {', '.join(VALUES)}.")
        if name in values:
            raise InvalidParameter(f'zone parameter "{name}" is set twice')
        reader.expect("=")
        sign = -1 if reader.take("-") else 1
        values[name] = sign * reader.number()
        VALUES[name](values[name])
    reader.end()
    return values


VALUES: dict[str, Callable[[int], None]] = {GC_TTL: check_ttl}
"""What a zone can set, and the check of its value."""


@dataclass(frozen=True, slots=True)
class ConfigureZone:
    node: DefinitionServices
    text: str
    target: ZoneTarget
    ttl_seconds: int | None
    """None: the zone is discarded, and the object inherits."""
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    parameters: ClassVar[tuple[Type, ...]] = ()
    is_short: ClassVar[bool] = False

    def run(self, execution: Execution) -> Result:
        txn = execution.block.txn(TAG)
        definer = Definer(self.node, execution, self.text)
        found = find_target(definer, self.target)
        self._check_rights(definer, found.descriptor)
        keyspace = self.node.store.keyspace
        if self.ttl_seconds is None:
            discard(txn, keyspace, found.key)
        else:
            configure(txn, keyspace, found.key, gc_ttl_seconds=self.ttl_seconds)
        return Result(TAG)

    def _check_rights(self, definer: Definer, descriptor: AnyDescriptor | None) -> None:
        if descriptor is None:
            definer.rights.require_superuser("permission denied to configure the default zone")
            return
        if self.target.kind == "database":
            require_users_own(database_named(definer, descriptor.name))
        definer.rights.require_owner(descriptor)
