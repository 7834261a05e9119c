"""The input of an import: from locations to files, and from files to splits that tasks read.

    locations ──► resolved, expanded ──► files ──► pieces, surveyed ──► splits, in groups of a task each

Locations are resolved by every run anew, before anything is read. A file is numbered in the order in which
statements and wildcards name it; each of its rows carries the number.

Walk: `importing.first_pass` calls `sources_of` and `groups`; kernels open the file of a `Split`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO, NamedTuple

from tenure.base.errors import FileMissing, InputFailed, InvalidParameter, NoPermission
from tenure.bulk.importing.records import COPY, CSV, INSERTS, NDJSON, ImportPayload, TableInput
from tenure.expr.types.zones import session_zone
from tenure.pipeline.reading import splits
from tenure.pipeline.reading.tasks import (
    CopyText,
    Csv,
    Inserts,
    NdJson,
    Parquet,
    ReadTask,
    TargetColumn,
    TaskInput,
)
from tenure.pipeline.remote_handles import StoreHandle, opened
from tenure.pipeline.tasks import Attempt
from tenure.storage.files import Files
from tenure.storage.locations import Location, Locations
from tenure.table.rows import Layout

SUFFIXES = {".gz": "gz", ".bz2": "bz2", ".xz": "xz", ".zst": "zst", ".zstd": "zst"}

REJECTS_BEYOND = 8
"""A task reads on for so many bad rows beyond the tolerated ones: an error lists some."""


UNPACK_BYTES = 1 << 20

PARQUET_ROWS_MAX = 1 << 32
"""The row limit of a few row groups, which have less than 2**31 each in the library."""


class InputFile(NamedTuple):
    """A file of the input."""

    location: Location
    name: str
    shown: str
    bytes: int

    @property
    def compression(self) -> str:
        named = (self.name or self.shown).lower().partition("?")[0]
        return next((codec for suffix, codec in SUFFIXES.items() if named.endswith(suffix)), "")


class Split(NamedTuple):
    """A part of a file for a kernel."""

    location: Location
    name: str
    shown: str
    source: int
    task: ReadTask
    unpacked: StoreHandle | None = None
    """The lake to which a dump was decompressed: then `name` is a file there."""

    def open_input(self, shown: str) -> IO[bytes]:
        if self.unpacked is not None:
            return opened(self.unpacked).lake.open_input(self.name)
        return self.location.open_input(self.name)

    @property
    def bytes(self) -> int:
        task = self.task
        if isinstance(task.format, Parquet) or task.end is None:
            return task.input.bytes
        return task.end - task.start

    @property
    def rows_max(self) -> int:
        """An upper bound of its rows."""
        task = self.task
        if isinstance(task.format, Parquet):
            return PARQUET_ROWS_MAX
        if task.end is not None:
            return self.bytes + 1
        limits = task.limits.decompression  # it may be compressed
        return max(limits.ratio_from_bytes, limits.ratio_max * task.input.bytes) + 1


def sources_of(locations: Locations, input: TableInput) -> list[InputFile]:
    """The files of an input. Raises InputFailed if one of its locations does not lead to any."""
    found = []
    for text in input.locations:
        try:
            location = locations.resolve(text)
            for each in location.expand():
                found.append(InputFile(location, each.name, _shown(location, each.name), each.bytes))
        except (FileMissing, NoPermission) as error:
            raise InputFailed(error) from error
    return found


def _shown(location: Location, name: str) -> str:
    """A file's name in errors: the text before the first wildcard, and the name from there."""
    if not name:
        return location.shown
    parts = (
        location.shown.partition("?")[0].split("/") if "://" in location.shown else location.shown.split("/")
    )
    stem = []
    for part in parts:
        if any(sign in part for sign in "*?["):
            break
        stem.append(part)
    return "/".join([*stem, name])


class SurveyTask(NamedTuple):
    location: Location
    name: str
    piece: splits.FilePiece


