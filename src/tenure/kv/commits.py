"""Group commit: the commits of a node's threads share one engine transaction.

    thread a: commit ─► queue ─► leads: takes the queue ─► engine.commit ─► wakes b, c, hands on
    thread b: commit ─► queue ─► sleeps ──────────────────────────────────► outcome
    thread d:             commit ─► queue ─► sleeps ──────────────────────► leads the next group

An fsync costs more than all the rest of a commit, so commits that come while one is under way wait for the
next group. There is no dedicated thread: the first thread to come leads, and a leader hands on to the first
waiter. Each waiter sleeps on an event of its own.

Without further measures, threads that commit again and again would alternate in groups of half their number:
those of one group come back just after the next one has left. So a leader gathers: it waits until as many
threads have come as were recently committing, for a fraction of a section's time at most. A thread that
commits alone never waits.

A caller that must not wait, such as an event loop, submits its commit and is called back:

    loop: submit ─► queue ─► goes on ........................ on_done
                      └─► the committer's own thread leads ─────┘

That thread is started by the first submit, ends after a moment without any, and queues like every other. It
never gathers, since commits submitted meanwhile are in the queue already. Submitted and blocking commits
share groups, so a callback may come from any thread that leads.

A group whose connection broke is settled before anything else happens on the lane: refused, or found to have
landed. Until then its members wait, since a wrong answer would be worse. Only an urgent lane does not wait
past its members' deadlines: nothing depends on a heartbeat whose outcome is unknown, and the next group on
the lane keeps an earlier one from landing just as settling does.

A commit can be taken back until its group is sent: while it waits, and before it leads. After that the
section decides, and the canceled statement gets the section's outcome. If the store hangs, a canceled
statement is told after a moment that the outcome is unknown. If its thread is the leader, it leaves its group
to another thread that settles it; until then nothing else happens on the lane.

A leader takes the queue only when it has the engine's section. If another process has the section, a leader
that may be told to stop does not wait there: it passes the lead to the committer's own thread and waits like
the others. So a process that was stopped inside the section delays commits, but they can still be taken back.

Invariant (I5): each commit gets its true outcome, or OutcomeUnknown if it can no longer be found out.

Walk: `Transaction.commit` -> `Committer.commit` -> `_lead` -> `Engine.commit`, `Engine.settle`;
`Transaction.submit` -> `Committer.submit` -> `_run`, in its own thread -> `_lead`.
"""

import logging
from collections import deque
from collections.abc import Callable
from copy import copy
from functools import partial
from itertools import count

from tenure.base.clock import Clock
from tenure.base.env import Env, Task
from tenure.base.errors import (
    Abandoned,
    BelowMark,
    DeadlinePassed,
    Disconnected,
    OutcomeUnknown,
    RetryError,
    TenureError,
    TooEarly,
)
from tenure.base.interruptible import Check, current_check, patient, unchecked
from tenure.base.retries import UNLIMITED, Pauses, Retries
from tenure.base.timestamp import Timestamp, to_text
from tenure.kv import commit_groups
from tenure.storage.engine import Commit, CommitStatus, Engine, Group, Outcome

CLEANUP_SECONDS = 0.5
"""How long a commit without a check of its own goes on after its thread was told to stop."""

GATHER_PART = 0.5
GATHER_SECONDS_MAX = 0.005
"""How long a leader gathers at most: a fraction of the last group's time, and an absolute bound. With 16
threads one half makes groups of 15 instead of 8, one quarter makes 13.
"""

SETTLE_PAUSES = Pauses(0.01, 0.5, spread=0.5)
"""The pauses between two attempts to settle while the store is away."""

CHECK_SECONDS = 0.05
"""How often a commit that waits for its group calls its check."""

GRACE_SECONDS = 0.5
"""How long a canceled statement still waits for a commit that was sent."""

UNDECIDED = "the statement was to end while its commit was on its way: whether it committed is not known"

IDLE_SECONDS = 0.1
"""How long the committer's thread outlives the last submit: starting one costs a thousandth of that."""

CLOSE_SECONDS = 5.0
"""How long a close waits for submitted commits: a group takes less, even one that is settled."""

_log = logging.getLogger(__name__)


