"""A client that has ended its block and is idle: what the block wrote is not in memory."""

import gc
from pathlib import Path

import pytest

from tenure.storage.engine import Write
from tests.unit.sql.served import serving

MARK = b"committed and not forgotten"


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
def test_a_block_that_is_over_leaves_no_writes_in_memory_while_its_client_is_idle(
    tmp_path: Path, ending: str
) -> None:
    with serving(tmp_path) as served, served.connect() as client:
        served.root.execute("CREATE TABLE t (id int PRIMARY KEY, data bytea)")
        client.execute("BEGIN")
        client.execute("INSERT INTO t VALUES (1, %s)", (MARK * 50,))
        assert _writes()
        client.execute(ending.encode())
        served.root.execute("INSERT INTO t VALUES (2, '')")  # whoever led the group is done with it
        gc.disable()  # nothing waits for a garbage collection
        try:
            assert _writes() == 0
        finally:
            gc.enable()


def _writes() -> int:
    return sum(1 for each in gc.get_objects() if isinstance(each, Write) and MARK in (each.value or b""))
