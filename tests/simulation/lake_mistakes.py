"""Wrong versions of what keeps the lake right while rows move, each as somebody might have written it.

Walk: `mutants.MUTANTS` is made of `ALL`, among others; all of them are met in the profile "bases".
"""

from collections.abc import Callable
from typing import Any

from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.bulk.upkeep import Upkeep
from tenure.kv import bases, watch
from tenure.kv.records import replace
from tenure.kv.thresholds import clean
from tenure.storage.engine import Removal, Removes
from tenure.table.lake import publishing, visible_files
from tenure.table.lake.bases import LakeBases
from tenure.table.lake.identity import LakeIdentity
from tenure.table.lake.keep import Keep
from tenure.table.lake.manifests import no_base
from tests.simulation import lake_files, lake_world
from tests.simulation.mistakes import _judging, judge_threshold_only, no_gap

BASES = "bases"

# Functions are kept before anything is swapped.
_newer = LakeBases.newer
_publish = publishing.publish
_succeeded = publishing.succeeded
_visible_files = visible_files.visible_files


class _Unmarked:
    """An engine whose answers do not say how far the store was cleaned, but to whoever judges them."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.found: Any = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*asked: Any) -> Any:
            self.found = getattr(self._engine, name)(*asked)
            return self.found._replace(cleaned_at=0)

        return ask


def believing(read: Callable[..., Any]) -> Callable[..., Any]:
    """A read that takes whatever the store still has for the truth, below the mark too."""

    def wrong(engine: Any, *rest: Any, **named: Any) -> Any:
        unmarked, (*asked, accept) = _Unmarked(engine), rest
        return read(unmarked, *asked, lambda found, at: accept(unmarked.found, at), **named)

    return wrong


def newer_in_name_only(self: LakeBases, head: bytes, base: Any) -> Any:
    """Knows that there is a newer base, and goes on with the older one's files."""
    newest = _newer(self, head, base)
    if base is None or base.flushed_at >= newest.flushed_at:
        return newest
    return self._base(replace(base.manifest, flushed_at=newest.flushed_at), head)


def publish_without_mark(
    txn: Any, keyspace: Any, manifests: Any, began_with: Any, replaced: Any, flushed_at: Timestamp | None
) -> None:
    if flushed_at is not None:
        _publish(txn, keyspace, manifests, began_with, replaced, flushed_at)
        return
    _publish(txn, keyspace, manifests, began_with, replaced, txn.read_at)
    successor = publishing.succeeded(began_with, replaced, MAX_AT)
    manifests.put(txn, successor, as_published=True)


def publish_over_others(
    txn: Any, keyspace: Any, manifests: Any, began_with: Any, replaced: Any, flushed_at: Timestamp | None
) -> None:
    """What another merge has published meanwhile is lost."""
    table, index = began_with.table, began_with.index
    known = manifests.get(txn, table, index) or no_base(table, index)
    gone = tuple(file.name for file in known.files) if replaced.live else replaced.gone
    _publish(txn, keyspace, manifests, known, replace(replaced, gone=gone), flushed_at)


def remove_then_mark(self: Upkeep, manifest: Any, upto_at: Timestamp) -> int:
    head = self._head(manifest)
    span, keyspace = self._store.keyspace.head_span(head), self._store.keyspace
    removing = self._store.begin()
    removing.remove(Removal(span.lo, span.hi, Removes.FLUSHED, upto_at, 2))
    removing.commit()
    marking = self._store.begin()
    clean(marking, keyspace, head, upto_at, limit=0)
    marking.commit()
    return removing.removed


def check_store_only(self: Any) -> None:
    """As if what is at a lake's place were always that lake."""
    assert self._records.get(self._store.snapshot()).id == self.id


def succeeded_without_past(manifest: Any, replaced: Any, flushed_at: Timestamp) -> Any:
    """Names the past files that the merge wrote, and forgets those that it did not take in."""
    return _succeeded(replace(manifest, past=()), replaced, flushed_at)


def visible_after_first(manifest: Any, at: Timestamp) -> Any:
    """Prunes a past file at the very time at which its first row begins."""
    past = [file for file in manifest.past if file.first_at < at < file.until]
    return _visible_files(replace(manifest, past=tuple(past)), at)


ALL: tuple[tuple[Any, ...], ...] = (
    ("rows that have moved are not missed", _judging(judge_threshold_only), BASES),
    ("a watch goes on past what was imported", ((watch, "find_gap", no_gap),), BASES),
    ("manifest not read again", ((LakeBases, "newer", newer_in_name_only),), BASES),
    ("a row below the mark believed", ((bases, "get", believing(bases.get)),), BASES),
    ("rows read together below the mark believed", ((bases, "get_many", believing(bases.get_many)),), BASES),
    ("a page below the mark believed", ((bases, "pages", believing(bases.pages)),), BASES),
    ("mark not moved with an input", ((lake_world, "publish", publish_without_mark),), BASES),
    ("merge published over another", ((lake_world, "publish", publish_over_others),), BASES),
    ("strays deleted without asking the id", ((LakeIdentity, "check", lambda self: None),), BASES),
    ("the id asked of the store alone", ((LakeIdentity, "check", check_store_only),), BASES),
    ("past files forgotten by a merge", ((publishing, "succeeded", succeeded_without_past),), BASES),
    ("a past file pruned too early", ((lake_files, "visible_files", visible_after_first),), BASES),
    (
        "the threshold itself not kept readable",
        ((Keep, "needs", lambda keep, at, until: until > keep.threshold + 1),),
        BASES,
    ),
    (
        "what ends at the threshold kept",
        ((Keep, "needs", lambda keep, at, until: until >= keep.threshold),),
        BASES,
    ),
    ("mark moved after the removal", ((Upkeep, "_clean_some", remove_then_mark),), BASES),
)
