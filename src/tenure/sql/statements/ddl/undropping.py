"""UNDROP TABLE, SCHEMA and DATABASE: what was dropped is back as it was, while nothing of it is collected.

    UNDROP TABLE [[database.]schema.]table
    UNDROP SCHEMA [database.]schema
    UNDROP DATABASE database

Of several objects that had the name the one that was dropped last comes back, with everything that the same
transaction dropped and that lay in it or was owned by it, and with the views that the drop took along. Rows,
history, zones, privileges, comments and the values of sequences were never touched. What does not come back,
such as the foreign keys of other tables, a notice lists.

The user owns what comes back, and may create it there now: otherwise a table that the owner of a schema has
dropped would come back against their will.

The catalog as of right before the drop says what there was, and which role owned it. An object of it that is
being collected, or is gone, makes the statement fail, so that half of a schema never comes back.

Walk: `statements.ddl.ddl_statements` -> `plan_undrop` -> `undrop` -> `catalog.changes.undrops`.
"""

from collections.abc import Iterator, Sequence

from tenure.base.errors import (
    Duplicate,
    NotSupported,
    ObjectInUse,
    RetryError,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    UserError,
    WrongState,
)
from tenure.base.timestamp import Timestamp
from tenure.catalog.accounts.privileges import CREATE
from tenure.catalog.changes import undrops
from tenure.catalog.changes.dependencies import title
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Contained,
    Database,
    EnumType,
    NameKey,
    Schema,
    Table,
    View,
    is_dropped,
    job_of,
    place_of,
    replace,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.role_records import Role
from tenure.catalog.name_resolution import schemas_of
from tenure.kv.keys import DESCRIPTORS
from tenure.kv.snapshot import Snapshot
from tenure.kv.thresholds import threshold
from tenure.retention.sweeping.versions import versions_of
from tenure.sql.execution.planner import Planner
from tenure.sql.statements.ddl.databases import database_named
from tenure.sql.statements.ddl.definition import Definer, Definition
from tenure.sql.statements.ddl.definition_rights import require_creator_of_databases
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.text.parse import Tree
from tenure.sql.text.tenure_statements import TokenReader

KINDS: dict[str, tuple[type[AnyDescriptor], type[UserError], int]] = {
    "table": (Table, UndefinedTable, 3),
    "schema": (Schema, UndefinedSchema, 2),
    "database": (Database, UndefinedDatabase, 1),
}
"""By the word after UNDROP, the error if there is none, and how many parts its name may have."""

TOO_LATE = "A dropped object can be brought back as long as gc.ttlseconds keeps its history."


