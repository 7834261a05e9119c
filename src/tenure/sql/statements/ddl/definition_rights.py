"""Whether the current user may define what a statement has declared: asked of the draft, for every statement.

    a new object          CREATE on its schema or database, the attribute CREATEDB for a database
    a changed one         its owner; for one that is only referred to by a new foreign key, REFERENCES on
                          the columns that this refers to
    a new column          USAGE on its type; the same for types that a default, CHECK or predicate names
    an emptied table      TRUNCATE
    another owner         a role that the user may act as, and that may create there
    another schema        CREATE on that; another name of a schema: CREATE on its database
    another database      the attribute CREATEDB, for its name and its owner
    a temporary object    TEMPORARY on the database; for a view, a column's type and another owner as above

What a statement changes of an object because others use it now, or do not any more, asks for nothing: a view
on a table, a new schema in its database. What lies in a database that becomes a schema goes along: the
statement has asked for the database. DROP asks for the objects that it names (`require_dropper`), not for
those that CASCADE takes along.

Statements that alter an object ask for it before they begin (`require_owner`): what they do may have effects
at once, as RESTART has, or none. Those that take a name in a schema, also for an index, ask for CREATE on it
(`require_create`).

Walk: `statements.ddl.definition` calls `check_changes` after each statement, and hands the others to the
statements.
"""

from collections.abc import Callable, Iterable

from tenure.base.errors import InsufficientPrivilege
from tenure.catalog.accounts.privileges import CREATE, REFERENCES, TEMPORARY, TRUNCATE, USAGE
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Contained,
    Database,
    EnumType,
    Inbound,
    Schema,
    Table,
    View,
    is_dropped,
    place_of,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.used_types import expressions_of
from tenure.catalog.leases.catalog_use import CatalogUse


def check_changes(
    use: CatalogUse, rights: Rights, before: Draft, *, has_asked: bool, name_now: Callable[[str], str]
) -> None:
    """Raises InsufficientPrivilege (42501) if the user may not make what is in the draft now.

    `has_asked`: the statement has asked for the objects or the role that it names; what it changes of others
    are the effects. `name_now` is the present name of a role of the session: nobody tells its temporary
    objects when their owner is renamed.
    """
    if rights.is_superuser:
        return
    draft = use.draft
    declared = {id: each for id, each in draft.declared.items() if before.declared.get(id) is not each}
    converted = {id for id, each in declared.items() if isinstance(each, Database) and is_dropped(each)}
    for id, descriptor in declared.items():
        former = before.declared.get(id) or _committed(use, id)
        if _is_temporary(use, descriptor):
            _check_temporary(rights, former, descriptor, name_now)
            _check_types(use, rights, _used_types(descriptor) - _used_types(former))
        elif former is None:
            _check_new(use, rights, descriptor)
        elif draft.emptied.get(id) is not before.emptied.get(id):
            rights.require(former, TRUNCATE)
        elif not (has_asked or is_dropped(descriptor) or place_of(former).database in converted):
            _check_changed(use, rights, former, descriptor)


def _check_temporary(
    rights: Rights, former: AnyDescriptor | None, descriptor: AnyDescriptor, name_now: Callable[[str], str]
) -> None:
    """A view reads by the rights of its owner: only somebody who has these may set its query."""
    if former is not None and former.owner != descriptor.owner:
        _require_role(rights, descriptor.owner)
    if isinstance(former, View) and not is_dropped(descriptor) and _essence(former) != _essence(descriptor):
        rights.require_owner(replace(former, owner=name_now(former.owner)))


def require_dropper(use: CatalogUse, rights: Rights, descriptor: AnyDescriptor) -> None:
    """The owner of an object may drop it, and the owner of its schema may."""
    if _is_temporary(use, descriptor):
        return
    schema = use.descriptor(descriptor.schema) if isinstance(descriptor, Contained) else None
    if schema is None or not rights.owns(schema):
        rights.require_owner(descriptor)


def require_owner(use: CatalogUse, rights: Rights, descriptor: AnyDescriptor) -> None:
    """Raises InsufficientPrivilege (42501) for all but the owner; what is temporary is the session's."""
    if not _is_temporary(use, descriptor):
        rights.require_owner(descriptor)


def require_create(use: CatalogUse, rights: Rights, schema: Schema) -> None:
    if use.temporary is None or schema.id != use.temporary.schema.id:
        rights.require(schema, CREATE)


def require_temporary(use: CatalogUse, rights: Rights, database: int) -> None:
    found = use.descriptor(database)
    if found is not None and not rights.has(found, TEMPORARY):
        raise InsufficientPrivilege(
            f'permission denied to create temporary tables in database "{found.name}"'
        )


