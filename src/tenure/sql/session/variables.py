"""Variables of a SQL session: what SET sets, SHOW shows and RESET takes back.

    SET x = v         until the session ends; taken back if the transaction is rolled back
    SET LOCAL x = v   until the transaction ends

Each has a definition: how its value is read, and what it is shown as. Values are kept as shown. A few are
reported to the client whenever they change. Variables of PostgreSQL without a use here accept only the value
that describes Tenure's behaviour, so that clients that set them at the start go on.

    defaults ◄── what the session was opened with ◄── SET ◄── SET LOCAL

Names with a dot (`myapp.user`) are the application's own: any text.

Walk: `sql.session.session_state` holds a `Variables`; `statements.session.variable_statements` runs SET and
SHOW.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
from typing import NamedTuple, NoReturn

from tenure.base.errors import FixedVariable, InvalidParameter, NotSupported, UndefinedVariable
from tenure.expr.types.encodings import UTF8, Encoding, encoding_named
from tenure.expr.types.zones import session_zone
from tenure.sql.session.client_facts import client_encoding, time_zone

Check = Callable[[str], str]
"""Gives the value as it is shown; raises ValueError if it is none."""


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    default: str
    check: Check
    description: str
    is_reported: bool = False
    is_fixed: bool = False
    """Tells something about the node; cannot be set."""


_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
_DURATION = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*")
MILLISECONDS_MAX = 2**31 - 1


def milliseconds(text: str) -> int:
    """Reads PostgreSQL's durations: 500, '500ms', '2s', '1min'; a plain number is milliseconds."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(text)
    number = float(found[1]) * _UNITS[found[2] or "ms"]
    if not -0.5 <= number <= MILLISECONDS_MAX:  # also one that is too large for a float
        raise ValueError(text)
    return round(number)


def _duration(text: str) -> str:
    number = milliseconds(text)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return f"{number}ms" if number else "0"


_TRUE = ("on", "true", "tru", "tr", "t", "yes", "ye", "y", "1")
_FALSE = ("off", "of", "false", "fals", "fal", "fa", "f", "no", "n", "0")


def _boolean(text: str) -> str:
    word = text.strip().lower()
    if word in _TRUE:
        return "on"
    if word in _FALSE:
        return "off"
    raise ValueError(text)


def _one_of(*allowed: str) -> Check:
    def check(text: str) -> str:
        word = " ".join(text.lower().split())
        if word not in allowed:
            raise ValueError(text)
        return word

    return check


def _only(value: str, *others: str) -> Check:
    """Accepts only its fixed value, in any spelling."""
    spellings = {each.lower() for each in (value, *others)}

    def check(text: str) -> str:
        if text.strip().lower() not in spellings:
            raise ValueError(text)
        return value

    return check


def _style(value: str, *others: str, unsupported: str) -> Check:
    """As _only; other words that PostgreSQL knows are refused as not supported."""
    only = _only(value, *others)

    def check(text: str) -> str:
        try:
            return only(text)
        except ValueError:
            if all(word in unsupported.split() for word in text.lower().replace(",", " ").split()):
                raise NotSupported(f'"{text}" is not supported as a style of output or input') from None
            raise

    return check


def _float_digits(text: str) -> str:
    """From 1 on, floats are written exactly; below, they would lose digits."""
    if -15 <= int(text) < 1:
        raise NotSupported("extra_float_digits below 1 are not supported")
    if int(text) > 3:
        raise ValueError(text)
    return str(int(text))


def _integer(low: int, high: int) -> Check:
    def check(text: str) -> str:
        number = int(text)
        if not low <= number <= high:
            raise ValueError(text)
        return str(number)

    return check


def _text(text: str) -> str:
    return text


_ISO_STYLE = _style(
    *("ISO, MDY", "iso", "iso,mdy", "mdy", "us"),
    unsupported="iso sql postgres postgresql german dmy mdy ymd euro european us noneuro noneuropean",
)
_INTERVAL_STYLE = _style("postgres", unsupported="postgres_verbose sql_standard iso_8601")

MODES = {
    "transaction_isolation": "default_transaction_isolation",
    "transaction_read_only": "default_transaction_read_only",
    "transaction_deferrable": "default_transaction_deferrable",
}
"""The variables of a transaction, and the variables with their defaults: see
`sql.session.transaction_modes`."""

ROLE, NO_ROLE = "role", "none"

ISOLATION = ("serializable", "repeatable read", "read committed", "read uncommitted")


def _nobody_else(text: str) -> NoReturn:
    raise NotSupported("a session cannot act for another user", hint="Log in as that user.")


_SEVERITIES = ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "info", "notice", "warning", "error")


def _severity(text: str) -> str:
    return _one_of(*_SEVERITIES)("debug2" if text.strip().lower() == "debug" else text)


