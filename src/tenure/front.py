"""The SQL front of a node: sessions over its services, behind a door.

    door (pgwire) ─► SqlSessions ─► Services: store, leases, catalog, changer, locks, ...

Walk: `node.py` makes a `Front` when it is asked to serve SQL; it starts the door last and drains it first.
"""

import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tenure.base.errors import InputOutput, InvalidParameter
from tenure.base.settings import USER_CONNECTIONS_MAX, USER_STATEMENTS_MAX
from tenure.cluster.cancels import Cancels
from tenure.cluster.inquiries import Inquiries
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.encodings import Encoding
from tenure.pgwire.login.authenticator import Authenticator
from tenure.pgwire.login.login_rules import LoginMode
from tenure.pgwire.login.throttle import is_loopback
from tenure.pgwire.login.tls import load
from tenure.pgwire.server import Server
from tenure.pgwire.threads.server_state import PLACES, PLACES_FAR, DoorLimits, UserLimits
from tenure.pgwire.values.codecs import BINARY, decoder, encoder
from tenure.sql.clients.sql_sessions import SqlSessions
from tenure.sql.session.services import Services
from tenure.sql.tables.all import system_tables
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.running import answer

DRAIN_SECONDS = 10.0
"""How long a drain waits for open transactions before it ends them."""

SECRET_BYTES = 32

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listen:
    """Where and how SQL is served."""

    host: str = "127.0.0.1"
    port: int = 26257
    certificate: str = ""
    key: str = ""
    is_insecure: bool = False
    inherited: int | None = None
    """The descriptor of a listening socket that several processes share, if the parent has passed one."""

    @property
    def mode(self) -> LoginMode:
        if self.certificate:
            return LoginMode.CERTIFICATE
        return LoginMode.INSECURE if self.is_insecure else LoginMode.LOCAL

    def check(self) -> None:
        """Raises InvalidParameter unless it is safe to listen there."""
        if bool(self.certificate) != bool(self.key):
            raise InvalidParameter("--cert and --key belong together")
        if self.certificate and self.is_insecure:
            raise InvalidParameter("--insecure and --cert exclude each other")
        if not self.certificate and not is_loopback(self.host) and self.host != "localhost":
            raise InvalidParameter(
                f'listening on "{self.host}" needs a certificate',
                hint="Give --cert and --key, or listen on 127.0.0.1.",
            )


class Front:
    def __init__(
        self,
        services: Services,
        node: NodeView,
        listen: Listen,
        cancels: Cancels,
        inquiries: Inquiries,
        *,
        instance: Callable[[], int],
        announce: Callable[[str], None],
    ) -> None:
        listen.check()
        self._listen = listen
        self._cancels = cancels
        self.node = node
        self.services = services
        self.sessions = SqlSessions(services, system_tables(node), node.plans, node.sessions)
        self._undo = ExitStack()
        with ExitStack() as undo:
            if self.services.duck is not None:
                undo.callback(self.services.duck.close)
            self._server = self._make_server(instance)
            self.host, self.port = self._start()
            cancels.deliver = self._server.cancel
            inquiries.answer = partial(answer, node)
            undo.callback(self._server.stop)
            announce(f"{self.host}:{self.port}")
            self._undo = undo.pop_all()

    def _make_server(self, instance: Callable[[], int]) -> Server:
        listen, env = self._listen, self.services.env
        tls = load(Path(listen.certificate), Path(listen.key)) if listen.certificate else None
        users = self.services.users
        fresh = secrets.token_bytes(SECRET_BYTES)
        store = self.services.store
        secret = store.transact(lambda txn: users.secret(txn, fresh))
        authenticator = Authenticator(
            store, users, mode=listen.mode, mock_secret=secret, monotonic=env.monotonic
        )
        return Server(
            self.sessions,
            authenticator,
            env,
            host=listen.host,
            port=listen.port,
            instance=instance,
            tls=tls,
            route_cancel=self._cancels.request,
            user_limits=self._user_limits,
            long_turns=self.node.long_turns,
            inherited=listen.inherited,
            limits=DoorLimits(places_max=PLACES if self.services.runs_inline else PLACES_FAR),
        )

    def _user_limits(self) -> UserLimits:
        settings = self.services.settings.current()
        return UserLimits(settings[USER_CONNECTIONS_MAX], settings[USER_STATEMENTS_MAX])

    def _start(self) -> tuple[str, int]:
        try:
            return self._server.start()
        except OSError as error:
            raise InputOutput(
                f"listening on {self._listen.host}:{self._listen.port}: {error.strerror or error}",
                hint="Give another address with --sql HOST:PORT; port 0 takes a free one.",
            ) from error

    def drain(self) -> None:
        if not self._server.drain(DRAIN_SECONDS):
            _log.warning("some transactions did not end within %.0f s and were cut off", DRAIN_SECONDS)

    def stop(self) -> None:
        self._undo.close()


class BinaryCodecs:
    """The wire's binary format, as COPY uses it."""

    def encoders(self, types: Sequence[Type], encoding: Encoding) -> list[Callable[[Datum], bytes]]:
        return [encoder(each, BINARY, encoding=encoding) for each in types]

    def decoders(self, types: Sequence[Type], encoding: Encoding) -> list[Callable[[bytes], Datum]]:
        return [decoder(each, BINARY, encoding=encoding) for each in types]
