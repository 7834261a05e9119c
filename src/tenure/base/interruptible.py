"""Long work that can be broken off: it calls a check now and then, which raises if the work is to stop.

Work over rows is handed a `Check` by its caller. SQL functions, and waits for the store deep below, are
called from everywhere and cannot be handed one. So the check of a thread's current work is in a context
variable (`checked_by`). A loop inside a function calls it (`check_now`, `paced`); a wait fetches it
(`current_check`) and calls it now and then. Where none is set, nothing is checked. If it raises,

    a function                   is left
    a read                       is given up and its connection closed
    a commit that was sent       is waited for a little longer (`patient`), then given up as unknown
    a call that knows no check   goes on in a thread that nobody waits for (`abandonable`)

Files of an object store are opened in many places, which have no `Env` to start threads with. So the caller
that sets the check can set the `Env` beside it (`current_env`).

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
"""Raises if the current work is to be given up."""

ITEMS_PER_CHECK = 256
"""A row takes some 50 us to write, a check less than one."""

STEPS_PER_CHECK = 512
"""For a loop over the characters or elements of one value: some 0.1 to 1 ms between checks, and 100 ms for
numbers of 131,072 digits.
"""

LOOK_SECONDS = 0.1
"""The time between two checks of a wait: a cancel must take effect within a second."""


def unchecked() -> None:
    """The check of work that cannot be broken off."""


def interruptible(items: Iterable[T], check: Check) -> Iterator[T]:
    """The same items, with a check now and then; few items need none."""
    for number, item in enumerate(items, 1):
        if number % ITEMS_PER_CHECK == 0:
            check()
        yield item


_current: ContextVar[Check] = ContextVar("check of what is under way", default=unchecked)
_env: ContextVar[Env | None] = ContextVar("environment of what is under way", default=None)


def current_check() -> Check:
    """The check that a wait of this thread calls; `unchecked` if its work cannot be broken off."""
    return _current.get()


def current_env() -> Env | None:
    """The environment with which a call of this thread becomes `abandonable`; None if its work cannot be
    broken off.
    """
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
    """Raises if the work of this thread is to be given up."""
    _current.get()()


def paced(items: Sequence[T]) -> Iterable[T]:
    """The same items, with a `check_now` now and then; a short sequence comes back as it is."""
    return items if len(items) <= STEPS_PER_CHECK else paced_all(items)


def paced_all(items: Iterable[T]) -> Iterator[T]:
    """As `paced`, for items whose number is not known."""
    check = _current.get()
    for number, item in enumerate(items, 1):
        if not number % STEPS_PER_CHECK:
            check()
        yield item


def patient(check: Check, env: Env, seconds: float) -> Check:
    """The same check, which raises only after its condition has held for so many seconds."""
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
    """Makes a call that cannot be broken off in a thread of its own, if the calling thread can be broken off.
    If the caller stops waiting, `dispose` later receives the result of the call.
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
        except BaseException as error:  # raised in the thread that waits
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
