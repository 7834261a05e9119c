"""Where bulk work is measured: a node with a lake and a directory for files, and tables that lie in the lake.

A table of millions of rows is not loaded by SQL here: its files and its manifest are written as an import
would have written them.

Walk: `bench.bulk.export` opens a `BulkPlace` and fills it with `lay`.
"""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from bench.sql.places import STOP_SECONDS, Place
from tenure.base.env import SystemEnv
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.store import Store
from tenure.storage.addresses import open_engine
from tenure.storage.files import open_files
from tenure.table.key_arrays import key_array, key_columns
from tenure.table.lake.format import FILE_ROWS, name_of, shape_of, write
from tenure.table.lake.manifests import Manifests, no_base
from tenure.table.lake.publishing import ManifestEdit, publish
from tenure.table.rows import Layouts


class BulkPlace(NamedTuple):
    sql: Place
    directory: Path

    @property
    def files(self) -> Path:
        return self.directory / "files"


@contextmanager
def node() -> Iterator[BulkPlace]:
    """`tenure start` over a store, a lake and a directory of its own; it starts its worker itself."""
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as name, tempfile.TemporaryFile("w+") as log:
        directory = Path(name)
        command = [sys.executable, "-m", "tenure.cli", "start", "--store", f"sqlite:{directory}/store.db"]
        command += ["--lake", str(directory / "lake"), "--files", str(directory / "files")]
        command += ["--sql", "127.0.0.1:0", "--insecure"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            log.seek(0)
            assert line.startswith("ready "), log.read()
            port = int(line.split()[1].rpartition(":")[2])
            yield BulkPlace(Place(port, "root", "defaultdb", (process.pid,)), directory)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)


def lay(place: BulkPlace, name: str, columns: dict[str, Any]) -> None:
    """Makes rows, in the order of their keys, the base of a table that is there and has none."""
    env = SystemEnv()
    engine = open_engine(f"sqlite:{place.directory}/store.db", env)
    store = Store(engine, env)
    files = open_files(str(place.directory / "lake"))
    try:
        found = [each for each in Catalog(store.keyspace).list(store.snapshot()) if each.name == name]
        (table,) = [each for each in found if isinstance(each, Table)]
        layout = Layouts(store.keyspace).of(table)
        shape, ids = shape_of(layout, table.primary), {each.name: each.id for each in table.columns}
        by_id = {ids[each]: values for each, values in columns.items()}
        keys = key_array(key_columns(layout.primary), by_id)
        rows = len(keys)
        at = store.snapshot().at
        named = {"key": keys, "at": pa.array([at] * rows, pa.int64())}
        named |= {name_of(column.id): by_id[column.id] for column in shape.columns}
        named["rest"] = pa.nulls(rows, pa.binary())
        whole = pa.table(named)
        stem = f"{store.keyspace.tenant}/{table.id}/{table.primary}/laid"
        written = tuple(
            write(files, f"{stem}-{start}.parquet", shape, whole.slice(start, FILE_ROWS))
            for start in range(0, rows, FILE_ROWS)
        )
        began_with, manifests = no_base(table.id, table.primary), Manifests(store.keyspace)
        made = ManifestEdit((), written)
        store.transact(lambda txn: publish(txn, store.keyspace, manifests, began_with, made, None))
    finally:
        store.close()
        engine.close()
