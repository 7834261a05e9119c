"""How often clients of schema changes do what, by the name of the mix.

Walk: `cluster.run` takes the weights of its profile; `schema_client.SHAPES` has what they weigh.
"""

from tests.simulation import (
    clean_changes,
    conversion_shapes,
    emptying,
    kept_shapes,
    right_shapes,
    schema_lock_shapes,
    wait_shapes,
)
from tests.simulation.schema_changes import OF_CATALOG, OF_TABLE
from tests.simulation.schema_knobs import EXPIRING

_ROWS = {"write": 6.0, "write two": 1.0, "look": 2.0, "linger": 1.0, "look back": 0.3}

PROFILES: dict[str, dict[str, float]] = {
    "schema": {
        **_ROWS,
        **dict.fromkeys(OF_TABLE, 0.5),
        **dict.fromkeys(OF_CATALOG, 0.3),
        "add index": 1.5,
        "create with rows": 0.5,
        "two changes": 0.6,
        "rows and a change": 1.0,
        "change elsewhere": 0.5,
        "recreate": 0.3,
        "cancel": 0.4,
        **kept_shapes.WEIGHTS,
        **wait_shapes.WEIGHTS,
    },
    "indexes": {
        "write": 8.0,
        "look": 2.0,
        "linger": 1.0,
        "add index": 3.0,
        "drop index": 2.0,
        "rows and a change": 1.0,
    },
    "names": {
        "write": 2.0,
        "write two": 2.0,
        "linger": 1.0,
        "rename": 2.0,
        "move": 1.0,
        "recreate": 1.0,
        "create with rows": 1.0,
        **dict.fromkeys(OF_CATALOG, 1.0),
    },
    "alone": {"write": 2.0, "add index": 3.0, "drop index": 2.0, "rename": 1.0, "rows and a change": 2.0},
    "rows and changes": {
        "write": 4.0,
        "linger": 1.0,
        "look": 1.0,
        "rows and a change": 4.0,
        clean_changes.KIND: 3.0,
        "change elsewhere": 2.0,
    },
    **(kept_shapes.PROFILES | emptying.PROFILES | conversion_shapes.PROFILES | schema_lock_shapes.PROFILES),
    "rights": {
        "write": 1.0,
        "linger": 0.5,
        "rename": 0.5,
        "recreate": 0.3,
        "rename schema": 0.3,
        **right_shapes.WEIGHTS,
        **conversion_shapes.WEIGHTS,
    },
}
"""By name, beside those of the store and of jobs."""

PROFILES[EXPIRING] = PROFILES["schema"]
