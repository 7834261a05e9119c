"""Webhooks: a node connects nowhere but where it may, and takes nothing from who answers (S22, S23, S25)."""

import hmac
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tenure.base.errors import InvalidParameter, NoPermission, Unavailable
from tenure.changefeed.sinks import webhook
from tenure.changefeed.sinks.checked_connection import Resolve, checked_addresses
from tenure.changefeed.sinks.egress import is_allowed, rules_of
from tenure.changefeed.sinks.webhook import WebhookSink
from tenure.changefeed.sinks.webhook_text import parse_webhook
from tests.contract.sink_rigs import LOOPBACK, message, position, settings_with, sink_run, within
from tests.webhook_server import Request, WebhookServer, answer

NO_RULES = rules_of(settings_with({}))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture
def server(certificates: Path) -> Iterator[WebhookServer]:
    server = WebhookServer(certificates)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "ATTEMPTS", 1)


def sink_to(
    text: str, resolve: Resolve = lambda host, port: ["127.0.0.1"], *, seconds: float = 20.0, **settings: str
) -> WebhookSink:
    allowed = settings_with(
        {**LOOPBACK, **{f"changefeed.webhook.{name}": each for name, each in settings.items()}}
    )
    run = sink_run(1, settings=lambda: allowed, begin_send=within(seconds))
    return WebhookSink(parse_webhook(text), run, resolve=resolve)


def refusal(sink: WebhookSink, kind: type[Exception] = Unavailable) -> str:
    with pytest.raises(kind) as caught:
        sink.emit([message(1)])
    sink.close()
    return str(caught.value)


# ── where it connects to ───────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("S22-addresses")
@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.0.0.1", "172.16.5.5", "172.31.255.255", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1"),
        *("224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1"),
        *(
            "::1",
            "::",
            "fe80::1",
            "fe80::1%eth0",
            "fc00::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
        ),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
    ],
)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not is_allowed(address, NO_RULES)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8"]
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed(address, NO_RULES)


@pytest.mark.setting("changefeed.webhook.networks")
def test_a_network_that_the_operator_allows_is_allowed_alone() -> None:
    rules = NO_RULES._replace(networks="10.1.0.0/16, fd12::/48")
    assert (
        is_allowed("10.1.2.3", rules)
        and is_allowed("::ffff:10.1.2.3", rules)
        and is_allowed("fd12::1", rules)
    )
    assert not is_allowed("10.2.0.1", rules) and not is_allowed("fd13::1", rules)


@pytest.mark.invariant("S22")
@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "2130706433", "0x7f000001", "127.1", "0177.0.0.1", "localhost", "[::1]"),
        *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "169.254.169.254", "0"),
    ],
)
def test_every_spelling_of_an_inner_address_is_refused(host: str) -> None:
    """By the system's own resolver, which understands these, or does not."""
    address = parse_webhook(f"https://{host}/")
    with pytest.raises((NoPermission, Unavailable)) as caught:
        checked_addresses(address, NO_RULES)
    assert "cannot be reached: its name" in str(caught.value) or "not a public one" in str(caught.value)


@pytest.mark.invariant("S22")
def test_a_name_that_changes_its_address_is_checked_with_each_connection(server: WebhookServer) -> None:
    answers = iter([["8.8.8.8"], ["127.0.0.1"]])
    resolve: Resolve = lambda host, port: next(answers)  # noqa: E731
    sink = sink_to(server.url(), resolve, networks="")
    checked_addresses(parse_webhook(server.url()), NO_RULES._replace(ports="1-65535"), resolve)
    assert "not a public one" in refusal(sink, NoPermission)
    assert server.connections == 0


@pytest.mark.invariant("S22")
def test_the_address_that_was_checked_is_connected_to(server: WebhookServer) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    sink = sink_to(server.url(), resolve, networks="127.0.0.1/32")
    sink.emit([message(1)])
    sink.emit([message(2)])
    sink.close()
    assert asked == ["localhost"] and len(server.requests) == 2


def test_one_address_that_is_not_allowed_refuses_the_name(server: WebhookServer) -> None:
    sink = sink_to(server.url(), lambda host, port: ["127.0.0.1", "10.0.0.1"])
    refusal(sink, NoPermission)
    assert server.connections == 0


def test_a_name_that_is_not_resolved_is_refused(server: WebhookServer) -> None:
    def fails(host: str, port: int) -> Sequence[str]:
        raise OSError("no DNS")

    assert "not resolved" in refusal(sink_to(server.url(), fails))
    assert "not resolved" in refusal(sink_to(server.url(), lambda host, port: []))


