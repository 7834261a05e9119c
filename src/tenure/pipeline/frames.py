"""The batches that kernels yield, as a DataFrame: one partition for each task, in their order.

    frame ──► Spark's data source "tenure_tasks" ──► one input partition per task ──► kernel ──► batches

A data source and not `mapInArrow`, which would need pandas. Spark makes the reader in a process of its own,
so kernel and tasks travel as an option, pickled; the kernel by its name.

A DataFrame is computed when its rows are read, and only then fails. `as_raised` turns Java's error back into
the error that a kernel raised.

Walk: `spark_tasks.SparkTasks.frame` calls `frame`; Spark calls `_Source`, in its own processes.
"""

import base64
import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tenure.pipeline.executor import attempt_here, spare_modules
from tenure.pipeline.failures import Failure
from tenure.pipeline.tasks import Kernel

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

NAME = "tenure_tasks"
OPTION = "work"


def frame(
    session: SparkSession,
    kernel: "Kernel[T, Iterator[pa.RecordBatch]]",
    tasks: Sequence[T],
    schema: StructType | str,
    *,
    label: str,
) -> DataFrame:
    work = base64.b85encode(pickle.dumps((kernel, list(tasks), label))).decode()
    session.dataSource.register(_Source)
    return session.read.format(NAME).schema(schema).option(OPTION, work).load()


@contextmanager
def as_raised() -> Iterator[None]:
    """Raises a kernel's error in place of the error that Spark makes of it."""
    try:
        yield
    except Exception as error:
        found = _CARRIED.search(str(error))
        if found is None:
            raise
        failure: Failure = pickle.loads(base64.b85decode(found[1]))
        raise failure.error() from error


class _Source(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.options[OPTION])


class _Reader(DataSourceReader):
    def __init__(self, work: str) -> None:
        self._kernel, self._tasks, self._label = pickle.loads(base64.b85decode(work))

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(task) for task in self._tasks] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if not self._tasks:
            return
        spare_modules()
        try:
            yield from self._kernel(partition.value, attempt_here(self._label))
        except Exception as error:
            raise _carried(Failure.of(error, self._kernel)) from error


def _carried(failure: Failure) -> Exception:
    """Only text passes through Java: the failure is part of it."""
    return RuntimeError(f"{failure.error()} <failure {base64.b85encode(pickle.dumps(failure)).decode()}>")


_CARRIED = re.compile(r"<failure ([!-~]+)>")
