"""The roles that exist from the start, under PostgreSQL's names: what their members may do besides.

    pg_read_server_files, pg_write_server_files    use files
    pg_read_all_stats                              see the sessions of all users
    pg_create_subscription                         let a node connect to other machines: webhooks, Kafka
    pg_signal_backend                              end statements and sessions of users that are no superusers

Files and the network belong to the operator: the owner of a table may grant everything on the table, and
still nobody reads or writes files, or sends messages, by that. Only superusers make others members of these
roles, or let them do so.

Walk: `catalog.bootstrap` writes them; `sql.statements.jobs.importing`, `sql.statements.jobs.exporting`,
`bulk.importing.job`, `bulk.exporting.kind`, `changefeed.sinks.destinations`, `sql.tables.running` and
`sql.tables.pg_catalog.signals` ask for them.
"""

from tenure.catalog.descriptors.role_records import Role

READ_FILES, WRITE_FILES = "pg_read_server_files", "pg_write_server_files"

READ_STATISTICS, SIGNAL_SESSIONS = "pg_read_all_stats", "pg_signal_backend"

CONNECT_ELSEWHERE = "pg_create_subscription"

PREDEFINED = (
    Role(READ_FILES, 11),
    Role(WRITE_FILES, 12),
    Role(READ_STATISTICS, 13),
    Role(SIGNAL_SESSIONS, 14),
    Role(CONNECT_ELSEWHERE, 15),
)
"""The ids are below those of all descriptors and of the roles that users make."""
