"""Long work that can be broken off: whoever does it asks now and then whether it may go on.

Walk: `sql.statements.writing`, `table.foreign_keys` and `kv.commits` call a `Check`; SQL's session gives it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Check: TypeAlias = Callable[[], None]
"""Raises if what is under way is to be given up."""

ITEMS_PER_CHECK = 256
"""A row takes some 50 us to write, a check less than one."""


def unchecked() -> None:
    """The check of work that nobody can break off."""


def interruptible(items: Iterable[T], check: Check) -> Iterator[T]:
    """The same items, with a check now and then; few items need none."""
    for number, item in enumerate(items, 1):
        if number % ITEMS_PER_CHECK == 0:
            check()
        yield item
