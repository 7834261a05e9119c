import math
from typing import Any, assert_type

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import InvalidParameter
from tenure.base.setting_kinds import BOOL, DURATION, FLOAT, INT, TEXT, parse_duration, render_duration
from tenure.base.settings import ATTEMPTS, DEFINITIONS, MAX_BYTES, MAX_OFFSET, Setting, Settings
from tests.unit.base.changed_settings import changed_texts

FLAG = Setting("test.flag", BOOL, False, "A flag.")
COUNT = Setting("test.count", INT, 3, "A count.", lower=0)
SHARE = Setting("test.share", FLOAT, 0.5, "A share.", upper=1.0)
RATIO = Setting("test.ratio", FLOAT, 1.0, "A ratio without limits.")
LABEL = Setting("test.label", TEXT, "", "A label.")
WAIT = Setting("test.wait", DURATION, 1.0, "A wait.")
EVERY_KIND: tuple[Setting[Any], ...] = (FLAG, COUNT, SHARE, RATIO, LABEL, WAIT)


def test_settings_start_with_their_defaults() -> None:
    settings = Settings(DEFINITIONS)
    assert settings[MAX_OFFSET] == 0.5
    assert settings.text("clock.max_offset") == "500ms"
    assert changed_texts(settings) == {}


def test_a_setting_is_the_typed_key_of_its_value() -> None:
    settings = Settings(DEFINITIONS)
    assert_type(settings[MAX_OFFSET], float)
    assert_type(settings[MAX_BYTES], int)
    assert type(settings[MAX_BYTES]) is int


def test_settings_are_a_mapping_over_all_definitions() -> None:
    settings = Settings(DEFINITIONS)
    assert list(settings) == list(DEFINITIONS)
    assert len(settings) == len(DEFINITIONS)
    assert MAX_OFFSET in settings
    assert FLAG not in settings
    assert dict(settings)[ATTEMPTS] == ATTEMPTS.default


def test_a_setting_outside_the_definitions_has_no_value() -> None:
    with pytest.raises(KeyError, match=r"test\.flag"):
        Settings(DEFINITIONS)[FLAG]


def test_a_change_makes_new_settings_and_leaves_the_old() -> None:
    before = Settings(DEFINITIONS)
    after = before.with_value(ATTEMPTS, 7)
    assert (before[ATTEMPTS], after[ATTEMPTS]) == (20, 7)
    assert after.without("kv.transaction.attempts") == before


def test_settings_are_read_from_stored_texts() -> None:
    settings = Settings.parse(DEFINITIONS, {"clock.max_offset": "250ms", "kv.transaction.attempts": " 5 "})
    assert settings[MAX_OFFSET] == 0.25
    assert changed_texts(settings) == {"clock.max_offset": "250ms", "kv.transaction.attempts": "5"}


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(InvalidParameter, match=r'setting "clock\.max_ofset" does not exist') as caught:
        Settings(DEFINITIONS).with_text("clock.max_ofset", "1s")
    assert caught.value.hint == 'Perhaps you meant "clock.max_offset".'


def test_an_unknown_name_far_from_all_others_gets_no_hint() -> None:
    with pytest.raises(InvalidParameter) as caught:
        Settings(DEFINITIONS).text("zzz")
    assert caught.value.hint == ""


@pytest.mark.invariant("settings-limits")
def test_a_value_out_of_limits_is_refused_by_name_value_and_limits() -> None:
    with pytest.raises(InvalidParameter) as caught:
        Settings(DEFINITIONS).with_text("clock.max_offset", "20s")
    assert str(caught.value) == 'setting "clock.max_offset" must be between 50ms and 10s, not 20s'
    assert caught.value.sqlstate == "22023"
    assert caught.value.hint == MAX_OFFSET.description


def test_limits_are_shown_with_their_unit() -> None:
    with pytest.raises(InvalidParameter, match=r"between 65536 bytes and 1073741824 bytes, not 1 bytes"):
        Settings(DEFINITIONS).with_value(MAX_BYTES, 1)


