"""CREATE CHANGEFEED without INTO: the changes are the rows of the statement, until it is canceled.

    table                       key     value
    defaultdb.app.orders        [1]     {"after": {"id": 1, "state": "new"}}
    NULL                        NULL    {"resolved": "1795000000000000.0000000000"}

Walk: `statements.jobs.changefeeds` plans a `StreamChangefeed`, whose answer has the rows of a stream; the
portal takes rows from these -> `changefeed.client_stream.ClientStream`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenure.base.memory import Account
from tenure.catalog.accounts.privileges import CHANGEFEED
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.catalog.leases.access_sources import StoredAccess
from tenure.changefeed.client_stream import STREAM_BYTES, ClientStream
from tenure.changefeed.job import FeedServices
from tenure.changefeed.ordering import MEMORY_BYTES
from tenure.changefeed.records import FeedPayload, FeedPosition
from tenure.expr.types.datatype import Datum
from tenure.expr.types.type_names import type_of
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer, Pause, ResultColumn
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.jobs.feed_targets import (
    TAG,
    FeedTargets,
    beginning_of,
    check_may_feed,
    options_of,
)

TEXT = type_of(TypeRef("text"))
STREAM_RESULT = tuple(ResultColumn(name, TEXT) for name in ("table", "key", "value"))


@dataclass(frozen=True, slots=True)
class StreamChangefeed(Control):
    bulk: BulkServices
    targets: FeedTargets
    options: tuple[tuple[str, str | None], ...]
    columns = STREAM_RESULT
    is_short = False

    def control(self, execution: Execution) -> Answer:
        feeds = check_may_feed(self.bulk, execution, self.targets)
        options = options_of(execution, self.options)
        tables, begin = beginning_of(feeds, execution, self.targets, options)
        scope, selection = self.targets.scope, self.targets.selection
        payload = FeedPayload(tables, "", options, begin, scope=scope, selection=selection)
        rows = ChangefeedRows(feeds, payload, execution.session.user, execution.session.session_user)
        return Answer((), TAG, is_done=False, stream=rows)


class ChangefeedRows:
    def __init__(self, feeds: FeedServices, payload: FeedPayload, user: str, session_user: str) -> None:
        self._feeds = feeds
        self._user = user
        self._is_charged = False
        self._bytes = 2 * STREAM_BYTES + (MEMORY_BYTES if payload.options.is_ordered else 0)
        self._stream = ClientStream(
            feeds.sources,
            payload,
            role=session_user,
            admit=lambda position: self._require([position.table]),
            check=self._check,
            follow=feeds.follow,
        )

    def _check(self, position: FeedPosition) -> None:
        self._require([each.table for each in position.tables])

    def _require(self, tables: Sequence[int]) -> None:
        store, catalog = self._feeds.sources.store, self._feeds.sources.catalog
        now = store.snapshot()
        rights = Rights(StoredAccess(catalog, now), self._user)
        for table in tables:
            found = catalog.get(now, table)
            if found is not None:
                rights.require(found, CHANGEFEED)

    def take(self, count: int, account: Account | None) -> Sequence[Sequence[Datum]]:
        if account is not None and not self._is_charged:
            account.charge(self._bytes, "a changefeed")
            self._is_charged = True
        return self._stream.take(count)

    @property
    def is_done(self) -> bool:
        return self._stream.is_done

    @property
    def pause(self) -> Pause | None:
        return None if self._stream.is_busy else _NewsPause(self._stream)

    def close(self) -> None:
        self._stream.close()


class _NewsPause:
    def __init__(self, stream: ClientStream) -> None:
        self._stream = stream
        self.seconds = stream.pause_seconds

    def begin(self, on_ready: Callable[[], None]) -> None:
        self._stream.await_news(on_ready)
