"""Reads of several statements: what changes between two of them does not go unnoticed."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tenure.base.env import SystemEnv
from tenure.base.timestamp import to_bytes
from tenure.storage.engine import Commit, Guard, Removal, Removes, Write
from tenure.storage.sqlite import reads as sqlite_reads
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.contract.engine_client import MARKS_HEAD, Client, key, span

THRESHOLD, CLEANED = MARKS_HEAD + b"t1", MARKS_HEAD + b"c1"
POINT = Guard(THRESHOLD, THRESHOLD, CLEANED, CLEANED)


@pytest.fixture
def client() -> Iterator[Client]:
    engine = SqliteEngine(MEMORY, SystemEnv())
    yield Client(engine)
    engine.close()


class Between:
    """Runs statements, and something else after the first one, as another process would."""

    def __init__(self, client: Client, act: Callable[[], object]) -> None:
        self._engine = client.engine
        self._act: Callable[[], object] | None = act

    def __call__(self, statement: str, values: Sequence[object]) -> list[Any]:
        assert isinstance(self._engine, SqliteEngine)
        found = self._engine._writer.execute(statement, values)
        act, self._act = self._act, None
        if act is not None:
            act()
        return found


@pytest.mark.parametrize(
    ("mark", "removes"), [(THRESHOLD, Removes.GARBAGE), (CLEANED, Removes.FLUSHED)], ids=["swept", "cleaned"]
)
def test_several_keys_come_with_marks_that_move_while_they_are_read(
    client: Client, mark: bytes, removes: Removes
) -> None:
    read_at = client.put("a", b"old")
    client.put("a", b"new")
    last_at = client.put("b")

    def remove() -> None:
        removal = Removal(*span("a", "z"), removes, last_at, 10)
        client.commit(Commit(0, writes=(Write(mark, to_bytes(last_at)),), removals=(removal,)))

    found = sqlite_reads.get_many(Between(client, remove), (key("a"), key("b")), POINT, read_at)
    assert max(found.threshold_at, found.cleaned_at) == last_at, "the old row is gone, and nothing says so"


@pytest.mark.parametrize("read", ["get", "scan", "changes"])
def test_a_key_without_a_visible_revision_is_not_searched_to_its_end(read: str) -> None:
    """It was made later, and has been written to ever since."""
    engine = SqliteEngine(":memory:", SystemEnv())
    client = Client(engine)
    before_at = client.put("other")
    for _ in range(300):
        client.put("hot")
    steps = [0]

    def count() -> bool:
        steps[0] += 1
        return False

    engine._writer.connection.set_progress_handler(count, 1)
    if read == "get":
        assert client.get("hot", before_at) is None
    elif read == "scan":
        assert client.scan(*span("hot", "hou"), at=before_at).revisions == []
    else:
        assert client.scan(*span("hot", "hou"), at=before_at, since_at=0).revisions == []
    assert steps[0] < 200
    engine.close()