@pytest.mark.invariant("settings-limits")
@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        (COUNT, -1, "must be at least 0, not -1"),
        (SHARE, 1.5, "must be at most 1.0, not 1.5"),
        (RATIO, math.nan, "must be finite, not nan"),
        (RATIO, math.inf, "must be finite, not inf"),
        (WAIT, -1.0, "must be between 0s and 36500d, not -1s"),
        (WAIT, math.nan, "must be between 0s and 36500d, not nans"),
        (COUNT, True, "takes a whole number, not True"),
        (COUNT, 1.5, "takes a whole number, not 1.5"),
        (FLAG, 1, "takes on or off, not 1"),
        (LABEL, None, "takes text, not None"),
    ],
)
def test_a_wrong_value_is_refused_when_given_directly(
    setting: Setting[Any], value: Any, message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Settings(EVERY_KIND).with_value(setting, value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test.flag", "maybe"),
        ("test.count", "1.5"),
        ("test.count", "1_000"),
        ("test.count", "٣"),
        ("test.count", "9" * 5000),
        ("test.share", "nan"),
        ("test.share", ""),
        ("test.wait", "5 weeks"),
        ("test.wait", "-5s"),
        ("test.wait", "1e3"),
    ],
)
def test_text_of_the_wrong_type_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidParameter, match=f'setting "{name}" takes '):
        Settings(EVERY_KIND).with_text(name, text)


def test_a_default_outside_its_limits_cannot_be_defined() -> None:
    with pytest.raises(InvalidParameter, match=r'"test\.bad" must be at least 1'):
        Setting("test.bad", INT, 0, "A mistake.", lower=1)


def test_a_whole_number_serves_where_a_float_is_wanted() -> None:
    value = Settings(EVERY_KIND).with_value(WAIT, 2)[WAIT]
    assert value == 2.0
    assert type(value) is float


@pytest.mark.parametrize(
    ("text", "value"),
    [("on", True), ("TRUE", True), ("yes", True), ("1", True), ("off", False), (" no ", False), ("0", False)],
)
def test_booleans_are_read_as_people_write_them(text: str, value: bool) -> None:
    assert Settings(EVERY_KIND).with_text("test.flag", text)[FLAG] is value


@pytest.mark.parametrize(
    ("text", "seconds", "shown"),
    [
        ("40s", 40.0, "40s"),
        ("500ms", 0.5, "500ms"),
        ("5m", 300.0, "5m"),
        ("5min", 300.0, "5m"),
        ("14d", 1_209_600.0, "14d"),
        ("36h", 129_600.0, "36h"),
        ("90", 90.0, "90s"),
        ("1.5", 1.5, "1500ms"),
        ("1.5 h", 5400.0, "90m"),
        ("7us", 0.000007, "7us"),
        ("0", 0.0, "0s"),
    ],
)
def test_durations_are_read_and_shown_with_units(text: str, seconds: float, shown: str) -> None:
    assert parse_duration(text) == seconds
    assert render_duration(seconds) == shown


VALUES: dict[Setting[Any], st.SearchStrategy[Any]] = {
    FLAG: st.booleans(),
    COUNT: st.integers(0, 10**29),
    SHARE: st.floats(max_value=1.0, allow_nan=False, allow_infinity=False),
    RATIO: st.floats(allow_nan=False, allow_infinity=False),
    LABEL: st.text(),
    WAIT: st.integers(0, 36500 * 86_400_000_000).map(lambda micros: micros / 1_000_000),
}


@pytest.mark.invariant("settings-limits")
@given(st.fixed_dictionaries({}, optional=VALUES))
def test_rendered_settings_are_read_back_the_same(values: dict[Setting[Any], Any]) -> None:
    settings = Settings(EVERY_KIND, values)
    texts = {each.name: settings.text(each.name) for each in values}
    assert Settings.parse(EVERY_KIND, texts) == settings


def test_every_definition_has_limits_and_one_sentence() -> None:
    for setting in DEFINITIONS:
        has_limits = setting.lower is not None and setting.upper is not None
        assert has_limits == (setting.kind.python_type in (int, float)), setting.name
        assert setting.description.endswith(".")
        assert setting.description.count(". ") == 0
