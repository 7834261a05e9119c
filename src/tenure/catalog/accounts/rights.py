"""The rights of a role: the one place that decides them.

    superuser        everything
    owner            an object itself: alter, drop, grant; and its privileges, unless revoked
    privileges       of the role, of the roles that it inherits from, and of PUBLIC
    nothing else     default deny; a role that does not exist may do nothing

A planned statement has a list of **needs**: objects, columns of them, and privileges. What was not granted on
a table may have been granted on its columns: then each column that the statement uses needs it; one that uses
none, as `SELECT count(*)`, needs it on any. Needs inside of a view are asked of the view's owner. They are
asked at each execution, of the newest lease, also where the transaction reads an older version or time. A
statement remembers the lease and role for which the answer was yes, so that asking again costs nothing until
one of them changes.

Invariant (needs-newest): a statement that begins after a REVOKE has returned does not run by the old right.

Walk: `sql.session.session_rights` makes a `Rights` for the session's role, and calls `check_needs` before a
plan runs; `sql.statements.ddl.definition` hands the rights to the statements that define.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from tenure.base.errors import InsufficientPrivilege
from tenure.catalog.accounts import privileges as bits
from tenure.catalog.accounts.column_privileges import column_names
from tenure.catalog.accounts.privileges import Entries, grantable, held, initial, kind_of, noun_of
from tenure.catalog.accounts.role_graph import RoleGraph
from tenure.catalog.descriptors.definitions import AnyDescriptor, Schema
from tenure.catalog.descriptors.role_records import PUBLIC_ROLE, WHOLE_OBJECT, ObjectPrivileges


class AccessSource(Protocol):
    """The leased part of the catalog that rights are decided by."""

    @property
    def roles(self) -> RoleGraph: ...

    def privileges(self, object: int, column: int) -> ObjectPrivileges | None: ...

    def descriptor(self, id: int) -> AnyDescriptor | None: ...


class Need(NamedTuple):
    """What a plan needs of an object."""

    id: int
    privilege: int
    """One bit, or several of which one is enough."""
    view: int = 0
    """The view whose owner is asked; 0: the session's role."""
    column: int = WHOLE_OBJECT
    """A column, for which the privilege may have been granted alone; WHOLE_OBJECT: any of them will do."""


