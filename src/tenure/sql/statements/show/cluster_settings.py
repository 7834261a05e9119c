"""SET, RESET and SHOW CLUSTER SETTING: one value for all nodes.

    SET CLUSTER SETTING x { = | TO } { value | DEFAULT }     RESET CLUSTER SETTING x
    SHOW CLUSTER SETTING x                                   SHOW [ALL] CLUSTER SETTINGS

A change is a transaction of its own, and is over when this node goes by it; the others hear of it within a
moment. `version` finalizes an upgrade; it is refused while there are references between databases that
`sql.cross_database_references` does not allow.

Walk: `statements.statement_table` -> `plan_set`, `plan_reset`, `plan_show` -> `cluster.settings`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from tenure.base.errors import (
    ActiveTransaction,
    InvalidParameter,
    UndefinedVariable,
    WrongState,
)
from tenure.base.settings import CROSS_DATABASE_REFERENCES, VERSION
from tenure.catalog.changes.cross_database import references
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.cluster.settings import ClusterSettings
from tenure.kv.transaction import Transaction
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Control, Statement
from tenure.sql.session.answers import Answer
from tenure.sql.session.session_state import SessionState
from tenure.sql.statements.show.shows import query
from tenure.sql.text.quoting import literal
from tenure.sql.text.tenure_statements import TokenReader

HEARD_SECONDS_MAX, LOOK_SECONDS = 2.0, 0.01
"""How long a change waits for this node to go by it, and how often it looks: a watch brings it."""


@dataclass(frozen=True, slots=True)
class SetClusterSetting(Control):
    settings: ClusterSettings
    catalog: Catalog
    name: str
    value: str | None
    """None: the default."""
    is_short: ClassVar[bool] = False

    @property
    def tag(self) -> str:
        return "RESET CLUSTER SETTING" if self.value is None else "SET CLUSTER SETTING"

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        self._check(session)
        execution.block.require_writable(self.tag)
        session.locks.transact(self._write)
        self._await(session)
        return Answer((), self.tag)

    def _check(self, session: SessionState) -> None:
        session.require_usable_block()
        block = session.block
        if block is not None and (block.is_explicit or block.has_writes):
            raise ActiveTransaction(f"{self.tag} cannot run inside a transaction block")
        message = f'permission denied to set cluster setting "{self.name}"'
        session.rights().require_superuser(message, hint="Ask a superuser.")

    def _write(self, txn: Transaction) -> None:
        if self.name == VERSION.name and not self.settings.current()[CROSS_DATABASE_REFERENCES]:
            _require_no_references(list(self.catalog.list(txn)))
        if self.value is None:
            self.settings.reset(txn, self.name)
        else:
            self.settings.set(txn, self.name, self.value)

    def _await(self, session: SessionState) -> None:
        settings, monotonic = self.settings, session.env.monotonic
        setting = settings.current().named(self.name)
        value = setting.default if self.value is None else setting.parse(self.value)
        until = monotonic() + HEARD_SECONDS_MAX
        # This node's command line may override a default: then the short wait ends without a change.
        while settings.current()[setting] != value and monotonic() < until:
            session.interrupts.sleep(LOOK_SECONDS)


def _require_no_references(catalog: Sequence[AnyDescriptor]) -> None:
    """A version is finalized with what its setting allows: references across databases are not by default."""
    by_id = {each.id: each for each in catalog}
    count = sum(1 for each in catalog for _ in references(each, by_id.get))
    if count:
        raise WrongState(
            f"there are {count} references between databases, and {CROSS_DATABASE_REFERENCES.name} is off",
            hint="tenure_internal.cross_database_references lists them. Drop them, convert the databases to "
            "schemas of one, or turn the setting on.",
        )


def plan_set(settings: ClusterSettings, catalog: Catalog, planner: Planner, reader: TokenReader) -> Control:
    name = _existing_name(settings, ".".join(reader.names()))
    if not reader.take("="):
        reader.expect("to")
    if reader.take("default"):
        reader.end()
        return SetClusterSetting(settings, catalog, name, None)
    value = reader.string() if reader.peek().startswith("'") else reader.rest().strip()
    reader.end()
    if not value:
        raise InvalidParameter(f'setting "{name}" needs a value')
    return SetClusterSetting(settings, catalog, name, value)


def plan_reset(settings: ClusterSettings, catalog: Catalog, planner: Planner, reader: TokenReader) -> Control:
    name = _existing_name(settings, ".".join(reader.names()))
    reader.end()
    return SetClusterSetting(settings, catalog, name, None)


def plan_show(settings: ClusterSettings, planner: Planner, reader: TokenReader) -> Statement:
    name = _existing_name(settings, ".".join(reader.names()))
    reader.end()
    return query(
        planner,
        f'SELECT value AS "{name}" FROM tenure_internal.cluster_settings WHERE variable = {literal(name)}',
    )


def plan_show_all(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(planner, "SELECT * FROM tenure_internal.cluster_settings ORDER BY variable")


def _existing_name(settings: ClusterSettings, name: str) -> str:
    try:
        return settings.current().named(name).name
    except InvalidParameter as error:
        hint = error.hint or "SHOW ALL CLUSTER SETTINGS lists them."
        raise UndefinedVariable(f'unknown cluster setting "{name}"', hint=hint) from error


def statements(settings: ClusterSettings, catalog: Catalog) -> dict[tuple[str, ...], WordsPlanner]:
    return {
        ("set", "cluster", "setting"): partial(plan_set, settings, catalog),
        ("reset", "cluster", "setting"): partial(plan_reset, settings, catalog),
        ("show", "cluster", "setting"): partial(plan_show, settings),
        ("show", "cluster", "settings"): plan_show_all,
        ("show", "all", "cluster", "settings"): plan_show_all,
    }
