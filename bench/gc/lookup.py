"""Lookups in the tracker: which protections lie over an index, with 4,096 spans and with 100,000.

One span in 64 covers 64 neighbouring tables, the others one table each. What is promised is absolute, so the
peer is the promise. Some lookups are compared with a look at every span.

Walk: `bench.__main__` -> `run`.
"""

import random
import time

from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note
from tenure.base.timestamp import ZERO_AT
from tenure.kv.keys import USER_TABLES, Keyspace, Span
from tenure.kv.store import DEFAULT_TENANT
from tenure.retention.protections.protection_records import Mode, Protection
from tenure.retention.tracking.tracker import TrackedState

PROMISED_MICROS = {4_096: 5.0, 100_000: 20.0}
"""By the number of spans."""
WIDE_EVERY = WIDE_TABLES = 64
ROUNDS = 7


def run(quick: bool) -> list[Ratio]:
    return [_measure(spans, 200 if quick else 20_000) for spans in PROMISED_MICROS]


def _measure(spans: int, lookups: int) -> Ratio:
    keyspace, chooser = Keyspace(DEFAULT_TENANT), random.Random(spans)
    protections = [_protection(keyspace, number) for number in range(spans)]
    state = TrackedState(1, ZERO_AT, protections)
    asked = [keyspace.index_span(USER_TABLES + chooser.randrange(spans)) for _ in range(lookups)]
    for lo, hi in asked[:20]:
        _check(state, protections, lo, hi)
    micros = min(_lookup_micros(state, asked) for _ in range(ROUNDS))
    objects_micros = min(_objects_micros(state, spans, lookups) for _ in range(ROUNDS))
    note(f"gc.lookup: {spans} spans: {micros:.2f} us by span, {objects_micros:.2f} us by three objects")
    return compare(
        f"gc.lookup.{spans}_spans",
        ours=micros,
        peer=PROMISED_MICROS[spans],
        unit="us",
        bar=Bar.AT_MOST,
        limit=1.0,
    )


def _protection(keyspace: Keyspace, number: int) -> Protection:
    first = USER_TABLES + number
    last = first + (WIDE_TABLES - 1 if number % WIDE_EVERY == 0 else 0)
    span = Span(keyspace.index_span(first).lo, keyspace.index_span(last).hi)
    id = number.to_bytes(16, "big")
    return Protection(id, number + 1, Mode.AT, "job", b"1", objects=(first,), spans=(span,))


def _check(state: TrackedState, protections: list[Protection], lo: bytes, hi: bytes) -> None:
    found = {each.id for each in state.records_over(lo, hi)}
    expected = {each.id for each in protections for first, end in each.spans if first < hi and lo < end}
    assert found == expected, "a lookup does not find the protections over its span"


def _lookup_micros(state: TrackedState, asked: list[Span]) -> float:
    began = time.process_time()
    for lo, hi in asked:
        state.records_over(lo, hi)
    return (time.process_time() - began) / len(asked) * 1e6


def _objects_micros(state: TrackedState, spans: int, lookups: int) -> float:
    """A table is looked up with its schema and its database."""
    began = time.process_time()
    for number in range(lookups):
        state.records_of((1, 2, USER_TABLES + number % spans))
    return (time.process_time() - began) / lookups * 1e6
