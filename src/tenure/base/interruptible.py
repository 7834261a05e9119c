"""Long work that can be broken off: whoever does it asks now and then whether it may go on.

Work over rows is handed a `Check` by its caller. Functions of SQL, and what waits deep below for the store,
are not: they are called from everywhere. So the check of what a thread does at present stands in a
variable of its own (`checked_by`). A loop inside of a function asks it (`check_now`, `paced`); a wait takes
it (`current_check`) and asks now and then. Where nobody has set one, nothing is checked. If it raises,

    a function                   is left
    a read                       is given up and its connection closed
    a commit that was sent       is waited for a little longer (`patient`), then given up as unknown
    a call that knows no check   goes on in a thread that nobody waits for (`abandonable`)

Files of an object store are opened in many places, which have no `Env` to make threads with. So the one who
sets the check can set the `Env` beside it (`current_env`).

Walk: `pgwire.conversation` sets the check of what it hands to threads; functions of `expr`, `storage` and
`kv.commits` ask it; `sql.statements.dml.writing`, `table.foreign_keys` and `kv.commits` are handed one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
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

STEPS_PER_CHECK = 512
"""Of a loop over the letters or elements of one value: some 0.1 to 1 ms, and 100 ms of numbers of 131,072
digits."""

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


_current: ContextVar[Check] = ContextVar("check of what is under way", default=unchecked)
_env: ContextVar[Env | None] = ContextVar("environment of what is under way", default=None)


def current_check() -> Check:
    """What whoever waits in this thread asks; `unchecked` if nobody can break its work off."""
    return _current.get()


def current_env() -> Env | None:
    """By which a call of this thread becomes `abandonable`; None if nobody can break its work off."""
    return _env.get()


@contextmanager
def checked_by(check: Check, env: Env | None = None) -> Iterator[None]:
    """While it is entered, functions and waits of this thread (or greenlet) ask this check.

    With `env`, calls that know no check are made in threads of that environment.
    """
    before, env_before = _current.set(check), _env.set(env)
    try:
        yield
    finally:
        _current.reset(before)
        _env.reset(env_before)


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