def test_a_redirect_is_not_followed(server: WebhookServer, certificates: Path) -> None:
    other = WebhookServer(certificates)

    def redirect(handler: BaseHTTPRequestHandler, request: Request) -> bool:
        answer(handler, 302, Location=other.url())
        return True

    server.refuse = redirect
    assert "redirect, which is not followed: status 302" in refusal(sink_to(server.url()))
    assert other.connections == 0
    other.close()


def test_proxies_of_the_environment_are_not_used(
    server: WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    sink = sink_to(server.url())
    sink.emit([message(1)])
    sink.close()
    assert len(server.requests) == 1


@pytest.mark.setting("changefeed.webhook.hosts")
def test_hosts_are_those_of_the_list(server: WebhookServer) -> None:
    assert "changefeed.webhook.hosts" in refusal(sink_to(server.url(), hosts="hooks.test"), NoPermission)
    for hosts in ("*", "hooks.test, LOCALHOST"):
        sink_to(server.url(), hosts=hosts).emit([message(1)])

    def check(host: str) -> Sequence[str]:
        rules = NO_RULES._replace(hosts="*.hooks.test")
        return checked_addresses(parse_webhook(f"https://{host}/"), rules, lambda *_: ["8.8.8.8"])

    assert check("a.hooks.test")
    for host in ("hooks.test", "evilhooks.test", "a.hooks.test.evil.test"):
        with pytest.raises(NoPermission):
            check(host)


@pytest.mark.setting("changefeed.webhook.ports")
def test_ports_are_those_of_the_list(server: WebhookServer) -> None:
    assert "changefeed.webhook.ports" in refusal(sink_to(server.url(), ports="443, 8000-8001"), NoPermission)
    sink_to(server.url(), ports=f"443, {server.port}-{server.port}").emit([message(1)])
    assert len(server.requests) == 1


@pytest.mark.setting("changefeed.webhook.http")
def test_http_is_for_those_who_switch_it_on() -> None:
    server = WebhookServer()
    assert "http is switched off" in refusal(sink_to(server.url(), http="off"), NoPermission)
    assert server.connections == 0
    sink_to(server.url(), http="on").emit([message(1)])
    assert len(server.requests) == 1
    server.close()


@pytest.mark.parametrize(
    "text",
    [
        *("https://", "https:///x", "https://user:pass@host/", "https://host@evil/", "https://host/a b"),
        *(
            "https://host/\\evil",
            "https://host\\@evil/",
            "https://ho st/",
            "https://host/#x",
            "https://host:/",
        ),
        *("https://host:99999999/", "https://höst/", "https://host/\r\nX: y", "https://[::1", "ftp://host/"),
        *("https://host/?hmac_secret=short", "https://host/?hmac_secret=", "https://host/?ca_cert=AAAA"),
        *("https://host/?auth_header=a%0d%0ab", "http://host/?ca_cert=AAAA", "https://host/" + "x" * 20_000),
    ],
)
def test_addresses_that_can_be_read_in_two_ways_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse_webhook(text)
    assert "user:pass" not in str(caught.value)


# ── who answers ────────────────────────────────────────────────────────────────────────────────


def test_a_certificate_that_nobody_has_vouched_for_is_refused(server: WebhookServer) -> None:
    bare = server.url().partition("?")[0]
    assert "certificate is not trusted" in refusal(sink_to(bare))
    assert server.attempts == 0


def test_a_certificate_of_another_name_is_refused(server: WebhookServer) -> None:
    assert "certificate is not trusted, or is for another name" in refusal(
        sink_to(server.url(host="other.test"))
    )
    assert server.attempts == 0


class Drip:
    """Writes the same bytes again and again, until the other side has gone."""

    def __init__(self, start: bytes, piece: bytes, *, pause: float = 0.0) -> None:
        self._start, self._piece, self._pause = start, piece, pause
        self._never = threading.Event()
        self.written = 0
        self.is_over = threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler, request: Request) -> bool:
        try:
            handler.wfile.write(self._start)
            while True:
                handler.wfile.write(self._piece)
                self.written += len(self._piece)
                self._never.wait(self._pause)
        except OSError:
            self.is_over.set()
        return True


