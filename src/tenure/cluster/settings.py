"""Cluster settings: one value for all nodes, watched by each.

    SET ─► record in the store ─► watch on every node ─► a new frozen `Settings` in memory

Names, types and limits are the definitions of this program. A value that another version stored and this one
does not know, or would not accept, is ignored here and left in the store: a node must not fail because a
newer one has more settings.

The store opens before its settings can be read: it begins with `base`, and is handed each newer `Settings`.
Each node starts from `base`, the values of its command line; the cluster's values override them.

Invariant (settings-watched): a node's settings are those of the store as of a time that moves forward.

Walk: statements call `set` and `reset` in their transaction; `composition.cluster_layer` runs `follow` in a
loop and hands `current` to the parts that need settings.
"""

import logging
from collections.abc import Callable, Iterable

from tenure.base.errors import InvalidParameter
from tenure.base.settings import MAX_OFFSET, VERSION, Settings
from tenure.base.timestamp import ZERO_AT, micros_of
from tenure.kv.follower import Follower
from tenure.kv.keys import SETTINGS
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

SPACING_SECONDS = 0.1
"""The time between two looks for changes while others commit something else."""

FOLLOW_SECONDS = 1.0
"""How long one step of `follow` waits for a change at most."""

_log = logging.getLogger(__name__)


class StoredSetting(Record, frozen=True):
    name: str
    text: str


class ClusterSettings:
    def __init__(
        self, store: Store, base: Settings, finalize: Callable[[Transaction, int], None] | None = None
    ) -> None:
        self._store = store
        self._base = base
        self._finalize = finalize
        self._records = Records(store.keyspace, SETTINGS, StoredSetting, key=("name",))
        self._current = base
        # There are few settings, and a reset deletes one: so each change loads them all.
        self._follower = Follower(store, [self._records.span()], self._load, spacing_seconds=SPACING_SECONDS)
        self._lock = store.env.lock()
        self._loaded_at = ZERO_AT
        self._follower.load()

    def current(self) -> Settings:
        return self._current

    def set(self, txn: Transaction, name: str, text: str) -> None:
        """Sets a value for all nodes; refuses an unknown name or a value outside the limits."""
        setting = self._base.named(name)
        value = setting.parse(text)
        if setting is MAX_OFFSET:
            self._check_offset(value)
        if setting is VERSION:
            assert self._finalize is not None, "nobody here can finalize a version"
            self._finalize(txn, value)
        else:
            self._records.put(txn, StoredSetting(name, setting.render(value)))

    def reset(self, txn: Transaction, name: str) -> None:
        if self._base.named(name) is VERSION:
            raise InvalidParameter('setting "version" cannot be reset: a version never goes back')
        if name == MAX_OFFSET.name:
            self._check_offset(self._base[MAX_OFFSET])
        self._records.delete(txn, name)

    def _check_offset(self, seconds: float) -> None:
        """Refuses a value below this node's present offset: the node could not commit a reset after it."""
        if seconds >= self._current[MAX_OFFSET]:
            return
        engine_micros = self._store.engine.wall_micros()
        ahead_seconds = (micros_of(self._store.clock.wall_at()) - engine_micros) / 1_000_000
        if ahead_seconds > seconds:
            raise InvalidParameter(
                f"this node's clock is {ahead_seconds * 1000:.3f} ms ahead of the store's: with "
                f'"{MAX_OFFSET.name}" at {MAX_OFFSET.render(seconds)} it could not commit',
                hint="Correct this machine's clock first (run NTP or chrony).",
            )

    def load(self) -> None:
        """Reads the current settings; from any thread, also while another runs `follow`."""
        self._load(self._store.snapshot())

    def _load(self, snapshot: Snapshot) -> None:
        settings = _over(self._base, self._records.scan(snapshot))
        with self._lock:
            if snapshot.at >= self._loaded_at:  # else another thread has loaded newer ones meanwhile
                self._current, self._loaded_at = settings, snapshot.at
                self._store.use_settings(settings)

    def follow(self) -> float:
        """Applies changes as they are committed: one step for a loop."""
        self._follower.step(FOLLOW_SECONDS)
        return 0.0

    def wake(self) -> None:
        """Ends the wait of a `follow` in progress."""
        self._follower.wake()

    def close(self) -> None:
        self._follower.close()


def _over(base: Settings, stored: Iterable[StoredSetting]) -> Settings:
    settings = base
    for each in stored:
        try:
            settings = settings.with_text(each.name, each.text)
        except InvalidParameter as error:
            _log.warning("a setting of the cluster is passed over on this node: %s", error)
    return settings
