"""New rows for a merge: sorted runs, and the rules by which they become rows of the index.

    runs      rows that earlier tasks have read, projected or restored, sorted by key (`pipeline.runs`)
    rules     which of these rows count, what time they carry, and what happens with duplicate keys

A key that two rows have is an error that names both, unless some bad rows are tolerated: then it is a
`Clash`, nothing is written, and the driver decides which rows are left out.

Walk: `bulk.importing.second_pass` and `bulk.filling.job` make `MergeInputs`; `pipeline.merge_tasks` calls its
`InputRules`.
"""

from typing import NamedTuple, Protocol, TypeAlias

from tenure.base.timestamp import Timestamp
from tenure.pipeline.runs import SortedRun
from tenure.storage.files import Files
from tenure.table.arrays import Rows
from tenure.table.lake.tables import IndexFormat

Origin: TypeAlias = tuple[int, int]
"""Where a row comes from: the number of a file, and a line in it."""


class Clash(NamedTuple):
    """A key that rows of the input cannot all have."""

    of_index: tuple[int, int]
    """The table's id and its own."""
    key: bytes
    said: str
    """The fault, without the location of the key."""
    is_in_table: bool
    origins: tuple[Origin, ...]


class InputRules(Protocol):
    """A value that tasks carry to other processes."""

    @property
    def at(self) -> Timestamp | None:
        """The time of new rows; None: that of the commit which publishes them."""

    @property
    def replaces(self) -> bool:
        """The new rows take the place of all others: live rows that are not among them end at the commit."""

    def admitted(self, lake: Files, rows: Rows) -> Rows:
        """The rows that count: without those that were refused before."""

    def refuse(self, lake: Files, format: IndexFormat, added: Rows, live: Rows) -> tuple[Clash, ...]:
        """Called for duplicate keys: among the new rows, which are sorted, or between one of them and a live
        one.
        """


class MergeInputs(NamedTuple):
    runs: tuple[SortedRun, ...]
    rules: InputRules
