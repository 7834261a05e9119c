"""The contract of sinks.

    resume(position)    where to go on: a sink that keeps positions may be ahead of the job's own record
    emit(messages)      takes messages; they need not be visible yet, and memory stays bounded
    commit(position)    everything emitted so far is durable and visible, together with the position
    close()             gives up what was emitted after the last commit

A feed emits, commits, and only then saves its checkpoint. So after a crash the job's record is never ahead of
the sink. Messages may be emitted again after a crash, unless the sink can tell that it has them.

Walk: `changefeed.feed` emits; `changefeed.job` commits.
"""

from collections.abc import Sequence
from typing import Protocol

from tenure.changefeed.messages import Message
from tenure.changefeed.records import FeedPosition


class Sink(Protocol):
    def resume(self, position: FeedPosition) -> FeedPosition: ...

    def emit(self, messages: Sequence[Message]) -> int:
        """Returns the bytes of the messages, as the sink writes them."""
        ...

    def commit(self, position: FeedPosition) -> FeedPosition:
        """Returns the position with the number of the batch."""
        ...

    def close(self) -> None: ...