class Rights:
    """What one role may do, by one state of the catalog."""

    __slots__ = ("_roles", "_source", "is_superuser", "role")

    def __init__(self, source: AccessSource, role: str) -> None:
        graph = source.roles
        self._source = source
        self.role = role
        self.is_superuser = graph.is_superuser(role)
        self._roles = frozenset({role}) if role == PUBLIC_ROLE else graph.with_rights_of(role)

    @property
    def graph(self) -> RoleGraph:
        return self._source.roles

    @property
    def exists(self) -> bool:
        return bool(self._roles)

    @property
    def roles(self) -> frozenset[str]:
        """Those whose privileges it has."""
        return self._roles

    def of(self, role: str) -> "Rights":
        """Those of another role, by the same state."""
        return Rights(self._source, role)

    def has_rights_of(self, role: str) -> bool:
        return self.is_superuser or role in self._roles

    def owns(self, descriptor: AnyDescriptor) -> bool:
        return self.has_rights_of(descriptor.owner)

    def held(self, descriptor: AnyDescriptor) -> int:
        """The privileges as bits."""
        if not self._roles:
            return 0
        if self.is_superuser:
            return bits.OF_KIND[kind_of(descriptor)]
        return held(self.entries(descriptor), self._roles, descriptor.owner)

    def entries(self, descriptor: AnyDescriptor, column: int = WHOLE_OBJECT) -> Entries:
        """Who was granted what on an object or a column."""
        stored = self._source.privileges(descriptor.id, column)
        if stored is not None:
            return stored.entries
        return initial(kind_of(descriptor) if column == WHOLE_OBJECT else "column")

    def grantable(self, descriptor: AnyDescriptor, column: int = WHOLE_OBJECT) -> int:
        """The privileges that it may grant to others, as bits."""
        kind = kind_of(descriptor) if column == WHOLE_OBJECT else "column"
        if self.is_superuser:
            return bits.OF_KIND[kind]
        return grantable(self.entries(descriptor, column), self._roles, descriptor.owner, kind)

    def stored(self, object: int, column: int = WHOLE_OBJECT) -> ObjectPrivileges | None:
        """What was granted on an object to all roles; None: what its kind begins with."""
        return self._source.privileges(object, column)

    def has(self, descriptor: AnyDescriptor, privilege: int) -> bool:
        """Any of the bits."""
        return bool(self.held(descriptor) & privilege)

    def held_on_column(self, descriptor: AnyDescriptor, column: int) -> int:
        """What was granted on the column alone."""
        if not self._roles:
            return 0
        return held(self.entries(descriptor, column), self._roles, descriptor.owner)

    def has_on_column(self, descriptor: AnyDescriptor, privilege: int, column: int) -> bool:
        """By the table or by the column; of WHOLE_OBJECT, by any of its columns."""
        if self.has(descriptor, privilege):
            return True
        if not privilege & bits.OF_KIND["column"]:
            return False
        columns = column_names(descriptor) if column == WHOLE_OBJECT else (column,)
        return any(self.held_on_column(descriptor, each) & privilege for each in columns)

    def require(self, descriptor: AnyDescriptor, privilege: int) -> None:
        if not self.has(descriptor, privilege):
            raise denied(descriptor)

    def require_on_columns(self, descriptor: AnyDescriptor, privilege: int, columns: Iterable[int]) -> None:
        """On each of these. Raises InsufficientPrivilege (42501)."""
        if not all(self.has_on_column(descriptor, privilege, each) for each in columns):
            raise denied(descriptor)

    def require_owner(self, descriptor: AnyDescriptor) -> None:
        """Raises InsufficientPrivilege (42501) for all but the owner, its members and superusers."""
        if not self.owns(descriptor):
            raise InsufficientPrivilege(f"must be owner of {noun_of(descriptor)} {descriptor.name}")

    def require_superuser(self, message: str, *, detail: str = "", hint: str = "") -> None:
        if not self.is_superuser:
            raise InsufficientPrivilege(message, detail=detail, hint=hint)

    def may_use_schema(self, schema: int) -> bool:
        found = self._source.descriptor(schema)
        return not isinstance(found, Schema) or self.has(found, bits.USAGE)


def denied(descriptor: AnyDescriptor) -> InsufficientPrivilege:
    return InsufficientPrivilege(f"permission denied for {noun_of(descriptor)} {descriptor.name}")


def check_needs(
    source: AccessSource, role: str, needs: Iterable[Need], owners: Mapping[int, str] | None = None
) -> None:
    """Raises InsufficientPrivilege (42501) if something is missing.

    `owners`: those of views that the catalog does not have.
    """
    rights = {0: Rights(source, role)}
    for need in needs:
        judge = rights.get(need.view)
        if judge is None:
            judge = rights[need.view] = Rights(source, _owner(source, need.view, owners or {}))
        found = source.descriptor(need.id)
        if found is None:
            if not judge.is_superuser:
                raise InsufficientPrivilege(f"permission denied for descriptor {need.id}, which is gone")
        elif not judge.has_on_column(found, need.privilege, need.column):
            raise denied(found)


def _owner(source: AccessSource, view: int, owners: Mapping[int, str]) -> str:
    if view in owners:
        return owners[view]
    found = source.descriptor(view)
    return "" if found is None else found.owner


def require_files(rights: Rights, role: str, what: str) -> None:
    """Raises InsufficientPrivilege (42501) for somebody who is no member of a predefined role."""
    if not rights.has_rights_of(role):
        raise InsufficientPrivilege(
            f"permission denied to {what}",
            detail=f'Only roles with privileges of the "{role}" role may {what}.',
        )
