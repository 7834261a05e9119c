"""Users: who may log in, and the verifier for a proof of their password.

`root` exists from the start: a superuser that cannot be dropped or locked out, without a password until one
is set. A record contains a verifier, never a password.

From the cluster's own secret (`catalog.accounts.cluster_secrets`) every node derives the same salts for users
that do not exist, so that clients cannot tell them from existing ones.

Invariant (root-stays): there is always a superuser `root` that may log in.

Walk: `catalog.bootstrap` calls `create_root`; statements create, alter and drop in their transaction;
doors call `get` and, once, `secret`.
"""

from collections.abc import Iterator

from tenure.base.errors import (
    DependentObjects,
    DuplicateObject,
    InvalidName,
    NameTooLong,
    NotSupported,
    ReservedName,
    UndefinedObject,
)
from tenure.base.timestamp import MAX_AT, ZERO_AT, Timestamp
from tenure.catalog.accounts.cluster_secrets import ClusterSecrets
from tenure.catalog.accounts.passwords import parse_verifier
from tenure.catalog.descriptors.definitions import ROOT
from tenure.catalog.descriptors.validation import NAME_BYTES_MAX
from tenure.kv.keys import USERS, Keyspace
from tenure.kv.records import Record, Records, replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction

RESERVED, RESERVED_PREFIX = ("public", "none"), "pg_"


class User(Record, frozen=True):
    name: str
    verifier: str = ""
    """As `catalog.accounts.passwords` writes it; "": no password, so every password is wrong."""
    is_superuser: bool = False
    can_login: bool = True
    created_at: Timestamp = ZERO_AT

    def __repr__(self) -> str:
        return f"User({self.name!r}, is_superuser={self.is_superuser}, can_login={self.can_login})"


LOGIN_SECRET = "login"


class Users:
    def __init__(self, keyspace: Keyspace) -> None:
        self._users = Records(keyspace, USERS, User, key=("name",))
        self._secrets = ClusterSecrets(keyspace)

    def get(self, txn: Transaction | Snapshot, name: str) -> User | None:
        return self._users.get(txn, name) if 0 < len(name) <= NAME_BYTES_MAX else None

    def all(self, txn: Transaction | Snapshot) -> Iterator[User]:
        return self._users.scan(txn)

    def create(
        self,
        txn: Transaction,
        name: str,
        *,
        verifier: str = "",
        is_superuser: bool = False,
        can_login: bool = True,
    ) -> None:
        _check_name(name)
        _check_verifier(verifier)
        if self._users.get(txn, name) is not None:
            raise DuplicateObject(f'role "{name}" already exists')
        self._users.put(txn, User(name, verifier, is_superuser, can_login), stamp="created_at")

    def create_root(self, txn: Transaction) -> None:
        self.create(txn, ROOT, is_superuser=True)

    def alter(
        self,
        txn: Transaction,
        name: str,
        *,
        verifier: str | None = None,
        is_superuser: bool | None = None,
        can_login: bool | None = None,
    ) -> None:
        """None leaves a field unchanged; the verifier "" removes the password."""
        user = self._existing(txn, name)
        if name == ROOT and (is_superuser is False or can_login is False):
            raise NotSupported(f'role "{ROOT}" must be a superuser that can log in')
        _check_verifier(verifier or "")
        fields = {"verifier": verifier, "is_superuser": is_superuser, "can_login": can_login}
        changes = {field: value for field, value in fields.items() if value is not None}
        # A user created in this very transaction has no timestamp until the commit.
        stamp = "created_at" if user.created_at == MAX_AT else None
        self._users.put(txn, replace(user, **changes), stamp=stamp)

    def drop(self, txn: Transaction, name: str) -> None:
        self._existing(txn, name)
        if name == ROOT:
            raise DependentObjects(f"cannot drop role {ROOT} because it is required by the database system")
        self._users.delete(txn, name)

    def secret(self, txn: Transaction, fresh: bytes) -> bytes:
        """Returns the cluster's secret for logins; `fresh` is stored if there is none yet."""
        return self._secrets.get_or_put(txn, LOGIN_SECRET, fresh)

    def _existing(self, txn: Transaction, name: str) -> User:
        user = self.get(txn, name)
        if user is None:
            raise UndefinedObject(f'role "{name}" does not exist')
        return user


def _check_name(name: str) -> None:
    if not name or "\0" in name:
        raise InvalidName(f'invalid role name: "{name}"')
    if len(name.encode(errors="surrogatepass")) > NAME_BYTES_MAX:
        raise NameTooLong(f'role name "{name}" is longer than {NAME_BYTES_MAX} bytes')
    if name in RESERVED:
        raise ReservedName(f'role name "{name}" is reserved')
    if name.startswith(RESERVED_PREFIX):
        raise ReservedName(
            f'role name "{name}" is reserved',
            detail=f'Role names starting with "{RESERVED_PREFIX}" are reserved.',
        )


def _check_verifier(verifier: str) -> None:
    # A password that came this far by mistake must not reach the store.
    assert not verifier or parse_verifier(verifier) is not None, "what is kept is a verifier"
