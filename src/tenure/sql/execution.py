"""One run of a statement: the block it runs in, its values, and when it has to stop.

Walk: `sql.session` makes one per run; statements take what they need from it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tenure.expr.datatype import Datum
from tenure.expr.function import Context
from tenure.sql.block import Block

if TYPE_CHECKING:
    from tenure.sql.session import Session


class Execution:
    __slots__ = ("_context", "block", "inline", "session", "values")

    can_start_over = False
    """Whether rows that were given may turn out not to count: see `sql.errors.Unfinished`."""

    def __init__(
        self, session: "Session", block: Block, values: Sequence[Datum], *, inline: bool = False
    ) -> None:
        self.session = session
        self.block = block
        self.values = values
        self.inline = inline
        self._context: Context | None = None

    @property
    def context(self) -> Context:
        """What expressions know: the same for the whole statement."""
        if self._context is None:
            self._context = self.session.surroundings.context(self.block, self.values)
        return self._context

    def check(self) -> None:
        """Raises if the statement was canceled or has run for too long."""
        self.session.check()
