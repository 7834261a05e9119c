"""One run of a statement: the block it runs in, its values, what it reads, and when it has to stop.

A cursor, and a portal that is fetched in parts, are opened once and read on while the block goes on. Such an
execution **stays**: it reads what was there when it was opened, by a view of the block's transaction.

Walk: `sql.execution.portal_runs` makes one per run; statements read it.
"""

from collections.abc import Sequence

from tenure.base.memory import Account
from tenure.expr.functions.function import Context
from tenure.expr.types.datatype import Datum
from tenure.sql.execution import expression_context
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.table.read import Source


class Execution:
    __slots__ = ("_account", "_context", "_view", "block", "inline", "session", "stays", "values")

    can_start_over = False
    """Whether the caller can start over after some rows: see `base.errors.RowsIncomplete`."""

    def __init__(
        self,
        session: SessionState,
        block: Block,
        values: Sequence[Datum],
        *,
        inline: bool = False,
        stays: bool = False,
        account: Account | None = None,
    ) -> None:
        self.session = session
        self.block = block
        self.values = values
        self.inline = inline
        self.stays = stays
        """Its rows may be fetched after later statements of the block: they are those of its opening."""
        self._account = account
        self._context: Context | None = None
        self._view: Source | None = None

    @property
    def source(self) -> Source:
        """The source that tables are read from; of an execution that stays, as of the first use."""
        if not self.stays:
            return self.block.source
        if self._view is None:
            self._view = self.block.view()
        return self._view

    @property
    def account(self) -> Account:
        """The account that the statement's memory is charged to."""
        if self._account is None:
            memory = self.session.memory
            self._account = memory.inline_account() if self.inline else memory.open_statement()
        return self._account

    @property
    def context(self) -> Context:
        """The context of expressions: the same for the whole statement."""
        if self._context is None:
            self._context = expression_context.context_of(self.session, self.block, self.values)
        return self._context

    def check(self) -> None:
        """Raises if the statement was canceled or has run for too long."""
        self.session.check()
