"""Memberships, and what CREATE, ALTER, DROP and GRANT of roles may do: decisions over values."""

from collections.abc import Callable

import pytest

from tenure.base.errors import UserError
from tenure.catalog.accounts import role_definitions
from tenure.catalog.accounts.role_graph import RoleGraph
from tenure.catalog.descriptors.role_records import Membership, Role

ROOT = Role("root", 10, is_superuser=True, can_login=True)
MAKER = Role("maker", 11, can_create_roles=True)
NAMES = ("ann", "editors", "staff", "guests")
ROLES = [ROOT, MAKER, *(Role(name, 20 + at) for at, name in enumerate(NAMES))]


def graph(*memberships: Membership) -> RoleGraph:
    return RoleGraph(ROLES, memberships)


def refusal(work: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(UserError) as caught:
        work(*arguments)
    return caught.value.sqlstate


def test_privileges_are_inherited_along_memberships_that_inherit() -> None:
    found = graph(
        Membership("editors", "ann", "root"),
        Membership("staff", "editors", "root"),
        Membership("guests", "ann", "root", inherits=False),
    )
    assert found.with_rights_of("ann") == {"ann", "editors", "staff"}
    assert found.with_rights_of("staff") == {"staff"}
    assert found.with_rights_of("nobody") == set()


def test_set_role_follows_memberships_that_allow_it() -> None:
    found = graph(
        Membership("editors", "ann", "root", can_set=False),
        Membership("guests", "ann", "root", inherits=False),
    )
    assert found.may_become("ann", "guests") and found.may_become("ann", "ann")
    assert not found.may_become("ann", "editors")
    assert found.may_become("root", "ann")


def test_being_a_superuser_is_not_inherited() -> None:
    found = graph(Membership("root", "ann", "root"))
    assert not found.is_superuser("ann")
    assert found.may_become("ann", "root")


@pytest.mark.invariant("role-cycles")
def test_a_cycle_is_refused() -> None:
    found = graph(Membership("editors", "ann", "root"), Membership("staff", "editors", "root"))
    for role, member in (("ann", "staff"), ("ann", "ann"), ("editors", "staff")):
        checked = Membership(role, member, "root")
        assert refusal(role_definitions.check_membership, found, checked) == "0LP01"
    role_definitions.check_membership(found, Membership("guests", "staff", "root"))


def test_only_a_member_with_the_admin_option_gives_a_role_out() -> None:
    found = graph(Membership("editors", "ann", "root", has_admin=True), Membership("staff", "ann", "root"))
    assert role_definitions.grantor_of(found, "ann", "editors") == "ann"
    assert role_definitions.grantor_of(found, "root", "editors") == "root"
    assert refusal(role_definitions.grantor_of, found, "ann", "staff") == "42501"
    assert refusal(role_definitions.grantor_of, found, "ann", "gone") == "42704"


def test_a_role_with_createrole_makes_roles_and_administers_those_alone() -> None:
    made, membership = role_definitions.creation(graph(), "maker", "new", 30, {"can_login": True})
    assert made == Role("new", 30, can_login=True)
    assert membership is not None and membership.has_admin and not membership.inherits
    found = RoleGraph([*ROLES, made], [membership])
    role_definitions.check_drop(found, "maker", "new")
    assert refusal(role_definitions.check_drop, found, "maker", "ann") == "42501"
    assert refusal(role_definitions.check_drop, found, "maker", "root") == "42501"
    for attribute in ("is_superuser", "can_create_databases"):
        asked = {attribute: True}
        assert refusal(role_definitions.creation, graph(), "maker", "x", 31, asked) == "42501"
        assert refusal(role_definitions.alteration, found, "maker", "new", asked) == "42501"
    assert refusal(role_definitions.creation, graph(), "ann", "x", 31, {}) == "42501"


def test_a_user_changes_its_own_password_and_nothing_else() -> None:
    assert role_definitions.alteration(graph(), "ann", "ann", {}) == Role("ann", 20)
    assert refusal(role_definitions.alteration, graph(), "ann", "ann", {"can_login": True}) == "42501"
    assert refusal(role_definitions.alteration, graph(), "ann", "staff", {}) == "42501"


@pytest.mark.invariant("root-stays")
def test_root_can_be_neither_dropped_nor_locked_out() -> None:
    assert refusal(role_definitions.check_drop, graph(), "root", "root") == "2BP01"
    for attribute in ("is_superuser", "can_login"):
        asked = {attribute: False}
        assert refusal(role_definitions.alteration, graph(), "root", "root", asked) == "0A000"


@pytest.mark.parametrize(
    ("name", "sqlstate"),
    [
        ("ann", "42710"),
        ("public", "42939"),
        ("none", "42939"),
        ("pg_monitor", "42939"),
        ("", "42602"),
        ("a\0b", "42602"),
        ("x" * 64, "42622"),
        ("é" * 32, "42622"),
    ],
)
def test_a_name_that_no_role_may_have_is_refused(name: str, sqlstate: str) -> None:
    assert refusal(role_definitions.creation, graph(), "root", name, 30, {}) == sqlstate
