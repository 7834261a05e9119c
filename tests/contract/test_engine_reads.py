"""The engine contract: reads of the present and of the past."""

import pytest

from tenure.base.timestamp import to_bytes
from tenure.storage.engine import REVISION_BYTES, Guard, Portion, Revisions, Scan, Write
from tests.contract.engine_client import ALL, GUARD, HEAD, NEXT_HEAD, Client, key, names, span, values, write


def test_a_fresh_store_is_empty(client: Client) -> None:
    assert client.engine.clock_at() == 0
    assert client.get("a") is None
    assert client.scan() == (0, 0, 0, [], 0, b"")


def test_a_read_sees_the_newest_revision(client: Client) -> None:
    client.put("a", b"1")
    second_at = client.put("a", b"2")
    revision = client.get("a")
    assert revision == (key("a"), second_at, b"2")


def test_a_read_at_a_time_sees_what_was_visible_then(client: Client) -> None:
    first_at = client.put("a", b"1")
    second_at = client.put("a", b"2")
    third_at = client.put("a", b"3")
    assert client.get("a", first_at - 1) is None
    assert client.value("a", first_at) == b"1"
    assert client.value("a", second_at - 1) == b"1"
    assert client.value("a", second_at) == b"2"
    assert client.value("a", third_at) == b"3"


def test_get_returns_a_tombstone(client: Client) -> None:
    put_at = client.put("a")
    gone_at = client.put("a", None)
    assert client.get("a") == (key("a"), gone_at, None)
    assert client.get("a", gone_at) == (key("a"), gone_at, None)
    assert client.get("a", put_at) == (key("a"), put_at, b"v")


def test_an_empty_value_is_no_tombstone(client: Client) -> None:
    at = client.put("a", b"")
    assert client.get("a") == (key("a"), at, b"")
    assert values(client.scan()) == [b""]


def test_a_scan_is_half_open_and_in_key_order(client: Client) -> None:
    client.write(*(write(name) for name in "dbca"))
    assert names(client.scan(*span("a", "d"))) == ["a", "b", "c"]
    assert names(client.scan(*span("b", "c"))) == ["b"]
    assert names(client.scan(*span("b", "b"))) == []


def test_a_scan_leaves_tombstones_out(client: Client) -> None:
    client.write(write("a"), write("b"))
    before_at = client.engine.clock_at()
    client.put("a", None)
    assert names(client.scan()) == ["b"]
    assert names(client.scan(at=client.engine.clock_at())) == ["b"]
    assert names(client.scan(at=before_at)) == ["a", "b"]


def test_a_scan_at_a_time_skips_keys_that_came_later(client: Client) -> None:
    first_at = client.put("b", b"1")
    client.put("a", b"2")
    client.put("b", b"3")
    assert values(client.scan(at=first_at)) == [b"1"]
    assert values(client.scan()) == [b"2", b"3"]


def test_a_scan_at_a_time_leaves_out_what_was_a_tombstone_then(client: Client) -> None:
    client.put("a", b"1")
    gone_at = client.put("a", None)
    client.put("a", b"2")
    assert names(client.scan(at=gone_at)) == []
    assert values(client.scan()) == [b"2"]


@pytest.mark.parametrize("is_past", [False, True])
def test_a_limit_counts_what_is_returned(client: Client, is_past: bool) -> None:
    client.write(*(write(name) for name in "abcdef"))
    client.write(write("a", None), write("c", None))
    at = client.engine.clock_at() if is_past else None
    if is_past:
        client.write(*(write(name, b"later") for name in "abcdef"))
    assert names(client.scan(at=at, limit=2)) == ["b", "d"]
    assert names(client.scan(at=at, limit=0)) == []
    assert names(client.scan(at=at, limit=9)) == ["b", "d", "e", "f"]


@pytest.mark.parametrize("is_past", [False, True])
def test_a_reverse_scan_starts_at_the_end(client: Client, is_past: bool) -> None:
    at = client.write(*(write(name) for name in "abc"))
    client.put("b", b"2")
    asked_at = at if is_past else None
    assert names(client.scan(at=asked_at, reverse=True, limit=2)) == ["c", "b"]
    assert names(client.scan(*span("a", "c"), at=asked_at, reverse=True)) == ["b", "a"]


