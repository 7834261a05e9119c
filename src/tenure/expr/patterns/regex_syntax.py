"""PostgreSQL's regular expressions in the syntax of RE2, which matches in time linear in the text.

    \\d \\w \\s, [[:alpha:]]     the same, by Unicode's letters       \\y \\m \\M     word boundaries
    ^ $ .                      of the whole text, newlines included, unless the flag n says otherwise
    (?i)..., ***=...           options in front

Every construct is read here and written anew, so that nothing passes that means something else to
RE2. What it cannot do in linear time is refused (0A000): back references and lookaround.

Walk: `expr.patterns.regex` calls `translate`.
"""

import re
from typing import NamedTuple

from tenure.base.errors import InvalidParameter, InvalidRegex, NotSupported
from tenure.base.interruptible import STEPS_PER_CHECK, check_now

REPEAT_MAX = 255
"""PostgreSQL's DUPMAX."""
DEPTH_MAX = 100

_CLASSES = {
    "alpha": r"\p{L}\p{Nl}",
    "digit": "0-9",
    "alnum": r"\p{L}\p{Nl}0-9",
    "upper": r"\p{Lu}",
    "lower": r"\p{Ll}",
    "space": r" \t\n\r\f\v\x{85}\p{Z}",
    "blank": r" \t",
    "punct": r"\p{P}\p{S}",
    "cntrl": r"\p{Cc}",
    "graph": r"\p{L}\p{M}\p{N}\p{P}\p{S}",
    "print": r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}",
    "xdigit": "0-9A-Fa-f",
    "word": r"\p{L}\p{Nl}0-9_",
}
_SHORT = {"d": "digit", "s": "space", "w": "word"}
_LETTERS = {
    "a": "\a",
    "b": "\b",
    "B": "\\",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(,(\d*))?\})(\?)?")
_NUMBERED = re.compile(r"u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]+)")
_OPTIONS = "bceimnpqstwx"


class RegexOptions(NamedTuple):
    ignores_case: bool = False
    stops_at_newline: bool = False
    """. and [^x] match no newline."""
    anchors_at_lines: bool = False
    is_literal: bool = False
    is_expanded: bool = False
    is_global: bool = False


class Translated(NamedTuple):
    pattern: str
    is_shortest: bool
    """All quantifiers are non-greedy."""
    is_mixed: bool
    """Some quantifiers are greedy and some are not: PostgreSQL's rules for such patterns do not exist in
    RE2."""
    has_boundaries: bool
    """Word boundaries: RE2 knows them for ASCII only."""
    positions: int
    """The number of atoms: repeated ones count as often as they are repeated, letters in a row as one."""


def read_flags(flags: str) -> RegexOptions:
    """The last argument of the regexp_ functions. Raises InvalidParameter for a letter that is none."""
    options = RegexOptions()
    for each in flags:
        if each == "g":
            options = options._replace(is_global=True)
        elif each in _OPTIONS and each != "b":
            options = _with_option(options, each)
        else:
            raise InvalidParameter(f'invalid regular expression option: "{each}"')
    return options


def _with_option(options: RegexOptions, letter: str) -> RegexOptions:
    match letter:
        case "i":
            return options._replace(ignores_case=True)
        case "c":
            return options._replace(ignores_case=False)
        case "n" | "m":
            return options._replace(stops_at_newline=True, anchors_at_lines=True)
        case "p":
            return options._replace(stops_at_newline=True, anchors_at_lines=False)
        case "w":
            return options._replace(stops_at_newline=False, anchors_at_lines=True)
        case "s":
            return options._replace(stops_at_newline=False, anchors_at_lines=False)
        case "x":
            return options._replace(is_expanded=True)
        case "t":
            return options._replace(is_expanded=False)
        case "q":
            return options._replace(is_literal=True)
    return options


def translate(pattern: str, options: RegexOptions) -> Translated:
    pattern, options = _without_prefix(pattern, options)
    if options.is_literal:
        expression = "".join([literal(each) for each in pattern])
        return Translated(
            _cased(expression, options), is_shortest=False, is_mixed=False, has_boundaries=False, positions=1
        )
    reader = _Reader(pattern, options)
    expression = reader.alternatives(depth=0)
    if reader.at < len(pattern):
        raise InvalidRegex("parentheses () not balanced")
    kinds = reader.kinds
    return Translated(
        _cased(expression, options),
        is_shortest=kinds == {"short"} and not reader.has_alternatives,
        is_mixed="short" in kinds and (len(kinds) > 1 or reader.has_alternatives),
        has_boundaries=reader.has_boundaries,
        positions=reader.positions,
    )