DEFINITIONS: tuple[Variable, ...] = (
    Variable("application_name", "", _text, "Names the client in SHOW SESSIONS.", is_reported=True),
    Variable("bytea_output", "hex", _style("hex", unsupported="escape"), "How bytea is written."),
    Variable("client_encoding", "UTF8", client_encoding, "Of text to and from the client.", is_reported=True),
    Variable(
        "client_min_messages",
        "notice",
        _severity,
        "The least that the client is told beside answers: debug5 to debug1, log, notice, warning, error.",
    ),
    Variable("DateStyle", "ISO, MDY", _ISO_STYLE, "ISO.", is_reported=True),
    Variable(
        "default_transaction_isolation",
        "serializable",
        _one_of(*ISOLATION),
        "Of new transactions: serializable or read committed.",
    ),
    Variable(
        "default_transaction_read_only", "off", _boolean, "New transactions only read.", is_reported=True
    ),
    Variable("default_transaction_deferrable", "off", _boolean, "Without effect."),
    Variable("extra_float_digits", "1", _float_digits, "Floats are always written exactly."),
    Variable("idle_in_transaction_session_timeout", "0", _duration, "Ends a session idle in a transaction."),
    Variable("idle_session_timeout", "0", _duration, "Ends an idle session."),
    Variable("in_hot_standby", "off", _boolean, "Never.", is_reported=True, is_fixed=True),
    Variable("integer_datetimes", "on", _boolean, "Always.", is_reported=True, is_fixed=True),
    Variable("IntervalStyle", "postgres", _INTERVAL_STYLE, "How intervals are written.", is_reported=True),
    Variable(
        "is_superuser",
        "off",
        _boolean,
        "Whether the user was a superuser when the session was opened.",
        is_reported=True,
        is_fixed=True,
    ),
    Variable("lc_collate", "C", _text, "The order of text.", is_fixed=True),
    Variable("lc_ctype", "C.UTF-8", _text, "The case of letters.", is_fixed=True),
    Variable("lc_messages", "C", _text, "Messages are in English."),
    Variable("lc_monetary", "C", _text, "Without effect."),
    Variable("lc_numeric", "C", _text, "Without effect."),
    Variable("lc_time", "C", _text, "Without effect."),
    Variable("lock_timeout", "0", _duration, "How long a statement waits for a lock."),
    Variable("max_identifier_length", "63", _integer(63, 63), "In bytes.", is_fixed=True),
    Variable("max_index_keys", "32", _integer(32, 32), "PostgreSQL's, as clients ask for it.", is_fixed=True),
    Variable("row_security", "on", _boolean, "Without effect."),
    Variable("check_function_bodies", "on", _boolean, "Without effect."),
    Variable("default_tablespace", "", _text, "Without effect."),
    Variable("default_table_access_method", "heap", _text, "Without effect."),
    Variable("default_with_oids", "off", _only("off", "false"), "Never."),
    Variable("escape_string_warning", "on", _boolean, "Without effect."),
    Variable("jit", "off", _boolean, "Without effect."),
    Variable("geqo", "on", _boolean, "Without effect."),
    Variable("enable_seqscan", "on", _boolean, "Without effect."),
    Variable("enable_indexscan", "on", _boolean, "Without effect."),
    Variable("enable_bitmapscan", "on", _boolean, "Without effect."),
    Variable("enable_hashjoin", "on", _boolean, "Without effect."),
    Variable("enable_mergejoin", "on", _boolean, "Without effect."),
    Variable("enable_nestloop", "on", _boolean, "Without effect."),
    Variable("force_parallel_mode", "off", _text, "Without effect."),
    Variable("maintenance_work_mem", "64MB", _text, "Without effect."),
    Variable("work_mem", "4MB", _text, "Without effect; see the cluster setting sql.query_memory."),
    Variable("constraint_exclusion", "partition", _text, "Without effect."),
    Variable("cursor_tuple_fraction", "0.1", _text, "Without effect."),
    Variable("plan_cache_mode", "auto", _text, "Without effect."),
    Variable("synchronize_seqscans", "on", _boolean, "Without effect."),
    Variable("synchronous_commit", "on", _text, "Every commit is durable."),
    Variable("session_replication_role", "origin", _only("origin"), "Constraints always hold."),
    Variable("statement_timeout", "0", _duration, "How long a statement may run."),
    Variable("transaction_timeout", "0", _duration, "How long a transaction may run."),
    Variable("xmloption", "content", _text, "Without effect."),
    Variable("scram_iterations", "10000", _integer(4096, 10_000_000), "Of new passwords."),
    Variable("password_encryption", "scram-sha-256", _only("scram-sha-256"), "How passwords are kept."),
    Variable("search_path", '"$user", public', _text, "Where names are looked for.", is_reported=True),
    Variable("server_encoding", "UTF8", _text, "Always.", is_reported=True, is_fixed=True),
    Variable(
        "server_version",
        "18.0",
        _text,
        "PostgreSQL's, as clients ask for it.",
        is_reported=True,
        is_fixed=True,
    ),
    Variable("server_version_num", "180000", _text, "The same as a number.", is_fixed=True),
    Variable(ROLE, "none", _text, "Whose rights count; none: the user's own."),
    Variable("session_authorization", "", _nobody_else, "The user.", is_reported=True),
    Variable(
        "standard_conforming_strings", "on", _only("on", "true", "1", "yes"), "Always.", is_reported=True
    ),
    Variable("TimeZone", "UTC", time_zone, "Of timestamps with time zone.", is_reported=True),
    Variable("transaction_deferrable", "off", _boolean, "Of this transaction; without effect."),
    Variable("transaction_isolation", "serializable", _one_of(*ISOLATION), "Of this transaction."),
    Variable("transaction_read_only", "off", _boolean, "Whether this transaction only reads."),
    Variable("tenure.executor", "auto", _one_of("auto", "rows", "duckdb"), "Which executor runs queries."),
)

