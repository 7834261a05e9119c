"""docs/architecture follows the code: every module has one row, groups are pictured, walks are true.

A row names a module in the first column of a table, as seen from the page's package: `session.portals` on the
page of sql. A page starts with a picture, which names every group (sub-package) of its package; in its first
column each stands above what it imports. In the walks, a name in backticks is a module, something that a
module or class defines, or both: `module.Class.method`.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.tidy.source import PACKAGE, ROOT, product_modules
from tests.tidy.test_layers import import_graph

NAME = re.compile(r"`([\w.]+)`")
NAME_IN_WALK = re.compile(r"`([A-Za-z_][\w.]*?)(?:\([^`]*\))?`")
PAGES_OF_GROUPS = {"duckdb": "sql.duck", "lake": "table.lake", "node": ""}
"""Pages whose names are not those of packages, and the package that each is about."""

WORDS_IN_WALKS = {"BEGIN", "COMMIT"}
"""Names in walks that are SQL's or another library's."""


def test_every_module_has_one_row() -> None:
    rows = named_modules()
    unnamed = sorted(modules() - set(rows))
    repeated = sorted(name for name, count in rows.items() if count > 1)
    assert unnamed == [], "name these modules in a table of docs/architecture"
    assert repeated == [], "name a module in one table of docs/architecture, and refer to it from elsewhere"


def test_rows_name_modules_and_groups_that_exist() -> None:
    assert [
        f"{page.name}: {name}" for page in pages() for name in _names_on(page) if not _meant(name, page)
    ] == []


def test_pages_start_with_a_picture_of_their_groups() -> None:
    assert [f"{page.name}: {group}" for page in pages() for group in _groups(page) - _pictured(page)] == []


def test_pictures_show_the_direction_of_imports() -> None:
    upward = {
        f"{page.name}: {user} imports {used}, which is drawn above it"
        for page in pages()
        for lines in (_lines(page),)
        for user, used in _imports_drawn(page, lines)
        if lines[user] > lines[used]
    }
    assert sorted(upward) == []


def test_names_in_walks_exist() -> None:
    unknown = [
        f"{page.name}: {name}" for page in pages() for name in _names_in_walks(page) if not _exists(name)
    ]
    assert unknown == [], "walks name modules, classes, functions and methods that exist"


@cache
def pages() -> tuple[Path, ...]:
    folder = ROOT / "docs" / "architecture"
    return tuple(sorted(page for page in folder.glob("*.md") if page.name != "README.md"))


@cache
def modules() -> frozenset[str]:
    paths = (module.path for module in product_modules() if not module.path.endswith("__init__.py"))
    return frozenset(path.removesuffix(".py").replace("/", ".") for path in paths)


def named_modules() -> Counter[str]:
    return Counter(module for page in pages() for name in _names_on(page) for module in _meant(name, page))


def _names_on(page: Path) -> Iterator[str]:
    """What tables of modules name: their first column is headed so."""
    is_of_modules = False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = line.split("|")
        is_of_modules = line.startswith("|") and (is_of_modules or cells[1].strip() == "module")
        if is_of_modules:
            yield from NAME.findall(cells[1])


def _meant(name: str, page: Path) -> list[str]:
    """The module that a name stands for: of the page's package if there is one, of any otherwise."""
    package = _package(page)
    exact = f"{package}.{name}" if package else name
    return [exact] if exact in modules() else []


def _package(page: Path) -> str:
    return PAGES_OF_GROUPS.get(page.stem, page.stem)


def _groups(page: Path) -> set[str]:
    folder = PACKAGE.joinpath(*_package(page).split("."))
    return {path.parent.name for path in folder.glob("*/__init__.py")} if _package(page) else set()


def _pictured(page: Path) -> set[str]:
    """The words of the first picture, if it stands above all headings and tables."""
    start = re.split(r"^(?:## |\|)", page.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)[0]
    pictures = start.split("```")[1::2]
    assert pictures, f"{page.name} starts with a picture"
    return set(re.findall(r"\w+", pictures[0]))


def _lines(page: Path) -> dict[str, int]:
    """In which line of the picture each word of its first column stands."""
    lines: dict[str, int] = {}
    for number, line in enumerate(page.read_text(encoding="utf-8").split("```")[1].splitlines()):
        for word in re.findall(r"\w+", re.split(r"\s{2,}", line.strip())[0]):
            lines.setdefault(word, number)
    return lines


def _imports_drawn(page: Path, lines: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Modules and groups of a package in which one imports the other, if both are drawn."""
    prefix = f"tenure.{_package(page)}.".replace("..", ".")
    for name, imported in import_graph().items():
        if name.startswith(prefix):
            user = name.removeprefix(prefix).split(".")[0]
            targets = (
                each.removeprefix(prefix).split(".")[0] for each in imported if each.startswith(prefix)
            )
            yield from ((user, used) for used in targets if user in lines and used in lines)


def _names_in_walks(page: Path) -> list[str]:
    _, _, walks = page.read_text(encoding="utf-8").partition("## Walks\n")
    assert walks, f"{page.name} ends in walks"
    return [name for name in NAME_IN_WALK.findall(walks) if name not in WORDS_IN_WALKS]


def _exists(name: str) -> bool:
    if name.removesuffix(".py") in _suffixes():
        return True
    where, _, last = name.rpartition(".")
    return last in _members()[where]


@cache
def _suffixes() -> frozenset[str]:
    """Modules and packages, by every dotted name that they may be called by."""
    packages = {module.rpartition(".")[0] for module in modules()}
    return frozenset(suffix for module in modules() | packages for suffix in _seen_as(module) if suffix)


def _seen_as(dotted: str) -> Iterator[str]:
    parts = dotted.split(".")
    return (".".join(parts[start:]) for start in range(len(parts) + 1))


@cache
def _members() -> dict[str, set[str]]:
    """What modules and classes define, by every dotted name of the module or class; "" has it all."""
    members = defaultdict[str, set[str]](set)
    for module in product_modules():
        names = list(_seen_as(module.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")))
        for name in names:
            members[name] |= _defined(module.tree.body)
        for each in ast.walk(module.tree):
            if isinstance(each, ast.ClassDef):
                for name in (*names, *(f"{name}.{each.name}".lstrip(".") for name in names)):
                    members[name] |= _defined(each.body)
    return members


def _defined(body: list[ast.stmt]) -> set[str]:
    found = set[str]()
    for each in body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(each.name)
        elif isinstance(each, ast.Assign):
            found.update(target.id for target in each.targets if isinstance(target, ast.Name))
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.add(each.target.id)
    return found
