"""What all tests share: how the workers of xdist divide the tests, and servers that start when first needed.

One PostgreSQL serves the whole run, also all workers of xdist.
"""

import gc
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests import postgres_server, s3_server

if TYPE_CHECKING:
    from tenure.pipeline.spark_tasks import SparkTasks
    from tests.spark_sessions import SparkSessions

# Machines are noisy: how long an example takes says nothing about the code. The same examples each time,
# so that a run says something about the change it is for; `make hunt` looks for new ones.
hypothesis.settings.register_profile("tenure", deadline=None, derandomize=True)
hypothesis.settings.register_profile("hunt", deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("TENURE_EXAMPLES", "tenure"))


def pytest_configure(config: pytest.Config) -> None:
    # Workers of xdist inherit the variable, and so know that the directory is not theirs to remove.
    if postgres_server.SHARED_DIRECTORY_VARIABLE not in os.environ:
        directory = postgres_server.make_directory()
        os.environ[postgres_server.SHARED_DIRECTORY_VARIABLE] = str(directory)
        config.add_cleanup(lambda: _remove(directory))


PROCESSES = ("tests/clients", "tests/faults", "tests/pipeline", "tests/security")
"""Tests that start processes, and need both cores: one after the other, by one worker."""

SHARED = ("tests/differential", "tests/tidy")
"""Folders whose tests share what is slow to make: a node and what is in it, all modules parsed."""

SLOW = (
    "tests/simulation",
    "tests/unit/bulk",
    "tests/unit/pipeline",
    "tests/unit/schema_change",
    "tests/unit/sql/duck",
    "tests/unit/sql/statements",
    "tests/unit/table/lake",
    "tests/unit/test_",
)
"""Modules that take many seconds: they start early, so that no worker is left with one of them at the end."""


class _Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives the tests of a module to one worker, because they share fixtures; those of some folders, too."""

    def _split_scope(self, nodeid: str) -> str:
        if _starts_processes(nodeid):
            return "processes"
        module = nodeid.partition("::")[0]
        return next((folder for folder in SHARED if nodeid.startswith(folder)), module)


def _starts_processes(nodeid: str) -> bool:
    return nodeid.startswith(PROCESSES) and "checker" not in nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Scheduling:
    config.option.loadscopereorder = False  # by the number of tests; `_place` knows better
    return _Scheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    """Returns when its turn comes: what takes longest first."""
    if _starts_processes(nodeid):
        return 0
    return 1 if nodeid.startswith((*SLOW, *SHARED)) else 2


def pytest_collection_finish() -> None:
    # The modules and the tests stay until the end: a garbage collection need not look at them each time.
    gc.collect()
    gc.freeze()


def _remove(directory: Path) -> None:
    os.environ.pop(postgres_server.SHARED_DIRECTORY_VARIABLE, None)
    postgres_server.remove_directory(directory)


@pytest.fixture(scope="session")
def spark_sessions() -> "Iterator[SparkSessions]":
    from tests.spark_sessions import SparkSessions  # pyspark takes a moment to import

    sessions = SparkSessions()
    yield sessions
    sessions.close()


@pytest.fixture
def spark_tasks(spark_sessions: "SparkSessions") -> "SparkTasks":
    """Tasks on Spark, under this process."""
    return spark_sessions.tasks()


@pytest.fixture(scope="session")
def postgres() -> postgres_server.Server:
    return postgres_server.shared()


@pytest.fixture
def postgres_directory() -> Iterator[Path]:
    """A directory for a server of the test's own, to be stopped and started at will."""
    directory = postgres_server.make_directory()
    yield directory
    postgres_server.remove_directory(directory)


_buckets = count()


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with s3_server.running() as endpoint:
        yield endpoint


@pytest.fixture
def bucket_address(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place in a fresh bucket, without credentials: those are in the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # nothing is asked beyond loopback
    bucket = f"bucket-{next(_buckets)}"
    s3_server.make_bucket(s3_endpoint, bucket)
    return f"s3://{bucket}/some/where?AWS_REGION=us-east-1&AWS_ENDPOINT={s3_endpoint}"
