"""Elements of keys made together, beside those made alone."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.kv.column_encoding import encode_each
from tenure.kv.encoding import KeyValue, encode

INTEGERS = st.integers(-(2**40), 2**40)
SOME = st.one_of(st.none(), st.booleans(), INTEGERS, st.text(max_size=3), st.floats())
ROW_IDS = st.integers(2**62, 2**63 - 1)


@given(st.lists(INTEGERS) | st.lists(ROW_IDS) | st.lists(st.integers(0, 300)) | st.lists(SOME))
def test_elements_made_together_are_those_made_alone(values: list[KeyValue]) -> None:
    assert encode_each(values) == [encode((value,)) for value in values]
