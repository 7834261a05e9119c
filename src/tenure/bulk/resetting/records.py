"""The stored records of a reset by a job.

Walk: `resetting.job` stores a `ResetPayload`, and `ResetProgress` in the commit that publishes the rows.
"""

from tenure.base.timestamp import Timestamp
from tenure.kv.records import Record

KIND = "reset"


class ResetPayload(Record, frozen=True):
    table: int
    at: Timestamp
    """The time to which it goes back."""
    user: str = ""
    database: str = ""
    now_micros: int = 0
    """When the statement began: the value of now() in a default."""
    zone: str = "UTC"


class ResetProgress(Record, frozen=True):
    """There is none until the rows have been published, in the same commit."""

    rows: int
    """Rows that have changed."""
