"""SQLAlchemy's core: tables made, rows written and read. Reflection waits for pg_catalog."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from tenure.node import Node


@pytest.fixture
def engine(lone: Node) -> Iterator[Any]:
    assert lone.front is not None
    engine = sa.create_engine(f"postgresql+psycopg://root@{lone.front.host}:{lone.front.port}/defaultdb")
    yield engine
    engine.dispose()


def test_rows_are_made_read_changed_and_deleted(engine: Any) -> None:
    metadata = sa.MetaData()
    users = sa.Table(
        "users",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(50), nullable=False, unique=True),
        sa.Column("score", sa.Numeric(8, 2), server_default="0"),
    )
    metadata.create_all(engine, checkfirst=False)
    with engine.begin() as connection:
        made = connection.execute(users.insert().returning(users.c.id), [{"name": "ann"}, {"name": "bob"}])
        assert [row.id for row in made] == [1, 2]
        connection.execute(users.update().where(users.c.name == "ann").values(score=users.c.score + 1.5))
    with engine.connect() as connection:
        found = connection.execute(sa.select(users.c.name, users.c.score).order_by(users.c.id)).all()
        assert [(row.name, float(row.score)) for row in found] == [("ann", 1.5), ("bob", 0.0)]
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(users.insert(), {"name": "ann"})
    with engine.begin() as connection:
        assert connection.execute(users.delete()).rowcount == 2
    metadata.drop_all(engine, checkfirst=False)
