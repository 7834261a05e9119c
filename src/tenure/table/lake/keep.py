"""keep: which revisions of an index are still needed.

    threshold 40, one kept point 25

    [10, 20)    goes     it ended before the threshold, and no kept point lies in it
    [20, 30)    stays    it is visible at 25
    [30, 40)    goes     at 40 it is no longer visible
    [30, 41)    stays    it is visible at 40
    [50, ..)    stays    it has not ended

A time is readable if it is at or after the threshold, or a kept point. A merge receives a `Keep` as a value
from the sweep that published the threshold, so it never removes by a threshold that was read again later.

Invariant (keep-exact): a revision is needed if and only if it is visible at a readable time.

Walk: the jobs of `bulk` hand a `Keep` to `pipeline.merge` -> `lake.merging` drops rows, and `lake.past_files`
whole files, according to `Keep.needs`.
"""

from bisect import bisect_left

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.records import Record


class Keep(Record, frozen=True):
    threshold: Timestamp = ZERO_AT
    points: tuple[Timestamp, ...] = ()
    """Kept points below the threshold, in order."""

    def needs(self, at: Timestamp, until: Timestamp) -> bool:
        """Whether a revision that was visible from `at` to before `until` is needed."""
        if until > self.threshold:
            return True
        return bisect_left(self.points, at) < bisect_left(self.points, until)


KEEP_ALL = Keep()
"""For merges that remove nothing."""
