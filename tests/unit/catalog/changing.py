"""A table before and after changes, and what a refused change says."""

import pytest

from tenure.base.errors import UserError
from tenure.catalog.changes.table_changes import (
    TableChange,
)
from tenure.catalog.descriptors.definitions import (
    ElementState,
    Table,
    visible,
)
from tenure.catalog.descriptors.elements import is_finished
from tests.unit.catalog.tables import (
    declared,
    stages,
    users,
)

DELETE_ONLY, WRITE_ONLY, PUBLIC = ElementState


def done(*changes: TableChange, table: Table | None = None) -> Table:
    """The users after some changes, which are walked through."""
    before = users() if table is None else table
    after = [*stages(before, declared(before, *changes))][-1]
    assert is_finished(after)
    return after


def refused(change: TableChange, table: Table | None = None) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        change.apply(users() if table is None else table)
    return caught.value.sqlstate, str(caught.value)


def names(table: Table) -> list[str]:
    return [each.name for each in visible(table.columns) if not each.is_hidden]
