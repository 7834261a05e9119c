"""A full disk: bulk work and schema changes fail within a bound, say 53100, and take back what they did."""

import errno
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tenure.base.errors import DiskFull
from tenure.bulk import flush
from tenure.bulk.ingest.existing_tables import ExistingTables
from tenure.cluster.jobs import attempts
from tenure.schema_change.stages import Work, WorkKind
from tenure.schema_change.work import Worker
from tests.pipeline.waiting import await_true
from tests.unit.bulk.imports import Importing
from tests.unit.lake_nodes import lake_node


@pytest.fixture
def importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Importing]:
    monkeypatch.setattr(attempts, "RETRY_SECONDS", 0.01)
    with lake_node(tmp_path) as node:
        yield Importing(node, tmp_path)


def test_an_import_that_finds_no_space_fails_and_brings_its_table_back(
    importing: Importing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, v text)")
    importing.done("INSERT INTO t VALUES (1, 'before')")
    with monkeypatch.context() as full:
        full.setattr(os, "link", _no_space_after(1))
        said = importing.csv("2,a\n3,b\n")
    assert said.sqlstate == "53100", said
    assert os.strerror(errno.ENOSPC) in said.message
    assert not list((tmp_path / "lake").glob("*/scratch/*"))
    importing.done("INSERT INTO t VALUES (4, 'after')")
    assert importing.rows() == [("1", "before"), ("4", "after")]
    assert importing.counts(importing.csv("2,a\n3,b\n"))[0] == "2"


def test_who_waits_is_told_when_not_even_taking_back_finds_space(
    importing: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, v text)")
    importing.done("INSERT INTO t VALUES (1, 'before')")
    with monkeypatch.context() as full:
        full.setattr(os, "link", _no_space_after(1))
        full.setattr(ExistingTables, "give_up", _no_space_for_this)
        said = importing.csv("2,a\n3,b\n")
        assert said.sqlstate == "53100" and os.strerror(errno.ENOSPC) in said.message, said
        assert "could not take back what it did" in said.detail and NO_SPACE in said.detail, said
    await_true(lambda: importing.say("INSERT INTO t VALUES (4, 'after')").sqlstate == "")


@pytest.mark.parametrize("source", ["TABLE t", "SELECT * FROM t"])
def test_an_export_that_finds_no_space_fails_and_leaves_no_file(
    importing: Importing, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY)")
    importing.done("INSERT INTO t VALUES (1)")
    export = f"EXPORT INTO CSV '{importing.name}/out' FROM {source}"
    with monkeypatch.context() as full:
        full.setattr(os, "link", _no_space)
        said = importing.say(export)
    assert said.sqlstate == "53100", said
    assert not list(importing.files.glob("out/*.csv"))
    importing.done(export)


def test_a_flush_that_finds_no_space_fails_and_leaves_its_index_free(
    importing: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY)")
    importing.done("INSERT INTO t VALUES (1)")
    with monkeypatch.context() as full:
        full.setattr(os, "link", _no_space)
        assert _flushed(importing).startswith("53100 ")
    assert _flushed(importing) == ""


def _flushed(importing: Importing) -> str:
    """The error of a flush of t, once its job has ended; empty if it went well."""
    node = importing.node
    lake = node.lake
    assert lake is not None
    ((id,),) = importing.rows("SELECT id FROM tenure_internal.tables WHERE table_name = 't'")
    job = node.store.transact(lambda txn: flush.start(txn, lake, int(id or 0), 1, rows=0, name="t"))
    assert job is not None, "the former one still has the index"
    await_true(lambda: not node.jobs.is_open(node.store.snapshot(), job.id))
    control = node.jobs.control(node.store.snapshot(), job.id)
    assert control is not None
    return control.error_text


def test_a_schema_change_that_finds_no_space_fails_and_is_taken_back(
    importing: Importing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, v int)")
    importing.done("INSERT INTO t VALUES (1, 2)")
    with lake_node(tmp_path):  # with another one about, a job does it
        with monkeypatch.context() as full:
            full.setattr(Worker, "resume", _full_for_what_is_added)
            said = importing.say("CREATE INDEX i ON t (v)")
        assert said.sqlstate == "53100", said
        importing.done("CREATE INDEX i ON t (v)")
    assert importing.rows("SELECT id FROM t WHERE v = 2") == [("1",)]


_resume = Worker.resume


def _full_for_what_is_added(worker: Worker, work: Work, *arguments: Any) -> Iterator[bytes | None]:
    """There is space again once something was removed: the change can be taken back."""
    if work.kind is WorkKind.FILL_INDEX:
        raise DiskFull("no space is left for the store")
    return _resume(worker, work, *arguments)


NO_SPACE = "no space is left for the store"


def _no_space_for_this(_: object) -> NoReturn:
    raise DiskFull(NO_SPACE)


def _no_space(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _no_space_after(files: int) -> Callable[..., None]:
    """So many files of each attempt find their place."""
    link, made = os.link, count(1)

    def linked(*arguments: Any, **more: Any) -> None:
        if next(made) % (files + 1) == 0:
            _no_space()
        link(*arguments, **more)

    return linked
