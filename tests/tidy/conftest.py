"""What the tidy tests share is large, and nobody else's: it goes with the last of them."""

import pytest

from tests.tidy import source, test_walks

FOLDER = "tests/tidy/"


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None or not nextitem.nodeid.startswith(FOLDER):
        for each in (*vars(source).values(), *vars(test_walks).values()):
            if hasattr(each, "cache_clear"):
                each.cache_clear()