class Committer:
    """One lane to the engine: one group at a time is under way on it."""

    def __init__(
        self, engine: Engine, env: Env, clock: Clock, *, max_offset_micros: int, urgent: bool = False
    ) -> None:
        self._engine = engine
        self._env = env
        self._clock = clock
        self.max_offset_micros = max_offset_micros
        self._urgent = urgent
        self._lane = _Lane(engine.open_lane(urgent=urgent))
        self._lock = env.lock()
        self._queue: deque[_Waiter | _SubmittedCommit] = deque()
        self._led = False
        self._expected = 1
        self._gather_seconds = 0.0
        self._gathered = env.event()
        self._closing = env.event()
        self._is_running = False
        """Whether the thread for submitted commits exists."""
        self._task: Task | None = None
        self._is_to_lead = False
        self._called = env.event()

    @property
    def lane(self) -> bytes:
        return self._lane.id

    def renew_lane(self) -> None:
        """Continues with a new lane; a group under way ends on its own lane.

        For a node that starts over under a new session: the node that declared the old session dead closes
        its lanes, now or later.
        """
        self._lane = _Lane(self._engine.open_lane(urgent=self._urgent))

    def commit(self, commit: Commit, check: Check = unchecked) -> Outcome:
        """`check` is called until the commit is sent; if it raises, the commit is taken back and writes
        nothing.

        Without one, the thread's own check is called with patience: a canceled statement may still have to
        clean up.
        """
        waiter = _Waiter(commit, self._env)
        if check is unchecked:
            check = patient(current_check(), self._env, CLEANUP_SECONDS)
        with self._lock:
            leads = self._enqueue(waiter)
        if not leads:
            self._wait(waiter, check)
        while not waiter.is_decided:
            self._gather(waiter, check)
            if not self._lead(may_wait=check is unchecked):
                self._leave_lead(waiter)
                self._wait(waiter, check)
        return waiter.result()

    def submit(
        self, commit: Commit, on_done: Callable[[Outcome | TenureError], None]
    ) -> "Callable[[TenureError], bool]":
        """Like `commit`, but returns at once: `on_done` receives the outcome or the error.

        `on_done` is called from any thread of the committer, while all others wait: it must be quick. Returns
        a function that takes the commit back: unless the commit was sent, it calls `on_done` with its
        argument, an error, and returns True.
        """
        submitted = _SubmittedCommit(commit, on_done, self._call)
        with self._lock:
            if self._enqueue(submitted):
                self._call()
        self._start()
        return partial(self._take_back, submitted)

    def _take_back(self, submitted: "_SubmittedCommit", error: TenureError) -> bool:
        with self._lock:
            if submitted not in self._queue:
                return False
            self._queue.remove(submitted)
        submitted.error = error
        submitted.tell()
        return True

    def _leave_lead(self, waiter: "_Waiter") -> None:
        """Passes the lead to the committer's own thread."""
        with self._lock:
            waiter.woken.clear()
            self._call()
        self._start()

    def _start(self) -> None:
        with self._lock:
            starts, self._is_running = not self._is_running, True
        if starts:
            self._task = self._env.spawn("commits", self._run)

    def _enqueue(self, waiter: "_Waiter | _SubmittedCommit") -> bool:
        """Returns whether the waiter is to lead; called under the lock."""
        self._queue.append(waiter)
        leads, self._led = not self._led, True
        if len(self._queue) == self._expected > 1:
            self._gathered.set()
        return leads

    def _call(self) -> None:
        """Makes the committer's thread the leader; called under the lock."""
        self._is_to_lead = True
        self._called.set()

    def _run(self) -> None:
        while self._await_call():
            try:
                self._lead(may_wait=True)
            except Exception:
                # The members' outcomes are unknown to them; later commits need the thread.
                _log.exception("a group of commits failed unforeseen")

    def _await_call(self) -> bool:
        """Waits until the thread is to lead; False if it was not needed for a while."""
        while True:
            self._called.wait(IDLE_SECONDS)
            with self._lock:
                self._called.clear()
                if self._is_to_lead:
                    self._is_to_lead = False
                    return True
                if not self._queue:
                    self._is_running = False
                    return False

    def _wait(self, waiter: "_Waiter", check: Check) -> None:
        try:
            with self._env.waiting(holds=True):  # it may be woken to lead
                while not waiter.woken.wait(None if check is unchecked else CHECK_SECONDS):
                    check()
        except BaseException as error:
            # The commit is taken back, or the thread is being stopped: if it was to lead, another must.
            with self._lock:
                was_sent = waiter not in self._queue
                if not was_sent:
                    self._queue.remove(waiter)
            if was_sent and isinstance(error, TenureError):
                if waiter.woken.wait(GRACE_SECONDS):
                    return  # too late to be taken back: the outcome is returned
                raise OutcomeUnknown(UNDECIDED) from error
            if not was_sent and waiter.woken.is_set():
                self._hand_on()
            raise

    def _gather(self, leader: "_Waiter", check: Check) -> None:
        """Waits a little for the members of the last group to come back."""
        try:
            check()
            with self._lock:
                is_whole = len(self._queue) >= self._expected
                if not is_whole:
                    self._gathered.clear()
            if not is_whole:
                self._gathered.wait(self._gather_seconds)
        except BaseException:
            # The commit is taken back, or the thread is being stopped: another thread must lead.
            with self._lock:
                self._queue.remove(leader)
            self._hand_on()
            raise

    def _lead(self, *, may_wait: bool) -> bool:
        """Sends one group, and hands on to the first waiter.

        False if it would have to wait for the section, and may not.
        """
        lane = self._lane
        try:
            if not self._engine.enter(lane.id, wait=False):
                if not may_wait:
                    return False
                with self._env.waiting(holds=True):
                    self._engine.enter(lane.id, wait=True)
        except TenureError as error:
            self._fail(self._next_group(), error, self._env.monotonic())
            return True
        group = self._next_group()
        if not group:  # all were taken back
            self._engine.leave(lane.id)
            self._hand_on()
            return True
        try:
            self._conclude(group, lambda: self._send(lane, tuple(waiter.commit for waiter in group)))
        except _LeaderLeft as left:
            self._env.spawn("settling commits", partial(self._conclude, group, left.settle))
            raise left.error from left.cause
        return True

    def _next_group(self) -> "list[_Waiter | _SubmittedCommit]":
        with self._lock:
            return [self._queue.popleft() for _ in range(commit_groups.group_size(self._queue))]

    def _conclude(self, group: "list[_Waiter | _SubmittedCommit]", send: Callable[[], list[Outcome]]) -> None:
        """Tells each member its outcome, and hands on; unless the leader has left."""
        began = self._env.monotonic()
        try:
            outcomes = send()
            self._clock.observe(max(outcome.at for outcome in outcomes))
            for waiter, outcome in zip(group, outcomes, strict=True):
                waiter.outcome = outcome
        except _LeaderLeft:
            raise
        except TenureError as error:
            self._fail(group, error, began)
        except BaseException:
            self._fail(group, OutcomeUnknown("the commit was interrupted"), began)
            raise
        else:
            self._tell(group, began)

    def _fail(self, group: "list[_Waiter | _SubmittedCommit]", error: TenureError, began: float) -> None:
        for waiter in group:
            waiter.error = error
        self._tell(group, began)

    def _tell(self, group: "list[_Waiter | _SubmittedCommit]", began: float) -> None:
        self._gather_seconds = min(GATHER_SECONDS_MAX, GATHER_PART * (self._env.monotonic() - began))
        for waiter in group:
            waiter.tell()
        self._hand_on(sum(1 for waiter in group if waiter.comes_back))

    def _hand_on(self, released: int = 0) -> None:
        with self._lock:
            self._expected = min(commit_groups.GROUP_MAX, released + len(self._queue))
            if self._queue:
                self._queue[0].call()
            else:
                self._led = False

    def _send(self, lane: "_Lane", members: tuple[Commit, ...]) -> list[Outcome]:
        """Releases the section that was entered for it."""
        seq = next(lane.seqs)
        group = Group(lane.id, seq, self._clock.wall_at(), self.max_offset_micros, members)
        settled = partial(self._settled, lane.id, seq, members)
        try:
            try:
                return self._commit(group)
            except Abandoned:
                raise
            except Disconnected:
                return settled()
        except Abandoned as error:
            raise _LeaderLeft(error, settled) from error

    def _commit(self, group: Group) -> list[Outcome]:
        try:
            return self._engine.commit(group)
        finally:
            self._engine.leave(group.lane)

    def _settled(self, lane: bytes, seq: int, members: tuple[Commit, ...]) -> list[Outcome]:
        outcomes = self._settle(lane, seq, self._give_up_at(members))
        if outcomes is None:
            raise RetryError("the connection to the store broke before the commit landed")
        return outcomes

    def _give_up_at(self, members: tuple[Commit, ...]) -> Timestamp | None:
        """The time after which the outcome of a group is useless; None: never."""
        deadlines = [member.deadline_at for member in members if member.deadline_at is not None]
        return max(deadlines) if self._urgent and len(deadlines) == len(members) else None

    def _settle(self, lane: bytes, seq: int, give_up_at: Timestamp | None) -> list[Outcome] | None:
        """Asks until there is an answer: the store may be away or full for a while."""
        retries = Retries(UNLIMITED, SETTLE_PAUSES, self._env)
        while True:
            try:
                return self._engine.settle(lane, seq)
            except (OutcomeUnknown, Abandoned):
                raise
            except TenureError as error:
                if self._closing.wait(retries.next_seconds()):
                    raise OutcomeUnknown("the node stopped while the store was away") from error
                if give_up_at is not None and self._clock.wall_at() >= give_up_at:
                    raise OutcomeUnknown("the store was away until past the commit's deadline") from error
                _ask_leader()

    def close(self) -> None:
        """Closes the lane once submitted commits are done; called only when no other commit is under way."""
        self._closing.set()
        self._called.set()
        if self._task is not None:
            self._task.join(CLOSE_SECONDS)
        self._engine.close_lane(self.lane)


