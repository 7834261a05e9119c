"""The activity of a session: its block, its current statement, and where that runs.

Walk: `sql.session.session_state` makes one; the session and its transactions write it;
`sql.session.interrupts` and system tables read it.
"""

from tenure.sql.session.block import Block


class Activity:
    __slots__ = (
        "block",
        "has_executed",
        "is_active",
        "is_inline",
        "is_of_several",
        "is_query_string",
        "since_micros",
        "statement",
        "text",
    )

    def __init__(self) -> None:
        self.block: Block | None = None
        self.statement = ""
        """The text of the statement under way, or of the last one, without secrets."""
        self.text = ""
        """The same as the client has sent it."""
        self.since_micros = 0
        self.is_active = False
        self.is_inline = False
        """It runs on the door's loop, where nothing may wait."""
        self.is_query_string = False
        """The statements of one query string are being run."""
        self.has_executed = False
        """A statement was executed since the last Sync."""
        self.is_of_several = False
        """The statement under way is one of several that share an implicit transaction, as in a block."""
