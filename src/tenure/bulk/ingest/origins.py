"""Where rows come from: the number of a file of the input, and a line of it.

    names      of the input's files, for errors
    refused    rows, by their origin, that are to be skipped

Both are stored in the lake, and not in each task: most tasks need neither.

Walk: `importing.second_pass` calls `write_names` first, and `write_refused` before it starts over; kernels
that found a fault call `where`, those that may skip rows `read_refused`.
"""

import json
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa

from tenure.pipeline.merge_inputs import Origin
from tenure.pipeline.runs import LINE, SOURCE
from tenure.storage.files import Files
from tenure.table.arrays import Rows

NAMES_BYTES_MAX = 1 << 30


def write_names(files: Files, name: str, shown: Sequence[str]) -> None:
    with files.create_scratch(name) as output:
        output.write(json.dumps(list(shown)).encode())


def write_refused(files: Files, name: str, refused: Iterable[Origin]) -> None:
    with files.create_scratch(name) as output:
        output.write(json.dumps(sorted(refused)).encode())


def read_refused(files: Files, name: str) -> set[Origin]:
    """The refused rows; none without a file."""
    if not name:
        return set()
    return {(source, line) for source, line in json.loads(files.read(name, bytes_max=NAMES_BYTES_MAX))}


def where(files: Files, name: str, row: Rows) -> str:
    """The origin of the first row of a table."""
    shown = json.loads(files.read(name, bytes_max=NAMES_BYTES_MAX))
    return f'file "{shown[row.column(SOURCE)[0].as_py()]}", line {row.column(LINE)[0].as_py()}'


def origin_of(rows: Rows, place: int) -> Origin:
    return rows.column(SOURCE)[place].as_py(), rows.column(LINE)[place].as_py()


def without(rows: Rows, refused: Collection[Origin]) -> Rows:
    """Rows that were not refused; few are, so lines are compared first."""
    if not refused:
        return rows
    lines = rows.column(LINE).to_numpy()
    is_met = np.isin(lines, np.fromiter({line for _, line in refused}, np.int64))
    refused_rows, kept = set(refused), np.ones(len(rows), bool)
    for place in np.flatnonzero(is_met).tolist():
        kept[place] = origin_of(rows, place) not in refused_rows
    return rows if kept.all() else rows.filter(pa.array(kept))
