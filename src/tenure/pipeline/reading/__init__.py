"""Users' files as typed batches of rows: CSV, NDJSON and Parquet.

Walk: the import's driver calls `pieces`, `survey` (a kernel) and `read_tasks`; its kernel calls `read`.
"""

from tenure.base.errors import BadInput
from tenure.pipeline.reading.rows import read
from tenure.pipeline.reading.splits import FilePiece, Survey, pieces, read_tasks, survey
from tenure.pipeline.reading.tasks import (
    Csv,
    FileLimits,
    NdJson,
    OpenInput,
    Parquet,
    ReadBatch,
    ReadTask,
    Reject,
    TargetColumn,
    TaskInput,
)

__all__ = [
    "BadInput",
    "Csv",
    "FileLimits",
    "FilePiece",
    "NdJson",
    "OpenInput",
    "Parquet",
    "ReadBatch",
    "ReadTask",
    "Reject",
    "Survey",
    "TargetColumn",
    "TaskInput",
    "pieces",
    "read",
    "read_tasks",
    "survey",
]
