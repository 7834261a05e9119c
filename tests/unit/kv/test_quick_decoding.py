"""Keys of one element, decoded with less ado."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import CorruptData
from tenure.kv.encoding import Descending, decode, encode
from tenure.kv.quick_decoding import decode_one


@pytest.mark.invariant("quick-same")
@given(st.integers(-(2**63), 2**63 - 1) | st.text() | st.none(), st.booleans())
def test_one_element_is_decoded_as_ever(value: int | str | None, is_descending: bool) -> None:
    data = encode([Descending(value) if is_descending else value])
    assert decode_one(b"head" + data, 4) == decode(data)[0]


@pytest.mark.parametrize("data", [b"head", b"head" + encode([1, 2])])
def test_one_element_is_neither_none_nor_two(data: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_one(data, 4)
