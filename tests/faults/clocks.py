"""Wrong clocks: a little, too much, and an hour in which nothing happens.

A worker's wall clock is the machine's plus what a small file says; the store's clock stays right.

Walk: `__main__` and `test_faults_smoke` call these with a `Run`; `worker.SkewedEnv` reads the file.
"""

import signal
import time
from pathlib import Path

from tenure.base.env import SystemEnv
from tenure.base.timestamp import add_seconds, seconds_between
from tenure.kv.gaps import Gap
from tests.faults import names
from tests.faults.checker import SETUP
from tests.faults.harness import Fleet, Place, Result, Run
from tests.faults.worker import SkewedEnv, open_store

SKEW_MS = 125.0
"""Each way: two clocks 250 ms apart."""
BEYOND_MS = 2_000.0
HOUR_SECONDS = 3_600.0


def skew(run: Run) -> Result:
    """Clocks 250 ms apart, swapped half-way: one of them goes back by that much."""
    result = Result()
    with Fleet(run.place("skew"), run.seed) as fleet:
        fast, slow = (_offset(fleet.place, name, sign * SKEW_MS) for name, sign in (("p0", 1), ("p1", -1)))
        fleet.start("p0", more=_option(fast))
        fleet.start("p1", more=_option(slow))
        fleet.start("p2", more=_option(_offset(fleet.place, "p2", 0.0)))
        fleet.await_ready()
        time.sleep(run.seconds / 2)
        write_offset(fast, -SKEW_MS)
        write_offset(slow, SKEW_MS)
        time.sleep(run.seconds / 2)
        fleet.stop()
        verdict = fleet.verdict(result)
        shares = {name: sum(event["e"] == "ack" for event in events) for name, events in fleet.events()}
    result.counts["per process"] = "/".join(str(share) for share in shares.values())
    result.require(min(shares.values()) > 0, f"a process could not commit: {shares}")
    result.require(verdict.counts["failed 58000"] == 0, "a clock within max_offset was refused")
    return result


def clock_ahead(run: Run) -> Result:
    """A process beyond max_offset refuses every commit and says what to do; then it goes on."""
    result = Result()
    with Fleet(run.place("ahead"), run.seed) as fleet:
        offset = _offset(fleet.place, "p0", 0.0)
        fleet.start("p0", more=_option(offset))
        fleet.start("p1")
        fleet.await_ready()
        rounds = max(1, round(run.seconds / 4))
        for _ in range(rounds):
            time.sleep(run.seconds / rounds / 3)
            write_offset(offset, BEYOND_MS)
            time.sleep(run.seconds / rounds / 3)
            write_offset(offset, 0.0)
            time.sleep(run.seconds / rounds / 3)
        fleet.stop()
        fleet.verdict(result)
        events = dict(fleet.events())["p0.0"]
    refused = [event for event in events if event["e"] == "failed" and event["state"] == "58000"]
    later = [event for event in events if event["e"] == "ack" and refused and event["m"] > refused[-1]["m"]]
    result.counts |= {"refused": len(refused), "acked after": len(later)}
    result.require(bool(refused), "a clock 2 s ahead was not refused")
    result.require(bool(later), "the process did not go on once its clock was right")
    for event in refused[:1]:
        is_clear = "ahead" in event["why"] and "max_offset" in event["why"] and "clock" in event["hint"]
        result.require(is_clear, f"the message does not say what to do: {event['why']} {event['hint']}")
    return result


def idle(run: Run) -> Result:
    """An hour in which nothing happens: processes and a store whose clock is an hour old."""
    result = Result()
    place = run.place("idle")
    with Fleet(place, run.seed) as fleet:
        # All that was written so far, and all clocks, are an hour back; then they all jump.
        offsets = {name: _offset(place, name, -HOUR_SECONDS * 1000) for name in ("p0", "p1")}
        for name, offset in offsets.items():
            fleet.start(name, more=_option(offset))
        fleet.await_ready()
        time.sleep(run.seconds / 2)
        for name in offsets:
            fleet.signal(name, signal.SIGSTOP)
        for offset in offsets.values():
            write_offset(offset, 0.0)
        for name in offsets:
            fleet.signal(name, signal.SIGCONT)
        time.sleep(run.seconds / 2)
        fleet.stop()
        fleet.verdict(result)
    _idle_store(run, result)
    return result


def _idle_store(run: Run, result: Result) -> None:
    """One store, opened before the hour and used after it: reads, watch, history, commit."""
    place = run.place("hour")
    offset = _offset(place, "here", -HOUR_SECONDS * 1000)
    env = SkewedEnv(offset)
    store = open_store(place.address, env)
    key = names.key_of(store.keyspace, "b:00")
    txn = store.begin()
    txn.put(key, names.value_of("1", SETUP).encode())
    old_at = txn.commit()
    watch = store.watch([store.keyspace.all()], since_at=old_at)
    write_offset(offset, 0.0)
    time.sleep(0.05)
    before = store.engine.clock_at()
    result.require(before == old_at, "the store clock moved though nobody wrote")
    result.require(store.snapshot().get(key) == b"1|setup", "a read changed within the hour")
    other = open_store(place.address, SystemEnv())
    result.require(other.snapshot(old_at).get(key) == b"1|setup", "another node reads something else")
    txn = store.begin()
    txn.put(key, b"2|setup")
    new_at = txn.commit()
    passed = seconds_between(old_at, new_at)
    result.require(HOUR_SECONDS - 5 < passed < HOUR_SECONDS + 60, f"the hour took {passed} s of store time")
    batch = watch.next(timeout=5)
    told = None if isinstance(batch, Gap) else [revision.at for revision in batch.revisions]
    result.require(told == [new_at], f"the watch gave {batch}")
    past = store.snapshot(add_seconds(old_at, HOUR_SECONDS / 2)).get(key)
    result.require(past == b"1|setup", f"in the middle of the hour it was {past!r}")
    watch.close()
    for each in (store, other):
        each.close()
        each.engine.close()


def _offset(place: Place, name: str, offset_ms: float) -> Path:
    path = place.directory / f"{name}.offset"
    write_offset(path, offset_ms)
    return path


def write_offset(path: Path, offset_ms: float) -> None:
    """Replaces the file at once, so that no reader sees half of it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(str(offset_ms))
    fresh.replace(path)


def _option(offset: Path) -> tuple[str, str]:
    return "--offset-file", str(offset)
