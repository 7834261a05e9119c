"""Alembic and Django: migrations up and down, and models read back from the catalog."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from tests.clients.catalogs import django_project
from tests.clients.catalogs.world import Side

MODELS = """
import sqlalchemy as sa
target_metadata = sa.MetaData()
sa.Table(
    "account", target_metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(30), nullable=False, unique=True, server_default="x", comment="who"),
    sa.Column("kind", sa.Enum("a", "b", name="account_kind")),
    sa.Column("n", sa.Numeric(8, 2), server_default="0.5"),
    sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now()),
    sa.CheckConstraint("n > 0", name="n_positive"), comment="accounts",
)
sa.Table(
    "entry", target_metadata,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("account", sa.ForeignKey("account.id", ondelete="CASCADE"), index=True),
    sa.Column("flag", sa.Boolean, nullable=False, server_default=sa.false()),
)
"""
OWN = 'include_name=lambda name, kind, parents: kind != "table" or name in ("account", "entry")'


@pytest.fixture
def config(ours: Side, tmp_path: Path) -> Config:
    """Alembic's project with the models in its environment."""
    fresh = Config(str(tmp_path / "alembic.ini"))
    command.init(fresh, str(tmp_path / "scripts"))
    config = Config(str(tmp_path / "alembic.ini"))
    config.set_main_option("script_location", str(tmp_path / "scripts"))
    config.set_main_option("sqlalchemy.url", ours.url)
    environment = tmp_path / "scripts" / "env.py"
    text = environment.read_text().replace("target_metadata = None", MODELS)
    text = text.replace("fileConfig(config.config_file_name)", "pass")  # it would turn off other tests' logs
    more = f"target_metadata=target_metadata, compare_server_default=True, {OWN}"
    environment.write_text(text.replace("target_metadata=target_metadata", more))
    return config


def test_alembic_finds_no_difference_after_its_own_upgrade(config: Config, ours: Side) -> None:
    command.revision(config, "all", autogenerate=True)
    command.upgrade(config, "head")
    command.check(config)
    engine = sa.create_engine(ours.url)
    assert {"account", "entry"} <= set(sa.inspect(engine).get_table_names())
    command.downgrade(config, "base")
    assert not {"account", "entry"} & set(sa.inspect(engine).get_table_names())
    engine.dispose()
    ours.run("DROP TABLE alembic_version")


@pytest.fixture(scope="module")
def django_answers(ours: Side, theirs: Side) -> list[dict[str, Any]]:
    return [_django(side) for side in (ours, theirs)]


def _django(side: Side) -> dict[str, Any]:
    arguments = [side.host, str(side.port), side.user, side.database]
    done = subprocess.run(
        [sys.executable, django_project.__file__, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


ASPECTS = ("again", "models", "resets", "members", "tables", "constraints", "relations", "sequences", "key")


@pytest.mark.parametrize("aspect", ASPECTS)
def test_django_migrates_and_introspects_as_on_postgresql(
    django_answers: list[dict[str, Any]], aspect: str
) -> None:
    ours, theirs = django_answers
    assert ours[aspect] == theirs[aspect]
