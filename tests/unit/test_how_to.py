"""The code on the pages of docs/how-to runs, and the files that they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([a-z_]+(?:/[a-z_]+)*\.py)`")


@pytest.mark.parametrize(
    "page", [each for each in PAGES if CODE.search(each.read_text())], ids=lambda p: p.stem
)
def test_the_code_of_a_page_runs(page: Path) -> None:
    # `__name__` is what dataclasses look their module up by.
    namespace: dict[str, object] = {"__name__": __name__}
    for code in CODE.findall(page.read_text()):
        exec(compile(code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    tops = (ROOT, ROOT / "src" / "tenure")
    named = FILE.findall(page.read_text())
    assert [name for name in named if not any((top / name).exists() for top in tops)] == []
