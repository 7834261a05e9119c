"""The engine contract: what changed since a time, and every revision of an interval."""

import pytest

from tenure.storage.engine import Revision, Write
from tests.contract.engine_client import HEAD, LAST_HEAD, NEXT_HEAD, Client, key, names, span, values, write


def test_a_diff_returns_keys_whose_visible_revision_is_newer(client: Client) -> None:
    since_at = client.write(write("a"), write("b"), write("c"))
    client.put("b", b"2")
    client.put("d", b"3")
    assert list(zip(names(found := client.scan(since_at=since_at)), values(found), strict=True)) == [
        ("b", b"2"),
        ("d", b"3"),
    ]


def test_a_diff_includes_tombstones(client: Client) -> None:
    since_at = client.write(write("a"), write("b"))
    gone_at = client.put("a", None)
    assert client.scan(since_at=since_at).revisions == [(key("a"), gone_at, None)]


def test_a_diff_is_strictly_newer(client: Client) -> None:
    at = client.put("a")
    assert names(client.scan(since_at=at)) == []
    assert names(client.scan(since_at=at - 1)) == ["a"]


def test_a_diff_shows_each_key_once(client: Client) -> None:
    client.put("a", b"1")
    client.put("a", b"2")
    client.put("a", b"3")
    assert values(client.scan(since_at=0)) == [b"3"]


def test_a_diff_below_now_shows_what_was_visible_then(client: Client) -> None:
    since_at = client.write(write("a", b"old"), write("b", b"old"), write("c", b"old"))
    client.put("a", b"2")
    at = client.put("b", None)
    client.write(write("a", b"later"), write("b", b"later"), write("c", b"later"), write("d", b"later"))
    found = client.scan(since_at=since_at, at=at)
    assert list(zip(names(found), values(found), strict=True)) == [("a", b"2"), ("b", None)]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_diff_is_ordered_by_key_and_limited(client: Client, reverse: bool) -> None:
    for name in "dbac":
        client.put(name)
    expected = ["d", "c"] if reverse else ["a", "b"]
    assert names(client.scan(since_at=0, limit=2, reverse=reverse)) == expected


def test_a_diff_over_several_heads_finds_the_changes_of_all(client: Client) -> None:
    since_at = client.write(write("a"), write("a", head=NEXT_HEAD), write("a", head=LAST_HEAD))
    client.put("b")
    client.put("c", head=LAST_HEAD)
    changed = [revision.key for revision in client.scan(since_at=since_at).revisions]
    assert changed == [key("b"), key("c", LAST_HEAD)]


@pytest.mark.parametrize(
    ("lo", "hi", "expected"),
    [
        (HEAD, NEXT_HEAD, ["1a", "1b"]),
        (HEAD, HEAD[:8], []),
        (HEAD[:7], NEXT_HEAD[:8], ["1a", "1b"]),
        (HEAD[:7], NEXT_HEAD + b"a\0", ["1a", "1b", "2a"]),
        (key("b"), key("b", NEXT_HEAD), ["1b", "2a"]),
        (b"tnt1", b"tnt2", ["1a", "1b", "2a", "2b", "3a"]),
        (NEXT_HEAD + b"b", LAST_HEAD, ["2b"]),
        (b"", b"\xff", ["1a", "1b", "2a", "2b", "3a"]),
    ],
)
def test_bounds_may_be_bare_or_lie_inside_a_head(
    client: Client, lo: bytes, hi: bytes, expected: list[str]
) -> None:
    for head, name in [(HEAD, "a"), (HEAD, "b"), (NEXT_HEAD, "a"), (NEXT_HEAD, "b"), (LAST_HEAD, "a")]:
        client.write(Write(key(name, head), head[7:8] + name.encode()))
    wanted = [each.encode() for each in expected]
    assert values(client.scan(lo, hi)) == wanted
    assert values(client.scan(lo, hi, since_at=0)) == wanted
    assert values(client.history(lo=lo, hi=hi)) == wanted


def test_a_head_of_the_greatest_bytes_has_changes_too(client: Client) -> None:
    top = b"\xff" * 10
    client.write(Write(top + b"a", b"top"))
    hi = b"\xff" * 20
    assert values(client.scan(top, hi, since_at=0)) == [b"top"]
    assert values(client.history(lo=top, hi=hi)) == [b"top"]


def test_a_history_holds_every_revision_in_time_order(client: Client) -> None:
    first_at = client.write(write("b", b"1"), write("a", b"1"))
    second_at = client.put("a", None)
    third_at = client.put("a", b"3")
    assert client.history().revisions == [
        (key("a"), first_at, b"1"),
        (key("b"), first_at, b"1"),
        (key("a"), second_at, None),
        (key("a"), third_at, b"3"),
    ]


def test_a_history_is_open_below_and_closed_above(client: Client) -> None:
    ats = [client.put("a", bytes([number])) for number in range(4)]
    assert values(client.history(ats[0], ats[2])) == [b"\1", b"\2"]
    assert values(client.history(ats[2])) == [b"\3"]
    assert values(client.history(ats[3])) == []


def test_a_history_keeps_to_its_span(client: Client) -> None:
    client.write(write("a"), write("b"), write("c"), write("b", head=NEXT_HEAD))
    client.put("b", b"2")
    lo, hi = span("b", "c")
    assert values(client.history(lo=lo, hi=hi)) == [b"v", b"2"]


def test_an_uncut_history_is_complete_up_to_its_end(client: Client) -> None:
    at = client.put("a")
    assert client.history().through_at == at
    assert client.history(0, at - 1).through_at == at - 1
    assert client.history(limit=1).through_at == at


def test_a_limit_cuts_a_history_between_timestamps(client: Client) -> None:
    first_at = client.write(*(write(name) for name in "abc"))
    second_at = client.write(*(write(name) for name in "abc"))
    found = client.history(limit=4)
    assert [revision.at for revision in found.revisions] == [first_at] * 3
    assert first_at <= found.through_at < second_at
    assert [revision.at for revision in client.history(found.through_at).revisions] == [second_at] * 3


def test_a_limit_below_one_transaction_still_returns_it_whole(client: Client) -> None:
    first_at = client.write(*(write(name) for name in "abcdef"))
    second_at = client.write(write("a"), write("z", head=NEXT_HEAD))
    found = client.history(limit=1)
    assert names(found)[:6] == list("abcdef")
    assert first_at <= found.through_at
    assert len(found.revisions) == (8 if found.through_at >= second_at else 6)
    found = client.history(first_at, limit=1)
    assert names(found) == ["a", "z"]
    assert found.through_at == second_at


def test_pages_of_a_history_make_the_whole(client: Client) -> None:
    for number in range(12):
        client.write(*(write(f"{number % 5}{name}", head=h) for name in "ab" for h in (HEAD, NEXT_HEAD)))
    whole = list(client.history().revisions)
    for limit in (1, 3, 4, 5, 9, 100):
        paged: list[Revision] = []
        since_at = 0
        while since_at < client.engine.clock_at():
            page = client.history(since_at, limit=limit)
            paged += page.revisions
            assert page.through_at > since_at
            since_at = page.through_at
        assert paged == whole
