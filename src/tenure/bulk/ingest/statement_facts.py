"""What a default or a generated column may ask about the statement that brings the rows.

Walk: `importing.first_pass` and `resetting.job` take them from a job's payload; `ingest.run_chunks` makes the
Context of expressions of them.
"""

from typing import NamedTuple


class StatementFacts(NamedTuple):
    """The values of the statement that defaults may use."""

    user: str
    database: str
    now_micros: int
    zone: str
