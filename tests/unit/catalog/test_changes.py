"""Changes of what is a table's own, and changes as values."""

from tenure.catalog.changes.table_changes import (
    DropColumn,
    SetComment,
    SetLocked,
    SetOwner,
    free_name,
)
from tests.unit.catalog.tables import (
    INT,
    TEXT,
    column,
    declared,
    users,
)


def test_owner_lock_and_comment_change_at_once() -> None:
    table = declared(users(), SetOwner("ann"), SetLocked(True), SetComment("people"))
    assert table == users(owner="ann", is_lock_kept=True, comment="people")


def test_names_are_made_as_postgresql_makes_them() -> None:
    assert free_name([], "users", "age", "idx") == "users_age_idx"
    assert free_name(["users_age_idx"], "users", "age", "idx") == "users_age_idx1"
    assert len(free_name([], "u" * 80, "idx")) == 63


def test_changes_are_plain_data() -> None:
    assert column("a") == column("a")
    assert hash(DropColumn("a")) == hash(DropColumn("a"))
    assert column("a", type=INT) != column("a", type=TEXT)
