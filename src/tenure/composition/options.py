"""The options of a node: from the command line of a process, or from a test.

Walk: `cli` and `worker` make a `NodeOptions`; `node.py` hands it to the builders of the layers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tenure.base.settings import DEFINITIONS, Settings
from tenure.cluster.jobs.runs import SQL, JobKind
from tenure.cluster.sessions.versions import OLDEST, PROGRAM
from tenure.front import Listen
from tenure.pipeline.starter import Process
from tenure.pipeline.tasks import SPARK, Tasks


@dataclass(frozen=True, slots=True)
class NodeOptions:
    store: str
    """The address of the store."""
    settings: Settings = field(default_factory=lambda: Settings(DEFINITIONS))
    """Values of settings that the cluster has not set."""
    kinds: Mapping[str, JobKind] = field(default_factory=dict)
    """Kinds of jobs that it can run, besides its own."""
    version: int = PROGRAM
    """A lower one makes the node behave like an older program."""
    listen: Listen | None = None
    """Where SQL is served, if it is."""
    lake: str = ""
    """The address of the lake's files, if there is a lake."""
    files: str = ""
    """The directory of IMPORT and EXPORT on this machine, if there is one."""
    endpoints: tuple[str, ...] = ()
    """Object stores that IMPORT and EXPORT may use."""
    has_implicit_credentials: bool = False
    """Whether IMPORT and EXPORT may use the credentials of this machine."""
    spark: Callable[[], Tasks] | None = None
    """Runs the tasks of jobs that need Spark; a process without it starts workers."""
    start_worker: Callable[[], Process] | None = None
    """Starts a process that has Spark."""

    @property
    def has(self) -> tuple[str, ...]:
        """The resources of this process that jobs may need."""
        return (SPARK,) * (self.spark is not None) + (SQL,) * (self.listen is not None)

    @property
    def is_version_one(self) -> bool:
        return self.version == OLDEST
