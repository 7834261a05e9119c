"""How long a value may become: checked before the value is built.

PostgreSQL ends at 1 GB. Here it is 64 Mi characters, bytes or elements: no transaction could store more.

Walk: functions on texts, arrays and JSON call `check_length`.
"""

from collections.abc import Sequence
from typing import Any

from tenure.base.errors import LimitExceeded
from tenure.base.memory import LARGE_BYTES, charge_value

LENGTH_MAX = 1 << 26


def check_length(size: int) -> None:
    """Raises LimitExceeded (54000), or OutOfMemory (53200) if there is no room for it."""
    if size > LARGE_BYTES:
        if size > LENGTH_MAX:
            raise LimitExceeded("requested length too large")
        charge_value(size)


ELEMENT_BYTES = 64
"""The bytes of an array's element with its list entry; a number of JSON takes twice as much."""


def charge_elements(count: int) -> None:
    """Called before so many values are made of one text. Raises OutOfMemory."""
    if count * ELEMENT_BYTES > LARGE_BYTES:
        charge_value(count * ELEMENT_BYTES)


def joined(left: Any, right: Any) -> Any:
    if len(left) + len(right) > LARGE_BYTES:
        check_length(len(left) + len(right))
    return left + right


def join_all(between: Any, pieces: Sequence[Any]) -> Any:
    check_length(sum(map(len, pieces)) + len(between) * max(len(pieces) - 1, 0))
    return between.join(pieces)
