"""The text of a webhook's address: parsed once, checked whole, and never shown.

    https://hooks.example.com/in/T01?hmac_secret=...&auth_header=Bearer%20...&ca_cert=<PEM in base64>&v=2

The named parameters are the sink's own, and are not sent; all others belong to the address. Its path may be a
secret by itself, as those of chat services are: shown are host and port alone.

What two readers of addresses could read differently (a user before the host, control characters, a backslash,
spaces) is refused.

Invariant (S24-webhooks): of a webhook's address only scheme, host and port are in any text that is shown.

Walk: `changefeed.sinks.destinations` -> `parse_webhook`; `changefeed.sinks.checked_connection` ->
`check_webhook` before it connects.
"""

import binascii
import re
import ssl
from base64 import b64decode
from typing import NamedTuple
from urllib.parse import unquote

from tenure.base.errors import InvalidParameter, NoPermission
from tenure.changefeed.sinks.egress import EgressRules, check_host

TEXT_LENGTH_MAX = 16_384
"""A chain of certificates fits in."""
SECRET_LENGTH_MIN = 16
"""Of an HMAC's key: shorter ones can be guessed."""

_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?"
    r"(?P<path>/[!-~]*?)?(?:\?(?P<query>[!-~]*))?",
    re.ASCII | re.IGNORECASE,
)
_PORTS = {"http": 80, "https": 443}
PARAMETERS = ("auth_header", "ca_cert", "hmac_secret")


class WebhookAddress(NamedTuple):
    scheme: str
    host: str
    """Without brackets."""
    port: int
    target: str
    """Path and query, as they are sent."""
    auth_header: str
    hmac_secret: str
    ca_pem: str
    """Certificates that are trusted instead of the system's; empty: the system's."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        return f"{self.scheme}://{self.authority}/..."

    def __repr__(self) -> str:
        return f"WebhookAddress({self.shown!r})"


def parse_webhook(text: str) -> WebhookAddress:
    """Raises InvalidParameter (22023)."""
    found = _ADDRESS.fullmatch(text)
    if found is None or len(text) > TEXT_LENGTH_MAX or "\\" in text or "#" in text:
        raise InvalidParameter(
            "the address of the webhook is not valid",
            hint="Write https://host[:port]/path[?name=value&...], without a user, spaces or a fragment; "
            "credentials go into the parameter auth_header.",
        )
    scheme, host = found["scheme"].lower(), found["host"].strip("[]")
    own, query = _parameters(found["query"] or "")
    target = (found["path"] or "/") + (f"?{query}" if query else "")
    address = WebhookAddress(
        *(scheme, host, int(found["port"] or _PORTS[scheme]), target),
        auth_header=own.get("auth_header", ""),
        hmac_secret=own.get("hmac_secret", ""),
        ca_pem=_pem(own["ca_cert"]) if "ca_cert" in own else "",
    )
    if address.ca_pem and scheme == "http":
        raise InvalidParameter(f'webhook "{address.shown}" has no TLS, and so no parameter "ca_cert"')
    if address.hmac_secret and len(address.hmac_secret) < SECRET_LENGTH_MIN:
        raise InvalidParameter(
            f'parameter "hmac_secret" of the webhook has at least {SECRET_LENGTH_MIN} characters'
        )
    return address


def _parameters(query: str) -> tuple[dict[str, str], str]:
    """The sink's own, decoded, and the others as they are."""
    own: dict[str, str] = {}
    others = []
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        if name not in PARAMETERS:
            others.append(pair)
            continue
        own[name] = unquote(value)
        if not own[name] or not own[name].isascii() or not own[name].isprintable():
            raise InvalidParameter(f'parameter "{name}" of the webhook is not valid')
    return own, "&".join(others)


def _pem(text: str) -> str:
    try:
        pem = b64decode(text.replace(" ", "+"), validate=True).decode("ascii")
        context_of(pem)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError, ValueError):
        raise InvalidParameter(
            'parameter "ca_cert" of the webhook is not a certificate', hint="It is a PEM file in base64."
        ) from None
    return pem


def context_of(ca_pem: str) -> ssl.SSLContext:
    """TLS 1.2 or newer, with certificate and host name verified."""
    context = ssl.create_default_context(cadata=ca_pem or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def check_webhook(address: WebhookAddress, rules: EgressRules) -> None:
    """Raises NoPermission (42501) for what the operator does not allow."""
    if address.scheme == "http" and not rules.allows_http:
        raise NoPermission(
            f'webhook "{address.shown}" is not allowed: http is switched off',
            hint="Use https, or SET CLUSTER SETTING changefeed.webhook.http = on.",
        )
    check_host(address.host, address.port, rules, shown=address.shown)
