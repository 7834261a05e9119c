"""Estimates are within a factor of two of what a process grows by."""

import json
import subprocess
import sys

import pytest

SHAPES = {
    "numbers": "[(g, g * 7) for g in range(1000, 301000)]",
    "texts": "[(g, f'text number {g}') for g in range(200000)]",
    "wide rows": "[tuple(range(g + 1000, g + 1030)) for g in range(20000)]",
    "long texts": "[(g, 'x' * 1000 + str(g)) for g in range(60000)]",
    "bytes": "[(bytes(300 + g % 7),) for g in range(150000)]",
    "decimals": "[(Decimal(g) / 7,) for g in range(300000)]",
    "arrays": "[(tuple(range(g + 1000, g + 1050)),) for g in range(20000)]",
    "one large array": "[(tuple(str(g) + 'abc' for g in range(800000)),)]",
    "json": "[(Jsonb(JsonObject((('a', Decimal(g)), ('b', f'v{g}')))),) for g in range(100000)]",
    "times": "[(datetime.fromtimestamp(g, UTC), UUID(int=g)) for g in range(200000)]",
}

MEASURE = """
import gc, json, sys
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID
from tenure.base.machine_memory import resident_bytes
from tenure.base.sizes import size_of_rows
from tenure.expr.types.json_values import Jsonb, JsonObject
gc.disable()
before = resident_bytes()
rows = {shape}
print(json.dumps([size_of_rows(rows), resident_bytes() - before]))
"""


@pytest.mark.parametrize("name", SHAPES)
def test_an_estimate_is_near_what_a_process_grows_by(name: str) -> None:
    script = MEASURE.format(shape=SHAPES[name])
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    estimated, grown = json.loads(output)
    assert grown / 2 < estimated < grown * 2
