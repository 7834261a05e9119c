"""Logs users in: looks them up, checks a proof of their password, slows down guessing.

    login ─► decide ─┬► let in
                     ├► refused (28000)
                     └► Exchange: begin ─► wait_seconds ─► finish ─► let in, or 28P01

A proof is not checked before `wait_seconds` is over; the connection waits, and asks again, because another
one may have failed meanwhile. So many connections at once guess no faster than one.

Walk: `pgwire.login.startup` calls `login` in a thread and carries the messages of the exchange.
"""

import logging
from collections.abc import Callable

from tenure.base.errors import WrongPassword
from tenure.catalog.accounts.users import User, Users
from tenure.kv.store import Store
from tenure.pgwire.login.login_rules import Allow, LoginMode, Refuse, admit, decide
from tenure.pgwire.login.scram import Scram, server_nonce
from tenure.pgwire.login.throttle import Throttle, is_loopback

_log = logging.getLogger(__name__)


class Authenticator:
    def __init__(
        self,
        store: Store,
        users: Users,
        *,
        mode: LoginMode,
        mock_secret: bytes,
        monotonic: Callable[[], float],
    ) -> None:
        self._store = store
        self._users = users
        self._mode = mode
        self._mock_secret = mock_secret
        self._monotonic = monotonic
        self._throttle = Throttle()

    def login(self, *, user: str, address: str, binding: bytes | None) -> "Exchange | None":
        """None if the user needs no password. `binding` is the certificate's hash: None without TLS, empty if
        it has none. Raises LoginRefused.
        """
        record = self._users.get(self._store.snapshot(), user)
        decision = decide(
            user, record, is_tls=binding is not None, is_loopback=is_loopback(address), mode=self._mode
        )
        match decision:
            case Refuse(error):
                _log.warning("login of %a from %s refused: %s", user, address, error.sqlstate)
                raise error
            case Allow():
                return None
        scram = Scram(
            user, decision.verifier, nonce=server_nonce(), mock_secret=self._mock_secret, binding=binding
        )
        return Exchange(user, address, record, scram, self._throttle, self._monotonic)


class Exchange:
    """One login with a password; used by one connection, on its loop."""

    def __init__(
        self,
        user: str,
        address: str,
        record: User | None,
        scram: Scram,
        throttle: Throttle,
        monotonic: Callable[[], float],
    ) -> None:
        self._user = user
        self._address = address
        self._record = record
        self._scram = scram
        self._throttle = throttle
        self._monotonic = monotonic
        self.mechanisms = scram.mechanisms

    def begin(self, mechanism: str, first: bytes | None) -> bytes:
        return self._scram.begin(mechanism, first)

    def wait_seconds(self) -> float:
        """How long to wait before `finish`; ask again after that, until it is 0."""
        return self._throttle.wait_seconds(self._user, self._address, self._monotonic())

    def finish(self, final: bytes) -> bytes:
        try:
            signature = self._scram.finish(final)
        except WrongPassword as error:
            self._throttle.failed(self._user, self._address, self._monotonic())
            error.delay_seconds = self.wait_seconds()
            _log.warning("login of %a from %s failed", self._user, self._address)
            raise
        self._throttle.succeeded(self._user, self._address)
        if (refused := admit(self._user, self._record)) is not None:
            raise refused
        return signature
