"""`tenure store`: operations on a store and its lake as a whole.

    tenure store copy       a copy of both, made while nodes run
    tenure store use-lake   says that a lake is the store's, from where it is now

Walk: `cli` calls `add_to` for the options, then `run` -> `bulk.store_copy.copy_store` or
`table.lake.opening.use_lake`.
"""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import ExitStack

from tenure.base.env import Env
from tenure.base.errors import FileMissing
from tenure.bulk.store_copy import copy_store
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.store import Store
from tenure.storage.addresses import SQLITE_PREFIX, default_lake, is_local, open_engine, redacted
from tenure.storage.files import open_files
from tenure.table.lake.opening import use_lake


def add_to(parser: ArgumentParser, add_place: Callable[[ArgumentParser], None]) -> None:
    """Adds the options; `add_place` adds those that name the store and the lake."""
    commands = parser.add_subparsers(dest="store_command", required=True, metavar="COMMAND")
    copy = commands.add_parser("copy", help="copy a SQLite store with its lake, also while nodes run")
    add_place(copy)
    copy.add_argument("--to", required=True, metavar="ADDRESS", help="the copy's store, sqlite:PATH")
    copy.add_argument("--to-lake", metavar="PATH-or-URL", help="its lake (default: lake, beside its store)")
    use = commands.add_parser(
        "use-lake", help="say that a lake is the store's, after one of them was moved; no node may run"
    )
    add_place(use)
    use.add_argument(
        "--with-unknown-files",
        action="store_true",
        help="also if the lake has files that the store does not know, and that may be deleted",
    )


def run(options: Namespace, env: Env) -> None:
    """Runs the command, and reports on standard output."""
    if options.store_command == "copy":
        to_lake = options.to_lake or default_lake(options.to)
        copied = copy_store(options.store, options.lake, options.to, to_lake, env)
        print(f"copied store={copied.store} lake={copied.lake} files={copied.files} bytes={copied.bytes}")
    else:
        _use_lake(options, env)


def _use_lake(options: Namespace, env: Env) -> None:
    if is_local(options.store) and not os.path.isfile(options.store.removeprefix(SQLITE_PREFIX)):
        raise FileMissing(f'store "{options.store}" does not exist')
    with ExitStack() as undo:
        engine = open_engine(options.store, env)
        undo.callback(engine.close)
        store = Store(engine, env)
        undo.callback(store.close)
        sessions = Sessions(store.keyspace)
        jobs = Jobs(store.keyspace, sessions, store.clock)
        files = open_files(options.lake)
        with_unknown = options.with_unknown_files
        unknown = use_lake(store, files, jobs, sessions, engine.origin(), with_unknown_files=with_unknown)
    print(f"store={redacted(options.store)} lake={files.address} unknown_files={unknown}")
