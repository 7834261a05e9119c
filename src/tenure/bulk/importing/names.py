"""The names of an import's files, for errors: kept in the lake, since tasks need none unless one fails.

Walk: `importing.job` calls `write_names` before the second pass; kernels that found a fault call `where`.
"""

import json
from collections.abc import Sequence
from typing import Any

from tenure.bulk.importing.runs import LINE, SOURCE
from tenure.storage.files import Files

NAMES_BYTES_MAX = 1 << 30


def write_names(files: Files, name: str, shown: Sequence[str]) -> None:
    with files.create_scratch(name) as output:
        output.write(json.dumps(list(shown)).encode())


def where(files: Files, name: str, row: Any) -> str:
    """Where the first row of a table comes from."""
    shown = json.loads(files.read(name, bytes_max=NAMES_BYTES_MAX))
    return f'file "{shown[row.column(SOURCE)[0].as_py()]}", line {row.column(LINE)[0].as_py()}'
