"""Estimates of how much memory values take: within a factor of two of the growth of the process.

Every value of a row is measured: a large one may be among many small ones. Of a container with more than a
thousand elements an evenly spread sample is measured: walking a large JSON value takes longer than making it.

Walk: `base.memory` and `sql.session.result_size` measure rows; aggregates single values.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from sys import getsizeof
from typing import Any
from uuid import UUID

ROW_BYTES = 64
"""A tuple without its slots, its garbage collector header, and its slot in a list."""

PLACE_BYTES = 8

FLAT = frozenset((int, float, str, bytes, bool, type(None), Decimal, datetime, date, time, timedelta, UUID))
"""Types that `getsizeof` measures whole."""

EXACT_MAX, SAMPLE = 1_000, 256


def size_of_rows(rows: Sequence[Sequence[Any]]) -> int:
    if not rows:
        return 0
    places = len(rows) * (ROW_BYTES + PLACE_BYTES * len(rows[0]))
    return places + sum(map(size_of, chain.from_iterable(rows)))


def size_of(value: Any) -> int:
    """The size of a value with its elements."""
    if type(value) in FLAT:
        return getsizeof(value)
    if isinstance(value, tuple | list):  # an array, or of jsonb
        return getsizeof(value) + _size_of_all(value, len(value))
    if isinstance(value, dict):
        count = len(value)
        return getsizeof(value) + _size_of_all(value.keys(), count) + _size_of_all(value.values(), count)
    inner = getattr(value, "value", None) or getattr(value, "text", None)
    return getsizeof(value) + (size_of(inner) if inner is not None else 0)


def _size_of_all(values: Iterable[Any], count: int) -> int:
    if count <= EXACT_MAX:
        return sum(map(size_of, values))
    step = count // SAMPLE
    sample = values[::step] if isinstance(values, tuple | list) else list(islice(values, 0, None, step))
    return sum(map(size_of, sample)) * count // len(sample)
