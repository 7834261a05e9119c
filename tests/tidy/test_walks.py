"""Every module says who calls it and what it calls, in a `Walk:` line of its docstring, and the line is true.

A name in backticks is read as Python would read it from inside the module: a module or package, seen from
this module's package or one above it; something that the module defines or imports; `module.name`; or a class
of the product and its method. `node.py` is the module at the top. A module that is named imports this one, is
imported by it, or uses something that the line names: an object that is handed in needs no import. Of the
modules and functions in one clause (up to a semicolon, a full stop or an arrow), the modules use the
functions; where a clause names functions alone, something uses them, be it a test.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import NamedTuple

from tests.tidy.source import Module, imports, nodes, product_modules, texts_of_tests

WALK = re.compile(r"^Walk: (.*?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"`([a-zA-Z_][\w.]*?)(?:\(\)|/)?`")
CLAUSE_END = re.compile(r"[;.](?:\s|$)|->")


def test_every_module_has_a_walk_line() -> None:
    missing = [m.path for m in walked_modules() if not m.walk and not m.path.endswith("errors.py")]
    assert not missing, "add `Walk: who calls it -> what it calls` to these docstrings: " + ", ".join(missing)


def test_names_in_walk_lines_resolve() -> None:
    unknown = [
        f"{each.path}: `{name}` is no module or class, and nothing that this module defines or imports"
        for each in walked_modules()
        for name in each.names
        if each.resolve(name) is None
    ]
    assert not unknown, report("write the dotted name as seen from `tenure` or this package", unknown)


def test_modules_in_walk_lines_are_neighbours() -> None:
    strangers = [
        f"{each.path}: `{name}` does not import it, is not imported by it, and uses no function that the line"
        f" names (it is imported by: {', '.join(sorted(importers(each.dotted))) or 'nothing'})"
        for each in walked_modules()
        for name in each.names
        if (found := each.resolve(name)) and not each.has_neighbour(found)
    ]
    assert not strangers, report("name who really calls it, or the function that is called", strangers)


def test_functions_in_walk_lines_are_used() -> None:
    unused = [line for each in walked_modules() for line in each.unused()]
    assert not unused, report("name the modules that use it, or the function that they use", unused)


def report(advice: str, lines: list[str]) -> str:
    return "\n".join([f"Walk lines that are not true; {advice}:", *lines])


class Found(NamedTuple):
    module: str
    """Dotted, without `tenure.`; empty for another library."""
    attribute: str
    """Of the module, or of one of its classes; empty if the module itself is meant."""


class WalkedModule:
    def __init__(self, module: Module) -> None:
        self._module = module
        self.path = module.path
        self.dotted = dotted(module)

    @cached_property
    def walk(self) -> str:
        found = WALK.search(ast.get_docstring(self._module.tree) or "")
        return found[1] if found else ""

    @property
    def names(self) -> list[str]:
        return NAME.findall(self.walk)

    def unused(self) -> Iterator[str]:
        """What stands in a clause together with modules none of which uses it."""
        for clause in CLAUSE_END.split(self.walk):
            found = [each for name in NAME.findall(clause) if (each := self.resolve(name))]
            callers = [each.module for each in found if each.module != self.dotted and not each.attribute]
            names = {each.attribute for each in found if each.module == self.dotted}
            for name in sorted(name for name in names if name):
                if not any(name in used_names(caller) for caller in callers or [""]):
                    yield f"{self.path}: `{name}` is not used by {', '.join(callers) or 'anything'}"

    def has_neighbour(self, other: Found) -> bool:
        near = {self.dotted, *imported_modules(self.dotted), *importers(self.dotted)}
        if not other.module or any(is_under(each, other.module) for each in near):
            return True
        named = {found.attribute for name in self.names if (found := self.resolve(name))} - {""}
        return bool(named & used_names(other.module)) or other.attribute in used_names(self.dotted)

    def resolve(self, name: str) -> Found | None:
        if name.endswith(".py"):
            name = name.removesuffix(".py")
            return Found(name, "") if name in modules() else None
        first, _, rest = name.partition(".")
        if first in definitions(self.dotted) and not (rest and self._seen_from_above(name)):
            return Found(self.dotted, name.split(".")[-1])
        if found := self._seen_from_above(name):
            return found
        if (source := self._imported.get(first)) is not None:
            module = longest_module(source)
            return Found(module, name.split(".")[-1])
        if (home := classes().get(first)) and (not rest or rest in definitions(home)):
            return Found(home, rest or first)
        return None

    def _seen_from_above(self, name: str) -> Found | None:
        scope = self.dotted
        while scope:
            scope = scope.rpartition(".")[0]
            whole = f"{scope}.{name}" if scope else name
            module = longest_module(whole)
            rest = whole[len(module) :].lstrip(".")
            if (
                module
                and len(module) > len(scope)
                and (not rest or rest.split(".")[0] in definitions(module))
            ):
                return Found(module, rest.rpartition(".")[2])
        return None

    @cached_property
    def _imported(self) -> dict[str, str]:
        """Where the names come from that this module imports, by their last part."""
        found = [name.removeprefix("tenure.") for _, name in imports(self._module)]
        return {name.rpartition(".")[2]: name for name in found} | {n.split(".")[0]: n for n in found}


@cache
def walked_modules() -> tuple[WalkedModule, ...]:
    return tuple(WalkedModule(m) for m in product_modules() if not m.path.endswith("__init__.py"))


@cache
def modules() -> dict[str, Module]:
    return {dotted(module): module for module in product_modules()}


def dotted(module: Module) -> str:
    return module.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def longest_module(name: str) -> str:
    """The part of a dotted name that is a module or package of the product; empty if none is."""
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name


@cache
def definitions(module: str) -> frozenset[str]:
    """What a module defines at its top, and in its classes."""
    return frozenset(_definitions(modules()[module].tree.body))


def _definitions(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield node.name
            yield from _definitions(node.body)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (each.id for each in targets if isinstance(each, ast.Name))


@cache
def imported_modules(module: str) -> frozenset[str]:
    return frozenset(map(home, imported_names(module)))


@cache
def imported_names(module: str) -> tuple[str, ...]:
    found = (name for _, name in imports(modules()[module]) if name.startswith("tenure."))
    return tuple(name.removeprefix("tenure.") for name in found)


def home(name: str) -> str:
    """The module that a dotted name is defined in: a package may pass on what its modules define."""
    module = longest_module(name)
    if module and name != module and modules()[module].path.endswith("__init__.py"):
        return next(_passed_on(module, name.rpartition(".")[2]), module)
    return module


def _passed_on(package: str, name: str) -> Iterator[str]:
    for source, _, imported in (each.rpartition(".") for each in imported_names(package)):
        if imported == name or (imported == "*" and name in definitions(source)):
            yield longest_module(source)


@cache
def importers(module: str) -> tuple[str, ...]:
    return tuple(each for each in modules() if module in imported_modules(each))


def is_under(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@cache
def classes() -> dict[str, str]:
    """Where each class of the product is defined; names that several modules use are left out."""
    homes: dict[str, list[str]] = {}
    for name, module in modules().items():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name)
    return {name: home[0] for name, home in homes.items() if len(home) == 1}


@cache
def used_names(package: str) -> frozenset[str]:
    """The names and attributes in the code of a module or package; without a name, in all code, tests too."""
    if not package:
        return frozenset().union(
            *map(_used_names, modules()), *(re.findall(r"\w+", text) for text in texts_of_tests().values())
        )
    return frozenset().union(*(_used_names(name) for name in modules() if is_under(name, package)))


@cache
def _used_names(module: str) -> frozenset[str]:
    names = set()
    for node in nodes(modules()[module]):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.add(node.name)
    return frozenset(names)
