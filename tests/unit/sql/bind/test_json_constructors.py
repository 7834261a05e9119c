"""JSON_OBJECT, JSON_ARRAY and IS JSON, compared with PostgreSQL."""

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, compare

SCRIPT = """
CREATE TABLE t (id int PRIMARY KEY, a text, j jsonb)
INSERT INTO t VALUES (1, 'x', '{"k": [1]}'), (2, NULL, NULL), (3, '{"b": 2}', '3')
SELECT JSON_OBJECT('a': 1, 'b': NULL), JSON_OBJECT()
SELECT JSON_OBJECT('id' VALUE id, 'a' VALUE a, 'j' VALUE j RETURNING JSONB) FROM t ORDER BY id
SELECT JSON_OBJECT(a: id ABSENT ON NULL) FROM t WHERE a IS NOT NULL ORDER BY id
SELECT JSON_OBJECT('a' VALUE a ABSENT ON NULL RETURNING jsonb) FROM t ORDER BY id
SELECT JSON_OBJECT('x': 1 RETURNING text)
SELECT JSON_ARRAY(1, NULL, 'x'), JSON_ARRAY(1, NULL NULL ON NULL), JSON_ARRAY()
SELECT JSON_ARRAY(id, a, j NULL ON NULL RETURNING JSONB), JSON_ARRAY(a, j) FROM t ORDER BY id
SELECT JSON_ARRAY(JSON_OBJECT('a': ARRAY[1, 2]), true, 1.50, '2020-01-01'::date)
SELECT JSON_OBJECT(NULL: 1)
SELECT id FROM t WHERE JSON_ARRAY(id RETURNING jsonb) = '[2]'
SELECT a IS JSON, a IS NOT JSON, a IS JSON OBJECT, j IS JSON, j IS JSON ARRAY FROM t ORDER BY id
SELECT '{}' IS JSON, '[1]' IS JSON ARRAY, ' 1' IS JSON SCALAR, 'x' IS JSON, '' IS JSON
SELECT NULL IS JSON, '"' IS JSON VALUE
SELECT '{}'::json IS JSON OBJECT, '[]'::varchar IS JSON OBJECT, 'null' IS JSON SCALAR
SELECT 1 IS JSON
0A000: SELECT '{}' IS JSON WITH UNIQUE KEYS
0A000: SELECT JSON_OBJECT('a': 1 WITH UNIQUE KEYS)
0A000: SELECT JSON_ARRAY(SELECT 1)
0A000: SELECT JSON_OBJECT('a': '1' FORMAT JSON)
CREATE VIEW v AS SELECT id, JSON_OBJECT('a': a ABSENT ON NULL) AS o, a IS JSON AS is_json FROM t
SELECT * FROM v ORDER BY id
"""


def test_as_postgresql(node: Node, oracle: Oracle) -> None:
    compare(node, oracle, SCRIPT)


@pytest.mark.parametrize("executor", ["rows", "duckdb"])
def test_both_executors_agree(node: Node, oracle: Oracle, executor: str) -> None:
    text = "SELECT min(JSON_OBJECT('n': n)::text) FROM generate_series(1, 50) n WHERE n::text IS JSON"
    compare(node, oracle, f"ours: SET tenure.executor = {executor}\n{text}\n")
