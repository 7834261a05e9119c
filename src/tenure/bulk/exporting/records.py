"""The stored records of an export: what to write where, its progress, and its result.

Walk: `exporting.kind` stores an `ExportPayload`; `exporting.job` reads it and saves `ExportProgress`;
`sql.statements.jobs.exporting` shows the `files_of` a job.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from tenure.base.timestamp import Timestamp
from tenure.bulk.lakes import Lake
from tenure.catalog.accounts.sealing import unsealed
from tenure.cluster.jobs.runs import Run
from tenure.expr.types.datatype import Datum
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.records import Record, replace, unpack
from tenure.pipeline.writing.formats import ExportedFile, Writing


class ExportPayload(Record, frozen=True):
    location: str
    """As written, and resolved anew by every run; in the job's record it is sealed if it has keys."""
    writing: Writing
    at: Timestamp
    name: str
    """The prefix of file names."""
    table: int = 0
    columns: tuple[int, ...] = ()
    query: str = ""
    user: str = ""
    """The job's creator, as that role is called when the job runs."""
    database: str = ""
    path: str = ""
    """The session's search_path."""
    tables: tuple[int, ...] = ()
    """All tables that are read: the job protects them."""
    named: tuple[int, ...] = ()
    """The tables and views that the statement names: its creator needs EXPORT on them."""


class ExportProgress(Record, frozen=True):
    bounds: tuple[bytes, ...] = ()
    """The bounds of a table's ranges."""
    files: tuple[ExportedFile, ...] = ()


Rows: TypeAlias = Sequence[Sequence[Datum]]
RunQuery: TypeAlias = Callable[
    [ExportPayload, Sequence[ProtectedRead], Callable[[], None], bool], Iterator[Rows]
]
"""Yields a query's rows a batch at a time, read in the name of protections, and calls the check now and then.
Raises `RowsIncomplete` if the rows turn out not to count: then it is called once more, with True.
"""


def payload_of(lake: Lake, run: Run) -> ExportPayload:
    kept = unpack(run.job.payload, ExportPayload)
    store = lake.store
    location = unsealed(store.snapshot(), store.keyspace, run.job.id, kept.location)
    return replace(kept, location=location, user=run.job.owner)


def files_of(data: bytes) -> tuple[ExportedFile, ...]:
    """The files of a job that has succeeded, from its progress."""
    return unpack(data, ExportProgress).files if data else ()
