"""How much memory there is: the machine's, or less in a container."""

from pathlib import Path

import pytest

from tenure.base.machine_memory import container_bytes, machine_bytes, resident_bytes


def _write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("files", "own", "expected"),
    [
        ({}, "", None),
        ({"memory.max": "max\n"}, "0::/\n", None),
        ({"memory.max": "1000\n"}, "0::/\n", 1000),
        ({"a/memory.max": "max\n", "memory.max": "500\n"}, "0::/a\n", 500),
        ({"a/b/memory.max": "300\n", "a/memory.max": "200\n"}, "0::/a/b\n", 200),
        ({"memory.max": "700\n"}, "0::/seen/from/outside\n", 700),
        ({"memory/memory.limit_in_bytes": "900\n"}, "5:cpu,memory:/\n4:pids:/\n", 900),
        ({"memory/x/memory.limit_in_bytes": "800\n"}, "5:memory:/x\n", 800),
    ],
)
def test_the_least_limit_of_the_control_groups_counts(
    tmp_path: Path, files: dict[str, str], own: str, expected: int | None
) -> None:
    for name, text in files.items():
        _write(tmp_path, name, text)
    assert container_bytes(tmp_path, own) == expected


def test_a_process_has_some_of_the_machines_memory() -> None:
    assert 1 << 20 < resident_bytes() < machine_bytes()
