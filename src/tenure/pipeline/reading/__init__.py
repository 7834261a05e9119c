"""Files that users give, as typed batches of rows: CSV, NDJSON and Parquet.

Walk: the import's driver calls `pieces`, `survey` (a kernel) and `read_tasks`; its kernel calls `read`.
"""

from tenure.pipeline.reading.rows import read
from tenure.pipeline.reading.splits import Piece, Survey, pieces, read_tasks, survey
from tenure.pipeline.reading.tasks import (
    BadInput,
    Csv,
    Input,
    Limits,
    NdJson,
    OpenInput,
    Parquet,
    ReadBatch,
    ReadTask,
    Reject,
    Target,
)

__all__ = [
    "BadInput",
    "Csv",
    "Input",
    "Limits",
    "NdJson",
    "OpenInput",
    "Parquet",
    "Piece",
    "ReadBatch",
    "ReadTask",
    "Reject",
    "Survey",
    "Target",
    "pieces",
    "read",
    "read_tasks",
    "survey",
]
