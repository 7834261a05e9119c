"""Point reads on SQLite: begin, get, commit of ours beside a bare SELECT loop.

Both read the same rows of the same file in the same random order. Ours also proves that the row
is of one snapshot with the marks of its index, and would let the transaction go on to write. The
peer wins by all of that: the bar says how much of it may be lost.

Walk: `bench.__main__` -> `run`.
"""

import random
from collections.abc import Callable

import apsw

from bench.ratio import Bar, Ratio, compare
from bench.store.places import VALUE, load, row_key, sqlite_store, store_path
from bench.store.rounds import alternate, note
from tenure.kv.store import Store


def run(quick: bool) -> list[Ratio]:
    rows, reads, rounds = (1_000, 500, 1) if quick else (100_000, 50_000, 9)
    with store_path() as path, sqlite_store(path) as store:
        load(store, range(rows))
        chooser = random.Random(1)
        keys = [row_key(store, chooser.randrange(rows)) for _ in range(reads)]
        connection = apsw.Connection(path)
        try:
            execute = connection.cursor().execute
            ours, bare = alternate(
                rounds,
                lambda: _read_in_transactions(store, keys),
                lambda: _read_bare(execute, keys),
            )
        finally:
            connection.close()
    note(f"point_reads: {1e6 / ours.rate:.2f} us each, bare {1e6 / bare.rate:.2f} us")
    return [
        compare(
            "point_reads.sqlite", ours=ours.rate, peer=bare.rate, unit="reads/s", bar=Bar.AT_LEAST, limit=0.4
        )
    ]


def _read_in_transactions(store: Store, keys: list[bytes]) -> int:
    for key in keys:
        txn = store.begin()
        value = txn.get(key)
        txn.commit()
        assert value == VALUE
    return len(keys)


def _read_bare(execute: Callable[..., apsw.Cursor], keys: list[bytes]) -> int:
    for key in keys:
        ((value,),) = execute("SELECT value FROM live WHERE key = ?", (key,))
        assert value == VALUE
    return len(keys)
