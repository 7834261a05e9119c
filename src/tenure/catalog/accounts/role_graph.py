"""Who is a member of whom, and what follows from it: values in, answers out.

    GRANT editors TO ann WITH ADMIN TRUE, INHERIT TRUE, SET TRUE

    inherits    ann has the privileges of editors
    can_set     ann may SET ROLE editors
    has_admin   ann may make others members of editors

Each option counts along a path of memberships that all have it. Being a superuser is never inherited.

Invariant (role-cycles): no role is a member of itself, by any path.

Walk: `catalog.leases.catalog_cache` makes one for each state of the roles; `catalog.accounts.rights` asks it.
"""

from collections.abc import Callable, Iterable, Iterator

from tenure.catalog.descriptors.role_records import Membership, Role

NOBODY: frozenset[str] = frozenset()


class RoleGraph:
    def __init__(self, roles: Iterable[Role], memberships: Iterable[Membership]) -> None:
        self._roles = {each.name: each for each in roles}
        self._by_id = {each.id: each for each in self._roles.values()}
        self._of_member: dict[str, list[Membership]] = {}
        self.memberships = tuple(memberships)
        for each in self.memberships:
            self._of_member.setdefault(each.member, []).append(each)
        self._inherited: dict[str, frozenset[str]] = {}

    def __iter__(self) -> Iterator[Role]:
        return iter(self._roles.values())

    def role(self, name: str) -> Role | None:
        return self._roles.get(name)

    def by_id(self, id: int) -> Role | None:
        """A role by what stays the same when it is renamed."""
        return self._by_id.get(id)

    def is_superuser(self, name: str) -> bool:
        role = self._roles.get(name)
        return role is not None and role.is_superuser

    def with_rights_of(self, name: str) -> frozenset[str]:
        """The roles whose privileges it has: itself and those that it inherits from; none if it is gone."""
        found = self._inherited.get(name)
        if found is None:
            found = self._reached(name, lambda each: each.inherits) if name in self._roles else NOBODY
            self._inherited[name] = found
        return found

    def may_become(self, name: str, other: str) -> bool:
        """Whether SET ROLE may go from one to the other."""
        return self.is_superuser(name) or other in self._reached(name, lambda each: each.can_set)

    def is_member(self, name: str, of: str) -> bool:
        """By any path, its options do not count; each role is a member of itself."""
        return of in self._reached(name, lambda each: True)

    def may_administer(self, name: str, role: str) -> bool:
        """Whether it may change and give out memberships of a role."""
        if self.is_superuser(name):
            return True
        own = self.with_rights_of(name)
        return any(each.has_admin and each.role == role for member in own for each in self.of_member(member))

    def of_member(self, member: str) -> list[Membership]:
        return self._of_member.get(member, [])

    def _reached(self, name: str, leads_on: Callable[[Membership], bool]) -> frozenset[str]:
        found, waiting = {name}, [name]
        while waiting:
            for each in self.of_member(waiting.pop()):
                if leads_on(each) and each.role not in found:
                    found.add(each.role)
                    waiting.append(each.role)
        return frozenset(found)
