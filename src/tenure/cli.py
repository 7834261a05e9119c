"""The command line: `tenure start` runs a node, `tenure worker` one with Spark, until SIGTERM or Ctrl-C.

`tenure store` has commands that do one thing to a store and its lake, and then end.

Standard output carries one line, `ready sql=HOST:PORT instance=... store=...`, for the process that waits for
the node; `created=store` follows if there was no such store before. Everything else goes to standard error,
one line per event, times in UTC. A node that cannot start says why in one line and exits with 1; one that was
drained exits with 0.

Walk: the entry point calls `main` -> `_start` -> `node.Node`, which serves SQL by `front.Front`; or
`worker.run`, or `store_commands.run`.
"""

import argparse
import gc
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from tenure import __version__, processes, store_commands, worker
from tenure.base.env import Env, SystemEnv
from tenure.base.errors import InvalidParameter, TenureError, for_operator
from tenure.base.machine_memory import settle_allocator
from tenure.base.process_ending import DRAIN_SECONDS, Ending
from tenure.cluster.sessions.versions import OLDEST, PROGRAM
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tenure.pipeline import masters
from tenure.pipeline.masters import check_master
from tenure.pipeline.starter import Process, spawn
from tenure.processes import LAKE_VARIABLE, STORE_VARIABLE, SessionTeller
from tenure.storage.addresses import DEFAULT_LAKE, creation_note, default_lake, is_local, redacted

DEFAULT_SQL = "127.0.0.1:26257"
PORT_MAX = 65_535
DEFAULT_STORE = "sqlite:tenure-data/store.db"
DEFAULT_FILES = "tenure-data/files"

DRAIN_SECONDS_MAX = 86_400.0
"""A day: longer is most likely a mistake."""

IDLE_SECONDS = 1.0
"""The main thread only waits for a signal; this bounds the wait if another thread catches it."""

SWITCH_SECONDS = 0.0005
"""How long a computing thread may keep the GIL from a waiting one. Python's default of 5 ms is long for the
door: it releases the GIL at each read and write of a socket, and gets it back that much later while another
thread computes.
"""

YOUNG_OBJECTS = 10_000
"""A collection starts when so many more objects were allocated than freed: Python's default of 700 is reached
often in one statement.
"""

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    options = command_options(argv)
    _log_to_stderr()
    settle_allocator()
    try:
        if options.command == "store":
            return _once(lambda: store_commands.run(options, SystemEnv()))
        check_master(options.spark_master, is_store_local=is_local(options.store))
        if options.command == "worker":
            _until_told(options, lambda: worker.run(options, SystemEnv()))
        elif options.processes != 1:
            return processes.run(options, _listen(options), SystemEnv())
        else:
            _until_told(options, lambda: _start(options, _listen(options), SystemEnv()))
    except TenureError as error:
        print(f"tenure: {_one_line(error)}", file=sys.stderr)
        return 1
    return 0