BY_NAME = {each.name.lower(): each for each in DEFINITIONS}
BY_OWN_NAME = {each.name: each for each in DEFINITIONS}
REPORTED = {each.name: each.default for each in DEFINITIONS if each.is_reported}
"""The variables whose changes are reported to clients, with the defaults."""
_ALIASES = {
    "timezone": "timezone",
    "time zone": "timezone",
    "transaction isolation level": "transaction_isolation",
}


def definition(name: str) -> Variable:
    """Raises UndefinedVariable (42704)."""
    key = _ALIASES.get(name.lower(), name.lower())
    found = BY_NAME.get(key)
    if found is not None:
        return found
    if "." in key.strip("."):
        return Variable(key, "", _text, "The application's own.")
    raise UndefinedVariable(f'unrecognized configuration parameter "{name}"')


def _changeable(name: str) -> Variable:
    variable = definition(name)
    if variable.is_fixed:
        raise FixedVariable(f'parameter "{variable.name}" cannot be changed')
    return variable


class VariableState(NamedTuple):
    """The values at one moment, for a rollback."""

    values: dict[str, str]
    hidden: dict[str, str | None]
    """The values that SET LOCAL hides until the transaction ends; None for the default."""


NOTHING_SET = VariableState({}, {})


class Variables:
    """The values of one session. No dictionary is changed in place: a `state` stays what it was."""

    def __init__(
        self, opened_with: Mapping[str, str], check_role: Callable[[str], None] = _nobody_else
    ) -> None:
        """`check_role` raises for a role that the user may not act as."""
        self._check_role = check_role
        self._defaults: dict[str, str] = {}
        for name, value in opened_with.items():
            variable = _changeable(name)
            value = self._checked(variable, value)
            if variable.name not in MODES:  # which no transaction has begun with yet
                self._defaults[variable.name] = value
        self.values: dict[str, str] = dict(self._defaults)
        self._hidden: dict[str, str | None] = {}
        self.reported: dict[str, str] = {}
        """Changes that the client is to be told of."""
        self._effects = Effects(self)

    def fix(self, name: str, value: str) -> None:
        """Sets a variable that describes the node."""
        self._defaults[name] = value
        self.values = self.values | {name: value}

    def __getitem__(self, name: str) -> str:
        found = self.values.get(name)
        if found is None and name in MODES:
            return self[MODES[name]]
        return BY_NAME[name.lower()].default if found is None else found

    def show(self, name: str) -> tuple[str, str]:
        """The name as it is written, and the value."""
        variable = definition(name)
        if "." in variable.name and variable.name not in BY_NAME and variable.name not in self.values:
            raise UndefinedVariable(f'unrecognized configuration parameter "{name}"')
        if variable.name in MODES:
            return variable.name, self[variable.name]
        return variable.name, self.values.get(variable.name, variable.default)

    def set(self, name: str, value: str | None) -> str:
        """None: back to the default. Returns the variable's own name."""
        variable = _changeable(name)
        self._change(variable, self._meant(variable, value))
        if value is None and variable.name not in self._defaults and variable.name in BY_OWN_NAME:
            # As if it had never been set: the cluster's default may be another.
            self.values = {each: kept for each, kept in self.values.items() if each != variable.name}
        if variable.name in self._hidden:  # ends an earlier SET LOCAL
            self._hidden = {each: value for each, value in self._hidden.items() if each != variable.name}
        return variable.name

    def set_local(self, name: str, value: str | None) -> None:
        """Until the transaction ends."""
        variable = _changeable(name)
        meant = self._meant(variable, value)
        self._hidden = {variable.name: self.values.get(variable.name)} | self._hidden
        self._change(variable, meant)

    def set_all_local(self, checked: Mapping[str, str]) -> None:
        """The same of several, whose values are known to be right and none of which is reported."""
        self._hidden = {name: self.values.get(name) for name in checked} | self._hidden
        self.values = {**self.values, **checked}

    def checked(self, name: str, value: str) -> str:
        """The value as it is shown; raises InvalidParameter if it is none."""
        return self._checked(definition(name), value)

    def end_transaction(self) -> None:
        """Ends the values of SET LOCAL."""
        if not self._hidden:
            return
        hidden, self._hidden = self._hidden, {}
        values = {name: value for name, value in self.values.items() if name not in hidden}
        values |= {name: value for name, value in hidden.items() if value is not None}
        self._report([name for name in hidden if name in REPORTED], values)
        self.values = values

    def _meant(self, variable: Variable, value: str | None) -> str:
        default = self._defaults.get(variable.name, variable.default)
        return default if value is None or value == default else self._checked(variable, value)

    def _checked(self, variable: Variable, value: str) -> str:
        if variable.name == ROLE and value != NO_ROLE:
            self._check_role(value)
        try:
            return variable.check(value)
        except ValueError as error:
            raise InvalidParameter(
                f'invalid value for parameter "{variable.name}": "{value}"', hint=variable.description
            ) from error

    def _change(self, variable: Variable, value: str) -> None:
        if variable.is_reported and self[variable.name] != value:
            self.reported[variable.name] = value
        self.values = self.values | {variable.name: value}

    @property
    def state(self) -> VariableState:
        return VariableState(self.values, self._hidden)

    def restore(self, state: VariableState) -> None:
        """Restores former values, and reports those that the client had been told."""
        values, self._hidden = state
        self._report(REPORTED, values)
        self.values = values

    def _report(self, names: Iterable[str], values: Mapping[str, str]) -> None:
        """Notes which of these variables have other values from now on."""
        for name in names:
            default = REPORTED[name]
            value = values.get(name, default)
            if self.values.get(name, default) != value:
                self.reported[name] = value

    def reset_all(self) -> None:
        kept = {
            each.name: self[each.name] for each in DEFINITIONS if each.is_fixed and each.name in self.values
        }
        modes = {name: self.values[name] for name in MODES if name in self.values}
        hidden = {name: value for name, value in self._hidden.items() if name in MODES}
        self.restore(VariableState(self._defaults | kept | modes, hidden))

    def all_reported(self) -> dict[str, str]:
        return {name: self[name] for name in REPORTED}

    def lets_pass(self, severity: str) -> bool:
        """Whether the client wants this notice (client_min_messages); INFO is always sent."""
        level = self.values.get("client_min_messages")
        if level is None or severity == "INFO":
            return True
        return _SEVERITIES.index(severity.lower()) >= _SEVERITIES.index(level)

    def seconds(self, name: str) -> float | None:
        """A time-out; None: there is none."""
        number = milliseconds(self[name])
        return number / 1000 if number else None

    @property
    def effects(self) -> "Effects":
        effects = self._effects
        if effects.of is not self.values:
            effects = self._effects = Effects(self)
        return effects

    @property
    def zone(self) -> tzinfo:
        """The session's time zone."""
        return self.effects.zone

    @property
    def encoding(self) -> Encoding:
        """The client's, into which all text for it is converted."""
        return self.effects.encoding