def survey_piece(task: SurveyTask, attempt: Attempt) -> splits.Survey:
    """A kernel."""
    return splits.survey(task.piece, lambda shown: task.location.open_input(task.name))


def _open(source: InputFile, shown: str) -> IO[bytes]:
    return source.location.open_input(source.name)


Survey = Callable[[Sequence[SurveyTask]], list[splits.Survey]]


def splits_of(
    payload: ImportPayload,
    input: TableInput,
    layout: Layout,
    sources: Sequence[InputFile],
    numbers: Sequence[int],
    survey: Survey,
    unpacked: "UnpackedDump | None" = None,
) -> list[Split]:
    """All splits, in the order of the files; `survey` runs the kernel of that name."""
    files = [_whole(payload, input, layout, source) for source in sources]
    if input.ranges:
        return [*_ranges(input, files[0], sources[0], numbers[0], unpacked)]
    pieces = [
        splits.pieces([file], partial(_open, source))[0] for file, source in zip(files, sources, strict=True)
    ]
    surveyed = [
        SurveyTask(source.location, source.name, piece)
        for source, of_file in zip(sources, pieces, strict=True)
        for piece in of_file
    ]
    answers = iter(survey(surveyed) if surveyed else [])
    cut = []
    for file, source, number, of_file in zip(files, sources, numbers, pieces, strict=True):
        surveys = [next(answers) for _ in of_file]
        for task in splits.read_tasks([file], [surveys]):
            cut.append(Split(source.location, source.name, source.shown, number, task))
    return cut


def _whole(payload: ImportPayload, input: TableInput, layout: Layout, source: InputFile) -> ReadTask:
    targets = tuple(
        TargetColumn(kept.name, kept.id, kept.type) for kept in map(layout.columns.get, input.columns) if kept
    )
    if len(targets) != len(input.columns):
        raise InvalidParameter(f'a column of table "{layout.table.name}" is gone')
    return ReadTask(
        TaskInput(source.shown, source.bytes),
        _format(input),
        targets,
        zone=session_zone(payload.zone),
        rejects_max=payload.bad_rows_max + REJECTS_BEYOND,
    )


class UnpackedDump(NamedTuple):
    """A dump that is decompressed for the time of an import: its tables are read in any order."""

    place: StoreHandle
    name: str


def unpack(lake: Files, name: str, source: InputFile, check: Callable[[], None]) -> None:
    with source.location.open_decompressed(source.name) as content, lake.create_scratch(name) as output:
        while data := content.read(UNPACK_BYTES):
            check()
            output.write(data)


def _ranges(
    input: TableInput, file: ReadTask, source: InputFile, number: int, unpacked: UnpackedDump | None
) -> Iterator[Split]:
    """The parts of a dump that have rows of one table."""
    if source.bytes != input.bytes:
        raise InvalidParameter(f'file "{source.shown}" has changed since it was looked through')
    for each in input.ranges:
        task = file.but(start=each.start, end=each.end, line=each.line)
        if unpacked is None:
            yield Split(source.location, source.name, source.shown, number, task)
        else:
            yield Split(source.location, unpacked.name, source.shown, number, task, unpacked.place)


def _format(input: TableInput) -> Csv | NdJson | Parquet | CopyText | Inserts:
    if input.format == CSV:
        csv = input.csv
        return Csv(csv.delimiter, csv.quote, csv.escape, csv.null, skip=csv.skip)
    if input.format == COPY:
        return CopyText()
    if input.format == INSERTS:
        return Inserts(input.generated)
    return NdJson() if input.format == NDJSON else Parquet()


def groups(found: Sequence[Split]) -> Iterator[tuple[Split, ...]]:
    """Splits by task: small files share one."""
    group: list[Split] = []
    size = 0
    for split in found:
        if group and size + split.bytes > splits.SPLIT_BYTES:
            yield tuple(group)
            group, size = [], 0
        group.append(split)
        size += split.bytes
    if group:
        yield tuple(group)
