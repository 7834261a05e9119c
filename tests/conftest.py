"""One PostgreSQL for the whole test run, also for the workers of xdist; started when first needed."""

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


class _Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """What is to be done by one worker goes to one; all else to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(PROCESSES) and "checker" not in nodeid:
            return "processes"
        return next((folder for folder in SHARED if nodeid.startswith(folder)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Scheduling:
    return _Scheduling(config, log)


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
