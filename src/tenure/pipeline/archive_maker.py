"""Makes an archive of Spark's classes: a process that opens a session only for that.

    python -m tenure.pipeline.archive_maker PATH

Walk: `archive.Archive.make_in_background` starts it; it opens a session by `pipeline.spark`.
"""

import fcntl
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tenure.base.env import SystemEnv
from tenure.pipeline.archive import PATTERN, Archive
from tenure.pipeline.frames import as_raised
from tenure.pipeline.spark import JAVA_OPTIONS, close_session, open_session
from tenure.pipeline.spark_tasks import SparkTasks
from tenure.pipeline.tasks import Attempt

KEPT = 2
"""Archives kept in a cache directory, of 150 MB each: an upgrade leaves the former one, for a downgrade."""

WRITE_SECONDS = 300.0
"""How long Java may take to write it on a busy machine."""


def make(path: Path) -> None:
    """Writes the archive unless it exists and is complete, or another process is writing it."""
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        archive = Archive(path)
        if not archive.is_whole():
            _write(archive)
            _prune(path.parent)


def _write(archive: Archive) -> None:
    partial = archive.path.with_suffix(".part")
    options = {"spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={partial}"}
    session = open_session("local[2]", cache_directory=None, options=options)
    try:
        _use(session)
    finally:
        close_session(session, exit_seconds=WRITE_SECONDS)
    archive.publish(partial)


def _use(session: SparkSession) -> None:
    """Uses a bit of everything that sessions are used for: the archive contains the classes loaded here."""
    tasks = SparkTasks(session, SystemEnv())
    tasks.run(_number, [1, 2], on_done=lambda done, total: None, check=lambda: None)
    with as_raised():
        tasks.frame(_numbers, [1, 2], "number long").groupBy("number").count().collect()


def _number(task: int, attempt: Attempt) -> int:
    return task


def _numbers(task: int, attempt: Attempt) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"number": pa.array(range(task), pa.int64())})


def _prune(directory: Path) -> None:
    archives = sorted(directory.glob(PATTERN), key=lambda each: each.stat().st_mtime_ns)
    for old in archives[:-KEPT]:
        Archive(old).remove()


if __name__ == "__main__":
    # By its full name: executors cannot import what is called __main__.
    from tenure.pipeline import archive_maker

    archive_maker.make(Path(sys.argv[1]))
