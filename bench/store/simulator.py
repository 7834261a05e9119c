"""How many seeds the simulator runs in a second on one core: 3 nodes, 60 virtual seconds each.

It has no peer; the bar is absolute. The simulator runs in a process of its own and says itself how
many seeds it ran per second and core, without its start and its other checks.

Walk: `bench.__main__` -> `run` -> `python -m tests.simulation`.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note

SEEDS_PER_SECOND = 10.0
ROOT = Path(__file__).resolve().parents[2]
SPEED = re.compile(r"^\d+ seeds, ([\d.]+) per second and core", re.MULTILINE)
LAST_LINE = re.compile(r"^seeds=(\d+) .*violations=(\d+)\s*$", re.MULTILINE)


def run(quick: bool) -> list[Ratio]:
    if importlib.util.find_spec("tests.simulation") is None:
        note("simulator: not measured, there is no tests/simulation")
        return []
    rate = _simulate(1 if quick else 200)
    bar = SEEDS_PER_SECOND
    return [compare("simulator", ours=rate, peer=bar, unit="seeds/s", bar=Bar.AT_LEAST, limit=1.0)]


def _simulate(seeds: int) -> float:
    """Seeds per second in one process; they must all run and hold."""
    command = [sys.executable, "-m", "tests.simulation", "--seeds", str(seeds), "--jobs", "1"]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    ran, speed = LAST_LINE.search(done.stdout), SPEED.search(done.stdout)
    assert done.returncode == 0 and ran and speed, f"the simulator failed:\n{done.stdout}\n{done.stderr}"
    assert (int(ran[1]), int(ran[2])) == (seeds, 0), ran[0]
    return float(speed[1])
