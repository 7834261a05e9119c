"""Who has the section: found by its lock, stopped or not."""

import os
from pathlib import Path

from tenure.storage.sqlite.section_holder import Holder, find_holder
from tenure.storage.sqlite.turnstile import Turnstile
from tests.unit.storage.sections import in_section
from tests.unit.storage.stopped_process import stopped_inside


def test_the_process_that_has_the_section_is_found(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    turnstile = Turnstile(path)
    assert find_holder(path) is None
    with in_section(turnstile):
        assert find_holder(path) == Holder(os.getpid(), is_stopped=False)
    turnstile.close()


def test_a_stopped_process_is_told_as_such(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    with stopped_inside(path) as process:
        holder = find_holder(path)
        assert holder == Holder(process.pid, is_stopped=True)
        assert f"`kill -CONT {process.pid}`" in str(holder)


def test_where_locks_are_not_listed_the_holder_is_not_known(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    turnstile = Turnstile(path)
    with in_section(turnstile):
        assert find_holder(path, tmp_path / "no such directory") is None
    turnstile.close()


def test_a_turnstile_that_is_tried_never_waits(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    turnstile = Turnstile(path)
    with stopped_inside(path):
        assert not turnstile.try_enter()
    assert turnstile.try_enter()
    turnstile.leave()
    turnstile.close()
