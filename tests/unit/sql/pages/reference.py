"""The reference pages, written from the code by `python -m tests.unit.sql.pages.reference`."""

from collections.abc import Iterable
from pathlib import Path

from tenure.base.settings import DEFINITIONS as SETTINGS
from tenure.sql.session.variables import DEFINITIONS as VARIABLES
from tenure.sql.tables.virtual import VirtualDefinition
from tests.system_tables import described

DIRECTORY = Path(__file__).parents[4] / "docs" / "reference"

SYSTEM_TABLES = """# System tables

Relations that no user made. They are visible from every database under their schema's name, can be joined and
filtered like any other, and cannot be changed through SQL (42501). `SHOW TABLES FROM system` lists them,
`SHOW COLUMNS FROM system.jobs WITH COMMENT` tells what is told here.

* `system.*` are the records below SQL, read at the transaction's own time (`AS OF SYSTEM TIME` too). They are
  for superusers.
* `tenure_internal.*` are computed: about the catalog as the transaction sees it, about this node, or about
  the cluster, as each says. Who is no superuser sees his own sessions, transactions and jobs only.

Timestamps of type `numeric` are what `cluster_logical_timestamp()` gives and `AS OF SYSTEM TIME` takes. The
id of a node session is sixteen bytes, the instance id and the epoch, and can be asked after with
`tenure_internal.sql_liveness_is_alive(bytea)`, also as `crdb_internal.sql_liveness_is_alive`. Names with
capitals need quotes: `"parentID"`.
"""

SETTINGS_PAGE = """# Settings

## Of the cluster

One value for all nodes. `SET CLUSTER SETTING x = v`, `RESET CLUSTER SETTING x`, `SHOW CLUSTER SETTING x`,
`SHOW ALL CLUSTER SETTINGS`; only superusers set them, and not inside a transaction block. An unknown name is
42704, a value outside its limits 22023. Setting `version` finalizes an upgrade: it never goes back.

`clock.max_offset` cannot be lowered, by RESET neither, below the present offset of the node that is asked:
22023, and the error tells the offset. Other nodes whose clocks are further ahead commit nothing until their
clocks are right. If none can commit, correct a clock, or run `tenure store reset-setting clock.max_offset`:
it needs no node, and commits by the store's own clock.

| name | default | limits | meaning |
|---|---|---|---|
"""

VARIABLES_PAGE = """
## Of a session

`SET x = v`, `SET LOCAL x = v`, `RESET x`, `SHOW x`, `SHOW ALL`, and as options of a connection. Names with a
dot that are not here (`myapp.user`) are the application's own. A session that says nothing of
`statement_timeout` or `idle_in_transaction_session_timeout` goes by the cluster's setting of the same name
after `sql.`.

| name | default | meaning |
|---|---|---|
"""


def system_tables() -> str:
    shown = [each for each in described() if each.schema in ("system", "tenure_internal")]
    return SYSTEM_TABLES + "".join(_table(each) for each in shown)


def _table(each: VirtualDefinition) -> str:
    lines = [f"\n## {each.schema}.{each.name}\n", each.about]
    if each.key:
        lines.append(f"Key: {', '.join(f'`{name}`' for name in each.key)}.")
    lines.append("\n| column | type | meaning |\n|---|---|---|")
    for column, note in zip(each.columns, each.notes, strict=True):
        kind = column.type.sql_name + (" not null" if column.name in each.required else "")
        lines.append(f"| `{column.name}` | {kind} | {note} |")
    return "\n".join(lines) + "\n"


def settings() -> str:
    of_cluster = [
        _row(f"`{each.name}`", each.render(each.default), each.limits(), each.description)
        for each in sorted(SETTINGS, key=lambda each: each.name)
    ]
    of_sessions = [
        _row(f"`{each.name}`", f"`{each.default}`" if each.default else "", each.description)
        for each in sorted(VARIABLES, key=lambda each: each.name.lower())
    ]
    return SETTINGS_PAGE + "".join(of_cluster) + VARIABLES_PAGE + "".join(of_sessions)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |\n"


PAGES = {"system-tables.md": system_tables, "settings.md": settings}


def write(names: Iterable[str] = tuple(PAGES)) -> None:
    DIRECTORY.mkdir(exist_ok=True)
    for name in names:
        (DIRECTORY / name).write_text(PAGES[name]())


if __name__ == "__main__":
    write()
