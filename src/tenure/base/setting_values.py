"""Settings: typed values with names, defaults and limits.

A `Setting[T]` is a definition and at the same time the key to its value, so a type checker knows that
`settings[MAX_OFFSET]` is a float. A `Settings` is a frozen mapping over a tuple of definitions; it holds what
differs from the defaults, and a change makes a new one. There is no registry: the caller that makes a
`Settings` hands the definitions in.

Text is the form in which settings are stored, set and shown. Durations are seconds, written
with the greatest unit that leaves a whole number: 40s, 500ms, 5m, 14d; a plain number is seconds.

Invariant (settings-limits): a `Settings` never holds a value outside its setting's limits, regardless of the
source of the value, and parsing a rendered value gives that value (durations: to the microsecond).

Walk: `composition.cluster_layer` makes a `Settings` from the command line; `base.settings` defines settings.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, TypeAlias, TypeVar

from tenure.base.errors import InvalidParameter
from tenure.base.setting_kinds import SettingKind

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Setting(Generic[T]):
    name: str
    kind: SettingKind[T]
    default: T
    description: str
    lower: T | None = None
    upper: T | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        self.check(self.default)

    def parse(self, text: str) -> T:
        try:
            value = self.kind.parse(text)
        except ValueError as error:
            raise InvalidParameter(
                f'setting "{self.name}" takes {self.kind.name}, not "{text}"', hint=self.description
            ) from error
        return self.check(value)

    def render(self, value: T) -> str:
        return self.kind.render(value)

    def check(self, value: T) -> T:
        """Returns the value, as the setting's own type, if it lies within the limits."""
        typed = self._typed(value)
        if self._is_beyond(typed):
            raise InvalidParameter(
                f'setting "{self.name}" must be {self.limits()}, not {self._shown(typed)}',
                hint=self.description,
            )
        return typed

    def limits(self) -> str:
        lower, upper = self._bounds()
        if lower is not None and upper is not None:
            return f"between {self._shown(lower)} and {self._shown(upper)}"
        if lower is not None:
            return f"at least {self._shown(lower)}"
        return "finite" if upper is None else f"at most {self._shown(upper)}"

    def _bounds(self) -> tuple[T | None, T | None]:
        lower = self.kind.lower if self.lower is None else self.lower
        upper = self.kind.upper if self.upper is None else self.upper
        return lower, upper

    def _typed(self, value: Any) -> T:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if self.kind.python_type is float and is_whole:
            value = float(value)
        if type(value) is not self.kind.python_type:
            raise InvalidParameter(f'setting "{self.name}" takes {self.kind.name}, not {value!r}')
        typed: T = value
        return typed

    def _is_beyond(self, value: Any) -> bool:
        if isinstance(value, float) and not math.isfinite(value):
            return True
        lower: Any
        upper: Any
        lower, upper = self._bounds()
        return (lower is not None and value < lower) or (upper is not None and value > upper)

    def _shown(self, value: T) -> str:
        return f"{self.render(value)} {self.unit}".rstrip()


AnySetting: TypeAlias = Setting[Any]


class Settings(Mapping[AnySetting, Any]):
    """The values of a tuple of settings; frozen."""

    __slots__ = ("_by_name", "_changed", "definitions")

    def __init__(
        self, definitions: Iterable[AnySetting], changed: Mapping[AnySetting, Any] | None = None
    ) -> None:
        self.definitions = tuple(definitions)
        self._by_name = {setting.name: setting for setting in self.definitions}
        assert len(self._by_name) == len(self.definitions), "two settings have one name"
        values = changed or {}
        self._changed = {setting: self.named(setting.name).check(values[setting]) for setting in values}

    @classmethod
    def parse(cls, definitions: Iterable[AnySetting], texts: Mapping[str, str]) -> "Settings":
        """Parses name and value pairs as they are stored or written on a command line."""
        settings = cls(definitions)
        for name, text in texts.items():
            settings = settings.with_text(name, text)
        return settings

    def __getitem__(self, setting: Setting[T]) -> T:
        """Returns the setting's value; raises KeyError for one that is not among the definitions."""
        value: T = self._changed.get(setting, setting.default)
        if self._by_name.get(setting.name) is not setting:
            raise KeyError(setting.name)
        return value

    def __iter__(self) -> Iterator[AnySetting]:
        return iter(self.definitions)

    def __len__(self) -> int:
        return len(self.definitions)

    def named(self, name: str) -> AnySetting:
        setting = self._by_name.get(name)
        if setting is None:
            close = get_close_matches(name, self._by_name, n=1)
            hint = f'Perhaps you meant "{close[0]}".' if close else ""
            raise InvalidParameter(f'setting "{name}" does not exist', hint=hint)
        return setting

    def with_value(self, setting: Setting[T], value: T) -> "Settings":
        return Settings(self.definitions, {**self._changed, setting: value})

    def with_text(self, name: str, text: str) -> "Settings":
        setting = self.named(name)
        return self.with_value(setting, setting.parse(text))

    def without(self, name: str) -> "Settings":
        """Puts a setting back to its default."""
        setting = self.named(name)
        return Settings(self.definitions, {s: v for s, v in self._changed.items() if s is not setting})

    def text(self, name: str) -> str:
        setting = self.named(name)
        return setting.render(self[setting])
