"""The layers of the architecture hold: see the contracts in pyproject.toml. No modules form a circle."""

import ast
import os
import subprocess
import sys
from collections.abc import Container, Iterator, Mapping
from functools import cache

from tests.tidy.source import ROOT, Module, imports, nodes, product_modules

VAGUE_NAMES = {"utils", "util", "common", "helpers", "manager", "misc", "impl"}

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def test_imports_go_downward_only() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", LINT], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_imports_are_absolute() -> None:
    relative = [module.path for module in product_modules() if "\nfrom ." in module.text]
    assert relative == []


def test_only_the_pipeline_knows_spark() -> None:
    users = {
        module.path
        for module in product_modules()
        for _, name in imports(module)
        if name.split(".")[0] == "pyspark" and not module.path.startswith("pipeline/")
    }
    assert users == set()


def test_modules_are_named_by_what_they_hold() -> None:
    vague = [m.path for m in product_modules() if VAGUE_NAMES & set(m.path.removesuffix(".py").split("/"))]
    assert vague == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Type-only imports count too."""
    assert [sorted(knot) for knot in knots_of(import_graph())] == []


LOCATOR_FREE = ("sql/statements/", "sql/tables/")
LOCATOR = "tenure.sql.session.services.Services"


def test_statements_and_system_tables_are_handed_what_they_use() -> None:
    """They read no `services` and do not know the record of them all: see docs/decisions/0042."""
    read = [
        f"{module.path}:{line}"
        for module in product_modules()
        if module.path.startswith(LOCATOR_FREE)
        for line in (
            *_lines_reading_services(module),
            *(at for at, name in imports(module) if name == LOCATOR),
        )
    ]
    assert read == []


def _lines_reading_services(module: Module) -> Iterator[int]:
    for node in nodes(module):
        if isinstance(node, ast.Attribute) and node.attr == "services":
            yield node.lineno


def test_a_knot_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set(), "f": {"a"}}
    assert sorted(map(sorted, knots_of(graph))) == [["a", "b", "c"]]


@cache
def import_graph() -> dict[str, set[str]]:
    """The product's modules, and which of them each imports, wherever the import stands."""
    named = {_dotted(module.path): module for module in product_modules()}
    return {
        name: {known for _, found in imports(module) if (known := _module_in(found, named)) is not None}
        for name, module in named.items()
    }


def _dotted(path: str) -> str:
    return "tenure." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _module_in(name: str, named: Container[str]) -> str | None:
    """The module that an import names, or that what it names is in."""
    return name if name in named else parent if (parent := name.rpartition(".")[0]) in named else None


def knots_of(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one module: each reaches each of the others."""
    order: list[str] = []
    _walk(graph, list(graph), order)
    reversed_graph: dict[str, set[str]] = {name: set() for name in graph}
    for name, targets in graph.items():
        for target in targets:
            reversed_graph[target].add(name)
    knots, seen = [], set[str]()
    for name in reversed(order):
        if name not in seen:
            knot: list[str] = []
            _walk(reversed_graph, [name], knot, seen)
            knots.append(set(knot))
    return [knot for knot in knots if len(knot) > 1]


def _walk(
    graph: Mapping[str, set[str]], starts: list[str], order: list[str], seen: set[str] | None = None
) -> None:
    """Adds what can be reached to `order`, each module after those that it leads to."""
    seen = set() if seen is None else seen
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(graph[start]))]
        while path:
            name, targets = path[-1]
            following = next((each for each in targets if each not in seen), None)
            if following is None:
                order.append(name)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(graph[following])))
