"""Every `Invariant (name): ...` of a module's docstring has a test that is marked with it."""

import ast
import re
from collections.abc import Iterator

from tests.tidy.source import Module, modules_of_tests, product_modules

LINE = re.compile(r"^\s*Invariant \(([^)]+)\):", re.MULTILINE)


def test_every_invariant_has_a_test() -> None:
    shown = {name for module in modules_of_tests() for name in marked(module, "invariant")}
    unshown = {
        f"{module.path}: {name}"
        for module in product_modules()
        for name in LINE.findall(module.text)
        if name not in shown
    }
    assert unshown == set()


def test_marks_name_invariants_that_exist() -> None:
    stated = {name for module in product_modules() for name in LINE.findall(module.text)}
    unknown = {
        f"{module.path}: {name}" for module in modules_of_tests() for name in marked(module, "invariant")
    }
    assert {mark for mark in unknown if mark.split(": ")[1] not in stated} == set()


def marked(module: Module, mark: str) -> Iterator[str]:
    """What the tests of a module are marked with, by marks of this name."""
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == f"pytest.mark.{mark}"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)
