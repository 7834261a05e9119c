"""A webhook's receiver on loopback, with TLS, which keeps what it gets and fails as it is told."""

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.unit.pgwire.certificates import make_certificate


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


Refusal = Callable[[BaseHTTPRequestHandler, Request], bool]
"""Answers a request that is not to be kept; False: it did not."""


def answer(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class WebhookServer:
    def __init__(self, directory: Path | None = None) -> None:
        """Without a directory for its certificate it has no TLS."""
        self.requests: list[Request] = []
        """Those that were accepted."""
        self.attempts = 0
        self.connections = 0
        self.refuse: Refusal = lambda handler, request: False
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._pem = ""
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            pair = make_certificate(directory)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.certificate, pair.key)
            self._server.context = context
            self._pem = pair.certificate.read_text()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def ca_cert(self) -> str:
        """As the parameter of an address."""
        return quote(b64encode(self._pem.encode()).decode(), safe="")

    def url(self, path: str = "/in", host: str = "localhost", **parameters: str) -> str:
        own = {"ca_cert": self.ca_cert} if self._pem else {}
        query = "&".join(f"{name}={value}" for name, value in {**own, **parameters}.items())
        scheme = "https" if self._pem else "http"
        return f"{scheme}://{host}:{self.port}{path}" + (f"?{query}" if query else "")

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        size = int(handler.headers["Content-Length"])
        request = Request(handler.path, dict(handler.headers), handler.rfile.read(size))
        self.attempts += 1
        if self.refuse(handler, request):
            return
        with self._lock:
            self.requests.append(request)
        answer(handler, 200)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    context: ssl.SSLContext | None = None

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            if self.context is not None:  # here, so that a client that is slow holds up no other
                request = self.context.wrap_socket(request, server_side=True)
        except OSError:
            request.close()
            return
        super().process_request_thread(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are what tests are about."""


def _handler(server: WebhookServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            server.connections += 1

        def do_POST(self) -> None:
            server.take(self)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
