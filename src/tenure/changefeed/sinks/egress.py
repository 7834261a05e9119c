"""Where a node may send messages to: hosts, ports and addresses. Everything here is pure.

A user who names a webhook makes the node connect to it. Without rules, that reaches everything that the node
reaches: other services of this machine, machines of the same network, the cloud's metadata service. So

    host      one that the operator allows; any, unless a list is set
    port      one that the operator allows
    address   a public one, or in a network that the operator allows. A name that stands for several
              addresses needs all of them to be allowed

An IPv6 address that stands for an IPv4 address is judged as that one; those of tunnels and of gateways
between the two are not public.

Invariant (S22-addresses): an address is allowed only if it is public, or the operator has allowed its
network.

Walk: `changefeed.sinks.webhook_text` asks for host and port; `changefeed.sinks.checked_connection` for each
address that it is about to connect to.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from typing import NamedTuple

from tenure.base.errors import NoPermission
from tenure.base.feed_settings import WEBHOOK_HOSTS, WEBHOOK_HTTP, WEBHOOK_NETWORKS, WEBHOOK_PORTS
from tenure.base.setting_kinds import parts_of, port_range
from tenure.base.setting_values import Settings

_OF_CLOUDS = (IPv4Network("168.63.129.16/32"), IPv4Network("192.0.0.0/24"))
"""Services of clouds for their own machines, at addresses that look public."""


class EgressRules(NamedTuple):
    allows_http: bool
    hosts: str
    networks: str
    ports: str


def rules_of(settings: Settings) -> EgressRules:
    return EgressRules(
        settings[WEBHOOK_HTTP], settings[WEBHOOK_HOSTS], settings[WEBHOOK_NETWORKS], settings[WEBHOOK_PORTS]
    )


def check_host(host: str, port: int, rules: EgressRules, *, shown: str) -> None:
    """Raises NoPermission (42501)."""
    if not any(_matches(host.lower(), each.lower()) for each in parts_of(rules.hosts)):
        raise NoPermission(
            f'webhook "{shown}" is not allowed: its host is not in changefeed.webhook.hosts',
            hint="A superuser changes it with SET CLUSTER SETTING.",
        )
    if not any(port in port_range(each) for each in parts_of(rules.ports)):
        raise NoPermission(
            f'webhook "{shown}" is not allowed: port {port} is not in changefeed.webhook.ports',
            hint="A superuser changes it with SET CLUSTER SETTING.",
        )


def _matches(host: str, pattern: str) -> bool:
    return pattern in ("*", host) or (pattern.startswith("*.") and host.endswith(pattern[1:]))


def check_addresses(texts: Iterable[str], rules: EgressRules, *, shown: str) -> None:
    """Raises NoPermission (42501) if any of these is not allowed. It does not say which: who may not reach a
    network learns nothing of it.
    """
    if not all(is_allowed(text, rules) for text in texts):
        raise NoPermission(
            f'webhook "{shown}" is not allowed: its address is not a public one',
            hint="A superuser allows networks by the setting changefeed.webhook.networks.",
        )


def is_allowed(text: str, rules: EgressRules) -> bool:
    address = ip_address(text.partition("%")[0])  # without its scope
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # the system connects to that one
    networks = [ip_network(each) for each in parts_of(rules.networks)]
    return _is_public(address) or any(
        each.version == address.version and address in each for each in networks
    )


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    is_special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved  # among these: addresses that a gateway translates to IPv4 ones
        or address.is_unspecified
        or any(address in each for each in _OF_CLOUDS)
    )
    if isinstance(address, IPv6Address):
        is_special = is_special or address.is_site_local or _is_tunnel(address)
    return address.is_global and not is_special


def _is_tunnel(address: IPv6Address) -> bool:
    """Whether it leads to an IPv4 address."""
    return address.sixtofour is not None or address.teredo is not None
