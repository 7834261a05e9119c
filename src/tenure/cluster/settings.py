"""Cluster settings: one value for all nodes, watched by each.

    SET ─► record in the store ─► watch on every node ─► a new frozen `Settings` in memory

Names, types and limits are the definitions of this program. A value that another version of it
stored and this one does not know, or would not accept, is passed over here and left in the store:
a node must not fail because a newer one has more settings.

The store is there before the settings that are in it: it begins with `base`, and is handed each newer ones.
Each node starts from `base`, what its command line gave; what the cluster has set lies over it.

Invariant (settings-watched): a node's settings are those of the store as of a time that moves on.

Walk: statements call `set` and `reset` in their transaction; `node.py` runs `follow` in a loop and
hands `current` to whoever needs settings.
"""

import logging
from collections.abc import Callable, Iterable

from tenure.base.errors import BaseMoved, InvalidParameter, SnapshotTooOld
from tenure.base.settings import VERSION, Settings
from tenure.kv.keys import SETTINGS
from tenure.kv.records import Record, Records
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.kv.watch import Watch

GAP_SECONDS = 0.1
"""Between two looks for changes while others commit something else."""

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
        self._watch: Watch | None = None
        self._is_due = False
        """Whether a change was seen that could not be read yet: the watch will not tell again."""
        self._current = base
        self.load()

    def current(self) -> Settings:
        return self._current

    def set(self, txn: Transaction, name: str, text: str) -> None:
        """Sets a value for all nodes; refuses what does not exist or lies outside the limits."""
        setting = self._base.named(name)
        value = setting.parse(text)
        if setting is VERSION:
            assert self._finalize is not None, "nobody here can finalize a version"
            self._finalize(txn, value)
        else:
            self._records.put(txn, StoredSetting(name, setting.render(value)))

    def reset(self, txn: Transaction, name: str) -> None:
        if self._base.named(name) is VERSION:
            raise InvalidParameter('setting "version" cannot be reset: a version never goes back')
        self._records.delete(txn, name)

    def load(self) -> None:
        """Reads all settings and watches from there on."""
        snapshot = self._store.snapshot()
        if self._watch is not None:
            self._watch.close()
        self._watch = self._store.watch([self._records.span()], since_at=snapshot.at, gap_seconds=GAP_SECONDS)
        self._current = _over(self._base, self._records.scan(snapshot))
        self._store.use_settings(self._current)
        self._is_due = False

    def follow(self) -> float:
        """Takes in changes as they are committed: one step for a loop."""
        assert self._watch is not None
        try:
            self._is_due = self._is_due or bool(self._watch.next(FOLLOW_SECONDS, changes_only=True).revisions)
        except (SnapshotTooOld, BaseMoved):
            self._is_due = True
        if self._is_due:
            self.load()  # they are few; and so a reset needs no thought
        return 0.0

    def wake(self) -> None:
        """Ends the wait of a `follow` in progress."""
        if self._watch is not None:
            self._watch.wake()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()


def _over(base: Settings, stored: Iterable[StoredSetting]) -> Settings:
    settings = base
    for each in stored:
        try:
            settings = settings.with_text(each.name, each.text)
        except InvalidParameter as error:
            _log.warning("a setting of the cluster is passed over on this node: %s", error)
    return settings
