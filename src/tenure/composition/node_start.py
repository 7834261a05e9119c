"""The arguments that every builder of a layer shares.

Walk: `node.py` makes a `NodeStart` for each try to start, and hands it to the builders of `composition`.
"""

from typing import NamedTuple

from tenure.base.env import Env
from tenure.composition.lifecycle import Lifecycle
from tenure.composition.options import NodeOptions


class NodeStart(NamedTuple):
    options: NodeOptions
    env: Env
    lifecycle: Lifecycle
