"""What the documents say exists: links, tests, pages; and nothing is tied to one machine."""

import ast
import re
from pathlib import Path

from tests.tidy.source import PACKAGE, ROOT, files, product_modules, texts_of_tests

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TEST_ID = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
MACHINE_PATH = re.compile(r"(?<![\w./~])/(?:home|root|Users)/\w+")
LEFT_OVER = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
OTHER_WORDS = re.compile(r"\b(?:rangefeed|watermark|data warehouse)s?\b", re.IGNORECASE)
"""Words for ideas that have another name here: see docs/glossary.md, which may name them."""

RECORD_LINES_MAX = 60
THIS_FILE = Path(__file__).resolve()


def test_relative_links_resolve() -> None:
    missing = [
        f"{_name(page)}: {link}"
        for page in files(".md")
        for link in LINK.findall(_text(page))
        if "://" not in link and not (page.parent / link.split("#")[0]).exists()
    ]
    assert missing == []


def test_pages_name_only_tests_that_exist() -> None:
    missing = [
        f"{_name(page)}: {path}::{test}"
        for page in files(".md")
        for path, test in TEST_ID.findall(_text(page))
        if not _has_test(ROOT / path, test)
    ]
    assert missing == []


def test_every_layer_has_an_architecture_page() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    roots = {"node"} if (PACKAGE / "node.py").exists() else set()
    pages = {path.stem for path in (ROOT / "docs" / "architecture").glob("*.md")}
    assert packages | roots <= pages


def test_the_index_lists_every_page() -> None:
    folder = ROOT / "docs"
    listed = {(folder / link.split("#")[0]).resolve() for link in LINK.findall(_text(folder / "README.md"))}
    pages = set(folder.rglob("*.md")) - {folder / "README.md"}
    assert {_name(page) for page in pages - listed} == set()


def test_decision_records_fit_on_a_page() -> None:
    records = (ROOT / "docs" / "decisions").glob("[0-9]*.md")
    lines = {_name(path): _text(path).count("\n") for path in records}
    assert {name: n for name, n in lines.items() if n > RECORD_LINES_MAX} == {}


def test_every_module_has_a_docstring() -> None:
    assert [m.path for m in product_modules() if not ast.get_docstring(m.tree)] == []


def test_nothing_is_tied_to_one_machine() -> None:
    texts = {_name(path): _text(path) for path in files(".py", ".md", ".toml", "")}
    assert [name for name, text in texts.items() if str(ROOT) in text or MACHINE_PATH.search(text)] == []


def test_nothing_is_left_over() -> None:
    texts = {_name(path): _text(path) for path in files(".py", ".md", ".toml", "") if path != THIS_FILE}
    assert [name for name, text in texts.items() if LEFT_OVER.search(text)] == []


def test_pages_use_one_word_per_idea() -> None:
    pages = [page for page in files(".md") if page.name != "glossary.md"]
    assert [_name(page) for page in pages if OTHER_WORDS.search(_text(page))] == []


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _has_test(path: Path, test: str) -> bool:
    if not path.exists() or not test:
        return path.exists()
    return re.search(rf"^\s*def {test}\(", texts_of_tests()[_name(path)], re.MULTILINE) is not None
