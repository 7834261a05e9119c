"""A worker: a node without a SQL door that has Spark, and so runs the jobs that need it.

    start    node (session, leases, jobs)   ┐
             Java and a Spark session       ┴──► the ready line
    end      a signal, or nothing to do for a while: jobs are given up ──► the node ──► Spark

It adopts jobs as soon as it is a node; they wait for the session that is being opened. If it is killed, its
session expires, and with it its claims; Java sees that it is gone and ends too.

Walk: `cli` calls `run`; a node starts one by `command` when a job needs Spark and nobody has it.
"""

import logging
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

from tenure.base.env import Env
from tenure.base.errors import MasterUnreachable
from tenure.node import Node, NodeOptions
from tenure.pipeline.tasks import Tasks
from tenure.processes import on_command_line
from tenure.storage.addresses import creation_note, redacted

LOOK_SECONDS = 1.0

IDLE_SECONDS = 300.0
"""How long a worker that a node started stays without work: Java takes memory, and seconds to start again."""

_log = logging.getLogger(__name__)


def run(options: Namespace, env: Env) -> None:
    """Works until a signal interrupts it, or until it has been idle for long enough."""
    # Only workers need these imports.
    from tenure.pipeline.java import find_java
    from tenure.pipeline.lazy_spark import LazySpark

    find_java(os.environ)
    spark = LazySpark(env, master=options.spark_master, cache_directory=cache_directory(os.environ))
    # Not in this thread: pyspark would take over its signal handlers, and the node need not wait.
    opening = env.spawn("spark", spark.open)
    try:
        node = Node(
            NodeOptions(
                options.store,
                version=options.compat_version,
                lake=options.lake,
                files=options.files,
                endpoints=tuple(options.s3_endpoint),
                has_implicit_credentials=options.s3_implicit,
                spark=spark.tasks,
            ),
            env,
        )
        try:
            opening.join()
            _require_spark(spark.tasks, is_lasting=not options.idle_seconds)
            instance = node.liveness.session().id.instance
            where = f"spark={options.spark_master} store={redacted(options.store)}"
            where += creation_note(node.store.engine, options.store)
            print(f"ready worker instance={instance} {where}", flush=True)
            _work(node, env, idle_seconds=options.idle_seconds)
        finally:
            _log.info("draining")
            node.stop()
    finally:
        spark.close()
        _log.info("drained")


def _require_spark(tasks: Callable[[], Tasks], *, is_lasting: bool) -> None:
    """Raises the reason why there is no Spark.

    A worker that a node started stays while Spark's master is away: its jobs retry and report the reason.
    """
    try:
        tasks()
    except MasterUnreachable:
        if is_lasting:
            raise


def _work(node: Node, env: Env, *, idle_seconds: float) -> None:
    busy_at = env.monotonic()
    while True:
        env.sleep(LOOK_SECONDS)
        if not node.runner.is_idle():
            busy_at = env.monotonic()
        elif idle_seconds and env.monotonic() - busy_at >= idle_seconds:
            _log.info("nothing to do for %.0f s", idle_seconds)
            return


def command(options: Namespace) -> list[str]:
    """The command by which a node starts a worker; store and lake are in the environment."""
    return [
        *(sys.executable, "-m", "tenure.cli", "worker"),
        *on_command_line(options),
        *("--idle-seconds", str(IDLE_SECONDS)),
    ]


def cache_directory(environ: Mapping[str, str]) -> Path | None:
    """The directory for data that can be made again; None if this user has no private one."""
    home = environ.get("HOME")
    base = environ.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else None)
    return None if base is None else Path(base) / "tenure"
