"""A full disk: IMPORT and EXPORT fail within a bound, say so with 53100, and take back what they did."""

import errno
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tenure.cluster import attempts
from tests.unit.bulk.imports import Importing, lake_node


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
