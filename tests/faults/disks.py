"""A full disk: commits fail with 53100, reads go on, and so do commits once there is space.

    tmpfs      a small file system of its own, if this process may mount one
    quota      otherwise, SQLite only: `max_page_count`

A ballast file takes all but a little of the space that a started store leaves, so that the disk
is full soon however fast the machine is; its removal frees space.

Walk: `__main__` and `test_faults_smoke` call `disk_full` with a `Run`.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tenure.base.env import SystemEnv
from tenure.base.errors import DiskFull
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests import postgres_server
from tests.faults import names
from tests.faults.checker import SETUP
from tests.faults.harness import ACK, Fleet, Place, Result, Run, dsn, wait_for
from tests.faults.worker import open_store

SQLITE_MIB, POSTGRES_MIB = 36, 200
"""PostgreSQL: 40 MiB of a new cluster, segments of WAL, and what is written."""
LEFT_MIB = 6
"""What the ballast leaves for the load to fill."""
RESERVE_MIB = 4
SMALL_WAL = ("min_wal_size=32MB", "max_wal_size=48MB", "wal_recycle=off")
PAD_BYTES = 20_000
FULL = b'"state":"53100"'
FULL_SECONDS_MAX = 60.0


def disk_full(run: Run) -> Result:
    if not _may_mount():
        if run.engine == "postgres":
            return Result(skipped="this process may not mount a small file system")
        return page_quota(run)
    with _small_disk(SQLITE_MIB if run.engine == "sqlite" else POSTGRES_MIB) as disk:
        place = _place(run, disk)
        try:
            return _fill(run, place, disk / "ballast", disk / "reserve")
        finally:
            if place.server is not None:
                postgres_server.remove_directory(disk)


def _place(run: Run, disk: Path) -> Place:
    """A store on the small disk; its logs stay elsewhere."""
    (disk / "reserve").write_bytes(b"\1" * (RESERVE_MIB << 20))
    if run.engine == "sqlite":
        place = run.place("full")
        return replace(place, address=f"sqlite:{disk}/store.db")
    server = postgres_server.start(disk, *SMALL_WAL)
    place = replace(run, server=server).place("full")
    return replace(place, address=place.address.partition("@")[0] + "@" + dsn(server))


def _fill(run: Run, place: Place, ballast: Path, reserve: Path) -> Result:
    result = Result()
    go = place.directory / "go"
    with Fleet(place, run.seed) as fleet:
        for name in ("p0", "p1"):
            fleet.start(name, more=("--pad-bytes", str(PAD_BYTES), "--go", str(go)))
        fleet.await_ready()
        _weigh_down(ballast)
        go.touch()  # opening a store writes a little: one that starts on a full disk cannot
        is_full = wait_for(lambda: fleet.count(FULL, {}) > 0, FULL_SECONDS_MAX)
        result.require(is_full, "the disk did not become full with 53100")
        full = time.monotonic_ns()
        time.sleep(max(1.0, run.seconds / 3))
        freed, lengths = time.monotonic_ns(), fleet.lengths()
        ballast.unlink()
        if place.server is not None and not _answers(place):
            result.counts["server"] = "went down for want of WAL, started again"
            postgres_server.start(place.server.directory, *SMALL_WAL)
        going_on = wait_for(lambda: fleet.count(ACK, lengths) > 10, 30)
        result.require(going_on, "commits do not go on once there is space")
        fleet.stop()
        reserve.unlink()  # the disk may be full again, and opening a store writes a little
        verdict = fleet.verdict(result)
        reads = sum(
            event["e"] == "read" and full < event["m"] < freed
            for _, events in fleet.events()
            for event in events
        )
    result.require(reads > 0 or "server" in result.counts, "reads did not go on while the disk was full")
    states = {kind: n for kind, n in verdict.counts.items() if kind.startswith(("failed ", "trouble "))}
    errors = " ".join(f"{kind.replace(' ', '/')}:{n}" for kind, n in sorted(states.items()))
    result.counts |= {"form": "tmpfs", "reads while full": reads, "errors": errors}
    return result


def _weigh_down(ballast: Path) -> None:
    free = shutil.disk_usage(ballast.parent).free
    ballast.write_bytes(b"\1" * max(0, free - (LEFT_MIB << 20)))


def _answers(place: Place) -> bool:
    assert place.server is not None
    command = [str(postgres_server.BIN / "pg_isready"), "-h", "127.0.0.1", "-p", str(place.server.port)]
    return wait_for(lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0, 5)


def page_quota(run: Run) -> Result:
    """Without the right to mount: SQLite's own limit of pages, in this process."""
    result = Result(counts={"form": "max_page_count"})
    place = run.place("full")
    store = open_store(place.address, SystemEnv())
    engine = store.engine
    assert isinstance(engine, SqliteEngine)
    limit = engine._writer.connection.pragma
    limit("max_page_count", limit("page_count") + 60)
    landed: dict[bytes, bytes] = {}
    key = names.key_of(store.keyspace, "b:00")
    value = names.value_of("0" * PAD_BYTES, SETUP).encode()
    try:
        for number in range(1_000):
            key = names.key_of(store.keyspace, f"u:00/{number:05d}")
            store.transact(lambda txn, key=key: txn.put(key, value))  # type: ignore[misc]
            landed[key] = value
        result.violations.append("the quota was not reached")
    except DiskFull as error:
        result.require(error.sqlstate == "53100" and bool(error.hint), f"unclear: {error}")
    shown = dict(store.snapshot().scan(store.keyspace.all()))
    result.require(shown == landed, "the rows differ from what was acknowledged")
    limit("max_page_count", 1 << 30)
    store.transact(lambda txn: txn.put(key, value))
    result.require(store.snapshot().get(key) == value, "commits do not go on once there is space")
    store.close()
    engine.close()
    return result


def _may_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    try:
        with _small_disk(1):
            return True
    except subprocess.CalledProcessError:
        return False


@contextmanager
def _small_disk(mib: int) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="tenure-full-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0777", "tenure-test", str(directory)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
        try:
            yield directory
        finally:
            subprocess.run(["umount", "--lazy", str(directory)], check=True, capture_output=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
