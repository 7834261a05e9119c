"""RETURNING calls columns by the table's qualified name, beside OLD and NEW; compared with PostgreSQL."""

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, compare

SCRIPT = """
CREATE SCHEMA app
CREATE TABLE app.t (id int, name text)
INSERT INTO app.t VALUES (1, 'a') RETURNING app.t.id, t.name, old.id, new.id
UPDATE app.t SET id = 2 RETURNING app.t.id, old.id, new.name
DELETE FROM app.t WHERE app.t.id = 2 RETURNING app.t.id, new.id
INSERT INTO app.t AS x VALUES (1, 'a') RETURNING app.t.id
"""


def test_a_qualified_name_means_the_table_itself(node: Node, oracle: Oracle) -> None:
    compare(node, oracle, SCRIPT)