def _cased(expression: str, options: RegexOptions) -> str:
    return f"(?i:{expression})" if options.ignores_case else expression


def _without_prefix(pattern: str, options: RegexOptions) -> tuple[str, RegexOptions]:
    if pattern.startswith("***="):
        return pattern[4:], options._replace(is_literal=True)
    if pattern.startswith("***:"):
        pattern = pattern[4:]
    elif pattern.startswith("***"):
        raise InvalidRegex("quantifier operand invalid")
    found = re.match(r"\(\?([a-z]+)\)", pattern)
    if found and not options.is_literal:
        for each in found.group(1):
            if each not in _OPTIONS:
                raise InvalidRegex("invalid embedded option")
            if each in "be":
                raise NotSupported("POSIX basic and extended regular expressions are not supported")
            options = _with_option(options, each)
        pattern = pattern[found.end() :]
    return pattern, options


def literal(character: str) -> str:
    if character.isascii() and not character.isalnum() and character != "_":
        return f"\\x{{{ord(character):x}}}"
    return character


_SIGNS = "([.^$\\*+?{"
"""Characters with a special meaning."""


def _times(quantifier: str) -> int:
    """How many copies of an atom the compiled program has."""
    return max([1, *(int(each) for each in re.findall(r"\d+", quantifier))])


