"""A node of a finalized cluster runs without the code of version 1."""

import subprocess
import sys
from pathlib import Path

START = """
import sys
from tenure.base.env import SystemEnv
from tenure.front import Listen
from tenure.node import Node, NodeOptions

node = Node(NodeOptions(sys.argv[1], listen=Listen(port=0)), SystemEnv())
try:
    print([name for name in sys.modules if name.startswith("tenure.version_one")])
finally:
    node.stop()
"""


def test_a_node_of_a_new_cluster_does_not_import_version_one(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", START, f"sqlite:{tmp_path}/store.db"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ran.stdout.strip() == "[]"
