"""A worker that is stopped past its ttl and comes back: how many jobs have their effect twice?

    worker A   claims all jobs ── SIGSTOP ············ SIGCONT ── its effects? ──►
    worker B                      started ── takes the jobs over ──── its effects ──►

Every job waits half a ttl and then writes one row in the same PostgreSQL: ours through the run's
fence, the peer's as a task would. A comes back when B has begun to run all of the jobs. Ours must
have exactly one effect for each job; it is checked. The peer promises no such thing: its tasks are
to be idempotent, and how many are doubled is printed.

Walk: `bench.__main__` -> `run`.
"""

import signal
import time
from collections import Counter

from bench.jobs import ours, peer
from bench.jobs.crew import Crew, Duty, Side, Work, await_finished
from bench.ratio import Bar, Ratio, compare
from bench.store.places import postgres
from bench.store.rounds import note

TTL_SECONDS, HEARTBEAT_SECONDS = 2.0, 0.25
RUNS_MAX = 32
TAKEN_SECONDS = 6 * TTL_SECONDS
"""How long the other one has to take over, before the paused one comes back anyway. Ours must have done
so; the peer now and then has not, for a reason that is not known here."""


def run(quick: bool) -> list[Ratio]:
    jobs, rounds = (4, 1) if quick else (16, 3)
    with postgres() as server:
        address = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        duty = Duty(address, Work.EFFECT, RUNS_MAX, TTL_SECONDS, HEARTBEAT_SECONDS)
        peer_taken = 0
        mine, theirs = ours.Ours(address), peer.Peer(address)
        try:
            for _ in range(rounds):
                taken = _pause(mine, Crew(ours.serve, duty), jobs)
                assert taken == jobs, f"{jobs - taken} jobs of a dead session were not taken over"
                peer_taken += _pause(theirs, Crew(peer.serve, duty), jobs)
            doubled = _doubled(mine, jobs * rounds)
            peer_doubled = _doubled(theirs, jobs * rounds)
        finally:
            mine.close()
            theirs.close()
    every = jobs * rounds
    note(f"jobs.pauses: of {every} jobs ours had {every} taken over and {doubled} doubled,")
    note(f"    the peer {peer_taken} taken over and {peer_doubled} doubled")
    assert doubled == 0, f"{doubled} jobs had their effect more than once"
    return [
        compare("jobs.pauses.doubled", ours=doubled, peer=every, unit="jobs", bar=Bar.AT_MOST, limit=0.0),
        compare("jobs.pauses.doubled_by_peer", ours=doubled, peer=peer_doubled, unit="jobs", bar=Bar.NONE),
    ]


def _pause(side: Side, crew: Crew, jobs: int) -> int:
    """How many of the paused worker's jobs another one had begun when it came back."""
    try:
        (paused,) = crew.hire(1)
        side.create(jobs)
        crew.await_claims(jobs)
        paused.signal(signal.SIGSTOP)
        crew.hire(1)
        taken = len(crew.claims_within(TAKEN_SECONDS, jobs))
        paused.signal(signal.SIGCONT)
        await_finished(side)
        time.sleep(TTL_SECONDS)  # whatever the paused one still had in mind, it has done by now
        return taken
    finally:
        crew.dismiss()


def _doubled(side: Side, jobs: int) -> int:
    """How many jobs had more than one effect; each must have had one."""
    effects = Counter(side.effects())
    assert len(effects) == jobs, f"{side.name}: {jobs - len(effects)} jobs had no effect"
    return sum(1 for count in effects.values() if count > 1)
