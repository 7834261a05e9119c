"""Refused rows: tolerated up to a number, and then listed in the import's error.

Walk: `importing.sorting` raises `too_many` for its own rejects, the passes for those of all tasks, which
`importing.job` writes to the location that the statement named, by a `RejectsFile`.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from tenure.base.errors import FileExists, InputFailed, RowsRefused, StoreError, UniqueViolation, UserError
from tenure.bulk.importing.clashes import RefusedRow
from tenure.pipeline.merge_inputs import Origin
from tenure.pipeline.reading.tasks import Reject
from tenure.storage.locations import Locations

LISTED_MAX = 5
"""How many an error lists: a job's record keeps 1000 characters of it."""

_log = logging.getLogger(__name__)


def too_many(rejects: Sequence[Reject], tolerated: int) -> RowsRefused:
    ordered = sorted(rejects, key=lambda each: (each.file, each.line))
    lines = [where(each) if each is ordered[0] else f"{where(each)}: {each.reason}" for each in ordered]
    more = [f"More than {tolerated} rows were refused."] if tolerated else []
    detail = "\n".join([*lines[:LISTED_MAX], *more])
    return RowsRefused(ordered[0].reason, sqlstate=ordered[0].sqlstate, detail=detail)


def reject_of(origin: Origin, refused: RefusedRow, files: Sequence[str]) -> Reject:
    """A row that could be parsed, and is refused for its key."""
    said = refused.said
    if refused.sqlstate == UniqueViolation.sqlstate:
        source = refused.by
        said += " the table" if source is None else f' file "{files[source[0]]}", line {source[1]}'
    return Reject(files[origin[0]], origin[1], "", said, refused.sqlstate, "")


def where(reject: Reject) -> str:
    column = f", column {reject.column}" if reject.column else ""
    return f'file "{reject.file}", line {reject.line}{column}'


class RejectsFile:
    """The rejects of one import, at the location that its statement names; without a location nothing is
    written.
    """

    def __init__(self, locations: Locations, location: str, job: int) -> None:
        self._locations = locations
        self._location = location
        self._name = f"import-{job}.rejects.ndjson"

    @contextmanager
    def written(self, rejects: Sequence[Reject], is_given_up: Callable[[], bool]) -> Iterator[None]:
        """The file exists before the rows do; it is deleted if the rows are not published."""
        try:
            if rejects and self._location:
                self._write(rejects)
            yield
        except BaseException:
            if is_given_up():  # the revert may have looked for it before this run wrote it
                self.delete()
            raise

    def _write(self, rejects: Sequence[Reject]) -> None:
        try:
            location = self._locations.resolve(self._location)
            location.delete([self._name])  # of an earlier run of this very job
            with location.create(self._name) as output:
                _write(output, rejects)
        except FileExists:
            raise
        except StoreError as error:
            raise InputFailed(error) from error

    def delete(self) -> None:
        """A failed import does not wait for a location that is gone."""
        if not self._location:
            return
        try:
            self._locations.resolve(self._location).delete([self._name])
        except (StoreError, UserError) as error:
            _log.warning("rejects of a failed import may be left in %s: %s", self._name, error)


def _write(output: "IO[bytes] | Any", rejects: Sequence[Reject]) -> None:
    for reject in sorted(rejects, key=lambda each: (each.file, each.line)):
        output.write(json.dumps(reject._asdict(), ensure_ascii=False).encode() + b"\n")
