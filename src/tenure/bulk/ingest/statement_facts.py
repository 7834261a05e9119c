"""What a default or a generated column may ask about the statement that brings the rows.

Walk: `importing.first_pass` and `resetting.job` take them from a job's payload; `ingest.run_chunks` makes the
Context of expressions of them.
"""

from datetime import UTC, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo


class StatementFacts(NamedTuple):
    """The values of the statement that defaults may use."""

    user: str
    database: str
    now_micros: int
    zone: str


def zone_of(name: str) -> tzinfo:
    """The zone of a session: parsing times is quicker where it is UTC itself."""
    return UTC if name in ("UTC", "GMT") else ZoneInfo(name)