def command_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command, with defaults that follow from others."""
    options = _parser().parse_args(argv)
    options.lake = options.lake or default_lake(options.store)
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tenure", description="A SQL system whose schema may change.")
    parser.add_argument("--version", action="version", version=f"tenure {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_start(commands.add_parser("start", help="run a node until SIGTERM or Ctrl-C, then drain it"))
    work = commands.add_parser("worker", help="run a process with Spark, which adopts the bulk jobs")
    _add_shared(work)
    work.add_argument("--idle-seconds", type=float, default=0.0, help=argparse.SUPPRESS)
    store = commands.add_parser(
        "store", help="copy a store with its lake, say where its lake is now, reset a setting"
    )
    store_commands.add_to(store, _add_place)
    return parser


def _add_start(start: argparse.ArgumentParser) -> None:
    _add_shared(start)
    start.add_argument(
        "--sql",
        default=DEFAULT_SQL,
        metavar="HOST:PORT",
        help="where PostgreSQL clients connect; port 0 takes a free one (default: %(default)s)",
    )
    start.add_argument("--cert", default="", metavar="FILE", help="certificate, for TLS")
    start.add_argument("--key", default="", metavar="FILE", help="its private key")
    start.add_argument(
        "--insecure", action="store_true", help="let every user in without a password, on loopback only"
    )
    start.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="so many processes serve the same port, each a node of its own, to use as many cores",
    )
    start.add_argument("--inherited-port", type=int, metavar="DESCRIPTOR", help=argparse.SUPPRESS)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store",
        default=os.environ.get(STORE_VARIABLE, DEFAULT_STORE),
        metavar="ADDRESS",
        help=f"sqlite:PATH or postgresql://USER@HOST/DATABASE (default: {DEFAULT_STORE}); all can read a "
        f"command line: one with a password is better given in the environment, as {STORE_VARIABLE}",
    )
    parser.add_argument(
        "--lake",
        default=os.environ.get(LAKE_VARIABLE, ""),
        metavar="PATH-or-URL",
        help="where rows are kept in Parquet files, a directory or s3://bucket/prefix, the same for all "
        f"nodes of a store (default: lake, beside the file of a SQLite store, else {DEFAULT_LAKE}); one with "
        f"keys is better given in the environment, as {LAKE_VARIABLE}",
    )


def _add_shared(parser: argparse.ArgumentParser) -> None:
    """Adds the options that nodes and workers share."""
    _add_place(parser)
    parser.add_argument(
        "--files",
        default=DEFAULT_FILES,
        metavar="DIRECTORY",
        help="the one local directory that statements may read from and write to (default: %(default)s)",
    )
    parser.add_argument(
        "--s3-endpoint",
        action="append",
        default=[],
        metavar="URL",
        help="an object store other than Amazon's that statements may name, as https://HOST:PORT; "
        "can be given several times",
    )
    parser.add_argument(
        "--s3-implicit",
        action="store_true",
        help="let statements use the credentials of this node's environment, by AUTH=implicit",
    )
    parser.add_argument(
        "--spark-master",
        default=masters.DEFAULT,
        metavar="URL",
        help="where Spark runs bulk work: local[*], local-cluster[2,1,1024], spark://HOST:PORT "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--drain-timeout",
        type=_seconds,
        default=DRAIN_SECONDS,
        metavar="SECONDS",
        help="how long ending in order may take after SIGTERM or Ctrl-C; then, or at a second signal, the "
        "process ends at once (default: %(default).0f)",
    )
    parser.add_argument("--with-parent", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--compat-version",
        type=int,
        choices=range(OLDEST, PROGRAM + 1),
        default=PROGRAM,
        help="behave like the program of an older version, to try a rolling upgrade (default: %(default)s)",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= DRAIN_SECONDS_MAX:
        raise argparse.ArgumentTypeError(f'takes seconds, up to {DRAIN_SECONDS_MAX:.0f}, not "{text}"')
    return seconds


def _listen(options: argparse.Namespace) -> Listen:
    host, colon, port = options.sql.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > PORT_MAX:
        raise InvalidParameter(f'--sql takes HOST:PORT, not "{options.sql}"')
    return Listen(
        host=host.strip("[]") or "127.0.0.1",
        port=int(port),
        certificate=options.cert,
        key=options.key,
        is_insecure=options.insecure,
        inherited=options.inherited_port,
    )


def _until_told(options: argparse.Namespace, run: Callable[[], None]) -> None:
    ending = Ending(SystemEnv(), drain_seconds=options.drain_timeout, has_parent=options.with_parent)
    # A signal during the start ends the start.
    with ending, suppress(KeyboardInterrupt):
        run()


def _once(run: Callable[[], None]) -> int:
    """Runs a command that ends by itself; a signal ends it early, and it undoes what it can."""
    with Ending(SystemEnv(), drain_seconds=None):
        try:
            run()
        except KeyboardInterrupt:
            print("tenure: interrupted before it was done", file=sys.stderr)
            return 1
    return 0


def open_node(options: argparse.Namespace, listen: Listen, env: Env) -> Node:
    return Node(
        NodeOptions(
            options.store,
            version=options.compat_version,
            listen=listen,
            lake=options.lake,
            files=options.files,
            endpoints=tuple(options.s3_endpoint),
            has_implicit_credentials=options.s3_implicit,
            start_worker=partial(_start_worker, options),
        ),
        env,
    )


def _start(options: argparse.Namespace, listen: Listen, env: Env) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    node = open_node(options, listen, env)
    try:
        instance = node.liveness.session().id.instance
        assert node.front is not None
        at = f"{node.front.host}:{node.front.port}"
        where = f"store={redacted(options.store)}{creation_note(node.store.engine, options.store)}"
        _settle_memory()
        print(f"ready sql={at} instance={instance} {where}", flush=True)
        told = SessionTeller(node.liveness.session) if options.with_parent else None
        while True:
            if told is not None:
                told.step()
            env.sleep(IDLE_SECONDS)
    finally:
        _log.info("draining")
        node.stop()
        _log.info("drained")


def _settle_memory() -> None:
    """Freezes the objects that exist now, so that collections skip them. Collections are rare enough for
    large statements, which make thousands of objects and free them by reference counts.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def _start_worker(options: argparse.Namespace) -> Process:
    return spawn(worker.command(options), {**os.environ, **processes.in_environment(options)})


def _one_line(error: TenureError) -> str:
    said = for_operator(error)
    return " ".join(f"{said}. {error.hint}".split()) if error.hint else " ".join(said.split())


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _Lines(logging.Formatter):
    """Plain lines that begin with the UTC time, such as 2025-11-15T20:15:00.123Z."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        moment = datetime.fromtimestamp(record.created, UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


if __name__ == "__main__":
    sys.exit(main())
