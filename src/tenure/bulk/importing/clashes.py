"""Rows with duplicate keys, where some bad rows are tolerated: which of them stay, and which are refused.

    key of an index  ──► all rows of the input that have it, and whether the table has it     a `Clash`
    all clashes      ──► row by row, in the order of files and lines: refused if another has taken its key

So it is as if the rows had been inserted one after the other, and failing ones left out: the first of equal
keys stays, unless the table has the key, and a refused row takes no key from others. It makes no difference
which task found a clash, and when.

Invariant (first-stays): of rows with equal keys the first by file and line stays, for any splits.

Walk: `bulk.importing.duplicate_keys` finds those of a range by `clashing`; `bulk.importing.second_pass` calls
`decided` for all of them.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from tenure.base.errors import UniqueViolation
from tenure.bulk.ingest.origins import origin_of
from tenure.pipeline.merge_inputs import Clash, Origin
from tenure.pipeline.runs import keys_of
from tenure.table.arrays import Rows
from tenure.table.key_order import plain


class RefusedRow(NamedTuple):
    sqlstate: str
    said: str
    by: Origin | None = None
    """The row that has its key; None if that is a row of the table, or there is none."""


def decided(clashes: Iterable[Clash]) -> dict[Origin, RefusedRow]:
    """The rows that are refused."""
    of_row: dict[Origin, list[Clash]] = {}
    winners: dict[tuple[tuple[int, int], bytes], Origin | None] = {}
    for clash in clashes:
        if clash.is_in_table:
            winners[clash.of_index, clash.key] = None
        for origin in clash.origins:
            of_row.setdefault(origin, []).append(clash)
    refused: dict[Origin, RefusedRow] = {}
    for origin in sorted(of_row):
        met = [each for each in of_row[origin] if (each.of_index, each.key) in winners]
        if met:
            first = min(met, key=lambda each: each.of_index)
            refused[origin] = RefusedRow(
                UniqueViolation.sqlstate, first.said, winners[first.of_index, first.key]
            )
        else:
            winners.update({(each.of_index, each.key): origin for each in of_row[origin]})
    return refused


def clashing(added: Rows, live: Rows, rows_max: int) -> list[tuple[bytes, bool, tuple[Origin, ...]]]:
    """Keys that rows of the input cannot all have, as (key, whether the table has it, origins).

    Only as many as show that over `rows_max` rows are refused. `added` is sorted by key.
    """
    keys = plain(keys_of(added))
    in_table = np.asarray(pc.is_in(keys, value_set=keys_of(live)))
    is_same = np.asarray(pc.equal(keys[1:], keys[:-1])) if len(keys) > 1 else np.zeros(0, bool)
    is_bad = in_table.copy()
    is_bad[1:] |= is_same
    is_bad[:-1] |= is_same
    # A key of so many rows is too much by itself, and so are so many keys.
    places = np.flatnonzero(is_bad)[: 2 * rows_max + 2]
    found: dict[bytes, list[int]] = {}
    for place in places.tolist():
        found.setdefault(keys[place].as_py(), []).append(place)
    return [
        (key, bool(in_table[group[0]]), tuple(sorted(origin_of(added, place) for place in group)))
        for key, group in found.items()
    ]
