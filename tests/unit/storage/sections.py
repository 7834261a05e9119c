"""Being inside a section, for as long as a test needs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.storage.sqlite.turnstile import Turnstile


@contextmanager
def in_section(turnstile: Turnstile) -> Iterator[None]:
    turnstile.enter()
    try:
        yield
    finally:
        turnstile.leave()
