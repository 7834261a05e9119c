"""pg_get_viewdef: the text of a view means the same to every reader, also after renames."""

from collections.abc import Iterator

import pytest

from tests.unit.sql.served import Served, serving

OBJECTS = """
CREATE SCHEMA app;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE SEQUENCE counter;
CREATE TABLE users (id int PRIMARY KEY, name text, feeling mood);
CREATE TABLE app.orders (id int PRIMARY KEY, user_id int);
INSERT INTO users VALUES (1, 'ann', 'ok');
INSERT INTO app.orders VALUES (10, 1);
"""
VIEWS = {
    "plain": ("SELECT name FROM users", "SELECT name FROM public.users"),
    "star": ("SELECT * FROM users", "SELECT * FROM public.users"),
    "typed": ("SELECT id FROM users WHERE feeling = 'ok'::mood",
              "SELECT id FROM public.users WHERE feeling = 'ok'::public.mood"),
    "shadowed": ("WITH users AS (SELECT id FROM users) SELECT users.id FROM users",
                 "WITH users AS (SELECT id FROM public.users) SELECT users.id FROM users"),
    "recursive": ("WITH RECURSIVE users AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM users WHERE n < 2)"
                  " SELECT n FROM users",
                  "WITH RECURSIVE users AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM users WHERE n < 2)"
                  " SELECT n FROM users"),
    "numbered": ("SELECT currval('counter') AS n", "SELECT currval('public.counter') AS n"),
    "nested": ("SELECT id FROM users WHERE id IN (SELECT user_id FROM app.orders)",
               "SELECT id FROM public.users WHERE id IN (SELECT user_id FROM app.orders)"),
    "computed": ("SELECT count(*) FROM users", "SELECT count(*) AS count FROM public.users"),
}  # fmt: skip


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("views")) as made:
        made.root.execute(OBJECTS.encode())
        yield made


def _text(served: Served, name: str) -> str:
    """For a reader whose search path has no schema."""
    served.tag("SET search_path = ''")
    ((text,),) = served.rows(f"SELECT pg_get_viewdef('public.{name}'::regclass)")
    served.tag("RESET search_path")
    return str(text).strip().removesuffix(";")


def test_names_get_the_schema_that_the_reader_needs(served: Served) -> None:
    for name, (query, text) in VIEWS.items():
        served.tag(f"CREATE VIEW {name} AS {query}")
        assert _text(served, name) == text


def test_a_text_that_the_reader_understands_stays_as_it_was_written(served: Served) -> None:
    served.tag("CREATE VIEW plain AS SELECT u.name FROM users u, app.orders")
    assert served.rows("SELECT definition FROM pg_views WHERE viewname = 'plain'") == [
        (" SELECT u.name FROM users u, app.orders;",)
    ]


CHANGES = {
    "ALTER TABLE users RENAME TO people": "SELECT users.name FROM public.people users",
    "ALTER TABLE users SET SCHEMA app": "SELECT users.name FROM app.users",
    "ALTER TABLE users RENAME COLUMN name TO title": (
        "SELECT users.name FROM (SELECT id AS id, title AS name, feeling AS feeling FROM public.users) users"
    ),
    "ALTER TABLE users ADD COLUMN more int": (
        "SELECT users.name FROM (SELECT id AS id, name AS name, feeling AS feeling FROM public.users) users"
    ),
    "ALTER VIEW v RENAME COLUMN name TO title": "SELECT users.name AS title FROM public.users",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_view_is_written_with_the_names_of_now(served: Served, change: str) -> None:
    served.tag("CREATE VIEW v AS SELECT users.name FROM users")
    served.tag(change)
    text = _text(served, "v")
    assert text == CHANGES[change]
    served.tag("SET search_path = ''")
    assert served.rows(text) == [("ann",)]


@pytest.mark.parametrize(
    ("query", "columns"), [("SELECT * FROM users", "(a, b, c)"), ("VALUES (1, 2)", "(x, y)")]
)
def test_a_view_has_its_own_names_of_columns(served: Served, query: str, columns: str) -> None:
    served.tag(f"CREATE VIEW v {columns} AS {query}")
    text = _text(served, "v")
    served.tag(f"CREATE VIEW again AS {text}")
    names = "SELECT array_agg(attname ORDER BY attnum) FROM pg_attribute WHERE attrelid = '{}'::regclass"
    assert served.rows(names.format("again")) == served.rows(names.format("v"))
    assert _text(served, "again") == text


def test_a_qualified_column_follows_its_table(served: Served) -> None:
    served.tag("CREATE VIEW v AS SELECT app.orders.id FROM app.orders")
    served.tag("ALTER SCHEMA app RENAME TO shop")
    assert _text(served, "v") == "SELECT orders.id FROM shop.orders"
