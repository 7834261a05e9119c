"""From the SIGKILL of a job's worker to the moment at which another one runs the job.

Both sides have the same ttl and the same heartbeat. Two workers are there; one claims a job and
keeps it; it is killed at a random time, and the other one has to find that out. A worker that has
just sent a heartbeat is mourned for a whole ttl, on either side; what differs is how soon after the
expiry the job is claimed: ours waits for that very moment, the peer looks every second.

Walk: `bench.__main__` -> `run`.
"""

import random
import statistics
import time

from bench.jobs import ours, peer
from bench.jobs.crew import Crew, Duty, Side, Work, await_finished
from bench.ratio import Bar, Ratio, compare
from bench.store.places import postgres
from bench.store.rounds import note

TTL_SECONDS, HEARTBEAT_SECONDS = 2.0, 0.25
RUNS_MAX = 8


def run(quick: bool) -> list[Ratio]:
    rounds = 1 if quick else 9
    chooser = random.Random(rounds)
    with postgres() as server:
        address = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        duty = Duty(address, Work.HOLD, RUNS_MAX, TTL_SECONDS, HEARTBEAT_SECONDS)
        sides: list[Side] = [ours.Ours(address), peer.Peer(address)]
        crews = [Crew(ours.serve, duty), Crew(peer.serve, duty)]
        seconds: list[list[float]] = [[], []]
        try:
            for _ in range(rounds):
                for side, crew, of_side in zip(sides, crews, seconds, strict=True):
                    of_side.append(_take_over(side, crew, chooser))
        finally:
            for side, crew in zip(sides, crews, strict=True):
                crew.dismiss()
                side.close()
    return _ratios(*seconds)


def _take_over(side: Side, crew: Crew, chooser: random.Random) -> float:
    """Seconds from the kill to the next run of the job."""
    crew.hire(2 - len(crew.workers))
    time.sleep(2 * HEARTBEAT_SECONDS)  # a heartbeat was sent: the ttl is that of a heartbeat
    side.create(1)
    (first,) = crew.await_claims(1)
    time.sleep(chooser.uniform(1, 2) * HEARTBEAT_SECONDS)
    killed = time.monotonic()
    crew.kill(crew.by_pid(first.pid))
    (second,) = crew.await_claims(1)
    assert (second.job, second.pid != first.pid) == (first.job, True), "another job than the dead one's"
    await_finished(side)
    return second.at_seconds - killed


def _ratios(mine: list[float], theirs: list[float]) -> list[Ratio]:
    for name, seconds in (("ours", mine), ("peer", theirs)):
        note(f"jobs.takeover: {name} {', '.join(f'{each:.2f}' for each in sorted(seconds))} s")
    return [
        compare(
            "jobs.takeover.kill_to_claim",
            ours=statistics.median(mine),
            peer=statistics.median(theirs),
            unit="s",
            bar=Bar.AT_MOST,
            limit=1.0,
        ),
        compare("jobs.takeover.worst", ours=max(mine), peer=max(theirs), unit="s", bar=Bar.NONE),
    ]
