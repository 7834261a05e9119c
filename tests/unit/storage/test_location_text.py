"""What locations' texts mean, and what of them is shown."""

import fnmatch
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.base.errors import InvalidParameter
from tenure.storage.location_text import LocationText, Pattern, Wild, escaped, parse, redacted

NAMES = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="/\\"),
    min_size=1,
    max_size=20,
)


def parts(text: str) -> tuple[str | Pattern, ...]:
    return parse(text).parts


def pattern(text: str) -> Pattern:
    (part,) = parts(text)
    assert isinstance(part, Pattern)
    return part


def test_a_relative_path() -> None:
    assert parse("data/a.csv") == LocationText("file", "", False, ("data", "a.csv"), {}, "data/a.csv")


@pytest.mark.parametrize("text", ["/x/a", "file:///x/a", "FILE://localhost/x/a", "/x/a/"])
def test_absolute_paths(text: str) -> None:
    parsed = parse(text)
    assert (parsed.scheme, parsed.is_absolute, parsed.parts) == ("file", True, ("x", "a"))


def test_a_place_in_an_object_store() -> None:
    parsed = parse(
        "s3://buck.et-1/a/b?AWS_ACCESS_KEY_ID=AK&AWS_SECRET_ACCESS_KEY=a%2Fb+c/d=&AWS_REGION=eu-west-1"
    )
    assert (parsed.scheme, parsed.bucket, parsed.parts) == ("s3", "buck.et-1", ("a", "b"))
    assert parsed.options == {
        "AWS_ACCESS_KEY_ID": "AK",
        "AWS_SECRET_ACCESS_KEY": "a/b+c/d=",
        "AWS_REGION": "eu-west-1",
    }


def test_wildcards_and_parameters_live_together() -> None:
    parsed = parse("s3://bucket/part-??.csv?AUTH=implicit")
    assert parsed.parts == (Pattern((*"part-", Wild.ONE, Wild.ONE, *".csv")),)
    assert parsed.options == {"AUTH": "implicit"}


def test_escapes_are_read_once() -> None:
    assert parts("a%20b/%2525/%C3%A9") == ("a b", "%25", "é")


@pytest.mark.invariant("S20")
def test_a_star_that_is_written_as_an_escape_is_a_star() -> None:
    assert parts("f%2A") == ("f*",)
    assert parts("%3F%23%25%3A") == ("?#%:",)


@pytest.mark.invariant("S20")
def test_a_pattern_with_an_escaped_star_matches_that_star() -> None:
    assert pattern("f%2A*").matches("f*oo")
    assert not pattern("f%2A*").matches("foo")


@given(NAMES)
@pytest.mark.invariant("S20")
def test_an_escaped_name_means_that_name_alone(name: str) -> None:
    assume(name not in (".", ".."))
    assert parts(escaped(name)) == (name,)
    assert re.fullmatch(r"[A-Za-z0-9_.%-]+", escaped(name))


@given(st.text("ab.*?", max_size=12), st.text("ab.", max_size=12))
def test_patterns_match_what_fnmatch_matches(text: str, name: str) -> None:
    assume({"*", "?"} & set(text) and "**" not in text)
    assume(name and (text.startswith(".") or not name.startswith(".")))
    assert pattern(text).matches(name) == fnmatch.fnmatchcase(name, text)


def test_wildcards_do_not_match_hidden_files() -> None:
    assert not pattern("*").matches(".hidden")
    assert not pattern("?a").matches(".a")
    assert pattern(".*").matches(".hidden")


def test_a_pattern_of_many_stars_is_not_slow() -> None:
    assert not pattern("*a" * 100 + "b").matches("a" * 255)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x" * 4097,
        "../a",
        "a/../b",
        "a/..",
        "./a",
        "a//b",
        "//a",
        "%2e%2e/a",
        "%2E%2E%2Fa",
        "a%2fb",
        "a%5Cb",
        "..\\a",
        "a\0b",
        "a%00b",
        "a\nb",
        "a%0Ab",
        "a%7Fb",
        "a\u2028b",
        "a%",
        "a%zz",
        "a%ff",
        "a#b",
        "a/**",
        "x" * 256,
        "é" * 128,
        "/".join("a" * 65),
        "/".join(["x" * 250] * 5),
        "file:a",
        "file://host/a",
        "file://a",
        "http://host/a",
        "https://user:secret@host/a",
        "nodelocal://1/a",
        "data:text/plain,a",
        "C:/a",
        "a:b",
        "s3:bucket/a",
        "s3:///a",
        "s3://B/a",
        "s3://key:secret@bucket/a",
        "s3://bucket:80/a",
        "s3://a..b/a",
        "s3://bucket/../other/a",
        "s3://bucket/a?AWS_UNKNOWN=1",
        "s3://bucket/a?aws_access_key_id=1",
        "s3://bucket/a?AWS_REGION=a&AWS_REGION=b",
        "s3://bucket/a?AWS_REGION=",
        "s3://bucket/a?AWS_REGION=a%0Ab",
        "s3://bucket/a#b?AWS_REGION=a",
        "s3://bucket/a&AWS_REGION=a",
    ],
)
def test_what_is_no_location_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse(text)
    assert caught.value.sqlstate == "22023"
    assert all(character.isprintable() for character in str(caught.value))
    assert len(str(caught.value)) < 5000


CANARY = "CANARYsecret"


@pytest.mark.invariant("S24-locations")
@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a?AWS_ACCESS_KEY_ID={}&AWS_SECRET_ACCESS_KEY={}&AWS_SESSION_TOKEN={}&AWS_REGION=eu",
        "s3://bucket/p-??.csv?AWS_SECRET_ACCESS_KEY={}",
        "s3://bucket/a?aws_secret_access_key={}",
        "s3://bucket/a?AWS_SECRET={}",
        "s3://bucket/a?={}",
        "s3://bucket/a? AWS_SECRET_ACCESS_KEY={}",
        "s3://bucket/a&AWS_SECRET_ACCESS_KEY={}",
        "s3://bucket/aAWS_SECRET_ACCESS_KEY={}%0A",
        "s3://key:{}@bucket/a",
        "s3://BAD_BUCKET/a?AWS_SECRET_ACCESS_KEY={}",
        "s3://bucket/../a?AWS_SECRET_ACCESS_KEY={}",
        "s3://bucket/a\n?AWS_SECRET_ACCESS_KEY={}",
        "s3://bucket/a?AWS_SECRET_ACCESS_KEY={}%",
        "s3://bucket/a?AWS_SECRET_ACCESS_KEY={}\u00e9",
        "s3://bucket/a?AUTH=x&AWS_SECRET_ACCESS_KEY={}&AWS_SECRET_ACCESS_KEY={}",
        "https://key:{}@host/a?token={}",
        "gs://bucket/a?CREDENTIALS={}",
    ],
)
def test_secrets_are_not_shown(text: str) -> None:
    text = text.replace("{}", CANARY)
    assert CANARY not in redacted(text)
    try:
        shown = parse(text).shown
    except InvalidParameter as error:
        shown = str(error) + error.hint + error.detail
    assert CANARY not in shown


def test_what_is_shown_of_an_object_store_says_where_it_is() -> None:
    text = "s3://bucket/p-??.csv?AWS_ACCESS_KEY_ID=k&AWS_SECRET_ACCESS_KEY=s&AWS_REGION=eu"
    assert parse(text).shown == (
        "s3://bucket/p-??.csv?AWS_ACCESS_KEY_ID=redacted&AWS_SECRET_ACCESS_KEY=redacted&AWS_REGION=eu"
    )
