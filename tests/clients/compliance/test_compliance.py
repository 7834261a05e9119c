"""At least 99 of 100 tests of SQLAlchemy's compliance suite that pass on PostgreSQL pass on a node."""

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4
from xml.etree import ElementTree

import psycopg
import psycopg.conninfo
import pytest

from tenure.node import Node
from tests import postgres_server

ROOT = Path(__file__).parents[3]
FILES = {
    "conftest.py": """
import pytest
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
import sqlalchemy.dialects.postgresql.provision as provision
provision._extensions.clear()
from sqlalchemy.testing.plugin.pytestplugin import *
""",
    "test_suite.py": "from sqlalchemy.testing.suite import *\n",
    "setup.cfg": """[sqla_testing]
requirement_cls=tests.clients.compliance.requirements:PostgresRequirements
profile_file=profiles.txt
""",
    "pytest.ini": "[pytest]\npython_files=test_suite.py\n",
}
"""A project as the suite wants one, without the extensions that SQLAlchemy's tests of PostgreSQL use."""
_VERSION = re.compile(r"_postgresql\+psycopg_[\d_]+")


@pytest.mark.longer
def test_what_passes_on_postgresql_passes_here(
    lone: Node, postgres: postgres_server.Server, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    database = f"compliance_{uuid4().hex[:12]}"
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}".encode())
    port = int(str(psycopg.conninfo.conninfo_to_dict(postgres.dsn)["port"]))
    theirs = _passed(tmp_path, f"postgres@127.0.0.1:{port}/{database}")
    assert lone.front is not None
    ours = _passed(tmp_path, f"root@127.0.0.1:{lone.front.port}/defaultdb")
    missed = theirs - ours
    assert len(theirs) > 1_500
    assert len(missed) <= len(theirs) / 100, sorted(missed)


def _passed(directory: Path, address: str) -> set[str]:
    """The names of the tests that passed."""
    with psycopg.connect(f"postgresql://{address}", autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS test_schema")
    report = directory / "report.xml"
    uri = f"postgresql+psycopg://{address}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--dburi", uri, f"--junitxml={report}"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=directory, env=env, capture_output=True, check=False, timeout=600)
    cases = ElementTree.parse(report).iter("testcase")
    return {
        _VERSION.sub("", f"{case.get('classname')}::{case.get('name')}")
        for case in cases
        if not any(case.find(each) is not None for each in ("failure", "error", "skipped"))
    }
