"""S2: do unknown users take as long as known ones? A thousand handshakes of each, in turn.

Not a test: a busy machine must not fail one. By hand: python -m tests.security.login_timing
"""

import logging
import statistics
import time

from tenure.base.env import ManualEnv
from tenure.base.errors import TenureError
from tenure.catalog.accounts.passwords import SALT_BYTES, stored_password
from tenure.catalog.accounts.users import Users
from tenure.catalog.descriptors.role_records import Role
from tenure.kv.store import Store
from tenure.pgwire.login.authenticator import Authenticator
from tenure.pgwire.login.login_rules import LoginMode
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.pgwire.scram_client import ScramClient

HANDSHAKES = 1_000


def main() -> None:
    logging.disable()  # each of them is logged
    env = ManualEnv()
    store = Store(SqliteEngine(MEMORY, env), env)
    users = Users(store.keyspace)
    kept = stored_password("right", salt=bytes(SALT_BYTES))
    store.transact(lambda txn: users.create(txn, Role("known", 200, can_login=True), kept))
    door = Authenticator(store, users, mode=LoginMode.LOCAL, mock_secret=b"secret", monotonic=env.monotonic)
    taken: dict[str, list[float]] = {"known": [], "unknown": []}
    for _ in range(HANDSHAKES):
        for user, seconds in taken.items():
            seconds.append(_handshake(door, user))
    medians = {user: statistics.median(seconds) * 1e6 for user, seconds in taken.items()}
    print(" ".join(f"{user}: {median:.1f} us" for user, median in medians.items()))
    print(f"ratio: {medians['unknown'] / medians['known']:.3f}")


def _handshake(door: Authenticator, user: str) -> float:
    """Only what the server does is timed."""
    client = ScramClient("wrong")
    first = client.first()
    start = time.perf_counter()
    exchange = door.login(user=user, address="127.0.0.1", binding=None)
    assert exchange is not None
    answer = exchange.begin(client.mechanism, first)
    spent = time.perf_counter() - start
    final = client.final(answer)
    start = time.perf_counter()
    try:
        exchange.finish(final)
    except TenureError:
        return spent + time.perf_counter() - start
    raise AssertionError("a wrong password was taken")


if __name__ == "__main__":
    main()
