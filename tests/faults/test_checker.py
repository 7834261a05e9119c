"""The checker is itself checked: small logs with one violation each, and one without any."""

from typing import Any

import pytest

from tests.faults import names
from tests.faults.checker import SETUP, Entry, Verdict, check
from tests.faults.log import Event

SETUP_AT = 10


class Story:
    """A history and the log of process "p", told event by event; `m` grows by one each."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.history = [Entry(name, SETUP_AT, f"{names.BALANCE}|{SETUP}") for name in names.ACCOUNTS]

    def intent(self, tag: str, writes: dict[str, str | None], **fields: Any) -> "Story":
        given: dict[str, Any] = {
            "began": len(self.events),
            "op": None,
            "read_at": None,
            "reads": [],
            "scans": [],
        }
        given |= {"excused": [], "deadline_at": None, "parent": None, "offset_ms": 0.0, "writes": writes}
        return self._add("intent", id=tag, **(given | fields))

    def ack(self, tag: str, at: int, **fields: Any) -> "Story":
        return self._add("ack", id=tag, at=at, **fields)

    def failed(self, tag: str) -> "Story":
        return self._add("failed", id=tag, state="40001")

    def read(self, read_at: int, **fields: Any) -> "Story":
        given = {"began": len(self.events), "is_fresh": True, "reads": [], "scans": []}
        return self._add("read", read_at=read_at, **(given | fields))

    def store(self, at: int, values: dict[str, str | None]) -> "Story":
        self.history += [Entry(name, at, value) for name, value in values.items()]
        return self

    def commit(self, tag: str, at: int, writes: dict[str, str | None], **fields: Any) -> "Story":
        return self.intent(tag, writes, **fields).store(at, writes).ack(tag, at)

    def verdict(self) -> Verdict:
        return check([("p", self.events)], self.history)

    def _add(self, kind: str, **fields: Any) -> "Story":
        self.events.append({"e": kind, "m": len(self.events), "offset_ms": 0.0, **fields})
        return self


def kinds(story: Story) -> set[str]:
    return set(story.verdict().kinds)


def test_a_right_history_has_no_violation() -> None:
    story = Story()
    story.commit("a", 20, {"l:00": "1 a|a"}, read_at=10, reads=[("l:00", None, 0)])
    story.commit("b", 30, {"l:00": "2 a,b|b"}, read_at=20, reads=[("l:00", "1 a|a", 0)])
    story.intent("c", {"l:00": "3 a,b,c|c"}, read_at=30).failed("c")
    story.intent("d", {"m:p": "|d"})
    story.read(30, reads=[("l:00", "2 a,b|b", 0)], scans=[("l:", None, False, [["l:00", "2 a,b|b"]])])
    assert story.verdict().violations == []


def test_a_lost_acknowledgement_is_caught() -> None:
    assert kinds(Story().intent("a", {"m:p": "|a"}).ack("a", 20)) == {"lost"}


def test_an_acknowledgement_with_another_timestamp_is_caught() -> None:
    assert kinds(Story().intent("a", {"m:p": "|a"}).store(20, {"m:p": "|a"}).ack("a", 21)) == {"lost"}


def test_a_failed_commit_that_landed_is_caught() -> None:
    assert kinds(Story().intent("a", {"m:p": "|a"}).failed("a").store(20, {"m:p": "|a"})) == {"phantom"}


def test_a_commit_that_nobody_made_is_caught() -> None:
    assert kinds(Story().store(20, {"m:p": "|a"})) == {"phantom"}


def test_a_half_commit_is_caught_also_if_its_outcome_is_unknown() -> None:
    assert kinds(Story().intent("a", {"m:p": "|a", "o:x": "|a"}).store(20, {"m:p": "|a"})) == {"half"}


def test_a_delete_that_did_not_land_is_caught() -> None:
    story = Story().commit("a", 20, {"m:p": "|a", "u:00/x": "|a"})
    story.intent("b", {"m:p": "|b", "u:00/x": None}).store(30, {"m:p": "|b"}).ack("b", 30)
    assert kinds(story) == {"half"}


def test_a_value_that_was_never_written_is_caught() -> None:
    assert kinds(Story().intent("a", {"m:p": "1|a"}).store(20, {"m:p": "2|a"}).ack("a", 20)) == {"half"}


def test_two_commits_at_one_timestamp_are_caught() -> None:
    story = Story().commit("a", 20, {"m:p": "|a"}).commit("b", 20, {"m:q": "|b"})
    assert "half" in kinds(story)


def test_a_commit_that_landed_twice_is_caught() -> None:
    story = Story().commit("a", 20, {"m:p": "|a"}).store(30, {"m:p": "|a"})
    assert "doubled" in kinds(story)


def test_an_operation_done_by_two_attempts_is_caught() -> None:
    story = Story().commit("a", 20, {"o:x": "|a"}, op="x").commit("b", 30, {"o:x": "|b"}, op="x")
    assert kinds(story) == {"doubled"}


def test_a_read_of_a_value_that_never_committed_is_caught() -> None:
    story = Story().intent("a", {"m:p": "|a"}).failed("a")
    assert kinds(story.read(15, reads=[("m:p", "|a", 0)])) == {"stale"}


def test_a_read_that_was_overwritten_before_the_commit_is_caught() -> None:
    story = Story().commit("a", 20, {"m:p": "|a"})
    story.commit("b", 30, {"m:q": "|b"}, read_at=15, began=-1, reads=[("m:p", None, 0)])
    assert kinds(story) == {"stale"}


def test_a_commit_below_a_read_is_caught() -> None:
    story = Story().read(50, reads=[("m:p", None, 0)])
    assert kinds(story.commit("a", 40, {"m:p": "|a"})) == {"stale"}


def test_a_phantom_in_a_scan_is_caught() -> None:
    story = Story().commit("a", 20, {"u:00/x": "|a"})
    story.commit("b", 30, {"m:q": "|b"}, read_at=15, began=-1, scans=[("u:00", None, False, [])])
    assert kinds(story) == {"stale"}


def test_a_read_below_what_was_acknowledged_before_is_caught() -> None:
    story = Story().commit("a", 20, {"m:p": "|a"})
    assert kinds(story.read(15)) == {"stale"}


def test_a_read_as_of_an_older_time_is_no_stale_read() -> None:
    story = Story().commit("a", 20, {"m:p": "|a"})
    assert kinds(story.read(15, is_fresh=False)) == set()


def test_timestamps_that_go_back_are_caught() -> None:
    story = Story().commit("a", 30, {"m:p": "|a"}).commit("b", 20, {"m:q": "|b"})
    assert kinds(story) == {"order"}


def test_a_commit_at_its_deadline_is_caught() -> None:
    assert kinds(Story().commit("a", 20, {"m:p": "|a"}, deadline_at=20)) == {"deadline"}


def test_a_commit_with_a_clock_beyond_max_offset_is_caught() -> None:
    story = Story().intent("a", {"m:p": "|a"}, offset_ms=2000).store(20, {"m:p": "|a"})
    assert kinds(story.ack("a", 20, offset_ms=2000)) == {"clock"}


def test_a_parent_that_is_not_after_its_child_is_caught() -> None:
    story = Story().commit("ac", 30, {"l:00": "1 ac|ac"}, parent="a")
    story.intent("a", {"m:p": "|a"}, began=-1, excused=[30]).store(20, {"m:p": "|a"}).ack("a", 20)
    assert kinds(story) == {"order"}


@pytest.mark.parametrize(("stranger", "expected"), [(False, set()), (True, {"stale"})])
def test_a_parent_is_excused_its_childs_write_and_no_strangers(stranger: bool, expected: set[str]) -> None:
    story = Story().commit("ac", 20, {"m:c": "|ac"}, began=-1)
    if stranger:
        story.commit("s", 25, {"m:c": "|s"})
    reads = [("m:c", None, 0), ("m:c", "|ac", 1)]
    story.commit("a", 30, {"m:p": "|a"}, began=-1, read_at=15, reads=reads, excused=[20])
    assert kinds(story) == expected


def test_money_that_appears_is_caught() -> None:
    assert kinds(Story().commit("a", 20, {"b:00": "101|a"})) == {"total"}


def test_a_lost_update_of_a_list_is_caught() -> None:
    story = Story().commit("a", 20, {"l:00": "1 a|a"}).commit("b", 30, {"l:00": "1 b|b"})
    assert kinds(story) == {"list"}
