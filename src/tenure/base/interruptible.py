"""Long work that can be broken off: whoever does it asks now and then whether it may go on.

Work over rows is handed a `Check` by its caller. Functions of SQL are not: they know their arguments only,
and are called from everywhere. So the check of what a thread does at present stands in a variable of its
own (`checked_by`), and a loop inside of a function asks it (`check_now`, `paced`). Where nobody has set
one, nothing is checked.

Walk: `sql.statements.writing`, `table.foreign_keys` and `kv.commits` call a `Check`; SQL's session gives
it. The door sets the check of what it hands to threads; functions of `expr` ask it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Check: TypeAlias = Callable[[], None]
"""Raises if what is under way is to be given up."""

ITEMS_PER_CHECK = 256
"""A row takes some 50 us to write, a check less than one."""

STEPS_PER_CHECK = 512
"""Of a loop over the letters or elements of one value: some 0.1 to 1 ms, and 100 ms of numbers of 131,072
digits."""


def unchecked() -> None:
    """The check of work that nobody can break off."""


def interruptible(items: Iterable[T], check: Check) -> Iterator[T]:
    """The same items, with a check now and then; few items need none."""
    for number, item in enumerate(items, 1):
        if number % ITEMS_PER_CHECK == 0:
            check()
        yield item


_current: ContextVar[Check] = ContextVar("check of what is under way", default=unchecked)


@contextmanager
def checked_by(check: Check) -> Iterator[None]:
    """While it is entered, `check_now` in this thread (or greenlet) asks this check."""
    before = _current.set(check)
    try:
        yield
    finally:
        _current.reset(before)


def check_now() -> None:
    """Raises if what this thread does is to be given up."""
    _current.get()()


def paced(items: Sequence[T]) -> Iterable[T]:
    """The same items, with a `check_now` now and then; a short sequence comes back as it is."""
    return items if len(items) <= STEPS_PER_CHECK else paced_all(items)


def paced_all(items: Iterable[T]) -> Iterator[T]:
    """The same, of items that nobody has counted."""
    check = _current.get()
    for number, item in enumerate(items, 1):
        if not number % STEPS_PER_CHECK:
            check()
        yield item
