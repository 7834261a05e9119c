"""The text of a Kafka sink: brokers and parameters, parsed once and checked whole.

    kafka://b1.example.com:9092,b2.example.com:9092?topic_prefix=app_&sasl_user=...&sasl_password=...

Only these parameters exist, so no user reaches other settings of the library, some of which name files.

A user who names brokers makes the node connect to them, and to the addresses that these announce. That
cannot be checked address by address as for webhooks. So brokers are allowed by the operator, by name.

Topics are named as the tables are, in full. Characters that Kafka does not allow are written as `_uXXXX_`.

Invariant (S22-brokers): a node connects only to brokers that the operator has named.

Walk: `changefeed.sinks.destinations` -> `parse_kafka`, `check_brokers`; `changefeed.sinks.kafka` ->
`topic_of`.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from tenure.base.errors import InvalidParameter, NoPermission
from tenure.base.setting_kinds import parts_of

PORT = 9092
TOPIC_LENGTH_MAX = 249
"""Kafka's limit."""
BROKERS_MAX = 64

_ADDRESS = re.compile(r"kafka://(?P<brokers>[!-~]*?)/?(?:\?(?P<query>[!-~]*))?", re.ASCII | re.IGNORECASE)
_BROKER = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?", re.ASCII)
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
PARAMETERS = (
    *("ca_cert", "compression", "sasl_mechanism", "sasl_password", "sasl_user"),
    *("tls_enabled", "topic_name", "topic_prefix"),
)
_NOT_IN_TOPICS = re.compile(r"[^A-Za-z0-9._-]")


class KafkaAddress(NamedTuple):
    brokers: tuple[str, ...]
    """As host:port."""
    has_tls: bool
    ca_pem: str
    sasl_mechanism: str
    """Empty: none."""
    sasl_user: str
    sasl_password: str
    topic_name: str
    """One topic for all tables; empty: one for each."""
    topic_prefix: str
    compression: str

    @property
    def shown(self) -> str:
        return f"kafka://{','.join(self.brokers)}"

    def __repr__(self) -> str:
        return f"KafkaAddress({self.shown!r})"


def parse_kafka(text: str) -> KafkaAddress:
    """Raises InvalidParameter (22023)."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise _invalid("has characters that do not belong there")
    values = _parameters(found["query"] or "")
    user, password = values.get("sasl_user", ""), values.get("sasl_password", "")
    address = KafkaAddress(
        _brokers(found["brokers"]),
        has_tls=_choice(values, "tls_enabled", ("true", "false")) == "true",
        ca_pem=_pem(values.get("ca_cert", "")),
        sasl_mechanism=_choice(values, "sasl_mechanism", _MECHANISMS) if user else "",
        sasl_user=user,
        sasl_password=password,
        topic_name=values.get("topic_name", ""),
        topic_prefix=values.get("topic_prefix", ""),
        compression=_choice(values, "compression", _COMPRESSIONS),
    )
    if bool(user) != bool(password):
        raise _invalid("needs both sasl_user and sasl_password, or neither")
    if user and not address.has_tls:
        raise _invalid("would send a password without TLS")
    topic_of(address, "")
    return address


def _brokers(text: str) -> tuple[str, ...]:
    brokers = []
    for part in text.split(","):
        found = _BROKER.fullmatch(part)
        if found is None or not 0 < int(found["port"] or PORT) < 1 << 16:
            raise _invalid("does not name its brokers as host:port")
        brokers.append(f"{found['host'].lower()}:{found['port'] or PORT}")
    if len(brokers) > BROKERS_MAX:
        raise _invalid(f"names more than {BROKERS_MAX} brokers")
    return tuple(brokers)


def _parameters(query: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        if name not in PARAMETERS or name in values:
            raise _invalid("has a parameter that is unknown or given twice")
        values[name] = unquote(value)
        if not values[name] or not values[name].isascii() or not values[name].isprintable():
            raise _invalid(f'has a parameter "{name}" that is not valid')
    return values


def _choice(values: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """One of the choices, by default the first."""
    text = values.get(name, choices[0])
    for each in choices:
        if each.lower() == text.lower():
            return each
    raise InvalidParameter(
        f'parameter "{name}" of the Kafka sink is not valid', hint=f"There are {', '.join(choices)}."
    )


def _pem(text: str) -> str:
    try:
        return b64decode(text.replace(" ", "+"), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        raise _invalid('has a parameter "ca_cert" that is not a PEM file in base64') from None


def _invalid(what: str) -> InvalidParameter:
    """Without the text: it may have a password."""
    return InvalidParameter(
        f"the address of the Kafka sink {what}",
        hint=f"Write kafka://host:port[,...][?name=value&...]; the names are {', '.join(PARAMETERS)}.",
    )


def check_brokers(address: KafkaAddress, allowed: str) -> None:
    """Raises NoPermission (42501) for brokers that the operator does not allow."""
    names = {each.lower() for each in parts_of(allowed)}
    for broker in address.brokers:
        if not names & {"*", broker}:
            raise NoPermission(
                f'broker "{broker}" is not allowed',
                hint="A superuser adds it to the setting changefeed.kafka.brokers.",
            )


def topic_of(address: KafkaAddress, table: str) -> str:
    """The topic of a table, by its full name."""
    name = address.topic_prefix + (address.topic_name or table)
    topic = _NOT_IN_TOPICS.sub(lambda each: f"_u{ord(each[0]):04x}_", name)
    if len(topic) > TOPIC_LENGTH_MAX:
        raise InvalidParameter(
            f'the topic of table "{table}" would be longer than {TOPIC_LENGTH_MAX} characters',
            hint="Give the sink a topic_name.",
        )
    return topic
