"""How often the door's loop was held up: told by `tenure_internal.nodes`.

Walk: `pgwire.turns` counts; `sql.tables.node_view` carries them to the tables that show them.
"""

from dataclasses import dataclass

LONG_TURN_SECONDS = 0.05
"""A longer turn of the loop is counted, and its statement logged: all other clients wait meanwhile."""


@dataclass(slots=True)
class LongTurns:
    count: int = 0
    longest_seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.longest_seconds = max(self.longest_seconds, seconds)