@pytest.mark.invariant("S23")
def test_an_answer_of_a_gigabyte_is_not_read(server: WebhookServer) -> None:
    drip = Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", b"x" * 65536)
    server.refuse = drip
    sink = sink_to(server.url())
    sink.emit([message(1)])
    assert drip.is_over.wait(20.0)
    assert drip.written < 16 << 20, "what fits into the buffers of sockets, no more"
    server.refuse = lambda handler, request: False
    sink.emit([message(2)])
    assert len(server.requests) == 1


@pytest.mark.invariant("S23")
@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX: "]
)
def test_a_head_without_an_end_is_refused(server: WebhookServer, start: bytes) -> None:
    drip = Drip(start, b"X-Canary: canary-7\r\n" * 100)
    server.refuse = drip
    assert "canary" not in refusal(sink_to(server.url()))
    assert drip.is_over.wait(20.0)


@pytest.mark.invariant("S23")
@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\n"])
def test_a_receiver_that_answers_byte_by_byte_gains_no_time(server: WebhookServer, start: bytes) -> None:
    drip = Drip(start, b"x", pause=0.02)
    server.refuse = drip
    assert "did not answer in time" in refusal(sink_to(server.url(), seconds=0.5))
    assert drip.is_over.wait(20.0)


def test_a_process_that_stood_still_since_it_might_send_sends_nothing(server: WebhookServer) -> None:
    sink = sink_to(server.url())
    sink.emit([message(1)])
    sink._run = sink_run(1, begin_send=within(-0.001))
    assert "in time" in refusal(sink)
    assert len(server.requests) == server.attempts == 1


def test_a_receiver_that_drips_the_body_is_left(server: WebhookServer) -> None:
    server.refuse = drip = Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x", pause=0.02)
    sink_to(server.url(), seconds=0.5).emit([message(1)])
    assert drip.is_over.wait(20.0)


@pytest.mark.invariant("S23")
@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 500 canary-7\r\nX: canary-7\r\nContent-Length: 8\r\n\r\ncanary-7",
        b"HTTP/1.1 canary-7\r\n\r\n",
        b"canary-7",
        b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\ncanary-7\r\n",
    ],
)
def test_nothing_of_an_answer_is_shown(server: WebhookServer, head: bytes) -> None:
    def refuse(handler: BaseHTTPRequestHandler, request: Request) -> bool:
        handler.wfile.write(head)
        handler.close_connection = True
        return True

    server.refuse = refuse
    sink = sink_to(server.url())
    with pytest.raises(Unavailable) as caught:
        sink.emit([message(1)])
    assert "canary" not in repr(caught.value) and caught.value.__cause__ is None
    sink.close()


# ── who asks ───────────────────────────────────────────────────────────────────────────────────

SECRET = "a-secret-of-the-receiver"


def is_authentic(request: Request, now_seconds: int, secret: str = SECRET) -> bool:
    """As the reference tells receivers to do it."""
    pairs = dict(part.split("=") for part in request.headers["Tenure-Signature"].split(","))
    expected = hmac.new(secret.encode(), pairs["t"].encode() + b"." + request.body, "sha256").hexdigest()
    return hmac.compare_digest(expected, pairs["v1"]) and abs(now_seconds - int(pairs["t"])) < 300


@pytest.mark.invariant("S25")
def test_a_receiver_with_the_secret_tells_what_was_changed(server: WebhookServer) -> None:
    sink = sink_to(server.url(hmac_secret=SECRET))
    sink.emit([message(1)])
    sink.commit(position(1))
    sink.close()
    now = sink_run(1).env.wall_micros() // 1_000_000
    for request in server.requests:
        assert is_authentic(request, now)
        assert not is_authentic(request._replace(body=request.body.replace(b"1", b"2")), now)
        assert not is_authentic(request, now, "another-secret-of-somebody")
        assert not is_authentic(request, now + 3600)
        later = {
            **request.headers,
            "Tenure-Signature": request.headers["Tenure-Signature"].replace("t=", "t=1"),
        }
        assert not is_authentic(request._replace(headers=later), now)


def test_the_sinks_own_parameters_are_not_sent(server: WebhookServer) -> None:
    sink = sink_to(server.url("/in/T01", hmac_secret=SECRET, auth_header="Bearer%20canary", v="2"))
    sink.emit([message(1)])
    sink.close()
    (request,) = server.requests
    assert request.path == "/in/T01?v=2"
    assert request.headers["Authorization"] == "Bearer canary"
    assert SECRET not in repr(request)