def plan_undrop(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Definition:
    word = next((each for each in KINDS if reader.take(each)), "")
    if not word:
        raise reader.fault()
    path = reader.names()
    if len(path) > KINDS[word][2] or not reader.is_over:
        raise reader.fault()
    if planner.as_of:
        raise NotSupported("AS OF SYSTEM TIME is not supported in statements that define")

    def apply(definer: Definer, tree: Tree) -> str | None:
        undrop(definer, word, path)
        return None

    return Definition(node, f"UNDROP {word.upper()}", None, apply, planner.text)


def undrop(definer: Definer, word: str, path: Sequence[str]) -> None:
    root = _found(definer, word, path)
    if isinstance(root, Database) and root.converted_to:
        definer.rights.require_owner(root)
        raise WrongState(f'database "{root.name}" was not dropped: it was converted to a schema')
    drop = _Drop(definer, root)
    drop.owner_now(root)
    ids = drop.contents()
    ids += drop.views(ids)
    _require_create(definer, ids)
    left_out = drop.left_out(ids)
    try:
        undrops.undrop(definer.draft, definer.use, ids, drop.owner_now)
    except Duplicate as error:
        error.hint = f"Rename what has the name now, then say UNDROP {word.upper()} again."
        raise
    if left_out:
        definer.notice(
            f'{word} "{root.name}" is back without some of what used it', detail="\n".join(left_out)
        )


def _require_create(definer: Definer, ids: Sequence[int]) -> None:
    """What comes back needs the rights that making it needs: its owner may have lost them since."""
    for id in ids:
        found = definer.now(id)
        place = None if found is None else place_of(found)
        parent = definer.now(place.schema or place.database) if place is not None else None
        if isinstance(found, Database):
            require_creator_of_databases(definer.rights, "create database")
        elif parent is not None and parent.id not in ids:
            definer.rights.require(parent, CREATE)


# ── by name ────────────────────────────────────────────────────────────────────────────────────


def _found(definer: Definer, word: str, path: Sequence[str]) -> AnyDescriptor:
    """The object of this name that was dropped last."""
    wanted, missing, _ = KINDS[word]
    node = definer.node
    snapshot = node.store.snapshot()
    dropped = [each for each in node.catalog.list(snapshot) if isinstance(each, wanted) and is_dropped(each)]
    places = _places(definer, word, path)
    found = [each for place in places for each in dropped if place_of(each) == place]
    if not found:
        name = ".".join(path)
        if any(place_of(each) in places for each in definer.draft.declared.values() if is_dropped(each)):
            hint = "Go back to a savepoint before the DROP, or roll back."
            raise ObjectInUse(f'{word} "{name}" was dropped by this very transaction', hint=hint)
        raise missing(f'there is no dropped {word} "{name}"', hint=_parent_hint(definer, word, path, dropped))
    newest = max(found, key=lambda each: each.modified_at)
    return _leased(definer, newest.id, newest.version)


def _places(definer: Definer, word: str, path: Sequence[str]) -> list[NameKey]:
    """The keys that the name may have had, in the places that there are now."""
    names, name = definer.names, path[-1]
    match word:
        case "database":
            return [NameKey(0, 0, name)]
        case "schema":
            parent = database_named(definer, path[0]).id if len(path) == 2 else names.path.database
            return [NameKey(parent, 0, name)]
        case _:
            if path[:-1]:
                names.check_schemas(path[:-1])
            schemas = schemas_of(names, path[:-1], names.path)
            return [NameKey(each.database, each.id, name) for each in schemas]


def _parent_hint(definer: Definer, word: str, path: Sequence[str], dropped: Sequence[AnyDescriptor]) -> str:
    """Whether a schema that is dropped itself has it."""
    if word != "table":
        return TOO_LATE
    for each in dropped:
        parent = definer.use.descriptor(each.schema) if isinstance(each, Table) else None
        if each.name == path[-1] and parent is not None and is_dropped(parent):
            return f'One was dropped with schema "{parent.name}", which must be brought back before.'
    return TOO_LATE


def _leased(definer: Definer, id: int, version: int) -> AnyDescriptor:
    """The same as this transaction has it."""
    found = definer.use.descriptor(id)
    if found is None or (id not in definer.draft.declared and found.version != version):
        definer.node.leases.renew()
        raise RetryError(f"descriptor {id} is newer than this node's schema lease")
    return found


# ── the drop that took it along ────────────────────────────────────────────────────────────────


class _Drop:
    """The transaction that dropped an object, and the catalog right before it."""

    def __init__(self, definer: Definer, root: AnyDescriptor) -> None:
        self._definer = definer
        self._root = root
        node = definer.node
        self._store, self._catalog = node.store, node.catalog
        now = self._store.snapshot()
        keyspace = self._store.keyspace
        self._until_at = now.at
        self._since_at = threshold(now, keyspace, keyspace.head(DESCRIPTORS))
        at = self._dropped_at(root.id)
        if at is None:
            raise UndefinedObject(f"{title(root)} was dropped too long ago", hint=TOO_LATE)
        self._at = at
        self._before: Snapshot = self._store.snapshot(at - 1)

    def _dropped_at(self, id: int) -> Timestamp | None:
        """When it was dropped; None if it is not, or that can no longer be read."""
        versions = versions_of(
            self._store, self._catalog, id, since_at=self._since_at, until_at=self._until_at
        )
        first = None
        for version in reversed(versions):
            if not is_dropped(version):
                return first
            first = version.modified_at
        return None

    def owner_now(self, dropped: AnyDescriptor) -> str:
        """The present name of the role that owned it; raises if the user lacks the rights of that.

        Nobody renames roles in dropped descriptors: the role is found by the id that it had then. If it was
        dropped, a superuser may give the object to another of its name.
        """
        rights, graph = self._definer.rights, self._definer.role_graph()
        former = self._catalog.roles.get(self._before, ("role", dropped.owner))
        role = graph.by_id(former.id) if isinstance(former, Role) else None
        rights.require_owner(replace(dropped, owner="" if role is None else role.name))
        if role is None and graph.role(dropped.owner) is None:
            raise UndefinedObject(
                f'role "{dropped.owner}", which owned {title(dropped)}, was dropped',
                hint="Create a role of this name, which gets the object, and say UNDROP again.",
            )
        return dropped.owner if role is None else role.name

    def contents(self) -> list[int]:
        """The object and all that lay in it; raises if one of them is no longer there."""
        found = [self._root.id]
        match self._root:
            case Database():
                schemas = [each.id for each in self._catalog.schema_map(self._before, self._root.id)]
                found += schemas
                for schema in schemas:
                    found += self._inside(self._root.id, schema)
            case Schema():
                found += self._inside(self._root.database, self._root.id)
        found = list(dict.fromkeys(found))
        for id in found:
            self._require_whole(id)
        return found

    def _inside(self, database: int, schema: int) -> list[int]:
        entries = self._catalog.names_in(self._before, database, schema)
        return [each.id for each in entries if self._dropped_at(each.id) == self._at]

    def _require_whole(self, id: int) -> None:
        former, now = self._catalog.get(self._before, id), self._definer.use.descriptor(id)
        if now is None:
            name = title(former) if former is not None else f"descriptor {id}"
            raise UndefinedObject(
                f"{title(self._root)} cannot be brought back: {name} is collected", hint=TOO_LATE
            )
        if now.draining and job_of(now):
            self._definer.node.changer.await_change(self._definer.use, now)

    def views(self, ids: Sequence[int]) -> list[int]:
        """The views outside that the drop took along because they read these, or one another."""
        reached = [*ids]
        for id in reached:
            for user in _users(self._catalog.get(self._before, id)):
                view = self._definer.use.descriptor(user)
                if isinstance(view, View) and user not in reached and self._dropped_at(user) == self._at:
                    reached.append(user)
        found = reached[len(ids) :]
        while lost := [id for id in found if not self._can_come_back(id, [*ids, *found])]:
            found = [id for id in found if id not in lost]
        return found

    def _can_come_back(self, id: int, ids: Sequence[int]) -> bool:
        view = self._definer.use.descriptor(id)
        assert isinstance(view, View)
        needed = [view.schema, *(each.id for each in view.depends)]
        there = (self._definer.use.descriptor(each) for each in needed if each not in ids)
        is_free = self._definer.use.id_at(place_of(view)) is None
        return is_free and all(each is not None and not is_dropped(each) for each in there)

    def left_out(self, ids: Sequence[int]) -> list[str]:
        """What used these right before the drop and does not come back."""
        return [line for id in ids for line in self._lost_of(self._catalog.get(self._before, id), ids)]

    def _lost_of(self, former: AnyDescriptor | None, ids: Sequence[int]) -> Iterator[str]:
        if isinstance(former, Table):
            for key in former.foreign_keys:
                if key.target not in ids:
                    yield f"constraint {key.name} on {self._title(former)}"
            for inbound in former.inbound:
                referring = self._catalog.get(self._before, inbound.table)
                if isinstance(referring, Table) and referring.id not in ids:
                    key = next(each for each in referring.foreign_keys if each.id == inbound.constraint)
                    yield f"constraint {key.name} on {self._title(referring)}"
        owned = former.owned_by if isinstance(former, SequenceDescriptor) else None
        for user in _users(former):
            using = self._catalog.get(self._before, user)
            if using is None or user in ids or (owned is not None and owned.table == user):
                continue
            assert former is not None
            is_view = isinstance(using, View)
            yield self._title(using) if is_view else f"the use of {title(former)} by {self._title(using)}"

    def _title(self, descriptor: AnyDescriptor) -> str:
        schema = (
            self._catalog.get(self._before, descriptor.schema) if isinstance(descriptor, Contained) else None
        )
        return title(descriptor, schema)


def _users(descriptor: AnyDescriptor | None) -> tuple[int, ...]:
    match descriptor:
        case EnumType():
            return descriptor.referents
        case Table() | View() | SequenceDescriptor():
            return descriptor.dependents
        case _:
            return ()
