"""What a lane remembers of a group comes back as it was."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.timestamp import MAX_AT
from tenure.storage.engine import CommitStatus, Outcome
from tenure.storage.outcomes import decode_outcomes, encode_outcomes

OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(CommitStatus),
    st.integers(0, MAX_AT),
    st.binary(max_size=40),
    st.integers(0, 2**32 - 1),
)


@given(st.lists(OUTCOMES, max_size=130))
def test_outcomes_come_back_as_they_were(outcomes: list[Outcome]) -> None:
    assert decode_outcomes(encode_outcomes(outcomes)) == outcomes


def test_no_outcomes_are_no_bytes() -> None:
    assert encode_outcomes([]) == b""
    assert decode_outcomes(b"") == []


def test_the_longest_key_there_can_be_comes_back() -> None:
    outcome = Outcome(CommitStatus.CONFLICT, MAX_AT, bytes(65_535), 2**32 - 1)
    assert decode_outcomes(encode_outcomes([outcome])) == [outcome]
