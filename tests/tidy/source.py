"""The project's files as the tidy tests see them: parsed once, named by their path."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tenure"
SKIPPED = {".git", ".venv", "__pycache__", "tenure-data", "build", "dist", ".hypothesis"}


@dataclass(frozen=True, eq=False, slots=True)
class Module:
    path: str
    """Relative to src/tenure."""
    text: str
    tree: ast.Module


@cache
def product_modules() -> tuple[Module, ...]:
    return tuple(_modules())


def product_module(path: str) -> Module:
    """One of them, parsed by itself."""
    text = (PACKAGE / path).read_text(encoding="utf-8")
    return Module(path, text, ast.parse(text, filename=path))


@cache
def nodes(module: Module) -> tuple[ast.AST, ...]:
    """All nodes of a module's tree: several tests look at each of them."""
    return tuple(ast.walk(module.tree))


@cache
def texts_of_tests() -> dict[str, str]:
    """The modules of the tests as text, by their path: parsing them all would take longer than reading."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def files(*suffixes: str) -> Iterator[Path]:
    """Yields the project's own files with these suffixes; caches and environments are left out."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        is_ours = not any(part in SKIPPED or part.endswith("_cache") for part in parts)
        if is_ours and path.suffix in suffixes and path.is_file():
            yield path


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Yields the line and dotted name of every absolute import, wherever it stands."""
    for node in nodes(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def _modules() -> Iterator[Module]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield product_module(path.relative_to(PACKAGE).as_posix())
