"""Every `Invariant (name): ...` of a module's docstring has a test that is marked with it."""

import re

from tests.tidy.source import product_modules, texts_of_tests

LINE = re.compile(r"^\s*Invariant \(([^)]+)\):", re.MULTILINE)


def test_every_invariant_has_a_test() -> None:
    shown = {name for text in texts_of_tests().values() for name in marked(text, "invariant")}
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
        f"{path}: {name}"
        for path, text in texts_of_tests().items()
        for name in marked(text, "invariant")
        if name not in stated
    }
    assert unknown == set()


def marked(text: str, mark: str) -> list[str]:
    """What the tests of a module are marked with, by marks of this name."""
    return re.findall(rf'^[^#`"]*\bpytest\.mark\.{mark}\(\s*"([^"]+)"', text, re.MULTILINE)
