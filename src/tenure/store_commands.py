"""`tenure store`: operations on a store and its lake as a whole.

    tenure store copy            a copy of both, made while nodes run
    tenure store use-lake        says that a lake is the store's, from where it is now
    tenure store reset-setting   resets a cluster setting without a node

When all nodes refuse to commit, since `clock.max_offset` is below the offsets of their clocks, no statement
can reset it. `reset-setting` commits by the store's own clock: this machine's may be as wrong as can be.

Walk: `cli` calls `add_to` for the options, then `run` -> `bulk.store_copy.copy_store`,
`table.lake.opening.use_lake` or `cluster.settings`.
"""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import ExitStack

from tenure.base.env import Env
from tenure.base.errors import FileMissing
from tenure.base.settings import DEFINITIONS, Settings
from tenure.bulk.store_copy import copy_store
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.settings import ClusterSettings
from tenure.kv.store import Store
from tenure.storage.addresses import SQLITE_PREFIX, default_lake, is_local, open_engine, redacted
from tenure.storage.engine import Engine
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
    reset = commands.add_parser(
        "reset-setting", help="reset a cluster setting by which no node can commit; nodes may run"
    )
    add_place(reset)
    reset.add_argument("name", metavar="NAME", help="of the setting, such as clock.max_offset")


def run(options: Namespace, env: Env) -> None:
    """Runs the command, and reports on standard output."""
    if options.store_command == "copy":
        to_lake = options.to_lake or default_lake(options.to)
        copied = copy_store(options.store, options.lake, options.to, to_lake, env)
        print(f"copied store={copied.store} lake={copied.lake} files={copied.files} bytes={copied.bytes}")
    elif options.store_command == "use-lake":
        _use_lake(options, env)
    else:
        _reset_setting(options, env)


def _use_lake(options: Namespace, env: Env) -> None:
    _require_store(options.store)
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


def _reset_setting(options: Namespace, env: Env) -> None:
    _require_store(options.store)
    with ExitStack() as undo:
        engine = open_engine(options.store, env)
        undo.callback(engine.close)
        reset_setting(engine, env, options.name)
    print(f"store={redacted(options.store)} reset={options.name}")


def reset_setting(engine: Engine, env: Env, name: str) -> None:
    """Commits by the engine's clock: no time of this machine gets into the store."""
    with ExitStack() as undo:
        store = Store(engine, env, uses_engine_clock=True)
        undo.callback(store.close)
        settings = ClusterSettings(store, Settings(DEFINITIONS))
        undo.callback(settings.close)
        store.transact(lambda txn: settings.reset(txn, name))


def _require_store(address: str) -> None:
    if is_local(address) and not os.path.isfile(address.removeprefix(SQLITE_PREFIX)):
        raise FileMissing(f'store "{address}" does not exist')
