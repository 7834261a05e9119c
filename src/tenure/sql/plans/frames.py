"""Frames of window functions, as plans have them: the rows around a row that a function looks at.

Walk: `sql.plans.plan` has them in its WindowCalls; `sql.rows.window_frames` computes a `Frame` for each row.
"""

from dataclasses import dataclass
from enum import Enum

from tenure.expr.tree.expressions import Node


class FrameMode(Enum):
    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class FrameEdge(Enum):
    UNBOUNDED_PRECEDING = "unbounded preceding"
    PRECEDING = "preceding"
    CURRENT = "current row"
    FOLLOWING = "following"
    UNBOUNDED_FOLLOWING = "unbounded following"


@dataclass(frozen=True, slots=True)
class Frame:
    mode: FrameMode = FrameMode.RANGE
    start: FrameEdge = FrameEdge.UNBOUNDED_PRECEDING
    end: FrameEdge = FrameEdge.CURRENT
    start_offset: Node | None = None
    end_offset: Node | None = None
    exclude: str = ""
    """"", "current row", "group" or "ties"."""


DEFAULT_FRAME = Frame()
