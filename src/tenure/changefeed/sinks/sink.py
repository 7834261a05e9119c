"""The contract of sinks.

    resume(position)    where to go on: a sink that keeps positions may be ahead of the job's own record
    emit(messages)      takes messages; they need not be visible yet, and memory stays bounded
    commit(position)    everything emitted so far is durable and visible, together with the position
    close()             gives up what was emitted after the last commit, as far as it was not sent

A feed emits, commits, and only then saves its checkpoint. So after a crash the job's record is never ahead of
the sink. Messages may be emitted again after a crash, unless the sink can tell that it has them.

A sink that fails for a reason that may pass (it is away, it refuses) raises a StoreError: the job's next
attempt starts at its last checkpoint. `tests/contract/test_sinks.py` is the contract as tests.

Walk: `changefeed.feed` emits; `changefeed.job` commits.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tenure.base.env import Env
from tenure.base.setting_values import Settings
from tenure.changefeed.messages import Message
from tenure.changefeed.options import FeedOptions
from tenure.changefeed.records import FeedPosition


class SinkRun(NamedTuple):
    """The run of a job that a sink works for."""

    job: int
    run: int
    options: FeedOptions
    topics: tuple[str, ...]
    """Of its tables, as far as they are there when it begins."""
    env: Env
    settings: Callable[[], Settings]
    begin_send: Callable[[], float]
    """Returns, once a send may start, its deadline by the monotonic clock; raises if the run has to end."""
    sleep: Callable[[float], None]
    """Raises if the run has to end."""


class Sink(Protocol):
    def resume(self, position: FeedPosition) -> FeedPosition: ...

    def emit(self, messages: Sequence[Message]) -> int:
        """Returns the bytes of the messages, as the sink writes them."""
        ...

    def commit(self, position: FeedPosition) -> FeedPosition:
        """Returns the position with the number of the batch."""
        ...

    def close(self) -> None: ...
