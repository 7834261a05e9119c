"""Connections cut inside COMMIT, by a proxy; for SQLite, processes stopped inside their section.

Walk: `__main__` and `test_faults_smoke` call `cut` with a `Run`; `proxy` does the cutting.
"""

import fcntl
import signal
import time
from contextlib import closing

from tests.faults.crashes import PROCESSES, require_going_on
from tests.faults.harness import Fleet, Place, Result, Run, dsn
from tests.faults.proxy import KINDS, Proxy

FAULT_RATE = 0.08
"""Of commits: enough for many cuts a second, few enough for work in between."""


def cut(run: Run) -> Result:
    """No commit lands after it was reported as failed; an unknown one is settled."""
    return cut_by_proxy(run) if run.engine == "postgres" else stop_in_section(run)


def cut_by_proxy(run: Run, kinds: tuple[str, ...] = KINDS) -> Result:
    result = Result()
    place = run.place("cut")
    assert run.server is not None
    proxy = Proxy(run.server.port, run.seed, rate=FAULT_RATE, kinds=kinds)
    address = place.address.partition("@")[0] + "@" + dsn(run.server, proxy.port)
    with Fleet(place, run.seed) as fleet, closing(proxy):
        for name in PROCESSES:
            fleet.start(name, address=address)
        fleet.await_ready()
        time.sleep(run.seconds)
        proxy.rate = 0.0
        require_going_on(fleet, result, "after the cuts")
        fleet.stop()
        proxy.close()  # delivers what is still late
        fleet.verdict(result)
    result.counts |= dict(sorted(proxy.faults.items())) | {"commit requests": proxy.requests["commit"]}
    result.require(proxy.requests["commit"] > 0, "the proxy did not recognise a single commit")
    if "late" in kinds:
        result.require(proxy.faults["late, after settling"] > 0, "no request was late enough")
    return result


def stop_in_section(run: Run) -> Result:
    """SIGSTOP at random: whoever is stopped in the section makes the others wait, no more."""
    result = Result()
    rng = run.rng
    stops = held = 0
    with Fleet(run.place("cut"), run.seed) as fleet:
        for name in PROCESSES:
            fleet.start(name)
        fleet.await_ready()
        until = time.monotonic() + run.seconds
        while time.monotonic() < until:
            victim = rng.choice(PROCESSES)
            fleet.signal(victim, signal.SIGSTOP)
            stops += 1
            time.sleep(0.03)
            in_section = _is_held(fleet.place)
            held += in_section
            time.sleep(rng.uniform(0.0, 0.3) if in_section else 0.0)
            fleet.signal(victim, signal.SIGCONT)
            time.sleep(rng.uniform(0.0, 0.1))
        require_going_on(fleet, result, "after being stopped")
        fleet.stop()
        verdict = fleet.verdict(result)
    result.counts |= {"stops": stops, "in the section": held}
    result.require(held > 0, "no process was stopped in its section")
    others = {kind: n for kind, n in verdict.counts.items() if kind.startswith("trouble ")}
    result.require(not others, f"waiting turned into errors: {others}")
    return result


def _is_held(place: Place) -> bool:
    """Whether the section stays occupied: the stopped process must be the one that is in it."""
    with open(f"{place.path}-section", "rb") as section:
        for _ in range(5):
            try:
                fcntl.flock(section, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.01)
                continue
            return False
    return True
