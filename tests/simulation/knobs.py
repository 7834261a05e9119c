"""What differs from seed to seed: rates, delays, sizes and shapes, all drawn from the tape.

Fixed knobs find little: a bug that needs long transactions and slow commits never shows where
both are quick. Faults come in two phases: a site is active in a part of all seeds, and where it
is active it fires often enough to matter.

Walk: `cluster.run` draws a `Knobs`; `wire`, `nemesis` and `workload` read it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.simulation.tape import Tape

READ_FAULTS = ("retry read", "cut read", "pool exhausted", "slow read")
COMMIT_FAULTS = (
    "crash before commit",
    "crash after commit",
    "cut, commit done",
    "cut, commit lost",
    "cut, commit late",
    "retry commit",
    "disk full",
    "input output",
    "unavailable",
    "slow commit",
)
SETTLE_FAULTS = ("cut before settle", "cut after settle", "slow settle")
SIGNAL_FAULTS = ("signal late", "signal lost", "signal twice")
NEMESIS_FAULTS = (
    "pause",
    "power cut",
    "declared dead",
    "clock jump",
    "clock frozen",
    "clock drift",
    "cancel",
)
STORE_NEMESIS_FAULTS = (*NEMESIS_FAULTS, "interrupt")
"""Where clients commit by themselves: a thread may be stopped at any wait of its commit."""
SKEWS = ("none", "within max_offset", "beyond max_offset")

_SCALE = {
    **dict.fromkeys(READ_FAULTS, 0.12),
    **dict.fromkeys(COMMIT_FAULTS, 0.5),
    "crash before commit": 0.1,
    "crash after commit": 0.1,
    "cut, commit late": 1.0,
    "pool exhausted": 0.08,
}
"""A transaction makes many reads and one commit; a crash costs a node its whole workload."""


K = TypeVar("K", bound="Knobs")


@dataclass
class Knobs:
    seconds: float
    nodes: int
    rates: dict[str, float] = field(default_factory=dict)
    skew: str = SKEWS[0]
    read_seconds: float = 0.0
    commit_seconds: float = 0.0
    answer_rate: float = 0.0
    think_seconds: float = 0.0
    clients: int = 2
    keys: int = 3
    page_rows: int = 1_000
    batch_rows: int = 1_000
    group_max: int = 128
    poll_seconds: float = 1.0
    is_liveness: bool = False

    @property
    def has_signal_faults(self) -> bool:
        return any(self.rates.get(site) for site in SIGNAL_FAULTS)

    @property
    def faults_end(self) -> float:
        """Afterwards everything must come to its end."""
        return self.seconds * 0.8


def draw_knobs(tape: Tape, *, seconds: float, nodes: int) -> Knobs:
    return draw_into(Knobs(seconds, nodes), tape, STORE_NEMESIS_FAULTS)


def draw_into(knobs: K, tape: Tape, nemesis_faults: Sequence[str]) -> K:
    knobs.read_seconds = tape.choose("knob.read", (0.0, 0.001, 0.02, 0.1, 0.3))
    knobs.commit_seconds = tape.choose("knob.commit", (0.0, 0.003, 0.03, 0.3, 0.8))
    knobs.answer_rate = tape.choose("knob.answer", (0.0, 0.2, 0.6))
    knobs.think_seconds = tape.choose("knob.think", (0.0, 0.05, 0.3, 1.5))
    knobs.clients = tape.choose("knob.clients", (2, 2, 3, 4))
    knobs.keys = tape.choose("knob.keys", (3, 4, 6, 10))
    knobs.page_rows = tape.choose("knob.page", (1_000, 2, 3))
    knobs.batch_rows = tape.choose("knob.batch", (1_000, 1, 2, 3))
    knobs.group_max = tape.choose("knob.group", (128, 2, 3))
    knobs.poll_seconds = tape.choose("knob.poll", (1.0, 0.3, 2.5))
    knobs.skew = tape.choose("knob.skew", SKEWS)
    knobs.is_liveness = tape.chance("knob.liveness", 0.5)
    active = tape.between("knob.active", 0.25, 0.5)
    for site in (*READ_FAULTS, *COMMIT_FAULTS, *SETTLE_FAULTS, *SIGNAL_FAULTS, *nemesis_faults):
        is_active = tape.chance(f"knob.{site}", active)
        knobs.rates[site] = tape.between(f"rate.{site}", 0.05, 0.25) * _SCALE.get(site, 1.0) * is_active
    return knobs
