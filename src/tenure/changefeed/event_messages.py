"""Table events as messages: what consumers are told of a schema change, between the rows before and after it.

    {"ddl":{"table":"defaultdb.app.t","events":["add column"],"version":7,
            "columns":[{"name":"a","type":"bigint"}, ...]},"updated":"1795000000000000.0000000000"}

The message has the key `[]`, which no row has. It comes after every change of the table below its timestamp
and before all others. A table that has ended has `drop` or `move` as its last event, and no columns.

Walk: `changefeed.feed` calls `event_message` for each `TableEvent` of a stream; pure.
"""

import json

from tenure.base.timestamp import to_text
from tenure.changefeed.messages import Message
from tenure.changefeed.table_events import TableEvent, shown_columns
from tenure.expr.types.type_names import type_of

NO_KEY = "[]"


def event_message(topic: str, event: TableEvent, *, is_over: bool) -> Message:
    """`is_over`: it is the last that the feed says of this table."""
    ddl: dict[str, object] = {
        "table": topic,
        "events": sorted(each.value for each in event.kinds),
        "version": event.after.table.version,
    }
    if not is_over:
        ddl["columns"] = _columns(event)
    value = json.dumps({"ddl": ddl, "updated": to_text(event.at)}, separators=(",", ":"))
    return Message(topic, NO_KEY, value, event.at)


def _columns(event: TableEvent) -> list[dict[str, str]]:
    enums = {each.id: each for each in event.after.enums}
    return [
        {"name": each.name, "type": type_of(each.type, enums.__getitem__).sql_name}
        for each in shown_columns(event.after.table)
    ]