def _ask_leader() -> None:
    """Raises Abandoned if the leading thread is to stop."""
    try:
        current_check()()
    except TenureError as error:
        raise Abandoned(UNDECIDED) from error


def failure(outcome: Outcome) -> TenureError:
    """The error that a refusal raises from the commit."""
    at = to_text(outcome.at)
    match outcome.status:
        case CommitStatus.CONFLICT:
            return RetryError(f"another transaction changed what this one read, at {at}")
        case CommitStatus.BELOW_MARK:
            return BelowMark(f"history up to {at} was collected or flushed while the transaction ran")
        case CommitStatus.TOO_LATE:
            return DeadlinePassed(f"the transaction would have committed at {at}, not before its deadline")
        case _:
            return TooEarly(f"the transaction would have committed at {at}, earlier than allowed")


class _LeaderLeft(Exception):
    """The leader of a group was told to stop while the store does not answer."""

    def __init__(self, abandoned: Abandoned, settle: Callable[[], list[Outcome]]) -> None:
        super().__init__()
        self.settle = settle
        self.cause = abandoned.__cause__
        self.error: BaseException = OutcomeUnknown(UNDECIDED)
        """The error for the leader."""
        if not abandoned.was_sent and self.cause is not None:
            self.error = self.cause


class _Lane:
    def __init__(self, id: bytes) -> None:
        self.id = id
        self.seqs = count(1)


