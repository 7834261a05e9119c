"""The memory of one session besides its statements: the buffers between it and its client.

    receiving   a message that is still coming in, from its head on
    result      a batch of rows that is being written, until the next one is asked for
    unsent      bytes that the client does not take
    writes      what its transaction has written and not committed

A statement that runs in a thread has an account; so do cursors and portals, for as long as they are there.
What runs on the door's loop has none: its sizes are bounded by proof (`sql.session.inline`).

Walk: `sql.session.session_state` makes one `SessionMemory`; the door tells it of its buffers.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from tenure.base.memory import PIECE_BYTES, Account, Holding, making
from tenure.base.node_memory import NodeMemory
from tenure.sql.session.interrupts import Interrupts
from tenure.sql.text.parse import SHORT_CHARACTERS_MAX, forget_long_tokens

T = TypeVar("T")

PLANNING_BYTES_PER_CHARACTER = 250
"""Measured for a list of constants: its syntax tree, its plan and the compiled plan, per byte of text."""

LONG_CHARACTERS, TURN_SECONDS = 50_000, 0.02
"""Longer texts are planned one at a time; a waiting one looks this often."""

_FREE = nullcontext()

RESULT_COPIES = 3
"""A batch is there as rows, as messages, and as bytes for the socket."""


class SessionMemory:
    def __init__(self, node: NodeMemory, user: str, number: int) -> None:
        self._node = node
        self._user = user
        self.account = node.open_session(user, number)
        self._result = Holding(self.account, "a result")
        self._receiving = Holding(self.account, "a message of its client")
        self._writes = Holding(self.account, "what the transaction has written")
        self._unsent_bytes = 0

    def open_statement(self) -> Account:
        """For one statement, cursor or portal."""
        return self._node.open_statement(self.account)

    def inline_account(self) -> Account:
        """For statements on the door's loop: their memory is bounded, and belongs to no parent account."""
        return self._node.lone_statement()

    def charged(self, account: Account, run: Callable[[], T]) -> T:
        """In a thread, where a statement may take much: large values are charged to it as they are made."""
        with making(account.large):
            try:
                return run()
            finally:
                account.settle()

    def planning(self, text: str, interrupts: Interrupts) -> AbstractContextManager[object]:
        """While a text is parsed and planned. The session is charged: a statement may not be there yet."""
        return _FREE if len(text) <= SHORT_CHARACTERS_MAX else self._planned(len(text), interrupts)

    @contextmanager
    def _planned(self, size: int, interrupts: Interrupts) -> Iterator[None]:
        """One very long text at a time: planning computes, so several at once only take more memory."""
        interrupts.start()
        turn = self._node.planning if size > LONG_CHARACTERS else None
        while turn is not None and not turn.take():
            interrupts.sleep(TURN_SECONDS)
        try:
            with self.account.holding("planning a long text") as holding:
                holding.hold_bytes(size * PLANNING_BYTES_PER_CHARACTER)
                yield
        finally:
            forget_long_tokens()
            if turn is not None:
                turn.give()

    def hold_result(self, size_bytes: int) -> None:
        """So many bytes are about to be written; the former ones have been sent."""
        if size_bytes > PIECE_BYTES:
            self._result.replace(RESULT_COPIES * size_bytes)
        elif self._result.held_bytes:
            self._result.give_back()

    def receive(self, size_bytes: int) -> None:
        """A message of so many bytes is coming, or 0: it has been dealt with. Raises OutOfMemory."""
        self._receiving.replace(size_bytes)

    def hold_writes(self, size_bytes: int) -> None:
        """The transaction is about to hold so many bytes of writes; 0: it is over. Raises OutOfMemory."""
        if size_bytes != self._writes.held_bytes:
            self._writes.replace(size_bytes)

    def leave_unsent(self, size_bytes: int) -> None:
        """So many bytes wait to be sent. They exist already, so they cannot be refused."""
        more = size_bytes - self._unsent_bytes
        self._unsent_bytes = size_bytes
        if more > 0:
            self.account.take(more)
        elif more < 0:
            self.account.release(-more)

    def close(self) -> None:
        self._node.close_session(self._user, self.account)