class _Reader:
    def __init__(self, pattern: str, options: RegexOptions) -> None:
        self.pattern = pattern
        self.options = options
        self.at = 0
        self.kinds: set[str] = set()
        self.has_alternatives = False
        self.has_boundaries = False
        self.positions = 0

    def alternatives(self, depth: int) -> str:
        if depth > DEPTH_MAX:
            raise InvalidRegex("regular expression is too complex")
        branches = [self._branch(depth)]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            branches.append(self._branch(depth))
        self.has_alternatives |= len(branches) > 1
        return "|".join(branches)

    def _branch(self, depth: int) -> str:
        pieces: list[str] = []
        is_after_letter = False
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            if self.options.is_expanded and self._skip_blank():
                continue
            before, is_letter = self.positions, self.pattern[self.at] not in _SIGNS
            atom, may_repeat = self._atom(depth)
            quantifier = self._quantifier(may_repeat=may_repeat)
            pieces.append(atom + quantifier)
            if self.positions == before:  # no group
                self.positions += not (is_letter and is_after_letter) or bool(quantifier)
            self.positions = before + (self.positions - before) * _times(quantifier)
            is_after_letter = is_letter and not quantifier
            if len(pieces) % STEPS_PER_CHECK == 0:
                check_now()
        return "".join(pieces)

    def _skip_blank(self) -> bool:
        found = re.compile(r"\s+|#[^\n]*").match(self.pattern, self.at)
        if found:
            self.at = found.end()
        return found is not None

    def _atom(self, depth: int) -> tuple[str, bool]:
        """The next atom or constraint, and whether it may be repeated."""
        each = self.pattern[self.at]
        self.at += 1
        match each:
            case "(":
                return self._group(depth)
            case "[":
                return self._bracket()
            case ".":
                return ("[^\\n]" if self.options.stops_at_newline else "(?s:.)"), True
            case "^":
                return ("(?m:^)" if self.options.anchors_at_lines else "\\A"), False
            case "$":
                return ("(?m:$)" if self.options.anchors_at_lines else "\\z"), False
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise InvalidRegex("quantifier operand invalid")
            case "{" if self.pattern[self.at : self.at + 1].isdigit():
                raise InvalidRegex("quantifier operand invalid")
        return literal(each), True

    def _group(self, depth: int) -> tuple[str, bool]:
        opening = "("
        if self.pattern.startswith("?", self.at):
            if not self.pattern.startswith("?:", self.at):
                if re.compile(r"\?(?:[=!]|<[=!])").match(self.pattern, self.at):
                    raise NotSupported("lookaround in regular expressions is not supported")
                raise InvalidRegex("quantifier operand invalid")
            self.at += 2
            opening = "(?:"
        inner = self.alternatives(depth + 1)
        if not self.pattern.startswith(")", self.at):
            raise InvalidRegex("parentheses () not balanced")
        self.at += 1
        return f"{opening}{inner})", True

    def _quantifier(self, *, may_repeat: bool) -> str:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if not found:
            if re.compile(r"\{\d").match(self.pattern, self.at):
                raise InvalidRegex("invalid repetition count(s)")
            return ""
        if not may_repeat:
            raise InvalidRegex("quantifier operand invalid")
        self.at = found.end()
        if _QUANTIFIER.match(self.pattern, self.at):
            raise InvalidRegex("quantifier operand invalid")
        least, comma, most, is_short = found.groups()
        counts = [int(each) for each in (least, most) if each]
        if any(each > REPEAT_MAX for each in counts) or counts != sorted(counts):
            raise InvalidRegex("invalid repetition count(s)")
        if least is None or comma is not None:
            self.kinds.add("short" if is_short else "long")
        return found.group()

    # Escapes

    def _escape(self) -> tuple[str, bool]:
        if self.at >= len(self.pattern):
            raise InvalidRegex("invalid escape \\ sequence")
        each = self.pattern[self.at]
        if each in "AZmMyY":
            self.at += 1
            return self._constraint(each), False
        if each.lower() in _SHORT:
            self.at += 1
            inside = _CLASSES[_SHORT[each.lower()]]
            return (f"[^{inside}]" if each.isupper() else f"[{inside}]"), True
        if each.isdigit() and each != "0":
            raise NotSupported("back references in regular expressions are not supported")
        return literal(self._escaped_character()), True

    def _constraint(self, letter: str) -> str:
        if letter in "AZ":
            return "\\A" if letter == "A" else "\\z"
        self.has_boundaries = True
        # RE2 cannot look ahead: the start and the end of a word are told apart by what stands beside them,
        # which \b alone does not say.
        if letter in "mM":
            raise NotSupported(f"\\{letter} in regular expressions is not supported; use \\y")
        return "\\b" if letter == "y" else "\\B"

    def _escaped_character(self) -> str:
        each = self.pattern[self.at]
        self.at += 1
        if not each.isalnum():
            return each
        if each in _LETTERS:
            return _LETTERS[each]
        if each == "c" and self.at < len(self.pattern):
            self.at += 1
            return chr(ord(self.pattern[self.at - 1]) & 0x1F)
        if found := _NUMBERED.match(self.pattern, self.at - 1):
            self.at = found.end()
            code = int(found.group(1) or found.group(2) or found.group(3), 16)
            if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                return chr(code)
        if each == "0" and (octal := re.compile("[0-7]{0,2}").match(self.pattern, self.at)):
            self.at = octal.end()
            return chr(int(octal.group() or "0", 8))
        raise InvalidRegex("invalid escape \\ sequence")

    # Brackets

    def _bracket(self) -> tuple[str, bool]:
        for mark, letter in (("[:<:]]", "m"), ("[:>:]]", "M")):
            if self.pattern.startswith(mark, self.at):
                return self._constraint(letter), False
        is_negated = self.pattern.startswith("^", self.at)
        self.at += is_negated
        members: list[str] = []
        is_first = True
        while is_first or not self.pattern.startswith("]", self.at):
            if self.at >= len(self.pattern):
                raise InvalidRegex("brackets [] not balanced")
            members.append(self._member())
            is_first = False
        self.at += 1
        if is_negated and self.options.stops_at_newline:
            members.append("\\n")
        return f"[{'^' if is_negated else ''}{''.join(members)}]", True

    def _member(self) -> str:
        if self.pattern.startswith("[:", self.at):
            end = self.pattern.find(":]", self.at)
            name = self.pattern[self.at + 2 : end] if end >= 0 else ""
            if name not in _CLASSES:
                raise InvalidRegex("invalid character class")
            self.at = end + 2
            return _CLASSES[name]
        if self.pattern.startswith("\\", self.at) and self.pattern[self.at + 1 : self.at + 2] in (
            "d",
            "s",
            "w",
        ):
            self.at += 2
            return _CLASSES[_SHORT[self.pattern[self.at - 1]]]
        first = self._bracket_character()
        if self.pattern.startswith("-", self.at) and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
            self.at += 1
            last = self._bracket_character()
            if ord(last) < ord(first):
                raise InvalidRegex("invalid character range")
            return f"{literal(first)}-{literal(last)}"
        return literal(first)

    def _bracket_character(self) -> str:
        if found := re.compile(r"\[([.=])(.)\1\]", re.DOTALL).match(self.pattern, self.at):
            self.at = found.end()
            return found.group(2)
        if self.at >= len(self.pattern):
            raise InvalidRegex("brackets [] not balanced")
        each = self.pattern[self.at]
        self.at += 1
        if each == "\\":
            if self.at >= len(self.pattern) or self.pattern[self.at] in "DSWAZmMyY123456789":
                raise InvalidRegex("invalid escape \\ sequence")
            return self._escaped_character()
        return each