def test_keys_are_ordered_as_bytes_and_may_hold_any(client: Client) -> None:
    keys = [HEAD, HEAD + b"\0", HEAD + b"\0\0", HEAD + b"\x7f", HEAD + b"\x80", HEAD + b"\xff\xff"]
    client.write(*(Write(each, each) for each in reversed(keys)))
    found = client.scan(HEAD, HEAD + b"\xff\xff\xff").revisions
    assert [revision.key for revision in found] == keys


def test_a_scan_may_cross_heads(client: Client) -> None:
    client.write(write("z"), write("a", head=NEXT_HEAD))
    assert names(client.scan(key("b"), key("b", NEXT_HEAD))) == ["z", "a"]


def test_keys_shorter_than_a_head_are_keys_too(client: Client) -> None:
    at = client.write(Write(b"tnt1", b"short"), write("a"))
    assert values(client.scan()) == [b"short", b"v"]
    assert values(client.scan(since_at=at - 1)) == [b"short", b"v"]
    assert values(client.history()) == [b"short", b"v"]


def test_every_read_tells_the_clock(client: Client) -> None:
    at = client.put("a")
    assert client.engine.get(key("a"), GUARD).clock_at == at
    assert client.engine.get(key("none"), GUARD, at - 1).clock_at == at
    assert client.scan().clock_at == at
    assert client.scan(since_at=0, at=at - 1).clock_at == at
    assert client.history().clock_at == at


def test_reads_of_spans_tell_the_greatest_of_each_mark(client: Client) -> None:
    client.write(
        Write(GUARD.threshold_first, to_bytes(3)),
        Write(GUARD.threshold_last, to_bytes(5)),
        Write(GUARD.cleaned_first, to_bytes(300)),
        Write(GUARD.cleaned_last, to_bytes(7)),
        Write(GUARD.cleaned_last + b"\0", to_bytes(900)),
    )
    client.put("a")
    reads = [
        client.scan(),
        client.scan(at=1),
        client.scan(since_at=0),
        client.scan(since_at=0, at=1),
        client.history(),
    ]
    assert [(found.threshold_at, found.cleaned_at) for found in reads] == [(5, 300)] * 5


@pytest.mark.parametrize("name", ["a", "none"])
@pytest.mark.parametrize("at", [None, 1, 2, 3])
def test_a_read_of_one_key_tells_its_two_marks(client: Client, name: str, at: int | None) -> None:
    threshold, cleaned = GUARD.threshold_first, GUARD.cleaned_first
    guard = Guard(threshold, threshold, cleaned, cleaned)
    client.put("a")
    client.put("a")
    client.write(Write(threshold, to_bytes(3)), Write(cleaned, to_bytes(300)))
    found = client.engine.get(key(name), guard, at)
    assert (found.clock_at, found.threshold_at, found.cleaned_at) == (3, 3, 300)


def test_marks_are_the_newest_whatever_time_is_read(client: Client) -> None:
    client.write(Write(GUARD.threshold_first, to_bytes(3)))
    at = client.put("a")
    client.write(Write(GUARD.threshold_first, to_bytes(4)))
    assert client.engine.get(key("a"), GUARD, at).threshold_at == 4


def test_a_tombstone_is_no_mark(client: Client) -> None:
    client.write(Write(GUARD.threshold_first, to_bytes(3)), Write(GUARD.threshold_last, to_bytes(5)))
    client.write(Write(GUARD.threshold_last, None))
    assert client.scan(*ALL).threshold_at == 3


def test_a_scan_gives_tombstones_if_asked_for(client: Client) -> None:
    client.put("a")
    client.put("b")
    before_at = client.put("a", None)
    client.put("c", None)
    found = client.engine.scan(Scan(*ALL, GUARD, tombstones=True))
    assert [*zip(names(found), values(found), strict=True)] == [("a", None), ("b", b"v"), ("c", None)]
    found = client.engine.scan(Scan(*ALL, GUARD, before_at, tombstones=True))
    assert [*zip(names(found), values(found), strict=True)] == [("a", None), ("b", b"v")]


