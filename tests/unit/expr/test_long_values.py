"""What is done slice by slice gives what Python gives in one go; and a check is asked on the way."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import InvalidEscape, InvalidParameter, InvalidText, LimitExceeded
from tenure.base.interruptible import checked_by
from tenure.base.memory import LARGE_BYTES
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.functions import normal_forms, text_functions, time_parts
from tenure.expr.functions.like import like
from tenure.expr.types import arrays, json_reading, strings, text_slices, time_fields
from tenure.expr.types.encodings import encoding_named
from tenure.expr.types.json_reading import Reader, value_end
from tenure.expr.types.json_values import object_of
from tenure.expr.types.type_names import parse_type_name, type_of
from tenure.expr.types.zones import zone_named

pytestmark = pytest.mark.hypothesis

SMALL = 7
"""Characters of a slice: so that short examples have several."""

LETTERS = st.text("ab%_\\ é,", max_size=40)


@pytest.fixture(autouse=True, scope="module")
def _small_slices() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (text_slices, json_reading, strings, arrays, text_functions, normal_forms):
            patch.setattr(module, "SLICE", SMALL)
        patch.setattr(json_reading, "PIECE", SMALL)
        patch.setattr(json_reading, "FIRST_CHARS", 3)
        patch.setattr(text_slices, "SORTED_AT_ONCE", 3)
        yield


@given(LETTERS, st.text("ab", min_size=1, max_size=9), LETTERS)
def test_texts_are_split_counted_and_replaced_as_in_one_go(text: str, sought: str, new: str) -> None:
    assert text_slices.split(text, sought) == text.split(sought)
    assert text_slices.count(text, sought) == text.count(sought)
    assert text_slices.replaced(text, sought, new) == text.replace(sought, new)
    pattern = re.compile(f"{sought}|(a)?b?")
    assert text_slices.substituted(pattern, lambda found: found[0] * 2, text) == pattern.sub(
        lambda f: f[0] * 2, text
    )


@given(st.lists(st.integers(0, 5)), st.booleans())
def test_values_are_ordered_as_in_one_go(values: list[int], is_descending: bool) -> None:
    pairs = list(enumerate(values))
    by_value: Callable[[tuple[int, int]], int] = lambda pair: pair[1]  # noqa: E731
    expected = sorted(pairs, key=by_value, reverse=is_descending)
    assert text_slices.ordered(pairs, by_value, is_descending=is_descending) == expected


@given(LETTERS, LETTERS, st.booleans())
def test_like_matches_what_a_backtracking_expression_matches(text: str, pattern: str, is_short: bool) -> None:
    expected, needs_more = _by_expression(pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tenure.expr.functions.like.SHORT_CHARS_MAX", 4096 if is_short else -1)
        if needs_more and expected.fullmatch(text):
            with pytest.raises(InvalidEscape):
                like(text, pattern)
        else:
            assert like(text, pattern) == (not needs_more and expected.fullmatch(text) is not None)


def _by_expression(pattern: str) -> tuple[re.Pattern[str], bool]:
    """The pattern as an expression; if an escape ends it, as one of what comes before and more text."""
    pieces = re.findall(r"\\.|\\$|[^\\]", pattern, re.DOTALL)
    needs_more = bool(pieces) and pieces[-1] == "\\"
    signs = {"%": ".*", "_": "."}
    made = [signs.get(each, re.escape(each[-1])) for each in (pieces[:-1] if needs_more else pieces)]
    return re.compile("".join(made) + ("..*" if needs_more else ""), re.DOTALL), needs_more


@given(LETTERS, st.text("ab é", max_size=5), st.booleans())
def test_trimming_is_pythons(text: str, letters: str, is_many: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_functions, "LETTERS_MAX", 0 if is_many else 256)
        strip = text_functions._strip
        assert strip(text, letters, left=True, right=True) == (text.strip(letters) if letters else text)
        assert strip(text, letters, left=True, right=False) == (text.lstrip(letters) if letters else text)
        raw, unwanted = text.encode(), letters.encode()
        assert strip(raw, unwanted, left=False, right=True) == (raw.rstrip(unwanted) if letters else raw)


@given(LETTERS, st.text("ab,", max_size=2), st.integers(-5, 5).filter(bool))
def test_a_part_is_the_one_that_a_split_gives(text: str, separator: str, field: int) -> None:
    parts = text.split(separator) if separator else [text]
    at = field - 1 if field > 0 else len(parts) + field
    expected = parts[at] if 0 <= at < len(parts) else ""
    assert text_functions._split_part(text, separator, field) == expected


@given(LETTERS, LETTERS, LETTERS)
def test_letters_are_translated_by_the_first_that_is_named(text: str, sought: str, new: str) -> None:
    def one(letter: str) -> str:
        at = sought.find(letter)
        return letter if at < 0 else new[at : at + 1]

    assert text_functions._translate(text, sought, new) == "".join(map(one, text))


@given(st.text("0aF \n\tg", max_size=30))
def test_hexadecimal_digits_are_pairs_with_spaces_between(digits: str) -> None:
    if re.fullmatch(r"(?:[ \n\t]*[0-9aF]{2})*[ \n\t]*", digits):
        assert strings.bytes_from_hex(digits) == bytes.fromhex(digits)
    else:
        with pytest.raises(InvalidParameter):
            strings.bytes_from_hex(digits)


@given(st.text("ae\u0301\u0323éà \u1100\u1161한日", max_size=40), st.sampled_from(normal_forms.FORMS))
def test_normal_forms_are_unicodes(text: str, form: normal_forms.Form) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal_forms, "MARKS_MAX", 6)
        with suppress(LimitExceeded):
            assert normal_forms._normalized(text, form) == normalize(form, text)


# Arrays and JSON

ELEMENTS = st.lists(st.none() | st.text('ab ,"\\{}NULL', max_size=12), max_size=8)


@given(ELEMENTS)
def test_arrays_are_read_as_they_were_written(elements: list[str | None]) -> None:
    kind = type_of(parse_type_name("text[]"))
    assert kind.parse(kind.render(tuple(elements))) == tuple(elements)


@given(st.lists(st.integers(-99, 99), min_size=1))
def test_plain_arrays_are_cut_at_their_commas(numbers: list[int]) -> None:
    kind = type_of(parse_type_name("int4[]"))
    assert kind.parse(kind.render(tuple(numbers))) == tuple(numbers)


SCALARS = st.none() | st.booleans() | st.integers() | st.text('a"\\\n,]}é😀', max_size=9)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text('ab"\\,', max_size=4), inner, max_size=5)
    ),
    max_leaves=25,
)
DECODERS = (json.JSONDecoder(), json.JSONDecoder(object_pairs_hook=object_of))


@given(VALUES, st.booleans(), st.sampled_from([None, 1]), st.sampled_from(DECODERS))
def test_json_is_read_as_in_one_go(
    value: object, is_ascii: bool, indent: int | None, decoder: json.JSONDecoder
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    assert Reader(decoder).read(text) == decoder.decode(text)
    assert value_end(text, 0) == len(text)


@given(VALUES, st.integers(0, 200), st.sampled_from(["", ",", "]", "}", '"', "1", ":", "\\"]))
def test_what_is_no_json_is_refused_as_in_one_go(value: object, at: int, sign: str) -> None:
    text = json.dumps(value)
    at = min(at, len(text))
    broken = text[:at] + sign + text[at + 1 :]
    try:
        expected = DECODERS[0].decode(broken)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 its words are for nobody
            Reader(DECODERS[0]).read(broken)
    else:
        assert Reader(DECODERS[0]).read(broken) == expected


class _Stopped(Exception):
    pass


def _stop() -> None:
    raise _Stopped


@pytest.mark.parametrize(
    "call",
    [
        lambda: text_slices.split("a," * 20, ","),
        lambda: like("a" * 9000, "_a" * 4000 + "%b%"),
        lambda: Reader(DECODERS[0]).read(json.dumps(list(range(50)))),
        lambda: type_of(parse_type_name("int4[]")).parse("{" + "1," * 5000 + "1}"),
    ],
)
def test_a_check_that_raises_ends_the_work(call: Callable[[], object]) -> None:
    with checked_by(_stop), pytest.raises(_Stopped):
        call()


def test_days_are_found_behind_any_number_of_separators() -> None:
    separators = "," * (3 * time_fields.MATCHED_LENGTH)
    read = time_fields.cut(f"{separators}2024-02-29{separators} 12:00{separators}", 129)
    assert [each.text for each in read] == ["2024-02-29", "12:00"]


@pytest.mark.parametrize("letter", ["1", "x", "-", ":"])
def test_a_field_that_is_too_long_is_refused(letter: str) -> None:
    with pytest.raises(time_fields.BadFormat):
        time_fields.cut("1" + letter * (3 * time_fields.MATCHED_LENGTH), 129)


@pytest.mark.parametrize("text", ["t" * 9, "off ".ljust(9, "f"), "yess", "İ"])
def test_a_word_that_is_longer_than_a_boolean_is_none(text: str) -> None:
    with pytest.raises(InvalidText):
        type_of(TypeRef("bool")).parse(text)


def test_names_are_read_as_far_as_postgres_reads_them() -> None:
    """A name as long as a value can be costs nothing, and no error repeats it."""
    long = "x" * 1_000_000
    with pytest.raises(InvalidParameter) as zone:
        zone_named(long)
    assert str(zone.value) == f'time zone "{"x" * 255}" not recognized'
    with pytest.raises(InvalidParameter) as encoding:
        encoding_named(long)
    assert str(encoding.value) == f'invalid encoding name "{"x" * 63}"'
    with pytest.raises(InvalidParameter) as unit:
        time_parts._unit(long, "interval")
    assert str(unit.value) == f'unit "{"x" * 63}" not recognized for type interval'


def test_a_large_bytea_is_rendered_after_a_check_and_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    charged: list[int] = []
    monkeypatch.setattr(strings, "charge_value", charged.append)
    asked: list[str] = []
    value = bytes(LARGE_BYTES + 1)
    with checked_by(lambda: asked.append("asked")):
        assert len(type_of(parse_type_name("bytea")).render(value)) == 2 * len(value) + 2
        type_of(parse_type_name("bytea")).render(b"short")
    assert (asked, charged) == (["asked"], [2 * len(value)])
