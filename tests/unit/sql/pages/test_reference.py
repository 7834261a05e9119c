"""The reference pages say what the code does; `python -m tests.unit.sql.pages.reference` writes them anew."""

import pytest

from tests.unit.sql.pages.reference import DIRECTORY, PAGES


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    assert (DIRECTORY / name).read_text() == PAGES[name]()
