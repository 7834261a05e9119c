"""What differs from seed to seed in the world of sessions and jobs, besides the store's own knobs.

Times are short against a run of sixty seconds, so that many sessions live and die in it, and the
calm at the end is long enough for a dead node's jobs to be adopted and finished.

Walk: `cluster.run` draws a `JobKnobs`; `members`, `labour` and `steering` read it.
"""

from dataclasses import dataclass

from tests.simulation.knobs import NEMESIS_FAULTS, Knobs, draw_into
from tests.simulation.tape import Tape

JOB_NEMESIS_FAULTS = (
    *NEMESIS_FAULTS,
    "long pause",
    "heartbeat stalled",
    "deaths stalled",
    "session frozen",
    "drain",
    "started twice",
    "setting changed",
    "second runner",
    "heads swept",
)

TTLS = (5.0, 3.0, 6.0)
TTL_MAX = max(TTLS)

ADOPTS = (3.0, 1.5, 4.0)
ADOPT_MAX = max(ADOPTS)

RETENTIONS = (14 * 86_400.0, 4.0, 8.0)
"""The first outlasts any run."""


@dataclass
class JobKnobs(Knobs):
    ttl_seconds: float = TTLS[0]
    beats: float = 2.5
    """Heartbeats per ttl."""
    adopt_seconds: float = ADOPTS[0]
    retention_seconds: float = RETENTIONS[0]
    upgrades: bool = False
    """Whether it starts as version 1 and is upgraded node by node."""
    tenants: int = 1
    deaths_max: int = 20_000
    steps: int = 2
    """Effects per job."""
    panic_rate: float = 0.0
    """How often a job's terminal step breaks off in the middle."""
    signal_seconds: float = 1.0

    @property
    def faults_end(self) -> float:
        return self.seconds * 0.65

    @property
    def heartbeat_seconds(self) -> float:
        return self.ttl_seconds / self.beats

    @property
    def follows_settings(self) -> bool:
        return self.upgrades or self.rates.get("setting changed", 0.0) > 0

    @property
    def forgets(self) -> bool:
        return self.retention_seconds < self.seconds or self.rates.get("setting changed", 0.0) > 0

    @property
    def adoption_seconds(self) -> float:
        """How long after the faults a runnable job may be without a live claim: calls under way then
        take two seconds at most; after that a session's ttl, the watch's poll and the slow poll."""
        return 2.0 + TTL_MAX + self.poll_seconds + ADOPT_MAX + 1.0


def draw_job_knobs(tape: Tape, *, seconds: float, nodes: int) -> JobKnobs:
    knobs = draw_into(JobKnobs(seconds, nodes), tape, JOB_NEMESIS_FAULTS)
    # Slower, and no session would ever outlive its first heartbeats.
    knobs.read_seconds = min(knobs.read_seconds, 0.1)
    knobs.commit_seconds = min(knobs.commit_seconds, 0.3)
    knobs.batch_rows = tape.choose("knob.batch", (1_000, 5, 20))
    knobs.poll_seconds = tape.choose("knob.poll", (2.5, 1.0, 4.0))
    knobs.clients = tape.choose("knob.clients", (1, 1, 1, 2))
    knobs.ttl_seconds = tape.choose("knob.ttl", TTLS)
    knobs.beats = tape.choose("knob.beats", (2.5, 2.0, 3.0))
    knobs.adopt_seconds = tape.choose("knob.adopt", ADOPTS)
    knobs.signal_seconds = tape.choose("knob.signal", (1.0, 0.5, 2.0))
    knobs.deaths_max = tape.choose("knob.deaths", (20_000, 1, 2))
    knobs.steps = tape.choose("knob.steps", (2, 1, 3, 4))
    knobs.panic_rate = tape.choose("knob.panic", (0.0, 0.0, 0.3))
    knobs.retention_seconds = tape.choose("knob.retention", RETENTIONS)
    knobs.upgrades = tape.chance("knob.upgrades", 0.25)
    knobs.tenants = 2 if tape.chance("knob.tenants", 0.25) else 1
    return knobs