class _Waiter:
    comes_back = True
    """A thread that has committed may soon do so again: worth gathering for."""

    def __init__(self, commit: Commit, env: Env) -> None:
        self.commit = commit
        self.woken = env.event()
        self.outcome: Outcome | None = None
        self.error: TenureError | None = None

    @property
    def is_decided(self) -> bool:
        return self.outcome is not None or self.error is not None

    def call(self) -> None:
        """Makes it lead the next group."""
        self.woken.set()

    def tell(self) -> None:
        self.woken.set()

    def result(self) -> Outcome:
        if self.error is not None:
            # Several threads raise it: each gets a copy, so that tracebacks do not mix.
            raise copy(self.error) from self.error
        assert self.outcome is not None
        return self.outcome


def _forget(result: Outcome | TenureError) -> None:
    """Replaces a callback that has been called."""


_NO_COMMIT = Commit(0)
"""In place of what was decided."""


class _SubmittedCommit:
    comes_back = False

    def __init__(
        self, commit: Commit, on_done: Callable[[Outcome | TenureError], None], call: Callable[[], None]
    ) -> None:
        self.commit = commit
        self._on_done = on_done
        self.call = call
        self.outcome: Outcome | None = None
        self.error: TenureError | None = None

    def tell(self) -> None:
        result = self.outcome if self.error is None else copy(self.error)
        assert result is not None
        # The callback refers to the transaction, which refers to this: breaking the reference cycle here.
        on_done, self._on_done = self._on_done, _forget
        # A session may refer to this for as long as its client is idle, and is charged for no writes by then.
        self.commit = _NO_COMMIT
        try:
            on_done(result)
        except Exception:
            # The callback runs among the commits of other threads and must not harm them.
            _log.exception("what was to be told of a commit could not be")
