"""How long a call computes without asking whether it may go on.

Time is that which the thread computes, so that a machine with other work makes no difference. A call that
asks often enough both ends soon when it is told to, and lets other threads have their turn: what does not
ask for long is one call of a library, during which nobody else runs.

Walk: `tests.limits.run` and `tests.limits.test_limits` call `measured`.
"""

from time import thread_time
from typing import NamedTuple

from tenure.base.errors import TenureError
from tenure.base.interruptible import checked_by
from tests.limits.calls import Call

TIMEOUT_SECONDS = 0.5
PAUSE_SECONDS_MAX = 0.25
"""The longest that a call may compute without asking."""


class TimeUp(Exception):
    pass


class Measured(NamedTuple):
    longest_seconds: float
    """Between two questions; also from the last one to the end."""
    seconds: float
    outcome: str
    """"answer", "time-out", or the name of an error."""


class _Clock:
    def __init__(self) -> None:
        self.started = self.asked = thread_time()
        self.longest = 0.0

    def check(self) -> None:
        self.note()
        if self.asked - self.started > TIMEOUT_SECONDS:
            raise TimeUp

    def note(self) -> None:
        now = thread_time()
        self.longest = max(self.longest, now - self.asked)
        self.asked = now


def measured(call: Call) -> Measured:
    """Raises what is no error of ours: a bug."""
    clock = _Clock()
    try:
        with checked_by(clock.check):
            call.run()
        outcome = "answer"
    except TimeUp:
        outcome = "time-out"
    except TenureError as error:
        outcome = type(error).__name__
    clock.note()
    return Measured(clock.longest, clock.asked - clock.started, outcome)
