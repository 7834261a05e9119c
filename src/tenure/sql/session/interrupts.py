"""Interrupts of a statement: its client cancels it, or it runs into a time limit.

    statement_timeout     of the session, else the cluster's sql.statement_timeout    57014
    transaction_timeout   from the transaction's begin; ends the session              25P04
    idle_in_transaction_session_timeout, of the session, else the cluster's with sql. before its name: the
    door ends the session                                                             25P03

Long computations call `check` now and then; waits go through `sleep` and `pause`. A statement that a job runs
also stops with the job: `watch` is given the job's check.

Walk: `sql.clients.session` calls `start` with each statement; executors call `check`; the door calls
`cancel`.
"""

from tenure.base.env import Env
from tenure.base.errors import QueryCanceled, StatementTimeout, TransactionTimeout
from tenure.base.interruptible import LOOK_SECONDS, Check, unchecked
from tenure.base.settings import IDLE_IN_TRANSACTION_TIMEOUT, STATEMENT_TIMEOUT, Setting
from tenure.cluster.settings import ClusterSettings
from tenure.sql.session.activity import Activity
from tenure.sql.session.answers import NotShort, Timeouts
from tenure.sql.session.variables import Variables

LATE_SECONDS = 0.001
"""A wait that a time-out cuts short ends just after it."""


class Interrupts:
    def __init__(self, env: Env, settings: ClusterSettings, variables: Variables, activity: Activity) -> None:
        self._env = env
        self._settings = settings
        self._variables = variables
        self._activity = activity
        self._canceled = self._env.event()
        self._ends_at: float | None = None
        self._received_at: float | None = None
        self._watched: Check = unchecked

    def watch(self, check: Check) -> None:
        """From now on this is asked, too; a sleep asks it every `LOOK_SECONDS`."""
        self._watched = check

    def received(self, at: float | None) -> None:
        """When the next statement was received: the time it waits for a thread counts for its limit."""
        self._received_at = at

    def start(self) -> None:
        """A statement begins: what came before is forgotten."""
        if self._canceled.is_set():
            self._canceled.clear()
        received_at = self._received_at
        values = self._variables.values
        if "statement_timeout" not in values and "transaction_timeout" not in values:
            seconds = self._settings.current()[STATEMENT_TIMEOUT]
            self._ends_at = self._since(received_at) + seconds if seconds else None
            return
        ends_at, whole_ends_at = self._statement_ends_at(received_at), self.transaction_ends_at()
        if ends_at is None or whole_ends_at is None:
            self._ends_at = whole_ends_at if ends_at is None else ends_at
        else:
            self._ends_at = min(ends_at, whole_ends_at)

    def _statement_ends_at(self, received_at: float | None) -> float | None:
        seconds = self._seconds("statement_timeout", STATEMENT_TIMEOUT)
        if seconds is None:
            return None
        return self._since(received_at) + seconds

    def _since(self, received_at: float | None) -> float:
        return self._env.monotonic() if received_at is None else received_at

    def _seconds(self, variable: str, otherwise: Setting[float]) -> float | None:
        """The session's setting, else the cluster's. None: no limit."""
        if variable in self._variables.values:
            return self._variables.seconds(variable)
        return self._settings.current()[otherwise] or None

    def timeouts(self) -> Timeouts:
        """For the door, which ends sessions that are idle for too long."""
        ends_at = self.transaction_ends_at()
        return Timeouts(
            self._variables.seconds("idle_session_timeout") or 0.0,
            self._seconds("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT) or 0.0,
            0.0 if ends_at is None else max(LATE_SECONDS, ends_at - self._env.monotonic()),
            self._seconds("statement_timeout", STATEMENT_TIMEOUT) or 0.0,
        )

    def transaction_ends_at(self) -> float | None:
        if "transaction_timeout" not in self._variables.values:
            return None
        seconds = self._variables.seconds("transaction_timeout")
        if seconds is None:
            return None
        block = self._activity.block
        return (self._env.monotonic() if block is None else block.began) + seconds

    def check(self) -> None:
        """Raises if the statement must not go on."""
        self.check_time()
        block = self._activity.block
        if block is not None and block.past is None and block.has_begun:
            block.use.check()

    def check_time(self) -> None:
        """Raises if it was canceled, or its time is up."""
        self._watched()
        if self._canceled.is_set():
            raise QueryCanceled("canceling statement due to user request")
        if self._ends_at is not None and self._env.monotonic() > self._ends_at:
            self._time_is_up()

    def _time_is_up(self) -> None:
        ends_at = self.transaction_ends_at()
        if ends_at is not None and self._env.monotonic() > ends_at:
            raise TransactionTimeout("terminating connection due to transaction timeout")
        raise StatementTimeout("canceling statement due to statement timeout")

    def sleep(self, seconds: float) -> None:
        """Waits, unless it is interrupted."""
        if self._activity.is_inline:
            raise NotShort
        until = self._env.monotonic() + seconds
        while (left := until - self._env.monotonic()) > 0:
            if self._ends_at is not None:
                left = min(left, max(0.0, self._ends_at - self._env.monotonic()) + LATE_SECONDS)
            if self._watched is not unchecked:
                left = min(left, LOOK_SECONDS)
            with self._env.waiting():
                self._canceled.wait(left)
            self.check()

    def pause(self, seconds: float) -> None:
        """Waits between two tries: a random time up to this one."""
        with self._env.waiting():
            self._canceled.wait(self._env.rng.uniform(0, seconds))
        self.check()

    def cancel(self) -> None:
        """From any thread."""
        self._canceled.set()
