"""Modules and functions stay small enough to be read in one go."""

import ast

from tests.tidy.source import nodes, product_modules

MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
ALLOWED: frozenset[str] = frozenset()
"""Paths, or path::function, that may be longer; each with a comment that says why."""


def test_modules_are_short() -> None:
    lines = {module.path: module.text.count("\n") for module in product_modules()}
    assert {path: n for path, n in lines.items() if n > MODULE_LINES_MAX and path not in ALLOWED} == {}


def test_functions_are_short() -> None:
    lines = {
        f"{module.path}::{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for module in product_modules()
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: n for name, n in lines.items() if n > FUNCTION_LINES_MAX and name not in ALLOWED} == {}
