"""The project's files as the tidy tests see them: parsed once, named by their path."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tenure"
SKIPPED = {".git", ".venv", "__pycache__", "tenure-data", "build", "dist", ".hypothesis"}


class Module(NamedTuple):
    path: str
    """Relative to src/tenure for product code, to the project's root otherwise."""
    text: str
    tree: ast.Module


@cache
def product_modules() -> tuple[Module, ...]:
    return tuple(_modules(PACKAGE, relative_to=PACKAGE))


@cache
def modules_of_tests() -> tuple[Module, ...]:
    return tuple(_modules(ROOT / "tests", relative_to=ROOT))


def files(*suffixes: str) -> Iterator[Path]:
    """Yields the project's own files with these suffixes; caches and environments are left out."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        is_ours = not any(part in SKIPPED or part.endswith("_cache") for part in parts)
        if is_ours and path.suffix in suffixes and path.is_file():
            yield path


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Yields the line and dotted name of every absolute import, wherever it stands."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def _modules(folder: Path, *, relative_to: Path) -> Iterator[Module]:
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield Module(path.relative_to(relative_to).as_posix(), text, ast.parse(text, filename=str(path)))
