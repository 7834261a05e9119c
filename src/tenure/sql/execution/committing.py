"""A commit that was begun on the door's loop: handed over, and asked for its outcome when told.

Walk: `sql.execution.session_transactions` gives a `Committing` to the door, which submits it, and asks for
its result once that is done.
"""

from collections.abc import Callable
from typing import NoReturn, Protocol

from tenure.base.errors import RetryError, TenureError
from tenure.sql.execution.portals import Portal
from tenure.sql.session.answers import Answer, NotShort, Pending
from tenure.sql.session.block import Block


class CommitOutcome(Protocol):
    """The receiver of a commit's outcome: the transactions of the session."""

    def over(self) -> None: ...

    def abandon(self) -> None: ...

    def lose(self, again: Portal | None) -> None: ...


class Committing:
    __slots__ = ("_again", "_answer", "_block", "_is_submitted", "_outcome", "_withdrawal")

    def __init__(
        self, outcome: CommitOutcome, block: Block, answer: Answer, *, again: Portal | None = None
    ) -> None:
        """`again`: the portal of a statement that is all of its transaction, and may be run once more."""
        self._outcome = outcome
        self._block = block
        self._answer = answer
        self._again = again
        self._is_submitted = False
        self._withdrawal: TenureError | None = None
        """Why it was taken back before it was submitted."""

    def submit(self, on_done: Callable[[], None]) -> None:
        self._is_submitted = True
        try:
            self._block.submit(on_done)
        except RetryError as error:
            self._lose(error)
        except BaseException:
            self._outcome.abandon()
            raise

    def take_back(self, error: TenureError) -> bool:
        if self._is_submitted:
            return self._block.take_back(error)
        self._withdrawal = error
        return True

    def result(self) -> "Answer | Pending":
        if self._withdrawal is not None:
            self._outcome.abandon()
            raise self._withdrawal
        try:
            self._block.finish()
        except RetryError as error:
            self._lose(error)
        except BaseException:
            self._outcome.abandon()
            raise
        self._outcome.over()
        return self._answer

    def _lose(self, error: RetryError) -> NoReturn:
        """The commit had a conflict, or could not begin: the statement runs again, if it may."""
        self._outcome.lose(self._again)
        if self._again is None:
            raise error
        raise NotShort from error
