"""The state of a session, as system tables show it.

Walk: `sql.tables.node` and `sql.tables.blockers` show it.
"""

from tenure.sql.session.answers import BlockStatus
from tenure.sql.session.session_state import SessionState

STATEMENT_CHARS_MAX = 10_000
"""How much of a statement is shown: some are megabytes."""


def state_of(session: SessionState) -> str:
    """As PostgreSQL's pg_stat_activity has it."""
    if session.activity.is_active:
        return "active"
    match session.status:
        case BlockStatus.IN_TRANSACTION:
            return "idle in transaction"
        case BlockStatus.FAILED:
            return "idle in transaction (aborted)"
        case _:
            return "idle"
