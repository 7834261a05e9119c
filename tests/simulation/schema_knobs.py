"""What differs from seed to seed in the world of schema changes, besides the store's own knobs.

A change takes several versions and waits for leases between them, and a wait may have to end a
holder, then freeze its session, then see it die. So times are short against a run of sixty seconds,
and the calm at the end is long enough for a change that was left half-way to be walked to its end.

Walk: `cluster.run` draws a `SchemaKnobs`; `schema_nodes`, `schema_client` and `wire` read it.
"""

from dataclasses import dataclass

from tests.simulation.knobs import NEMESIS_FAULTS, READ_FAULTS, SKEWS, Knobs, draw_into
from tests.simulation.tape import Tape

SCHEMA_NEMESIS_FAULTS = (
    *NEMESIS_FAULTS,
    "long pause",
    "heartbeat stalled",
    "leases stalled",
    "holders stalled",
    "session frozen",
    "drain",
)

TIME_PART = 0.75
"""Of the time that runs of the other worlds take: so much more happens in a second here."""

READ_FAULTS_PART = 0.25

SESSION, EXPIRING = "session", "expiring"
"""How nodes lease: the whole catalog under their session, or one descriptor at a time."""

TTLS = (3.0, 2.0, 4.0)
TTL_MAX = max(TTLS)


@dataclass
class SchemaKnobs(Knobs):
    ttl_seconds: float = TTLS[0]
    beats: float = 3.0
    """Heartbeats per ttl."""
    adopt_seconds: float = 2.0
    lease_poll_seconds: float = 2.0
    grace_seconds: float = 1.5
    scheme: str = SESSION
    duration_seconds: float = 4.0
    """Of an expiring lease."""
    signal_seconds: float = 0.25
    fill_rows: int = 500
    """Rows per batch of a backfill."""
    alone_rows: int = 1_000
    """Rows up to which a change may be made in one commit."""
    linger_seconds: float = 0.0
    """How long a transaction stays open that does nothing any more."""
    is_sparse: bool = False
    """Whether the other nodes come late and go again, so that one is alone now and then."""

    @property
    def faults_end(self) -> float:
        return self.seconds * 0.55

    @property
    def heartbeat_seconds(self) -> float:
        return self.ttl_seconds / self.beats


def draw_schema_knobs(tape: Tape, *, seconds: float, nodes: int, scheme: str = SESSION) -> SchemaKnobs:
    knobs = draw_into(SchemaKnobs(TIME_PART * seconds, nodes), tape, SCHEMA_NEMESIS_FAULTS)
    knobs.nodes = tape.choose("knob.nodes", (nodes, 2, 4, nodes))
    # A change makes dozens of calls, one after the other: slower or less sure, and none would end in a run.
    for site in READ_FAULTS:
        knobs.rates[site] *= READ_FAULTS_PART
    knobs.skew = tape.choose("knob.skewed", (*SKEWS[:2], *SKEWS))
    knobs.read_seconds = min(knobs.read_seconds, 0.02)
    knobs.commit_seconds = min(knobs.commit_seconds, 0.1)
    knobs.think_seconds = min(knobs.think_seconds, 0.5)
    knobs.batch_rows = tape.choose("knob.batch", (1_000, 5, 20))
    knobs.poll_seconds = tape.choose("knob.poll", (1.0, 0.5, 2.0))
    knobs.clients = tape.choose("knob.clients", (2, 1, 2, 3))
    knobs.keys = tape.choose("knob.keys", (4, 6, 10))
    knobs.ttl_seconds = tape.choose("knob.ttl", TTLS)
    knobs.beats = tape.choose("knob.beats", (3.0, 2.0))
    knobs.adopt_seconds = tape.choose("knob.adopt", (2.0, 1.0, 3.0))
    knobs.lease_poll_seconds = tape.choose("knob.lease poll", (2.0, 0.5, 4.0))
    knobs.grace_seconds = tape.choose("knob.grace", (1.5, 0.5, 3.0))
    knobs.scheme = scheme
    knobs.duration_seconds = tape.choose("knob.duration", (4.0, 2.0, 6.0))
    knobs.signal_seconds = tape.choose("knob.signal", (0.25, 0.5, 1.0))
    knobs.fill_rows = tape.choose("knob.fill", (500, 1, 3))
    knobs.alone_rows = tape.choose("knob.alone", (1_000, 1_000, 2))
    knobs.linger_seconds = tape.choose("knob.linger", (0.0, 2.0, 8.0))
    knobs.is_sparse = tape.chance("knob.sparse", 0.25)
    if knobs.is_liveness:
        # Deaf nodes hear of each version by polling, and changes of one table wait for one another.
        knobs.poll_seconds = min(knobs.poll_seconds, 0.5)
        knobs.lease_poll_seconds = min(knobs.lease_poll_seconds, 1.0)
        knobs.adopt_seconds = min(knobs.adopt_seconds, 1.0)
    return knobs
