"""Reads a task: rows in batches of bounded size, for any file.

Walk: the import's kernel calls `read` with a task of `reading.splits` and a function that opens files.
"""

from collections.abc import Iterator

from tenure.base.errors import BadInput
from tenure.pipeline.reading.copy_rows import read_copy
from tenure.pipeline.reading.csv_rows import read_csv
from tenure.pipeline.reading.insert_rows import read_inserts
from tenure.pipeline.reading.ndjson_rows import read_ndjson
from tenure.pipeline.reading.parquet_rows import read_parquet
from tenure.pipeline.reading.tasks import CopyText, Csv, Inserts, NdJson, OpenInput, ReadBatch, ReadTask


def read(task: ReadTask, open_input: OpenInput) -> Iterator[ReadBatch]:
    """Raises BadInput if the file cannot be read on, or too many of its rows are faulty."""
    if not 0 < len(task.targets) <= task.limits.columns_max:
        reason = f"a file cannot be read into {len(task.targets)} columns"
        raise BadInput(reason, file=task.input.name, sqlstate="54011")
    if isinstance(task.format, Csv):
        return read_csv(task, task.format, open_input)
    if isinstance(task.format, NdJson):
        return read_ndjson(task, task.format, open_input)
    if isinstance(task.format, CopyText):
        return read_copy(task, open_input)
    if isinstance(task.format, Inserts):
        return read_inserts(task, task.format, open_input)
    return read_parquet(task, open_input)
