"""pgbench as it comes: its tables, its scripts, its three protocols; hardly a transaction fails."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.env import SystemEnv
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tests.postgres_server import BIN

PGBENCH = BIN / "pgbench"


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    directory: Path = tmp_path_factory.mktemp("pgbench")
    node = Node(NodeOptions(f"sqlite:{directory}/store.db", listen=Listen(port=0)), SystemEnv())
    assert node.front is not None
    given = ["-h", node.front.host, "-p", str(node.front.port), "-U", "root", "defaultdb"]
    _pgbench("-i", "-s", "1", "-q", *given)
    yield given
    node.stop()


def _pgbench(*arguments: str) -> str:
    done = subprocess.run([PGBENCH, *arguments], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("script", ["tpcb-like", "simple-update", "select-only"])
def test_hardly_a_transaction_fails(arguments: list[str], script: str, protocol: str) -> None:
    options = ["-n", "-c", "4", "-j", "2", "-T", "2", "-M", protocol, "-b", script]
    if script == "tpcb-like":
        options += ["--max-tries", "1"]
    said = _pgbench(*options, *arguments)
    done = re.search(r"number of transactions actually processed: (\d+)", said)
    failed = re.search(r"number of failed transactions: (\d+)", said)
    assert done and failed, said
    assert int(done[1]) > 0
    assert int(failed[1]) <= 0.01 * int(done[1]), said
