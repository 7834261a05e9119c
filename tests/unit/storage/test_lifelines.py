"""A file that a process holds locked proves its death, and proves nothing else."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.env import SystemEnv
from tenure.storage.lifelines import KEPT_SECONDS, Lifeline, Lifelines, open_lifelines

HOLDER = """
import sys, time
from tenure.base.env import SystemEnv
from tenure.storage.lifelines import Lifelines
held = Lifelines(sys.argv[1], SystemEnv(), kernel="k")
print(*held.own(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def lifelines(tmp_path: Path) -> Iterator[Lifelines]:
    found = Lifelines(str(tmp_path / "nodes"), SystemEnv(), kernel="k")
    yield found
    found.close()


@pytest.fixture
def holder(lifelines: Lifelines, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "nodes")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def named(holder: "subprocess.Popen[str]") -> Lifeline:
    assert holder.stdout is not None
    token, kernel, device, inode = holder.stdout.readline().split()
    return Lifeline(token, kernel, int(device), int(inode))


@pytest.mark.invariant("death-is-proved")
def test_a_process_is_dead_when_it_was_killed_and_not_before(
    lifelines: Lifelines, holder: "subprocess.Popen[str]"
) -> None:
    lifeline = named(holder)
    assert not lifelines.is_dead(lifeline)
    holder.kill()
    holder.wait()
    assert lifelines.is_dead(lifeline)


def test_a_process_does_not_take_itself_for_dead(lifelines: Lifelines) -> None:
    assert not lifelines.is_dead(lifelines.own())


def test_another_kernel_proves_nothing(lifelines: Lifelines, holder: "subprocess.Popen[str]") -> None:
    lifeline = named(holder)
    holder.kill()
    holder.wait()
    assert not lifelines.is_dead(lifeline._replace(kernel="another"))


def test_a_copy_of_the_file_proves_nothing(
    lifelines: Lifelines, holder: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    lifeline = named(holder)
    shutil.copytree(tmp_path / "nodes", tmp_path / "copy")
    elsewhere = Lifelines(str(tmp_path / "copy"), SystemEnv(), kernel="k")
    assert not elsewhere.is_dead(lifeline)  # it is not locked there, and its process lives
    elsewhere.close()


def test_a_file_that_is_missing_proves_nothing(lifelines: Lifelines, tmp_path: Path) -> None:
    other = Lifelines(str(tmp_path / "nodes"), SystemEnv(), kernel="k")
    lifeline = other.own()
    other.close()
    assert not lifelines.is_dead(lifeline)


@pytest.mark.parametrize("token", ["", "../store.db", "/etc/passwd", "A" * 32])
def test_a_name_that_is_no_token_leads_nowhere(lifelines: Lifelines, token: str) -> None:
    assert not lifelines.is_dead(lifelines.own()._replace(token=token))


def test_old_files_of_the_dead_are_removed_and_no_others(
    lifelines: Lifelines, holder: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    lifeline = named(holder)
    holder.kill()
    holder.wait()
    path = tmp_path / "nodes" / lifeline.token
    made = path.stat().st_mtime
    lifelines.tidy(made + KEPT_SECONDS / 2)
    assert path.exists()
    lifelines.tidy(made + KEPT_SECONDS * 2)
    assert os.listdir(tmp_path / "nodes") == [lifelines.own().token]


def test_a_directory_of_others_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tenure-nodes").mkdir()
    (tmp_path / "tenure-nodes").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert open_lifelines("postgresql://host/database", SystemEnv()) is None
