"""A commit that was handed over: taken back, or decided by an outcome that is read later.

    send ──► with the committer ──decided──► outcome
                  └──take_back: unless it was sent──► decided, by an error

Walk: `Transaction.submit` makes one and `Transaction.finish` asks its outcome; it calls `Committer.submit`.
"""

from collections.abc import Callable

from tenure.base.errors import TenureError
from tenure.kv.commits import Committer
from tenure.storage.engine import Commit, Outcome


class Submission:
    __slots__ = ("_on_done", "_result", "_take_back")

    def __init__(self, on_done: Callable[[], None]) -> None:
        self._on_done = on_done
        self._result: Outcome | TenureError | None = None
        self._take_back: Callable[[TenureError], bool] | None = None

    def send(self, committer: Committer, commit: Commit) -> None:
        """Returns at once; a thread of the committer calls `decide`."""
        self._take_back = committer.submit(commit, self.decide)

    def decide(self, result: Outcome | TenureError) -> None:
        self._result = result
        self._on_done()

    def take_back(self, error: TenureError) -> bool:
        return self._take_back is not None and self._take_back(error)

    def outcome(self) -> Outcome:
        """Raises the error if it was taken back or could not be sent."""
        assert self._result is not None, "it is not done"
        if isinstance(self._result, TenureError):
            raise self._result
        return self._result
