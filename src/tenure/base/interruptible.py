"""Long work that can be broken off: whoever does it asks now and then whether it may go on.

What waits deep below, for a store's answer say, is not handed a check by everybody above it. So a thread that
works for a statement has a check of its own (`checked`), and whoever waits there asks `current_check`. If it
raises,

    a read                       is given up and its connection closed
    a commit that was sent       is waited for a little longer (`patient`), then given up as unknown
    a call that knows no check   goes on in a thread that nobody waits for (`abandonable`)

Walk: `pgwire.conversation` sets the check of a statement's thread; `storage` and `kv.commits` ask for it;
`sql.statements.writing`, `table.foreign_keys` and `kv.commits` are handed one.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeAlias, TypeVar

from tenure.base.env import Env
from tenure.base.errors import TenureError

T = TypeVar("T")

Check: TypeAlias = Callable[[], None]
"""Raises if what is under way is to be given up."""

ITEMS_PER_CHECK = 256
"""A row takes some 50 us to write, a check less than one."""

LOOK_SECONDS = 0.1
"""Between two checks of a wait: a cancel is to be heeded within a second."""


def unchecked() -> None:
    """The check of work that nobody can break off."""


def interruptible(items: Iterable[T], check: Check) -> Iterator[T]:
    """The same items, with a check now and then; few items need none."""
    for number, item in enumerate(items, 1):
        if number % ITEMS_PER_CHECK == 0:
            check()
        yield item


_current: ContextVar[Check] = ContextVar("check", default=unchecked)


def current_check() -> Check:
    """What whoever waits in this thread asks; `unchecked` if nobody can break its work off."""
    return _current.get()


@contextmanager
def checked(check: Check) -> Iterator[None]:
    """Waits of this thread ask this check meanwhile."""
    before = _current.set(check)
    try:
        yield
    finally:
        _current.reset(before)


def patient(check: Check, env: Env, seconds: float) -> Check:
    """The same check, which raises only when it would have for so long."""
    if check is unchecked:
        return unchecked
    since: float | None = None

    def ask() -> None:
        nonlocal since
        try:
            check()
        except TenureError:
            now = env.monotonic()
            since = now if since is None else since
            if now >= since + seconds:
                raise

    return ask


def abandonable(
    env: Env, name: str, work: Callable[[], T], dispose: Callable[[T], None] = lambda result: None
) -> T:
    """Does what cannot be broken off in a thread of its own, if this one can be: then nobody waits for it
    any more, and `dispose` is given what comes of it after all.
    """
    check = current_check()
    if check is unchecked:
        return work()
    call = _Call(env, work, dispose)
    env.spawn(name, call.run)
    try:
        while not call.done.wait(LOOK_SECONDS):
            check()
    except BaseException:
        call.abandon()
        raise
    return call.result()


class _Call(Generic[T]):
    def __init__(self, env: Env, work: Callable[[], T], dispose: Callable[[T], None]) -> None:
        self._work = work
        self._dispose = dispose
        self._lock = env.lock()
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._is_abandoned = False
        self.done = env.event()

    def run(self) -> None:
        try:
            result = self._work()
        except BaseException as error:  # whoever waits raises it
            self._error = error
        else:
            with self._lock:
                if not self._is_abandoned:
                    self._results.append(result)
            if not self._results:
                self._dispose(result)
        self.done.set()

    def abandon(self) -> None:
        with self._lock:
            self._is_abandoned = True
        for result in self._results:
            self._dispose(result)

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        (result,) = self._results
        return result
