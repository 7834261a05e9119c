"""Functions of regular expressions: ~, regexp_replace, regexp_match, substring, SIMILAR TO.

Walk: `expr.function_table` and `expr.set_function_table` list these; `expr.patterns.regex` matches.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from tenure.base.errors import InvalidEscape, InvalidParameter, NotSupported
from tenure.base.interruptible import paced
from tenure.base.memory import LARGE_BYTES
from tenure.expr.functions.function import Function, function
from tenure.expr.functions.set_function import SetFunction
from tenure.expr.patterns.regex import Regex, compile_regex
from tenure.expr.patterns.regex_syntax import RegexOptions, read_flags
from tenure.expr.types.datatype import Datum
from tenure.expr.types.text_slices import substituted
from tenure.expr.types.value_lengths import check_length

_EXACT, _FOLDED = RegexOptions(), RegexOptions(ignores_case=True)


def functions() -> Iterator[Function]:
    for family in ("text", "char"):
        pair = f"{family}, text -> bool"
        for sign, options in (("~", _EXACT), ("~*", _FOLDED)):
            yield function(sign, pair, partial(_is_in, options))
            yield function(f"!{sign}", pair, partial(_is_not_in, options))
    yield function("regexp_like", "text, text -> bool", _like)
    yield function("regexp_like", "text, text, text -> bool", _like)
    yield from _of_many("regexp_count", "int4", _count, ["text", "text", "int4", "text"], least=2)
    yield from _of_many("regexp_match", "text[]", _match, ["text", "text", "text"], least=2)
    instr = ["text", "text", "int4", "int4", "int4", "text", "int4"]
    yield from _of_many("regexp_instr", "int4", _instr, instr, least=2)
    substr = ["text", "text", "int4", "int4", "text", "int4"]
    yield from _of_many("regexp_substr", "text", _substr, substr, least=2)
    yield from _of_many("regexp_replace", "text", _replace, ["text"] * 4, least=3)
    places = ["text", "text", "text", "int4", "int4", "text"]
    yield from _of_many("regexp_replace", "text", _replace_from, places, least=4)
    yield from _of_many("regexp_split_to_array", "text[]", _split, ["text"] * 3, least=2)
    yield function("substring", "text, text -> text", _substring)
    yield function("substring", "text, text, text -> text", _similar_substring)
    yield Function("similar_to_escape", ("text",), "text", similar_to_escape)
    yield Function("similar_to_escape", ("text", "text"), "text", similar_to_escape)


def _of_many(name: str, result: str, run: Any, families: list[str], *, least: int) -> Iterator[Function]:
    """One overload for each number of arguments from `least` on."""
    for count in range(least, len(families) + 1):
        yield Function(name, tuple(families[:count]), result, run)


def set_functions() -> Iterator[SetFunction]:
    for arguments in (("text", "text"), ("text", "text", "text")):
        yield SetFunction("regexp_matches", arguments, (("regexp_matches", "text[]"),), _all_matches)
        split = (("regexp_split_to_table", "text"),)
        yield SetFunction("regexp_split_to_table", arguments, split, _split_rows)


def _is_in(options: RegexOptions, text: str, pattern: str) -> bool:
    return compile_regex(pattern, options).is_in(text)


def _is_not_in(options: RegexOptions, text: str, pattern: str) -> bool:
    return not compile_regex(pattern, options).is_in(text)


def _regex(name: str, pattern: str, flags: str) -> Regex:
    """Where g makes no sense, it is refused."""
    options = read_flags(flags)
    if options.is_global:
        raise InvalidParameter(f'{name}() does not support the "global" option')
    return compile_regex(pattern, options)


def _like(text: str, pattern: str, flags: str = "") -> bool:
    return _regex("regexp_like", pattern, flags).is_in(text)


def _check_positive(value: int, name: str) -> int:
    if value <= 0:
        raise InvalidParameter(f'invalid value for parameter "{name}": {value}')
    return value


def _count(text: str, pattern: str, start: int = 1, flags: str = "") -> int:
    _check_positive(start, "start")
    regex = _regex("regexp_count", pattern, flags)
    return sum(1 for _ in regex.matches(text, start - 1, wants_groups=False))


def _captured(regex: Regex, found: Any) -> tuple[str | None, ...]:
    return tuple(found.group(at) for at in range(1, regex.groups + 1)) or (found.group(),)


def _match(text: str, pattern: str, flags: str = "") -> Datum:
    regex = _regex("regexp_match", pattern, flags)
    found = regex.search(text)
    return None if found is None else _captured(regex, found)


def _all_matches(text: str, pattern: str, flags: str = "") -> Iterator[tuple[Datum]]:
    options = read_flags(flags)
    regex = compile_regex(pattern, options)
    for found in regex.matches(text):
        yield (_captured(regex, found),)
        if not options.is_global:
            return


def _nth(regex: Regex, text: str, start: int, number: int) -> Any:
    return next((found for at, found in enumerate(regex.matches(text, start - 1), 1) if at == number), None)


def _instr(
    text: str, pattern: str, start: int = 1, number: int = 1, end: int = 0, flags: str = "", part: int = 0
) -> int:
    _check_positive(start, "start")
    _check_positive(number, "n")
    if end not in (0, 1):
        raise InvalidParameter(f'invalid value for parameter "endoption": {end}')
    if part < 0:
        raise InvalidParameter(f'invalid value for parameter "subexpr": {part}')
    regex = _regex("regexp_instr", pattern, flags)
    found = _nth(regex, text, start, number)
    part = _group(regex, part)
    if found is None or part > regex.groups or found.group(part) is None:
        return 0
    return int(found.end(part) if end else found.start(part)) + 1


def _substr(
    text: str, pattern: str, start: int = 1, number: int = 1, flags: str = "", part: int = 0
) -> str | None:
    _check_positive(start, "start")
    _check_positive(number, "n")
    if part < 0:
        raise InvalidParameter(f'invalid value for parameter "subexpr": {part}')
    regex = _regex("regexp_substr", pattern, flags)
    found = _nth(regex, text, start, number)
    part = _group(regex, part)
    if found is None or part > regex.groups:
        return None
    matched: str | None = found.group(part)
    return matched


def _group(regex: Regex, part: int) -> int:
    """Without groups, the whole match counts as the first group."""
    return 0 if part == 1 and not regex.groups else part


def _substring(text: str, pattern: str) -> str | None:
    """The first group, or the whole match if there is none."""
    regex = compile_regex(pattern, _EXACT)
    found = regex.search(text)
    if found is None:
        return None
    matched: str | None = found.group(1 if regex.groups else 0)
    return matched


def _similar_substring(text: str, pattern: str, escape: str) -> str | None:
    return _substring(text, similar_to_escape(pattern, escape))


# Replacing

_REFERENCE = re.compile(r"\\([0-9&\\])")


def _replace(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    if flags[:1].isdigit():
        raise InvalidParameter(f'invalid regular expression option: "{flags[0]}"')
    options = read_flags(flags)
    return _replaced(compile_regex(pattern, options), text, replacement, 1, 0 if options.is_global else 1)


def _replace_from(
    text: str, pattern: str, replacement: str, start: int, number: int = 1, flags: str = ""
) -> str:
    _check_positive(start, "start")
    if number < 0:
        raise InvalidParameter(f'invalid value for parameter "n": {number}')
    options = read_flags(flags)
    return _replaced(compile_regex(pattern, options), text, replacement, start, number)


def _replaced(regex: Regex, text: str, replacement: str, start: int, number: int) -> str:
    """The match of this number, or all if it is 0."""
    pieces: list[str] = []
    done = size = 0
    room = LARGE_BYTES
    wants_groups = "\\" in replacement
    for at, found in enumerate(regex.matches(text, start - 1, wants_groups=wants_groups), 1):
        if number not in (0, at):
            continue
        pieces += [text[done : found.start()], _filled(replacement, found, regex.groups)]
        size += found.start() - done + len(pieces[-1])
        if size > room:
            check_length(size)
            room = size + LARGE_BYTES  # checking the memory costs a system call
            pieces = ["".join(pieces)]
        done = found.end()
        if number:
            break
    return "".join(pieces) + text[done:]


def _filled(replacement: str, found: Any, groups: int) -> str:
    def part(reference: re.Match[str]) -> str:
        mark = reference.group(1)
        if mark == "\\":
            return "\\"
        number = 0 if mark in ("&", "0") else int(mark)
        if mark == "0":
            return reference.group()
        return (found.group(number) or "") if number <= groups else ""

    return substituted(_REFERENCE, part, replacement) if "\\" in replacement else replacement


# Splitting


def _split(text: str, pattern: str, flags: str = "") -> Datum:
    regex = _regex("regexp_split_to_array", pattern, flags)
    pieces: list[str] = []
    last = 0
    for found in regex.matches(text, wants_groups=False):
        # An empty match at the start, at the end or right after another one divides nothing.
        if found.start() == found.end() and found.start() in (last, len(text)):
            continue
        pieces.append(text[last : found.start()])
        last = found.end()
    return (*pieces, text[last:])


def _split_rows(text: str, pattern: str, flags: str = "") -> Iterator[tuple[str]]:
    return ((each,) for each in _split(text, pattern, flags))


# SIMILAR TO


def similar_to_escape(pattern: str, escape: str = "\\") -> str:
    """A pattern of SIMILAR TO as a regular expression of PostgreSQL's."""
    if len(escape) > 1:
        raise InvalidEscape("invalid escape string: it must be empty or one character")
    pieces: list[str] = []
    is_in_bracket = is_after_escape = False
    for each in paced(pattern):
        if is_after_escape:
            if each == '"' and not is_in_bracket:
                raise NotSupported("separators in the pattern of SIMILAR TO are not supported")
            pieces.append("\\" + each)
            is_after_escape = False
        elif each == escape:
            is_after_escape = True
        elif is_in_bracket:
            pieces.append("\\\\" if each == "\\" else each)
            is_in_bracket = each != "]"
        else:
            is_in_bracket = each == "["
            pieces.append(_SIMILAR.get(each, each))
    return "^(?:" + "".join(pieces) + ")$"


_SIMILAR = {"%": ".*", "_": ".", "(": "(?:", "\\": "\\\\", ".": "\\.", "^": "\\^", "$": "\\$"}
