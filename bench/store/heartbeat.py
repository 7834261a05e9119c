"""A heartbeat under full write load: three processes of four threads each on one SQLite file.

Every process commits as fast as it can and, every 100 ms, an urgent transaction of its own, as a
node's liveness does. What cannot be beaten is the disk's bare fsync, which is shown beside it; the
bar is absolute: p99 below 200 ms, so that a session's expiry is never in sight.

Walk: `bench.__main__` -> `run` -> `beat_under_load`, in three processes.
"""

import multiprocessing
import os
import threading
import time
from typing import NamedTuple

from bench.ratio import Bar, Ratio, compare
from bench.store.places import OTHER_TABLE, VALUE, row_key, sqlite_store, store_path
from bench.store.rounds import note, spread
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

PROCESSES, THREADS = 3, 4
BEAT_SECONDS = 0.1
BAR_MILLIS = 200.0
KEYS_PER_THREAD = 200

_context = multiprocessing.get_context("spawn")


class Report(NamedTuple):
    """What one process did."""

    process: int
    commits: list[int]
    """Acknowledged ones, by thread."""
    beat_millis: list[float]


def run(quick: bool) -> list[Ratio]:
    seconds = 1.0 if quick else 20.0
    with store_path() as path, sqlite_store(path) as store:
        fsync = spread(_fsync_millis(path + ".fsync"))
        with _context.Pool(PROCESSES) as pool:
            arguments = [(path, process, seconds) for process in range(PROCESSES)]
            reports = pool.starmap(beat_under_load, arguments, chunksize=1)
        for report in reports:
            _verify(store, report)
    beats = spread([millis for report in reports for millis in report.beat_millis])
    commits = sum(sum(report.commits) for report in reports)
    note(f"heartbeat: {beats}; beside {commits / seconds:,.0f} commits/s; bare fsync: {fsync}")
    return [
        compare("heartbeat.p99", ours=beats.p99, peer=BAR_MILLIS, unit="ms", bar=Bar.AT_MOST, limit=1.0),
        compare("heartbeat.p50_beside_fsync", ours=beats.p50, peer=fsync.p50, unit="ms", bar=Bar.NONE),
    ]


def beat_under_load(path: str, process: int, seconds: float) -> Report:
    stopping = threading.Event()
    with sqlite_store(path) as store:
        report = Report(process, [0] * THREADS, [])
        writers = [
            threading.Thread(target=_write, args=(store, report, thread, stopping))
            for thread in range(THREADS)
        ]
        for writer in writers:
            writer.start()
        _beat(store, report, seconds)
        stopping.set()
        for writer in writers:
            writer.join()
    return report


def _write(store: Store, report: Report, thread: int, stopping: threading.Event) -> None:
    worker = report.process * THREADS + thread
    keys = [row_key(store, worker * KEYS_PER_THREAD + i) for i in range(KEYS_PER_THREAD)]
    while not stopping.is_set():
        nr = report.commits[thread]
        value = (nr + 1).to_bytes(8, "big") + VALUE[8:]

        def put(txn: Transaction, key: bytes = keys[nr % KEYS_PER_THREAD], value: bytes = value) -> None:
            txn.put(key, value)

        store.transact(put)
        report.commits[thread] = nr + 1


def _beat(store: Store, report: Report, seconds: float) -> None:
    key = row_key(store, report.process, OTHER_TABLE)
    began = time.monotonic()
    for nr in range(round(seconds / BEAT_SECONDS)):
        time.sleep(max(0.0, began + nr * BEAT_SECONDS - time.monotonic()))
        beat_began = time.perf_counter()
        store.transact(lambda txn: txn.put(key, len(report.beat_millis).to_bytes(8, "big")), urgent=True)
        report.beat_millis.append((time.perf_counter() - beat_began) * 1e3)


def _verify(store: Store, report: Report) -> None:
    """Each thread's last acknowledged commit is there, and the process's last heartbeat."""
    snapshot = store.snapshot()
    for thread, commits in enumerate(report.commits):
        worker = report.process * THREADS + thread
        value = snapshot.get(row_key(store, worker * KEYS_PER_THREAD + (commits - 1) % KEYS_PER_THREAD))
        assert value is not None and int.from_bytes(value[:8], "big") == commits, "a commit is not there"
    beat = snapshot.get(row_key(store, report.process, OTHER_TABLE))
    assert beat is not None and int.from_bytes(beat, "big") == len(report.beat_millis) - 1


def _fsync_millis(path: str) -> list[float]:
    """Bare appends of a page, each made durable."""
    millis = []
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for nr in range(200):
            os.pwrite(descriptor, bytes(4096), nr * 4096)
            began = time.perf_counter()
            os.fdatasync(descriptor)
            millis.append((time.perf_counter() - began) * 1e3)
    finally:
        os.close(descriptor)
    return millis