def _is_temporary(use: CatalogUse, descriptor: AnyDescriptor) -> bool:
    """Whether it is the session's own, so that nobody has to be asked."""
    return use.temporary is not None and place_of(descriptor).schema == use.temporary.schema.id


def _committed(use: CatalogUse, id: int) -> AnyDescriptor | None:
    """As it was before the transaction."""
    if use.draft.is_new(id):
        return None
    change, use.draft = use.draft, Draft()
    try:
        return use.descriptor(id)
    finally:
        use.draft = change


def _check_new(use: CatalogUse, rights: Rights, descriptor: AnyDescriptor) -> None:
    match descriptor:
        case Database():
            require_creator_of_databases(rights, "create database")
        case Schema():
            _require_create(use, rights, descriptor.database)
        case _:
            _require_create(use, rights, descriptor.schema)
    _check_types(use, rights, _used_types(descriptor))
    if descriptor.owner != rights.role:
        _require_role(rights, descriptor.owner)


def _check_changed(use: CatalogUse, rights: Rights, former: AnyDescriptor, descriptor: AnyDescriptor) -> None:
    if _essence(former) != _essence(descriptor):
        rights.require_owner(former)
    for inbound in _references(descriptor) - _references(former):
        rights.require_on_columns(former, REFERENCES, _referenced(use, inbound))
    _check_types(use, rights, _used_types(descriptor) - _used_types(former))
    if former.owner != descriptor.owner:
        _require_role(rights, descriptor.owner)
    check_place(use, rights, former, descriptor)


def check_place(use: CatalogUse, rights: Rights, former: AnyDescriptor, descriptor: AnyDescriptor) -> None:
    """What another name, owner or schema needs where the object lies."""
    has_other_owner, has_other_name = former.owner != descriptor.owner, former.name != descriptor.name
    match descriptor:
        case Database():
            if has_other_name:
                require_creator_of_databases(rights, "rename database")
            if has_other_owner:
                require_creator_of_databases(rights, "change owner of database")
        case Schema():
            if has_other_name or has_other_owner:
                _require_create(use, rights, descriptor.database)
        case _ if has_other_owner:
            _require_create(use, rights.of(descriptor.owner), descriptor.schema)
    if isinstance(descriptor, Contained) and place_of(former).schema != descriptor.schema:
        _require_create(use, rights, descriptor.schema)


def require_creator_of_databases(rights: Rights, what: str) -> None:
    role = rights.graph.role(rights.role)
    if role is None or not (role.can_create_databases or role.is_superuser):
        raise InsufficientPrivilege(f"permission denied to {what}")


def _require_create(use: CatalogUse, rights: Rights, parent: int) -> None:
    found = use.descriptor(parent)
    assert found is not None, "an object is made in a schema, a schema in a database"
    rights.require(found, CREATE)


def _require_role(rights: Rights, role: str) -> None:
    if not rights.graph.may_become(rights.role, role):
        raise InsufficientPrivilege(f'must be able to SET ROLE "{role}"')


def _essence(descriptor: AnyDescriptor) -> AnyDescriptor:
    """Without what says who uses it."""
    match descriptor:
        case Table():
            return replace(descriptor, inbound=(), dependents=(), version=0, is_closed=False)
        case EnumType():
            return replace(descriptor, referents=(), version=0)
        case Database() | Schema():
            return replace(descriptor, version=0)
        case _:
            return replace(descriptor, dependents=(), version=0)


def _references(descriptor: AnyDescriptor) -> set[Inbound]:
    return set(descriptor.inbound) if isinstance(descriptor, Table) else set()


def _referenced(use: CatalogUse, inbound: Inbound) -> tuple[int, ...]:
    """The columns that a foreign key of another table refers to."""
    referring = use.draft.declared.get(inbound.table)
    assert isinstance(referring, Table), "a new reference comes with a change of the referring table"
    return next(each.target_columns for each in referring.foreign_keys if each.id == inbound.constraint)


def _used_types(descriptor: AnyDescriptor | None) -> set[tuple[bytes, int]]:
    """The types that users made, each with what uses it: a column, or an expression."""
    match descriptor:
        case Table():
            columns = {(b"%d" % each.id, each.type.enum) for each in descriptor.columns}
            found = columns | {
                (each.tree, enum) for each in expressions_of(descriptor) for enum in each.enums
            }
        case View():
            found = {(b"%d" % number, each.type.enum) for number, each in enumerate(descriptor.columns, 1)}
        case _:
            return set()
    return {each for each in found if each[1]}


def _check_types(use: CatalogUse, rights: Rights, uses: Iterable[tuple[bytes, int]]) -> None:
    for type_id in {each for _, each in uses}:
        found = use.descriptor(type_id)
        assert found is not None, "a column's type is there"
        rights.require(found, USAGE)
