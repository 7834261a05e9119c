"""Django's migrate of its contrib apps, and Alembic's upgrade by 100 small revisions: beside PostgreSQL.

Django runs as a process of its own, whose start is part of its time on both sides. Alembic takes each
revision in a transaction of its own. Each round has a new database; the tables that are there afterwards must
be the same.

Walk: `bench.__main__` -> `run`.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from bench.clients.introspection import url_of
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, ours, peer
from tests.clients.catalogs import django_project

REVISIONS, REVISIONS_QUICK = 100, 3
ROUNDS, ROUNDS_QUICK = 3, 1
SLOWER_AT_MOST = 2.0
ENVIRONMENT = """
from alembic import context
import sqlalchemy as sa
with sa.create_engine(context.config.get_main_option("sqlalchemy.url")).connect() as connection:
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
"""
REVISION = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "r{number}", {before}
def upgrade():
    {step}
"""
STEPS = (
    'op.create_table("m{0}", sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.Text))',
    'op.add_column("m{0}", sa.Column("added", sa.Integer, server_default="1", nullable=False))',
    'op.create_index("m{0}_name", "m{0}", ["name"])',
    'op.alter_column("m{0}", "name", nullable=False)',
)
"""Each table, by its number, gets the other three."""

Migrate = Callable[[Place], tuple[float, list[str]]]
"""Returns the seconds, and what tables there are."""


def run(quick: bool) -> list[Ratio]:
    rounds = ROUNDS_QUICK if quick else ROUNDS
    with ours() as node, peer() as postgres, tempfile.TemporaryDirectory() as directory:
        scripts = _scripts(Path(directory), REVISIONS_QUICK if quick else REVISIONS)
        return [
            _compared("clients.migrations.django", _django, node, postgres, rounds),
            _compared("clients.migrations.alembic", partial(_alembic, scripts), node, postgres, rounds),
        ]


def _compared(name: str, migrate: Migrate, node: Place, postgres: Place, rounds: int) -> Ratio:
    mine: list[tuple[float, list[str]]] = []
    theirs: list[tuple[float, list[str]]] = []
    for number in range(rounds):
        for place, taken in ((node, mine), (postgres, theirs)):
            fresh = place._replace(database=f"{name.rpartition('.')[2]}_{number}")
            with place.connect() as connection:
                connection.execute(f"CREATE DATABASE {fresh.database}".encode())
            taken.append(migrate(fresh))
    assert mine[0][1] == theirs[0][1], f"{name}: {mine[0][1]}, and {theirs[0][1]} in PostgreSQL"
    seconds = [statistics.median(each for each, _ in taken) for taken in (mine, theirs)]
    return compare(name, ours=seconds[0], peer=seconds[1], unit="s", bar=Bar.AT_MOST, limit=SLOWER_AT_MOST)


def _django(place: Place) -> tuple[float, list[str]]:
    where = ["127.0.0.1", str(place.port), place.user, place.database]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, django_project.__file__, *where], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    assert done.returncode == 0, done.stderr
    return seconds, json.loads(done.stdout)["tables"]


def _scripts(directory: Path, revisions: int) -> Path:
    (directory / "versions").mkdir()
    (directory / "env.py").write_text(ENVIRONMENT)
    for number in range(revisions):
        step = STEPS[number % len(STEPS)].format(number // len(STEPS))
        before = f'"r{number - 1}"' if number else None
        text = REVISION.format(number=number, before=before, step=step)
        (directory / "versions" / f"r{number}.py").write_text(text)
    return directory


def _alembic(scripts: Path, place: Place) -> tuple[float, list[str]]:
    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.set_main_option("sqlalchemy.url", url_of(place))
    began = time.perf_counter()
    command.upgrade(config, "head")
    seconds = time.perf_counter() - began
    engine = sa.create_engine(url_of(place), poolclass=sa.NullPool)
    inspector = sa.inspect(engine)
    names = sorted(inspector.get_table_names())
    return seconds, [f"{name}: {[each['name'] for each in inspector.get_columns(name)]}" for name in names]
