"""A script: what each client says, in order, with PostgreSQL's answers.

Walk: `writer` makes scripts, `play` plays them, `shrinking` leaves steps out.
"""

import re
from typing import NamedTuple

from tests.differential.sides import Answer, Side, Statement

IDLE, IN_BLOCK, IN_ERROR = 0, 2, 3
"""libpq's states of a transaction."""
USER_TYPES_FROM = 16_384
"""The numbers of types that users make are nobody's promise."""


class Step(NamedTuple):
    client: int
    statement: Statement

    @property
    def shown(self) -> str:
        return f"/* {self.client} */ {self.statement.shown}"

    @property
    def head(self) -> str:
        """What kind of statement it is, for counting."""
        return " ".join(re.findall("[A-Z]+", self.statement.text)[:3])


class Reply(NamedTuple):
    answer: Answer
    status: int
    """Whether a block is open afterwards."""


class Client(Side):
    """One connection that plays scripts."""

    def ask_step(self, statement: Statement) -> Reply:
        return Reply(self.ask(statement), self.status)

    @property
    def status(self) -> int:
        return int(self._connection.transaction_status)

    def _type(self, oid: int) -> str:
        return "a user's" if oid >= USER_TYPES_FROM else str(oid)
