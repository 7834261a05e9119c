"""The rights of a session: of the role that it acts as, by the newest lease and its own transaction.

    session_user    who logged in
    current_user    the same, or the role of SET ROLE: its rights count

A session knows its roles by their ids: it goes on when one is renamed, and has no rights when one was
dropped, even if there is another of that name.

Rights are those of the newest lease, also where a transaction uses an older one or reads the past. What the
transaction itself has granted or revoked counts in it at once.

Walk: `sql.session.session_state` has one; statements call `current`, plans `StatementNeeds.require`.
"""

from typing import Any, Protocol

from tenure.base.errors import InsufficientPrivilege, InvalidParameter
from tenure.catalog.accounts.rights import Need, Rights, check_needs
from tenure.catalog.descriptors.role_records import WHOLE_OBJECT
from tenure.catalog.leases.access_sources import access_source
from tenure.sql.session.block import Block
from tenure.sql.session.services import Services

GONE = ""
"""In place of the name of a role that was dropped: nobody's, so that it has no rights."""


LOGIN = "\0"
"""In place of the name of the role that logged in: by now SET ROLE may lead to another role of that name."""


class ActingSession(Protocol):
    @property
    def services(self) -> Services: ...

    @property
    def session_user(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def block(self) -> Block | None: ...

    @property
    def access(self) -> "SessionRights": ...


class SessionRights:
    __slots__ = ("_cached", "_ids", "_names", "_names_by", "_services", "_session")

    def __init__(self, session: ActingSession, services: Services) -> None:
        self._session = session
        self._services = services
        self._cached: tuple[Any, Rights] | None = None
        """The rights by one lease."""
        self._ids: dict[str, int] = {}
        """The roles that the session acts as: by the name that each had when it was first asked for."""
        self._names: dict[str, str] = {}
        self._names_by: Any = None
        """The names of those by one lease."""

    def log_in(self, name: str) -> None:
        """Fixes whose session it is, before its first statement: not that of a later role of the name."""
        newest = self._services.leases.newest
        role = None if newest is None else newest.roles.role(name)
        if role is not None:
            self._ids[LOGIN] = role.id

    def login_now(self, name: str) -> str:
        """The present name of the role that logged in under a name."""
        return self.name_now(LOGIN if LOGIN in self._ids else name)

    def name_now(self, name: str) -> str:
        """The present name of a role that the session acts as: it may have been renamed. GONE if it was
        dropped: another role of the same name is not the session's.
        """
        newest = self._services.leases.newest
        if newest is None:
            return name
        if newest is not self._names_by:
            self._names, self._names_by = {}, newest
        found = self._names.get(name)
        if found is None:
            graph = newest.roles
            if name not in self._ids:
                role = graph.role(name)
                if role is None:
                    return name  # made by the transaction that acts as it
                self._ids[name] = role.id
            role = graph.by_id(self._ids[name])
            found = self._names[name] = GONE if role is None else role.name
        return found

    def current(self, block: Block | None = None) -> Rights:
        """The rights of the current user; with a block, as its transaction has changed them."""
        return self.of(self._session.user, block)

    def of(self, role: str, block: Block | None = None) -> Rights:
        services, newest = self._services, self._services.leases.newest
        use = None if block is None else block.begun
        draft = None if use is None else use.draft
        cached = self._cached
        if cached is not None and cached[0] is newest and cached[1].role == role and not draft:
            return cached[1]
        rights = Rights(access_source(services.store, services.catalog, newest, draft), role)
        if newest is not None and not draft:
            self._cached = newest, rights
        return rights

    def check_role(self, role: str) -> None:
        """Called by SET ROLE. Raises InsufficientPrivilege (42501) for one that the user may not act as."""
        user = self._session.session_user
        graph = self.of(user, self._session.block).graph
        if graph.role(role) is None:
            raise InvalidParameter(f'role "{role}" does not exist')
        if not graph.may_become(user, role):
            raise InsufficientPrivilege(f'permission denied to set role "{role}"')
        self._ids.pop(role, None)
        self._names.pop(role, None)
        self.name_now(role)


class StatementNeeds:
    """The needs of one plan, with the lease and role for which they were last found to be met."""

    __slots__ = ("_needs", "_objects", "_owners", "_proof")

    def __init__(self) -> None:
        self._needs: dict[Need, None] = {}
        self._objects: set[tuple[int, int]] = set()
        """The objects of the needs, each with the view whose owner is asked."""
        self._owners: dict[int, str] = {}
        """The owners of temporary views, by the names that they had when the views were made."""
        self._proof: tuple[Any, str] | None = None

    def note_owner(self, view: int, owner: str) -> None:
        """Of a temporary view, which no catalog has."""
        self._owners[view] = owner

    def add(self, id: int, privilege: int, *, view: int = 0, column: int = WHOLE_OBJECT) -> None:
        """`view`: in its query, so that its owner is asked. `column`: it is used, besides the object."""
        self._needs[Need(id, privilege, view, column)] = None
        self._objects.add((id, view))

    def include(self, id: int, *, view: int = 0) -> bool:
        """Whether anything is needed of the object: not of system tables and temporary ones."""
        return (id, view) in self._objects

    def require_still(self, session: ActingSession, block: Block | None, role: str) -> None:
        """The same for a statement that has begun as this role, before it gives more rows. What its own
        transaction has dropped since is not asked for."""
        services = session.services
        use = None if block is None else block.begun
        source = access_source(
            services.store, services.catalog, services.leases.newest, use.draft if use else None
        )
        left = [each for each in self._needs if source.descriptor(each.id) is not None]
        owners = {view: session.access.name_now(owner) for view, owner in self._owners.items()}
        check_needs(source, session.access.name_now(role), left, owners)

    def require(self, session: ActingSession, block: Block | None) -> None:
        """Raises InsufficientPrivilege (42501) if the session's role lacks something now."""
        if not self._needs:
            return
        newest, role, proof = session.services.leases.newest, session.user, self._proof
        use = None if block is None else block.begun
        has_draft = use is not None and bool(use.draft)
        if proof is not None and proof[0] is newest and proof[1] == role and not has_draft:
            return
        services = session.services
        source = access_source(services.store, services.catalog, newest, use.draft if use else None)
        owners = {view: session.access.name_now(owner) for view, owner in self._owners.items()}
        check_needs(source, role, self._needs, owners)
        if newest is not None and not has_draft:
            self._proof = newest, role
