"""The commits of many clients, submitted together: a group costs little more than one commit.

    client a ─► waits ─┐
    client b ─► waits ─┼─► handed over ─► one group, one fsync ─► told: ended, ended, ended
    client c ──────────┘        client d ─► waits ─────────────────────────► with a, b and c's next

Submitted one by one, they would go in groups of half their number: those of one group come back just after
the next has left. And a thread that commits while the loop goes on with statements has to get the GIL back
from it after each call of the store, which costs both more than the commit.

So one group is under way at a time, which is how the committer sends them anyway. When it has ended, its
clients get their answers, and waiting commits give them time to come back: until as many wait as were under
way, or two turns of the loop bring no more. There is no time window, and a lone commit never waits.

Invariant (lone-commit): a commit without company is submitted at once.

Walk: `pgwire.door` -> `add`; `_hand_over` submits the commit; the door, when it is told -> `ended`.
"""

from collections.abc import Callable

QUIET_TURNS = 2
"""In a turn, asyncio handles the sockets' input after the callbacks that were scheduled for that turn."""


class Gathering:
    """Used on the loop alone; a callback that it schedules runs in the next turn."""

    def __init__(self, call_soon: Callable[..., object]) -> None:
        self._call_soon = call_soon
        self._waiting: list[Callable[[], None]] = []
        self._under_way = 0
        self._handed_over = 0
        """How many were submitted together, the last time."""
        self._expected = 1
        self._is_turning = False

    def add(self, submit: Callable[[], None]) -> None:
        """`submit` is called once and must not raise; from then on the commit is under way until `ended`."""
        self._waiting.append(submit)
        if self._under_way:
            return
        if len(self._waiting) >= self._expected:
            self._hand_over()
        else:
            self._await_others()

    def withdraw(self, submit: Callable[[], None]) -> bool:
        """Withdraws one that was not submitted; returns whether it was there. It counts as under way, so
        `ended` must be called for it as for any other.
        """
        if submit not in self._waiting:
            return False
        self._waiting.remove(submit)
        self._under_way += 1
        return True

    def ended(self) -> None:
        """Called when one of those under way is decided."""
        self._under_way -= 1
        if self._under_way == 0:
            self._expected = self._handed_over + len(self._waiting)
            if self._waiting:
                self._await_others()

    def _await_others(self) -> None:
        if not self._is_turning:
            self._is_turning = True
            self._call_soon(self._turn, len(self._waiting), QUIET_TURNS)

    def _turn(self, seen: int, quiet_left: int) -> None:
        waiting = len(self._waiting)
        quiet_left = quiet_left - 1 if waiting == seen else QUIET_TURNS
        if waiting and quiet_left and not self._under_way:
            self._call_soon(self._turn, waiting, quiet_left)
            return
        self._is_turning = False
        if waiting and not self._under_way:
            self._hand_over()

    def _hand_over(self) -> None:
        group, self._waiting = self._waiting, []
        self._under_way = self._handed_over = len(group)
        for submit in group:
            submit()