class Effects:
    """Values derived from variables that every statement needs: computed once, until a variable changes."""

    __slots__ = ("encoding", "is_read_committed", "is_read_only", "of", "role", "search_path", "zone")

    def __init__(self, variables: Variables) -> None:
        self.of = variables.values
        self.search_path = _search_path(variables["search_path"])
        self.is_read_only = variables["transaction_read_only"] == "on"
        self.is_read_committed = variables["transaction_isolation"] in ISOLATION[2:]
        self.role = variables[ROLE]
        self.zone = session_zone(variables["TimeZone"])
        self.encoding = _encoding(variables["client_encoding"])


def _encoding(name: str) -> Encoding:
    return UTF8 if name == UTF8.name else encoding_named(name)


@lru_cache(maxsize=1024)
def _search_path(text: str) -> tuple[str, ...]:
    """Cached: the same text mostly gives the same object."""
    return tuple(split_names(text))


def split_names(text: str) -> list[str]:
    """The names of a list such as search_path: in quotes as they are, else in lower case."""
    found = re.findall(r'\s*(?:"((?:[^"]|"")*)"|([^,"]+))\s*(?:,|$)', text)
    return [
        quoted.replace('""', '"') if quoted else bare.strip().lower()
        for quoted, bare in found
        if quoted or bare.strip()
    ]
