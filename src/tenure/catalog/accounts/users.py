"""Users as a door sees them: a role, and the verifier for a proof of its password.

Roles are part of the leased catalog. Verifiers are not: they are in a table of their own that is read only
when somebody logs in, and no lease brings them to other nodes. A record contains a verifier, never a
password.

`root` exists from the start: a superuser that cannot be dropped or locked out, without a password until one
is set.

From the cluster's own secret (`catalog.accounts.cluster_secrets`) every node derives the same salts for users
that do not exist, so that clients cannot tell them from existing ones.

Invariant (root-stays): there is always a superuser `root` that may log in.

Walk: `catalog.bootstrap` calls `create`; `sql.statements.ddl.privileges.roles` sets passwords; doors call
`get` and, once, `secret`.
"""

from collections.abc import Iterator

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.accounts.cluster_secrets import ClusterSecrets
from tenure.catalog.accounts.passwords import parse_verifier
from tenure.catalog.descriptors.definitions import ROOT
from tenure.catalog.descriptors.role_records import Role, RoleRecords
from tenure.catalog.descriptors.validation import NAME_BYTES_MAX
from tenure.kv.keys import PASSWORDS, USERS, Keyspace
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction

ROOT_ID = 10
"""PostgreSQL's oid of the first superuser; descriptors begin above it."""


class User(Record, frozen=True):
    """Also the record of stores from before roles."""

    name: str
    verifier: str = ""
    """As `catalog.accounts.passwords` writes it; "": no password, so every password is wrong."""
    is_superuser: bool = False
    can_login: bool = True
    created_at: Timestamp = ZERO_AT

    def __repr__(self) -> str:
        return f"User({self.name!r}, is_superuser={self.is_superuser}, can_login={self.can_login})"


class Password(Record, frozen=True):
    role: str
    verifier: str

    def __repr__(self) -> str:
        return f"Password({self.role!r})"


LOGIN_SECRET = "login"


class Users:
    def __init__(self, keyspace: Keyspace) -> None:
        self._roles = RoleRecords(keyspace)
        self._passwords = Records(keyspace, PASSWORDS, Password, key=("role",))
        self._former = Records(keyspace, USERS, User, key=("name",))
        self._secrets = ClusterSecrets(keyspace)

    def get(self, txn: Transaction | Snapshot, name: str) -> User | None:
        role = self._roles.role(txn, name) if 0 < len(name) <= NAME_BYTES_MAX else None
        return None if role is None else self._user(txn, role)

    def all(self, txn: Transaction | Snapshot) -> Iterator[User]:
        return (self._user(txn, role) for role in list(self._roles.roles(txn)))

    def _user(self, txn: Transaction | Snapshot, role: Role) -> User:
        password = self._passwords.get(txn, role.name)
        verifier = "" if password is None else password.verifier
        return User(role.name, verifier, role.is_superuser, role.can_login, role.created_at)

    def create(self, txn: Transaction, role: Role, verifier: str = "") -> None:
        """Writes a role and its password; statements leave the role to their draft."""
        self._roles.put(txn, role)
        self.set_password(txn, role.name, verifier)

    def create_root(self, txn: Transaction) -> None:
        self.create(txn, Role(ROOT, ROOT_ID, is_superuser=True, can_login=True))

    def set_password(self, txn: Transaction, name: str, verifier: str) -> None:
        """The verifier "" removes the password."""
        # A password that came this far by mistake must not reach the store.
        assert not verifier or parse_verifier(verifier) is not None, "what is kept is a verifier"
        if verifier:
            self._passwords.put(txn, Password(name, verifier))
        else:
            self._passwords.delete(txn, name)

    def rename(self, txn: Transaction, name: str, new_name: str) -> None:
        """Moves the password of a role that gets another name."""
        password = self._passwords.get(txn, name)
        if password is not None:
            self.set_password(txn, name, "")
            self.set_password(txn, new_name, password.verifier)

    def former(self, txn: Transaction) -> Iterator[User]:
        """The users of a store from before roles."""
        return self._former.scan(txn)

    def secret(self, txn: Transaction, fresh: bytes) -> bytes:
        """Returns the cluster's secret for logins; `fresh` is stored if there is none yet."""
        return self._secrets.get_or_put(txn, LOGIN_SECRET, fresh)
