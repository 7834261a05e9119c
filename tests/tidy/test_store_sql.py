"""S15: what is sent to a store as SQL is constant; values come as parameters, names as psycopg's identifiers.

Where the text of a statement is put together at all, it is at import, of constants of the module.
"""

import ast
from collections.abc import Iterator

from tests.tidy.source import Module, nodes, product_modules

CALLS = {"execute", "executemany", "send_query", "executescript", "run"}

ALLOWED = {
    # Two numbers of the program itself, in PRAGMAs, which take no parameters.
    ("storage/sqlite/database_file.py", "f'PRAGMA application_id = {APPLICATION_ID:d}'"),
    ("storage/sqlite/database_file.py", "f'PRAGMA user_version = {FORMAT:d}'"),
    # ASC or DESC: see `_order` in the same file.
    ("storage/sqlite/reads.py", "_SCAN_NOW.format(tombstones, order)"),
    ("storage/sqlite/reads.py", "_SCAN_AT.format(tombstones, order)"),
    # psycopg quotes what it makes an identifier.
    (
        "storage/postgres/postgres_engine.py",
        "sql.SQL('CREATE SCHEMA IF NOT EXISTS {}').format(sql.Identifier(schema))",
    ),
    ("storage/postgres/listener.py", "sql.SQL('LISTEN {}').format(sql.Identifier(self._channel))"),
}


def test_stores_are_sent_constant_sql() -> None:
    found = {
        (module.path, ast.unparse(argument))
        for module in product_modules()
        if module.path.startswith("storage/")
        for argument in _made_texts(module)
    }
    assert found == ALLOWED


def test_only_the_storage_layer_speaks_sql_to_a_store() -> None:
    speaking = {
        module.path
        for module in product_modules()
        if any(_is_call(node, "execute") and _is_text(node) for node in nodes(module))
    }
    to_duckdb = {"sql/duck/engine.py", "sql/duck/held_files.py"}
    assert {path for path in speaking if not path.startswith("storage/")} <= to_duckdb


def test_the_walk_finds_what_it_looks_for() -> None:
    text = 'execute(f"a {b}"); x.execute("a %s" % b); execute("a" + b); execute("a".format(b)); execute("a")'
    module = Module("storage/x.py", text, ast.parse(text))
    assert len(list(_made_texts(module))) == 4


def _made_texts(module: Module) -> Iterator[ast.expr]:
    for node in nodes(module):
        if any(_is_call(node, name) for name in CALLS):
            assert isinstance(node, ast.Call)
            for argument in node.args[:1]:
                is_format = (
                    isinstance(argument, ast.Call)
                    and isinstance(argument.func, ast.Attribute)
                    and argument.func.attr in ("format", "join", "replace")
                )
                if is_format or isinstance(argument, ast.JoinedStr | ast.BinOp):
                    yield argument


def _is_call(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return (isinstance(called, ast.Attribute) and called.attr == name) or (
        isinstance(called, ast.Name) and called.id == name
    )


def _is_text(node: ast.AST) -> bool:
    assert isinstance(node, ast.Call)
    first = node.args[0] if node.args else None
    return isinstance(first, ast.JoinedStr) or (
        isinstance(first, ast.Constant) and isinstance(first.value, str | bytes)
    )
