"""What a lane remembers of a group comes back as it was."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.timestamp import MAX_AT
from tenure.storage.engine import CommitStatus, Outcome
from tenure.storage.outcomes import decode_outcomes, encode_outcomes

ATS = st.integers(0, MAX_AT)
COMMITTED = st.builds(
    Outcome,
    status=st.just(CommitStatus.COMMITTED),
    at=ATS,
    key=st.just(b""),
    removed=st.integers(0, 2**32 - 1),
    last=st.binary(max_size=40),
    counts=st.just(()),
)
SEVERAL = st.builds(
    Outcome,
    status=st.just(CommitStatus.COMMITTED),
    at=ATS,
    key=st.just(b""),
    removed=st.integers(0, 2**32 - 1),
    last=st.binary(max_size=40),
    counts=st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=40).map(tuple),
)
FAILED = st.builds(
    Outcome,
    status=st.sampled_from([each for each in CommitStatus if each is not CommitStatus.COMMITTED]),
    at=ATS,
    key=st.binary(max_size=40),
    removed=st.just(0),
    last=st.just(b""),
    counts=st.just(()),
)


@given(st.lists(COMMITTED | SEVERAL | FAILED, max_size=130))
def test_outcomes_come_back_as_they_were(outcomes: list[Outcome]) -> None:
    assert decode_outcomes(encode_outcomes(outcomes)) == outcomes


def test_no_outcomes_are_no_bytes() -> None:
    assert encode_outcomes([]) == b""
    assert decode_outcomes(b"") == []


def test_the_longest_key_there_can_be_comes_back() -> None:
    outcome = Outcome(CommitStatus.CONFLICT, MAX_AT, bytes(65_535), 2**32 - 1)
    assert decode_outcomes(encode_outcomes([outcome])) == [outcome]
