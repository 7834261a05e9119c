"""What a role may do."""

import pytest

from tenure.base.errors import InsufficientPrivilege
from tenure.catalog.accounts.rights import is_superuser, require_superuser
from tenure.catalog.accounts.users import User

ROOT = User("root", is_superuser=True)
ANNA = User("anna")


def test_a_superuser_may() -> None:
    assert is_superuser(ROOT)
    require_superuser(ROOT, "permission denied")


@pytest.mark.parametrize("role", [ANNA, None], ids=["another role", "a role that is gone"])
def test_others_may_not_and_are_told_so(role: User | None) -> None:
    assert not is_superuser(role)
    with pytest.raises(InsufficientPrivilege, match="permission denied") as refused:
        require_superuser(role, "permission denied", detail="Only superusers.", hint="Ask one.")
    assert (refused.value.detail, refused.value.hint) == ("Only superusers.", "Ask one.")
