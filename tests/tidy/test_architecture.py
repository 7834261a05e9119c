"""Every module is named once in docs/architecture: in the first column of a table, on its package's page.

A name there is a module as seen from the page's package, `session.portals` on the page of sql. Modules that
no table names yet are counted; the number only falls.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.tidy.source import ROOT, product_modules

NAME = re.compile(r"`([\w.]+)`")
PAGES_OF_GROUPS = {"duckdb": "sql.duck", "lake": "table.lake"}

UNNAMED_LEFT = 160
TWICE_LEFT = {"table.arrow", "table.column_batches", "table.column_parts", "table.columnar"}


def test_every_module_has_its_row() -> None:
    unnamed = sorted(modules() - set(named_modules()))
    assert len(unnamed) <= UNNAMED_LEFT, f"name new modules in a table of docs/architecture: {unnamed}"


def test_no_module_has_two_rows() -> None:
    twice = {name for name, count in named_modules().items() if count > 1}
    assert twice <= TWICE_LEFT, (
        "name a module in one table of docs/architecture, and refer to it from elsewhere"
    )


@cache
def modules() -> frozenset[str]:
    paths = (module.path for module in product_modules() if not module.path.endswith("__init__.py"))
    return frozenset(path.removesuffix(".py").replace("/", ".") for path in paths)


def named_modules() -> Counter[str]:
    pages = sorted((ROOT / "docs" / "architecture").glob("*.md"))
    return Counter(module for page in pages for module in _named_on(page))


def _named_on(page: Path) -> Iterator[str]:
    package = PAGES_OF_GROUPS.get(page.stem, page.stem)
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            for name in NAME.findall(line.split("|")[1]):
                yield from _meant(name.removesuffix(".py"), package)


def _meant(name: str, package: str) -> list[str]:
    """The one module that a name stands for: of the page's package if there is one, of any otherwise."""
    found = [module for module in modules() if module == name or module.endswith(f".{name}")]
    near = [module for module in found if module.startswith(f"{package}.")]
    meant = near or found
    return meant if len(meant) == 1 else []
