"""Kinds of settings: how values of a type are read and written, and how far they may go.

Durations are seconds, written with the greatest unit that leaves a whole number: 40s, 500ms, 5m, 14d; a plain
number is seconds. Lists are texts with commas; each member is checked when the list is set.

Walk: `base.settings` defines settings of these kinds.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SettingKind(Generic[T]):
    """A type of settings: how its values are parsed (ValueError if invalid) and rendered, and its widest
    limits.
    """

    name: str
    python_type: type[T]
    parse: Callable[[str], T]
    render: Callable[[T], str]
    lower: T | None = None
    upper: T | None = None


_TRUE, _FALSE = ("on", "true", "yes", "1"), ("off", "false", "no", "0")


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(text)


def _render_bool(value: bool) -> str:
    return "on" if value else "off"


_ISOLATION_LEVELS = ("serializable", "read committed")


def _parse_isolation(text: str) -> str:
    level = " ".join(text.lower().split())
    if level not in _ISOLATION_LEVELS:
        raise ValueError(text)
    return level


_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)


def _parse_int(text: str) -> int:
    if _WHOLE.fullmatch(text.strip()) is None:
        raise ValueError(text)
    return int(text)


def _parse_float(text: str) -> float:
    if _NUMBER.fullmatch(text.strip()) is None:
        raise ValueError(text)
    return float(text)


_UNIT_MICROS = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_DURATION_MAX_SECONDS = 100 * 365 * 86_400.0  # a float counts the microseconds of 285 years exactly
_DURATION = re.compile(r"(\d{1,16}(?:\.\d{1,9})?)\s*(d|h|m|min|s|ms|us)?", re.ASCII)


def parse_duration(text: str) -> float:
    """Returns seconds, to the microsecond. Raises ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f'"{text}" is not a duration: expected a number and one of {", ".join(_UNIT_MICROS)}'
        )
    unit = "m" if match[2] == "min" else match[2] or "s"
    micros = float(match[1]) * _UNIT_MICROS[unit]
    if not math.isfinite(micros):
        raise ValueError(f'"{text}" is too long for a duration')
    return round(micros) / 1_000_000


def render_duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return f"{seconds}s"
    micros = round(seconds * 1_000_000)
    if micros == 0:
        return "0s"
    unit = next(unit for unit, size in _UNIT_MICROS.items() if micros % size == 0)
    return f"{micros // _UNIT_MICROS[unit]}{unit}"


def parts_of(text: str) -> list[str]:
    """The members of a list in a text, which are separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def port_range(text: str) -> range:
    """Reads 443 or 8000-8999. Raises ValueError."""
    first, mark, last = text.partition("-")
    ports = range(_parse_int(first), _parse_int(last if mark else first) + 1)
    if not ports or ports[0] < 1 or ports[-1] > _PORT_MAX:
        raise ValueError(text)
    return ports


def _list_of(check: Callable[[str], object]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for part in parts_of(text):
            check(part)
        return ", ".join(parts_of(text))

    return parse


_PORT_MAX = 65_535

BOOL = SettingKind("on or off", bool, _parse_bool, _render_bool)
INT = SettingKind("a whole number", int, _parse_int, str)
FLOAT = SettingKind("a number", float, _parse_float, repr)
TEXT = SettingKind("text", str, str, str)
ISOLATION_LEVEL = SettingKind("serializable or read committed", str, _parse_isolation, str)
DURATION = SettingKind(
    "a duration such as 500ms, 40s, 5m or 14d",
    float,
    parse_duration,
    render_duration,
    lower=0.0,
    upper=_DURATION_MAX_SECONDS,
)
NETWORKS = SettingKind("networks such as 10.1.0.0/16, fd12::/48", str, _list_of(ip_network), str)
PORTS = SettingKind("ports such as 443, 8000-8999", str, _list_of(port_range), str)
NAMES = SettingKind("names, separated by commas", str, _list_of(str), str)
