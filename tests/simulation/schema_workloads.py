"""Workloads of schema changes under which a mistake shows soon.

Walk: the lists of mistakes name one for each mistake; `mutants` applies it to the knobs of a run.
"""

from tests.simulation.knobs import COMMIT_FAULTS, READ_FAULTS, SETTLE_FAULTS, Knobs
from tests.simulation.schema_knobs import SchemaKnobs


def lingering(knobs: Knobs) -> None:
    """Transactions that stay open, and changes that wait for them for long."""
    assert isinstance(knobs, SchemaKnobs)
    knobs.linger_seconds = 8.0
    knobs.grace_seconds = 3.0
    knobs.signal_seconds = 0.25
    knobs.lease_poll_seconds = 0.5
    knobs.poll_seconds = 0.5


def pausing(knobs: Knobs) -> None:
    """Nodes that stop for longer than their session lives, again and again."""
    assert isinstance(knobs, SchemaKnobs)
    lingering(knobs)
    knobs.nodes, knobs.ttl_seconds, knobs.think_seconds = 3, 2.0, 0.5
    knobs.rates |= {"long pause": 0.25, "heartbeat stalled": 0.25}
    quiet(knobs)


def quiet(knobs: Knobs) -> None:
    """No faults of single calls, no skew: what is hunted needs changes that come to their end."""
    for site in (*READ_FAULTS, *COMMIT_FAULTS, *SETTLE_FAULTS):
        knobs.rates[site] = 0.0
    knobs.skew = "none"


def stubborn(knobs: Knobs) -> None:
    """Holders that nobody ends on their own node."""
    assert isinstance(knobs, SchemaKnobs)
    lingering(knobs)
    quiet(knobs)
    knobs.rates["holders stalled"] = 0.25
    knobs.grace_seconds, knobs.ttl_seconds = 0.5, 2.0


def sparse(knobs: Knobs) -> None:
    """One node that is often alone, while others come and go."""
    assert isinstance(knobs, SchemaKnobs)
    quiet(knobs)
    knobs.is_sparse, knobs.alone_rows = True, 1_000
    knobs.rates |= {"power cut": 0.25, "drain": 0.25}
    knobs.commit_seconds, knobs.think_seconds = 0.1, 0.05


def coming_and_going(knobs: Knobs) -> None:
    """One node that takes its time over changes, and another that is there one moment and gone the next."""
    assert isinstance(knobs, SchemaKnobs)
    sparse(knobs)
    knobs.nodes, knobs.clients, knobs.is_sparse = 2, 3, False
    knobs.rates |= {"power cut": 0.0, "drain": 0.9}
    knobs.read_seconds, knobs.commit_seconds = 0.1, 0.3


def crowded(knobs: Knobs) -> None:
    """Few keys, small batches, slow writers: backfills and writers meet."""
    assert isinstance(knobs, SchemaKnobs)
    quiet(knobs)
    knobs.fill_rows, knobs.keys, knobs.clients = 1, 10, 3
    knobs.think_seconds, knobs.signal_seconds = 0.5, 1.0


def dying(knobs: Knobs) -> None:
    """Nodes that lose power in the middle of what they do."""
    assert isinstance(knobs, SchemaKnobs)
    quiet(knobs)
    knobs.rates |= {"power cut": 0.2, "crash before commit": 0.03}
