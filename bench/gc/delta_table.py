"""A peer of collections from files: a table of deltalake whose versions are each an overwrite of all rows.

What was overwritten stays in files until `vacuum`. deltalake is a development dependency that few benchmarks
need: without it the comparison is left out, and said to be.

Walk: `bench.gc.files` calls `measure`.
"""

import importlib
import importlib.util
import tempfile
import time
from typing import Any, NamedTuple

import pyarrow as pa

from bench.gc.history_table import REVISIONS
from bench.gc.places import NOTE


class DeltaCollection(NamedTuple):
    seconds: float
    """Of optimize and vacuum."""
    cpu_seconds: float
    reader: str
    """What a reader of an older version, which was opened before, gets afterwards."""


def measure(rows: int) -> DeltaCollection | None:
    """Collects the older versions of a table; None if deltalake is not installed."""
    if importlib.util.find_spec("deltalake") is None:
        return None
    deltalake = importlib.import_module("deltalake")
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as directory:
        for version in range(REVISIONS + 1):
            deltalake.write_deltalake(directory, _rows(rows, version), mode="overwrite")
        table = deltalake.DeltaTable(directory)
        reader = deltalake.DeltaTable(directory, version=REVISIONS // 2)
        assert _answer(reader) == (rows, REVISIONS // 2)
        began, cpu_began = time.perf_counter(), time.process_time()
        table.optimize.compact()
        deleted = table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
        assert len(deleted) >= REVISIONS, f"deltalake has deleted {len(deleted)} files"
        assert _answer(deltalake.DeltaTable(directory)) == (rows, REVISIONS)
        return DeltaCollection(seconds, cpu_seconds, _late_answer(reader))


def _rows(rows: int, version: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "version": pa.array([version] * rows, pa.int64()),
            "note": [NOTE] * rows,
        }
    )


def _answer(table: Any) -> tuple[int, int]:
    found = table.to_pyarrow_table()
    return found.num_rows, found["version"][0].as_py()


def _late_answer(reader: Any) -> str:
    try:
        return f"{_answer(reader)[0]} rows"
    except Exception as error:  # of deltalake, or of the file system below it
        return type(error).__name__
