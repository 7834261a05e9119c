"""The one place that makes Spark sessions, and ends them.

Java starts slowly, mostly by loading twelve thousand classes. An archive of them (`pipeline.archive`) and the
simple compiler and collector bring a session from some 8 s to some 4; the kernels are Python, so a better
compiler would not help much.

One session per process: pyspark allows no more.

Walk: `pipeline.lazy_spark` and tests call `open_session`, later `close_session`; `pipeline.archive_maker`
opens one of its own to record the loaded classes.
"""

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyspark
from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import tenure
from tenure.base.env import Env
from tenure.base.errors import JavaRefused, SparkRefused
from tenure.pipeline import encryption
from tenure.pipeline.archive import Archive
from tenure.pipeline.executor import FAILURES_MAX
from tenure.pipeline.failures import said_by
from tenure.pipeline.java import find_java
from tenure.pipeline.masters import (
    DEFAULT,
    MASTER_SECONDS,
    check_reachable,
    is_on_this_machine,
    is_ours,
    unreachable,
    with_failures,
)

DRIVER_MEMORY = "1g"
EXECUTOR_MEMORY = "1g"
"""Java's memory limit. Rows are in the Python workers beside it, which the kernels bound."""

JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xlog:disable -Xlog:all=error:stderr"
WORKER_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=268435456"
    ":glibc.malloc.trim_threshold=536870912",
}
"""Python workers keep their allocations from one batch to the next, in large pages: an import's kernels took
a sixth more CPU when the system allocated each array anew. Other systems ignore it.
"""

EXIT_SECONDS = 30.0

LOG4J = Path(__file__).with_name("log4j2.properties")

_log = logging.getLogger(__name__)


TEMPORARY = "spark.tenure.temporaryDirectory"
"""A setting of our own: where a session's temporary files are."""


