"""Spark for tests: one session per process, as pyspark has it, moved from master to master when asked."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from tenure.base.env import SystemEnv
from tenure.pipeline.lazy_spark import LazySpark
from tenure.pipeline.spark_tasks import SparkTasks
from tenure.worker import cache_directory

ROOT = Path(__file__).resolve().parents[1]
LOCAL = "local[2]"


class SparkSessions:
    def __init__(self) -> None:
        self._master = ""
        self._spark: LazySpark | None = None

    def spark(self, master: str = LOCAL, options: dict[str, str] | None = None) -> LazySpark:
        if master != self._master:
            self.close()
            self._master = master
        if self._spark is None:
            self._spark = LazySpark(
                SystemEnv(),
                master=master,
                cache_directory=cache_directory(os.environ),
                python_path=[str(ROOT)],
                options=options,
            )
        return self._spark

    def tasks(self, master: str = LOCAL, options: dict[str, str] | None = None) -> SparkTasks:
        return self.spark(master, options).tasks()

    def session(self) -> SparkSession:
        """The one that is open, also if a thread of a node has opened it."""
        session = SparkSession._instantiatedSession
        assert session is not None
        return session

    def close(self) -> None:
        if self._spark is not None:
            self._spark.close()
        self._spark, self._master = None, ""
