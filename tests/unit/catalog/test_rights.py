"""What a role may do, over values: no store, no lease."""

import pytest

from tenure.base.errors import DependentObjects, InsufficientPrivilege, InvalidGrant
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.accounts.privileges import (
    INSERT,
    OF_KIND,
    SELECT,
    UPDATE,
    Entries,
    granted,
    held,
    initial,
    revoked,
)
from tenure.catalog.accounts.rights import Need, Rights, check_needs
from tenure.catalog.accounts.role_graph import RoleGraph
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    SearchPath,
    TypeRef,
    View,
    ViewColumn,
)
from tenure.catalog.descriptors.role_records import Membership, ObjectPrivileges, Role

ROLES = [Role("root", 10, is_superuser=True), Role("ann", 11), Role("bob", 12), Role("club", 13)]


def relation(id: int, owner: str) -> View:
    columns = (ViewColumn("a", TypeRef("int4")), ViewColumn("b", TypeRef("int4")))
    first = id, 1, ZERO_AT, f"r{id}", owner, DescriptorState.PUBLIC, (), ()
    return View(*first, 100, 101, "SELECT", columns, SearchPath(100, ()))


class Access:
    """A catalog of some relations."""

    def __init__(self, *relations: AnyDescriptor, members: tuple[Membership, ...] = ()) -> None:
        self._relations = {each.id: each for each in relations}
        self.roles = RoleGraph(ROLES, members)
        self.granted: dict[tuple[int, int], Entries] = {}

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self._relations.get(id)

    def privileges(self, object: int, column: int) -> ObjectPrivileges | None:
        found = self.granted.get((object, column))
        return None if found is None else ObjectPrivileges(object, column, found)

    def grant(self, id: int, grantee: str, bits: int, column: int = 0) -> None:
        before = self.granted.get((id, column), initial("column" if column else "table"))
        self.granted[id, column] = granted(
            before, grantee=grantee, grantor="", bits=bits, with_option=False, owner="ann"
        )


def test_default_is_deny() -> None:
    access = Access(relation(1, "ann"))
    assert Rights(access, "root").held(relation(1, "ann")) == OF_KIND["table"]
    assert Rights(access, "ann").owns(relation(1, "ann"))
    for role in ("bob", "gone"):
        rights = Rights(access, role)
        assert rights.held(relation(1, "ann")) == 0
        with pytest.raises(InsufficientPrivilege, match="must be owner of view r1"):
            rights.require_owner(relation(1, "ann"))
        with pytest.raises(InsufficientPrivilege, match="permission denied for view r1"):
            check_needs(access, role, [Need(1, SELECT)])


def test_privileges_come_from_the_role_from_those_it_inherits_and_from_public() -> None:
    access = Access(relation(1, "ann"), members=(Membership("club", "bob", "root"),))
    access.grant(1, "club", SELECT)
    access.grant(1, "public", INSERT)
    assert Rights(access, "bob").held(relation(1, "ann")) == SELECT | INSERT
    assert Rights(access, "club").held(relation(1, "ann")) == SELECT | INSERT
    check_needs(access, "bob", [Need(1, SELECT), Need(1, INSERT)])
    assert not Rights(access, "gone").has(relation(1, "ann"), INSERT)


def test_what_is_behind_a_view_is_asked_of_its_owner() -> None:
    access = Access(relation(1, "ann"), relation(2, "ann"))
    access.grant(2, "bob", SELECT)
    check_needs(access, "bob", [Need(2, SELECT), Need(1, SELECT, view=2)])
    with pytest.raises(InsufficientPrivilege, match="view r1"):
        check_needs(access, "bob", [Need(2, SELECT), Need(1, SELECT)])


@pytest.mark.invariant("grant-chains")
def test_a_privilege_does_not_outlive_the_option_it_was_granted_by() -> None:
    def grant(entries: Entries, grantee: str, grantor: str, *, with_option: bool) -> Entries:
        how = {"bits": SELECT, "with_option": with_option, "owner": "ann"}
        return granted(entries, grantee=grantee, grantor=grantor, **how)  # type: ignore[arg-type]

    chain = grant(initial("table"), "bob", "ann", with_option=True)
    chain = grant(chain, "club", "bob", with_option=True)
    with pytest.raises(InvalidGrant):
        grant(chain, "bob", "club", with_option=True)
    how = {"grantee": "bob", "grantor": "ann", "bits": SELECT, "owner": "ann"}
    for option_only in (True, False):
        with pytest.raises(DependentObjects):
            revoked(chain, **how, option_only=option_only, cascade=False)  # type: ignore[arg-type]
    left = revoked(chain, **how, option_only=True, cascade=True)  # type: ignore[arg-type]
    assert held(left, ("bob",), "ann") == SELECT
    assert held(left, ("club",), "ann") == 0
    left = revoked(chain, **how, option_only=False, cascade=True)  # type: ignore[arg-type]
    assert left == initial("table")


def test_the_owner_may_lose_a_privilege_and_a_new_owner_has_what_the_former_had() -> None:
    how = {"grantee": "ann", "grantor": "ann", "owner": "ann"}
    left = revoked(initial("table"), **how, bits=UPDATE, option_only=False, cascade=False)
    assert not held(left, ("ann",), "ann") & UPDATE
    assert held(left, ("bob",), "bob") & SELECT
    assert not held(left, ("ann",), "bob")
