"""The catalog is tested in the clusters that schema changes are tested in."""

from tests.unit.schema_change.conftest import cluster, node, other

__all__ = ["cluster", "node", "other"]
