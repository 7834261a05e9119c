"""Rows that cannot be taken: tolerated up to a number, and then listed in what the import fails with.

Walk: `importing.sorting` raises `too_many` for its own rejects, the passes for those of all tasks, which
`importing.job` writes to the location that the statement named.
"""

import json
from collections.abc import Sequence
from typing import IO, Any

from tenure.base.errors import UserError
from tenure.bulk.importing.clashes import Origin, Refused
from tenure.pipeline.reading.tasks import Reject
from tenure.table.errors import UniqueViolation

LISTED_MAX = 5
"""How many an error lists: a job's record keeps 1000 characters of it."""


class RowsRefused(UserError):
    """More rows are bad than the statement tolerates; has the SQLSTATE of the first."""

    def __init__(self, message: str, *, sqlstate: str, detail: str) -> None:
        super().__init__(message, detail=detail)
        self.sqlstate = sqlstate


def too_many(rejects: Sequence[Reject], tolerated: int) -> RowsRefused:
    ordered = sorted(rejects, key=lambda each: (each.file, each.line))
    lines = [where(each) if each is ordered[0] else f"{where(each)}: {each.reason}" for each in ordered]
    more = [f"More than {tolerated} rows were refused."] if tolerated else []
    detail = "\n".join([*lines[:LISTED_MAX], *more])
    return RowsRefused(ordered[0].reason, sqlstate=ordered[0].sqlstate, detail=detail)


def reject_of(origin: Origin, refused: Refused, files: Sequence[str]) -> Reject:
    """A row that could be read, and is refused for its key."""
    said = refused.said
    if refused.sqlstate == UniqueViolation.sqlstate:
        source = refused.by
        said += " the table" if source is None else f' file "{files[source[0]]}", line {source[1]}'
    return Reject(files[origin[0]], origin[1], "", said, refused.sqlstate, "")


def where(reject: Reject) -> str:
    column = f", column {reject.column}" if reject.column else ""
    return f'file "{reject.file}", line {reject.line}{column}'


def write_rejects(output: "IO[bytes] | Any", rejects: Sequence[Reject]) -> None:
    for reject in sorted(rejects, key=lambda each: (each.file, each.line)):
        output.write(json.dumps(reject._asdict(), ensure_ascii=False).encode() + b"\n")