def open_session(
    master: str = DEFAULT,
    *,
    cache_directory: Path | None,
    driver_memory: str = DRIVER_MEMORY,
    executor_memory: str = EXECUTOR_MEMORY,
    python_path: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    env: Env | None = None,
) -> SparkSession:
    """Starts Java and a session on it; executors find `tenure` and the modules of `python_path`.

    `cache_directory` keeps the archive of classes; `options` are settings of Spark's own, applied last. With
    `env`, a master that does not answer for MASTER_SECONDS is given up.
    """
    java = find_java(os.environ)
    check_reachable(master)
    # Mode 0700: Spark spills rows of tables there. It is deleted with the session, or with this process.
    temporary = tempfile.mkdtemp(prefix="tenure-spark-")
    archive = Archive.of(cache_directory, java, Path(_find_spark_home())) if cache_directory else None
    settings = {
        **_settings(master, [*_own_path(), *python_path], temporary),
        "spark.driver.memory": driver_memory,
        "spark.executor.memory": executor_memory,
        **(options or {}),
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Spark first starts a small Java to learn how to start the main one.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    if is_on_this_machine(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs each connection that it closes
    is_usable = archive is not None and archive.is_whole()
    try:
        session = _started(settings, archive, is_usable=is_usable, env=env)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    weakref.finalize(session, shutil.rmtree, temporary, ignore_errors=True)
    _log.info(
        "spark %s master=%s java=%s driver_memory=%s executor_memory=%s archive=%s",
        pyspark.__version__,
        settings["spark.master"],
        java.version,
        settings["spark.driver.memory"],
        settings["spark.executor.memory"],
        archive.path if archive is not None and is_usable else "none",
    )
    if not is_on_this_machine(master) and encryption.is_readable(session.sparkContext.getConf().get):
        _log.warning("what %s sends over the network can be read there: see docs/reference/spark.md", master)
    return session


def _own_path() -> list[str]:
    """The path by which executors import this process's code, unless it is installed beside their Python."""
    root = Path(tenure.__file__).parents[1]
    return [] if root.is_relative_to(sys.prefix) else [str(root)]


def _settings(master: str, python_path: Sequence[str], temporary: str) -> dict[str, str]:
    # Everything that Spark writes to this machine's disk lies below Java's temporary directory.
    java_options = f"{JAVA_OPTIONS} -Djava.io.tmpdir={temporary} -Dlog4j2.configurationFile={LOG4J.as_uri()}"
    settings = {
        "spark.app.name": "tenure",
        TEMPORARY: temporary,
        "spark.master": with_failures(master, FAILURES_MAX),
        "spark.submit.deployMode": "client",
        "spark.driver.extraJavaOptions": java_options,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(python_path),
        **{f"spark.executorEnv.{name}": value for name, value in WORKER_ENVIRONMENT.items()},
        "spark.python.task.killTimeout": "500ms",
        "spark.speculation": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.task.maxFailures": str(FAILURES_MAX),
        "spark.ui.showConsoleProgress": "false",
        **encryption.settings(master),
    }
    if is_on_this_machine(master):
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.extraJavaOptions": java_options,
        }
    return settings


def _started(
    settings: Mapping[str, str], archive: Archive | None, *, is_usable: bool, env: Env | None
) -> SparkSession:
    if archive is None or not is_usable:
        session = _launched(settings, env)
        if archive is not None:
            archive.make_in_background()
        return session
    try:
        return _launched(_with_archive(settings, archive), env)
    except JavaRefused:
        # The archive only saves time: a session that cannot start with it starts without.
        _log.warning("Java did not start with the archive %s; it is removed", archive.path)
        archive.remove()
        return _launched(settings, env)


def _with_archive(settings: Mapping[str, str], archive: Archive) -> dict[str, str]:
    names = ["spark.driver.extraJavaOptions"]
    if is_on_this_machine(settings["spark.master"]):
        names.append("spark.executor.extraJavaOptions")
    return {**settings, **{name: f"{settings[name]} {archive.options()}" for name in names}}


def _launched(settings: Mapping[str, str], env: Env | None) -> SparkSession:
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    secret = encryption.secret_settings(settings["spark.master"])
    try:
        # Java's standard output is not ours: other processes read what we print there.
        gateway = launch_gateway(conf, {"stdout": sys.stderr.fileno()})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise JavaRefused("Java could not be started for Spark", hint="The log says why.") from error
    answer = None if env is None else _MasterAnswer(env, settings["spark.master"], gateway.proc.kill)
    try:
        return SparkSession(SparkContext(conf=conf.setAll(list(secret.items())), gateway=gateway))
    except Exception as error:
        why = said_by(error)  # before Java is gone
        _end_java(gateway)
        if answer is not None and answer.is_late:
            raise unreachable(settings["spark.master"], "does not answer") from error
        raise SparkRefused(f"Spark did not start: {why.splitlines()[0]}", hint="The log says why.") from error
    finally:
        if answer is not None:
            answer.come()


class _MasterAnswer:
    """Ends Java if a master on the network does not answer in time: Spark would wait for a minute."""

    def __init__(self, env: Env, master: str, end: Callable[[], None]) -> None:
        self._end = end
        self._has_come = env.event()
        self.is_late = False
        if not is_ours(master):
            env.spawn("spark master", self._watch)

    def _watch(self) -> None:
        if not self._has_come.wait(MASTER_SECONDS):
            self.is_late = True
            self._end()

    def come(self) -> None:
        self._has_come.set()


def close_session(session: SparkSession, *, exit_seconds: float = EXIT_SECONDS) -> None:
    """Ends the session and the Java it ran on, with all that was running there."""
    context = session.sparkContext
    gateway, name, temporary = context._gateway, "none", None
    try:
        name = context.applicationId
        temporary = context.getConf().get(TEMPORARY)
        session.stop()
    except Exception as error:  # Java may have ended
        _log.info("stopping Spark: %s", type(error).__name__)
    _end_java(gateway, exit_seconds)
    # The executors of a local-cluster leave their logs beside Spark itself.
    shutil.rmtree(Path(_find_spark_home(), "work", name), ignore_errors=True)
    if temporary:
        shutil.rmtree(temporary, ignore_errors=True)


def _end_java(gateway: JavaGateway, exit_seconds: float = EXIT_SECONDS) -> None:
    # pyspark keeps them for the next session, which gets a Java of its own.
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    gateway.shutdown()
    gateway.proc.stdin.close()  # Java ends with it
    try:
        gateway.proc.wait(exit_seconds)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
