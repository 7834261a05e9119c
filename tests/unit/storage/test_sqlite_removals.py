"""What a removal costs on SQLite, counted in steps of its virtual machine."""

import pytest

from tenure.base.env import SystemEnv
from tenure.storage.engine import Commit, CommitStatus, Removal, Removes
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.contract.engine_client import ALL, Client, write

BATCH = 20


def steps_of_a_batch(revisions_kept: int, removes: Removes) -> int:
    """The last batch of a pass over an index of which a kept point holds much, in steps."""
    engine = SqliteEngine(":memory:", SystemEnv())
    client = Client(engine)
    kept_at = client.write(*(write(f"a{number:05}", b"kept") for number in range(revisions_kept)))
    client.write(*(write(f"a{number:05}", None) for number in range(revisions_kept)))
    for value in (b"1", b"2"):
        client.write(*(write(f"b{number}", value) for number in range(BATCH)))
    steps = [0]

    def count() -> bool:
        steps[0] += 1
        return False

    engine._writer.connection.set_progress_handler(count, 1)
    at, after = client.engine.clock_at(), b""
    removed = 0
    while not removed:
        steps[0] = 0
        removal = Removal(*ALL, removes, at, BATCH, points=(kept_at,), after=after)
        outcome = client.try_one(Commit(0, removals=(removal,)))
        assert outcome.status is CommitStatus.COMMITTED
        removed, after = outcome.removed, outcome.last
    assert removed == BATCH
    return steps[0]


@pytest.mark.parametrize("removes", [Removes.SUPERSEDED, Removes.GARBAGE])
def test_a_batch_costs_the_same_however_much_is_kept_elsewhere(removes: Removes) -> None:
    assert steps_of_a_batch(1_000, removes) <= 1.1 * steps_of_a_batch(BATCH, removes)


def test_a_batch_of_kept_revisions_is_bounded() -> None:
    engine = SqliteEngine(":memory:", SystemEnv())
    client = Client(engine)
    ats = [client.put("a", b"%d" % number) for number in range(500)]
    steps = [0]

    def count() -> bool:
        steps[0] += 1
        return False

    engine._writer.connection.set_progress_handler(count, 1)
    removal = Removal(*ALL, Removes.GARBAGE, ats[-1], BATCH, points=tuple(ats))
    assert client.try_one(Commit(0, removals=(removal,))).removed == 0
    assert steps[0] < 50 * BATCH