def test_revisions_are_all_of_a_key_by_time_and_within_the_interval(client: Client) -> None:
    first_at = client.put("a", b"1")
    client.put("b", b"2")
    client.put("a", b"3")
    last_at = client.put("a", None)
    client.put("b", b"4")
    found = client.engine.revisions(Revisions(*ALL, GUARD, first_at, last_at, 10))
    assert [*zip(names(found), values(found), strict=True)] == [("a", b"3"), ("a", None), ("b", b"2")]
    assert found.last == b""


def test_revisions_are_cut_between_keys(client: Client) -> None:
    client.put("a", b"1")
    client.put("a", b"2")
    client.put("b", b"3")
    until_at = client.put("c", b"4")
    client.put("d", b"5")
    found = client.engine.revisions(Revisions(*ALL, GUARD, 0, until_at, 2))
    assert names(found) == ["a", "a", "b"]
    assert found.last == key("b")
    found = client.engine.revisions(Revisions(key("b") + b"\0", ALL[1], GUARD, 0, until_at, 2))
    assert (names(found), found.last) == (["c"], key("d"))
    found = client.engine.revisions(Revisions(key("d") + b"\0", ALL[1], GUARD, 0, until_at, 2))
    assert (names(found), found.last) == ([], b"")


def test_a_spread_counts_what_is_newer_and_cuts_it_into_pieces(client: Client) -> None:
    since_at = client.put("a", b"12")
    for name in "bcdef":
        client.put(name, b"123")
    client.put("b", None)
    found = client.engine.spread(*ALL, since_at, 2)
    assert (found.keys, found.cuts) == (5, [key("c"), key("e")])
    assert found.size == 5 * (len(HEAD) + 1) + 4 * 3
    assert client.engine.spread(*ALL, since_at, 6).cuts == []


def test_portions_are_cut_by_the_size_of_all_revisions_of_an_interval(client: Client) -> None:
    each = REVISION_BYTES + len(HEAD) + 1
    since_at = client.put("a", bytes(1_000))
    client.put("b", bytes(2_000))
    for size in (100, 200, 300):
        client.put("c", bytes(size))
    client.put("d", bytes(100))
    until_at = client.put("e", None)
    client.put("e", bytes(5_000))
    client.put("f", bytes(10))
    found = client.engine.portions(*ALL, since_at, until_at, 2_000)
    assert found == [
        Portion(key("b"), 1, each + 2_000),
        Portion(key("c"), 2, 4 * each + 700),
        Portion(key("e"), 1, each),
    ]
    assert client.engine.portions(*ALL, since_at, until_at, 1 << 40) == [
        Portion(key("b"), 4, 6 * each + 2_700)
    ]
    assert client.engine.portions(*ALL, until_at, until_at, 1 << 40) == []


def test_several_keys_are_read_as_one_is(client: Client) -> None:
    first_at = client.write(write("a", b"1"), write("b", b"1"), write("c", b"1"))
    later_at = client.put("b", b"2")
    gone_at = client.put("c", None)
    client.put("d", b"4")
    for at in (None, first_at - 1, first_at, later_at, gone_at):
        found = client.engine.get_many([key(name) for name in "abcde"], GUARD, at)
        each = [client.engine.get(key(name), GUARD, at) for name in "abcde"]
        assert sorted(found.revisions) == [revision for one in each for revision in one.revisions]
        assert found[:3] == each[0][:3]


def test_several_keys_come_with_the_marks(client: Client) -> None:
    first_at = client.put("a", b"1")
    later_at = client.put("a", b"2")
    client.write(Write(GUARD.threshold_first, to_bytes(7)), Write(GUARD.cleaned_first, to_bytes(8)))
    for at in (None, first_at, later_at):
        assert client.engine.get_many([key("a"), key("b")], GUARD, at)[1:3] == (7, 8)
