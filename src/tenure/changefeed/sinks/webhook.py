"""Webhooks: messages as requests to an HTTPS server.

    POST /path                                    {"payload": [{"after": ..., "key": [1], "topic": "t"}, ...],
    Tenure-Job: 42                                 "length": 2}
    Tenure-Run: 3                                 or {"resolved": "1795000000000000.0000000001"}
    Tenure-Signature: t=1795000000,v1=<HMAC-SHA256 of "1795000000." and the body, in hex>

Messages are sent when they are emitted, one request after the other, so a key's changes arrive in order.
While a request is under way changes gather, and the next ones are larger: up to `BATCH_BYTES`. A receiver
that is slow slows the feed down; nothing is kept but the messages of one step.

Any status but 2xx is a failure. It is tried again a few times; then the run ends, and the job's next attempt
starts at its last checkpoint. So messages may come again, with the same content. The run number grows with
each run: a receiver that keeps the greatest one can refuse what a former run still sends.

Invariant (S25): a receiver that knows the secret can tell a request that was changed, or is old.

Walk: `changefeed.sinks.destinations` makes one per run; `changefeed.feed` calls `emit`.
"""

import hmac
from collections.abc import Iterator, Sequence

from tenure.base.errors import Unavailable
from tenure.base.retries import Pauses, Retries
from tenure.changefeed.messages import Message, line, resolved_text
from tenure.changefeed.records import FeedPosition
from tenure.changefeed.sinks.checked_connection import (
    CheckedConnection,
    Resolve,
    open_connection,
    resolve_host,
)
from tenure.changefeed.sinks.egress import rules_of
from tenure.changefeed.sinks.sink import SinkRun
from tenure.changefeed.sinks.webhook_text import WebhookAddress
from tenure.kv.records import replace

BATCH_BYTES = 1 << 20
"""Of one request: most servers take as much. A message that is larger goes alone."""

ATTEMPTS = 5
PAUSES = Pauses(0.2, 3.0)
"""A receiver that restarts is met again within this run; a longer outage is the job's to wait for."""

CONNECTION_SECONDS = 60.0
"""After so long a connection is opened anew: its address is checked by the rules of the time."""


class WebhookSink:
    def __init__(
        self,
        address: WebhookAddress,
        run: SinkRun,
        *,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._address = address
        self._run = run
        self._resolve = resolve
        self._connection: CheckedConnection | None = None

    def resume(self, position: FeedPosition) -> FeedPosition:
        return position

    def emit(self, messages: Sequence[Message]) -> int:
        size = 0
        for batch in batches([line(each, self._run.options).encode() for each in messages], BATCH_BYTES):
            self._send(b'{"payload":[%s],"length":%d}' % (b",".join(batch), len(batch)))
            size += sum(map(len, batch))
        return size

    def commit(self, position: FeedPosition) -> FeedPosition:
        """Everything emitted was answered for."""
        if self._run.options.resolved_seconds is not None and position.resolved_at:
            self._send(resolved_text(position.resolved_at).encode())
        return replace(position, batch=position.batch + 1)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _send(self, body: bytes) -> None:
        retries = Retries(ATTEMPTS, PAUSES, self._run.env, sleep=self._run.sleep)
        while True:
            try:
                self._attempt(body)
                return
            except Unavailable as error:
                self.close()
                retries.failed(error)
            retries.pause()

    def _attempt(self, body: bytes) -> None:
        connection = self._connected()
        # Asked last: connecting may have taken long.
        deadline = self._run.begin_send()
        status = connection.post(body, self._headers(body), deadline=deadline)
        if not 200 <= status < 300:
            what = "a redirect, which is not followed" if 300 <= status < 400 else "a failure"
            raise Unavailable(f'webhook "{self._address.shown}" has answered with {what}: status {status}')

    def _connected(self) -> CheckedConnection:
        env, connection = self._run.env, self._connection
        if connection is not None and connection.is_open:
            if env.monotonic() - connection.opened < CONNECTION_SECONDS:
                return connection
            self.close()
        self._connection = open_connection(
            *(self._address, rules_of(self._run.settings()), env),
            deadline=self._run.begin_send(),
            resolve=self._resolve,
        )
        return self._connection

    def _headers(self, body: bytes) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "tenure",
            "Tenure-Job": str(self._run.job),
            "Tenure-Run": str(self._run.run),
        }
        if self._address.auth_header:
            headers["Authorization"] = self._address.auth_header
        if self._address.hmac_secret:
            seconds = self._run.env.wall_micros() // 1_000_000
            headers["Tenure-Signature"] = signature(self._address.hmac_secret, seconds, body)
        return headers


def signature(secret: str, seconds: int, body: bytes) -> str:
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, "sha256").hexdigest()
    return f"t={seconds},v1={digest}"


def batches(texts: Sequence[bytes], bytes_max: int) -> Iterator[Sequence[bytes]]:
    """Consecutive texts, of so many bytes together; at least one."""
    start = size = 0
    for place, text in enumerate(texts):
        if place > start and size + len(text) > bytes_max:
            yield texts[start:place]
            start, size = place, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]
