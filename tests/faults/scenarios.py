"""The list of scenarios, and on which engines each makes sense.

Walk: `__main__` runs them all; `test_faults_smoke` runs each for a few seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults import (
    beats,
    clocks,
    crashes,
    cuts,
    dead_sessions,
    disks,
    export_kills,
    feed_kills,
    fill_kills,
    flush_kills,
    hostile_user,
    import_history,
    import_kills,
    inputs,
    job_kills,
    job_stops,
    job_upgrade,
    kafka_kills,
    long_transactions,
    lost_notifications,
    many_nodes,
    memory,
    schema_kills,
    schema_stops,
    schema_upgrade,
    spark_kills,
    sql_advisory,
    sql_bank,
    sql_clients,
    sql_contention,
    sql_ddl,
    sql_drain,
    sql_processes,
    sql_short_history,
    webhook_kills,
)
from tests.faults.harness import Result, Run

BOTH = ("sqlite", "postgres")


@dataclass(frozen=True)
class Scenario:
    name: str
    run: Callable[[Run], Result]
    engines: tuple[str, ...] = BOTH
    seconds_max: float = float("inf")
    """Longer would show nothing more."""
    quick_engines: tuple[str, ...] = ()
    """Where a short run is enough on one: Spark takes its time to start."""

    def engines_for(self, *, is_quick: bool) -> tuple[str, ...]:
        return self.quick_engines if is_quick and self.quick_engines else self.engines


SCENARIOS = (
    Scenario("processes", crashes.processes),
    Scenario("kill", crashes.kill),
    Scenario("pg_immediate", crashes.pg_immediate, ("postgres",)),
    Scenario("pg_backend_kill", crashes.pg_backend_kill, ("postgres",)),
    Scenario("cut", cuts.cut),
    Scenario("skew", clocks.skew),
    Scenario("clock_ahead", clocks.clock_ahead),
    Scenario("idle", clocks.idle, seconds_max=10.0),
    Scenario("disk_full", disks.disk_full, seconds_max=10.0),
    Scenario("bad_input", inputs.bad_input, seconds_max=5.0),
    Scenario("heartbeat_load", beats.heartbeat_load),
    Scenario("jobs_kill", job_kills.jobs_kill),
    Scenario("jobs_stop", job_stops.jobs_stop),
    Scenario("jobs_store_restart", job_kills.jobs_store_restart),
    Scenario("jobs_control", job_kills.jobs_control),
    Scenario("jobs_upgrade", job_upgrade.jobs_upgrade),
    Scenario("schema_upgrade", schema_upgrade.schema_upgrade),
    Scenario("dead_sessions", dead_sessions.dead_sessions, seconds_max=10.0),
    Scenario("schema_kill", schema_kills.schema_kill),
    Scenario("schema_stop", schema_stops.schema_stop),
    Scenario("schema_store_restart", schema_kills.schema_store_restart, ("postgres",)),
    Scenario("long_transaction", long_transactions.long_transaction, seconds_max=20.0),
    Scenario("lost_notifications", lost_notifications.lost_notifications),
    Scenario("sql_bank", sql_bank.sql_bank),
    Scenario("sql_ddl", sql_ddl.sql_ddl),
    Scenario("sql_drain", sql_drain.sql_drain),
    Scenario("sql_processes", sql_processes.sql_processes),
    Scenario("sql_clients", sql_clients.sql_clients),
    Scenario("sql_contention", sql_contention.sql_contention),
    Scenario("sql_advisory", sql_advisory.sql_advisory),
    Scenario("sql_short_history", sql_short_history.sql_short_history, seconds_max=60.0),
    Scenario("hostile_user", hostile_user.hostile_user, quick_engines=("sqlite",)),
    Scenario("memory", memory.memory, ("sqlite",)),
    Scenario("spark_kill", spark_kills.spark_kill),
    Scenario("flush_kill", flush_kills.flush_kill),
    Scenario("import_kill", import_kills.import_kill, quick_engines=("sqlite",)),
    Scenario("export_kill", export_kills.export_kill, quick_engines=("postgres",)),
    Scenario("feed_kill", feed_kills.feed_kill),
    Scenario("webhook_kill", webhook_kills.webhook_kill),
    Scenario("kafka_kill", kafka_kills.kafka_kill, quick_engines=("sqlite",)),
    Scenario("fill_kill", fill_kills.fill_kill, quick_engines=("sqlite",)),
    Scenario("import_history", import_history.import_history),
    Scenario("sessions_300", many_nodes.sessions_300, ("sqlite",), seconds_max=10.0),
)
