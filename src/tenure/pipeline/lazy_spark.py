"""One Spark session per process: opened on first use, and again if it has ended.

Walk: `worker` makes one; the node's jobs call `tasks`, from threads of their own.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from tenure.base.env import Env
from tenure.base.errors import TenureError
from tenure.pipeline.spark import close_session, open_session
from tenure.pipeline.spark_tasks import SparkTasks

_log = logging.getLogger(__name__)


class LazySpark:
    def __init__(
        self,
        env: Env,
        *,
        master: str,
        cache_directory: Path | None,
        python_path: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._env = env
        self._master = master
        self._cache_directory = cache_directory
        self._python_path = python_path
        self._options = options
        self._lock = env.lock()
        self._session: SparkSession | None = None

    def open(self) -> None:
        """Opens a session before a job needs one; if that fails, the job that needs it gets the error."""
        try:
            self.tasks()
        except TenureError as error:
            _log.warning("%s", error)

    def tasks(self) -> SparkTasks:
        with self._lock:
            if self._session is not None and _has_ended(self._session):
                self._close()
            if self._session is None:
                self._session = open_session(
                    self._master,
                    cache_directory=self._cache_directory,
                    python_path=self._python_path,
                    options=self._options,
                    env=self._env,
                )
            return SparkTasks(self._session, self._env)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            close_session(session)


def _has_ended(session: SparkSession) -> bool:
    try:
        return bool(session.sparkContext._jsc.sc().isStopped())
    except Exception:  # a connection to a Java that has ended fails in many ways
        return True
