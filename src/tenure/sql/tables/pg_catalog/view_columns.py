"""The columns of PostgreSQL 18's catalogs that are views there, written as in `table_columns`.

Walk: `sql.tables.pg_catalog.shapes` reads the declarations.
"""

VIEWS = """
pg_aios 12355:
    pid int4, io_id int4, io_generation int8, state text, operation text, off int8, length int8,
    target text, handle_data_len int2, raw_result int4, result text, target_desc text, f_sync bool,
    f_localmem bool, f_buffered bool
pg_available_extension_versions 12085:
    name name, version text, installed bool, superuser bool, trusted bool, relocatable bool, schema
    name, requires name[], comment text
pg_available_extensions 12081:
    name name, default_version text, installed_version text, comment text
pg_backend_memory_contexts 12142:
    name text, ident text, type text, level int4, path int4[], total_bytes int8, total_nblocks int8,
    free_bytes int8, free_chunks int8, used_bytes int8
pg_config 12130: name text, setting text
pg_cursors 12077:
    name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time
    timestamptz
pg_file_settings 12110:
    sourcefile text, sourceline int4, seqno int4, name text, setting text, applied bool, error text
pg_group 12010: groname name, grosysid oid, grolist oid[]
pg_hba_file_rules 12114:
    rule_number int4, file_name text, line_number int4, type text, database text[], user_name
    text[], address text, netmask text, auth_method text, options text[], error text
pg_ident_file_mappings 12118:
    map_number int4, file_name text, line_number int4, map_name text, sys_name text, pg_username
    text, error text
pg_indexes 12043: schemaname name, tablename name, indexname name, tablespace name, indexdef text
pg_locks 12073:
    locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid
    xid, classid oid, objid oid, objsubid int2, virtualtransaction text, pid int4, mode text,
    granted bool, fastpath bool, waitstart timestamptz
pg_matviews 12038:
    schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool,
    ispopulated bool, definition text
pg_policies 12018:
    schemaname name, tablename name, policyname name, permissive text, roles name[], cmd text, qual
    text, with_check text
pg_prepared_statements 12095:
    name text, statement text, prepare_time timestamptz, parameter_types regtype[], result_types
    regtype[], from_sql bool, generic_plans int8, custom_plans int8
pg_prepared_xacts 12090:
    transaction xid, gid text, prepared timestamptz, owner name, database name
pg_publication_tables 12068:
    pubname name, schemaname name, tablename name, attnames name[], rowfilter text
pg_replication_origin_status 12343:
    local_id oid, external_id text, remote_lsn text, local_lsn text
pg_replication_slots 12261:
    slot_name name, plugin name, slot_type text, datoid oid, database name, temporary bool, active
    bool, active_pid int4, xmin xid, catalog_xmin xid, restart_lsn text, confirmed_flush_lsn text,
    wal_status text, safe_wal_size int8, two_phase bool, two_phase_at text, inactive_since
    timestamptz, conflicting bool, invalidation_reason text, failover bool, synced bool
pg_roles 12000:
    rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin
    bool, rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz,
    rolbypassrls bool, rolconfig text[], oid oid
pg_rules 12023: schemaname name, tablename name, rulename name, definition text
pg_seclabels 12099:
    objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text, provider
    text, label text
pg_sequences 12048:
    schemaname name, sequencename name, sequenceowner name, data_type regtype, start_value int8,
    min_value int8, max_value int8, increment_by int8, cycle bool, cache_size int8, last_value int8
pg_settings 12104:
    name text, setting text, unit text, category text, short_desc text, extra_desc text, context
    text, vartype text, source text, min_val text, max_val text, enumvals text[], boot_val text,
    reset_val text, sourcefile text, sourceline int4, pending_restart bool
pg_shadow 12005:
    usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool,
    passwd text, valuntil timestamptz, useconfig text[]
pg_shmem_allocations 12134: name text, off int8, size int8, allocated_size int8
pg_shmem_allocations_numa 12138: name text, numa_node int4, size int8
pg_stat_activity 12226:
    datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, application_name
    text, client_addr text, client_hostname text, client_port int4, backend_start timestamptz,
    xact_start timestamptz, query_start timestamptz, state_change timestamptz, wait_event_type text,
    wait_event text, state text, backend_xid xid, backend_xmin xid, query_id int8, query text,
    backend_type text
pg_stat_all_indexes 12187:
    relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8,
    last_idx_scan timestamptz, idx_tup_read int8, idx_tup_fetch int8
pg_stat_all_tables 12146:
    relid oid, schemaname name, relname name, seq_scan int8, last_seq_scan timestamptz, seq_tup_read
    int8, idx_scan int8, last_idx_scan timestamptz, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd
    int8, n_tup_del int8, n_tup_hot_upd int8, n_tup_newpage_upd int8, n_live_tup int8, n_dead_tup
    int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz,
    last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz,
    vacuum_count int8, autovacuum_count int8, analyze_count int8, autoanalyze_count int8,
    total_vacuum_time float8, total_autovacuum_time float8, total_analyze_time float8,
    total_autoanalyze_time float8
pg_stat_archiver 12289:
    archived_count int8, last_archived_wal text, last_archived_time timestamptz, failed_count int8,
    last_failed_wal text, last_failed_time timestamptz, stats_reset timestamptz
pg_stat_bgwriter 12293:
    buffers_clean int8, maxwritten_clean int8, buffers_alloc int8, stats_reset timestamptz
pg_stat_checkpointer 12297:
    num_timed int8, num_requested int8, num_done int8, restartpoints_timed int8, restartpoints_req
    int8, restartpoints_done int8, write_time float8, sync_time float8, buffers_written int8,
    slru_written int8, stats_reset timestamptz
pg_stat_database 12270:
    datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback int8, blks_read int8,
    blks_hit int8, tup_returned int8, tup_fetched int8, tup_inserted int8, tup_updated int8,
    tup_deleted int8, conflicts int8, temp_files int8, temp_bytes int8, deadlocks int8,
    checksum_failures int8, checksum_last_failure timestamptz, blk_read_time float8, blk_write_time
    float8, session_time float8, active_time float8, idle_in_transaction_time float8, sessions int8,
    sessions_abandoned int8, sessions_fatal int8, sessions_killed int8, parallel_workers_to_launch
    int8, parallel_workers_launched int8, stats_reset timestamptz
pg_stat_database_conflicts 12275:
    datid oid, datname name, confl_tablespace int8, confl_lock int8, confl_snapshot int8,
    confl_bufferpin int8, confl_deadlock int8, confl_active_logicalslot int8
pg_stat_gssapi 12257:
    pid int4, gss_authenticated bool, principal text, encrypted bool, credentials_delegated bool
pg_stat_io 12301:
    backend_type text, object text, context text, reads int8, read_bytes numeric, read_time float8,
    writes int8, write_bytes numeric, write_time float8, writebacks int8, writeback_time float8,
    extends int8, extend_bytes numeric, extend_time float8, hits int8, evictions int8, reuses int8,
    fsyncs int8, fsync_time float8, stats_reset timestamptz
pg_stat_progress_analyze 12309:
    pid int4, datid oid, datname name, relid oid, phase text, sample_blks_total int8,
    sample_blks_scanned int8, ext_stats_total int8, ext_stats_computed int8, child_tables_total
    int8, child_tables_done int8, current_child_table_relid oid, delay_time float8
pg_stat_progress_basebackup 12329:
    pid int4, phase text, backup_total int8, backup_streamed int8, tablespaces_total int8,
    tablespaces_streamed int8
pg_stat_progress_cluster 12319:
    pid int4, datid oid, datname name, relid oid, command text, phase text, cluster_index_relid oid,
    heap_tuples_scanned int8, heap_tuples_written int8, heap_blks_total int8, heap_blks_scanned
    int8, index_rebuild_count int8
pg_stat_progress_copy 12333:
    pid int4, datid oid, datname name, relid oid, command text, type text, bytes_processed int8,
    bytes_total int8, tuples_processed int8, tuples_excluded int8, tuples_skipped int8
pg_stat_progress_create_index 12324:
    pid int4, datid oid, datname name, relid oid, index_relid oid, command text, phase text,
    lockers_total int8, lockers_done int8, current_locker_pid int8, blocks_total int8, blocks_done
    int8, tuples_total int8, tuples_done int8, partitions_total int8, partitions_done int8
pg_stat_progress_vacuum 12314:
    pid int4, datid oid, datname name, relid oid, phase text, heap_blks_total int8,
    heap_blks_scanned int8, heap_blks_vacuumed int8, index_vacuum_count int8, max_dead_tuple_bytes
    int8, dead_tuple_bytes int8, num_dead_item_ids int8, indexes_total int8, indexes_processed int8,
    delay_time float8
pg_stat_recovery_prefetch 12244:
    stats_reset timestamptz, prefetch int8, hit int8, skip_init int8, skip_new int8, skip_fpw int8,
    skip_rep int8, wal_distance int4, block_distance int4, io_depth int4
pg_stat_replication 12231:
    pid int4, usesysid oid, usename name, application_name text, client_addr text, client_hostname
    text, client_port int4, backend_start timestamptz, backend_xmin xid, state text, sent_lsn text,
    write_lsn text, flush_lsn text, replay_lsn text, write_lag interval, flush_lag interval,
    replay_lag interval, sync_priority int4, sync_state text, reply_time timestamptz
pg_stat_replication_slots 12266:
    slot_name text, spill_txns int8, spill_count int8, spill_bytes int8, stream_txns int8,
    stream_count int8, stream_bytes int8, total_txns int8, total_bytes int8, stats_reset timestamptz
pg_stat_slru 12236:
    name text, blks_zeroed int8, blks_hit int8, blks_read int8, blks_written int8, blks_exists int8,
    flushes int8, truncates int8, stats_reset timestamptz
pg_stat_ssl 12253:
    pid int4, ssl bool, version text, cipher text, bits int4, client_dn text, client_serial numeric,
    issuer_dn text
pg_stat_subscription 12248:
    subid oid, subname name, worker_type text, pid int4, leader_pid int4, relid oid, received_lsn
    text, last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, latest_end_lsn text,
    latest_end_time timestamptz
pg_stat_subscription_stats 12347:
    subid oid, subname name, apply_error_count int8, sync_error_count int8, confl_insert_exists
    int8, confl_update_origin_differs int8, confl_update_exists int8, confl_update_missing int8,
    confl_delete_origin_differs int8, confl_delete_missing int8, confl_multiple_unique_conflicts
    int8, stats_reset timestamptz
pg_stat_sys_indexes 12192:
    relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8,
    last_idx_scan timestamptz, idx_tup_read int8, idx_tup_fetch int8
pg_stat_sys_tables 12156:
    relid oid, schemaname name, relname name, seq_scan int8, last_seq_scan timestamptz, seq_tup_read
    int8, idx_scan int8, last_idx_scan timestamptz, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd
    int8, n_tup_del int8, n_tup_hot_upd int8, n_tup_newpage_upd int8, n_live_tup int8, n_dead_tup
    int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz,
    last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz,
    vacuum_count int8, autovacuum_count int8, analyze_count int8, autoanalyze_count int8,
    total_vacuum_time float8, total_autovacuum_time float8, total_analyze_time float8,
    total_autoanalyze_time float8
pg_stat_user_functions 12279:
    funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8
pg_stat_user_indexes 12196:
    relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8,
    last_idx_scan timestamptz, idx_tup_read int8, idx_tup_fetch int8
pg_stat_user_tables 12165:
    relid oid, schemaname name, relname name, seq_scan int8, last_seq_scan timestamptz, seq_tup_read
    int8, idx_scan int8, last_idx_scan timestamptz, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd
    int8, n_tup_del int8, n_tup_hot_upd int8, n_tup_newpage_upd int8, n_live_tup int8, n_dead_tup
    int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz,
    last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz,
    vacuum_count int8, autovacuum_count int8, analyze_count int8, autoanalyze_count int8,
    total_vacuum_time float8, total_autovacuum_time float8, total_analyze_time float8,
    total_autoanalyze_time float8
pg_stat_wal 12305:
    wal_records int8, wal_fpi int8, wal_bytes numeric, wal_buffers_full int8, stats_reset
    timestamptz
pg_stat_wal_receiver 12240:
    pid int4, status text, receive_start_lsn text, receive_start_tli int4, written_lsn text,
    flushed_lsn text, received_tli int4, last_msg_send_time timestamptz, last_msg_receipt_time
    timestamptz, latest_end_lsn text, latest_end_time timestamptz, slot_name text, sender_host text,
    sender_port int4, conninfo text
pg_stat_xact_all_tables 12151:
    relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8,
    idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8,
    n_tup_newpage_upd int8
pg_stat_xact_sys_tables 12161:
    relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8,
    idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8,
    n_tup_newpage_upd int8
pg_stat_xact_user_functions 12284:
    funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8
pg_stat_xact_user_tables 12170:
    relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8,
    idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8,
    n_tup_newpage_upd int8
pg_statio_all_indexes 12200:
    relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8,
    idx_blks_hit int8
pg_statio_all_sequences 12213:
    relid oid, schemaname name, relname name, blks_read int8, blks_hit int8
pg_statio_all_tables 12174:
    relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read
    int8, idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8,
    tidx_blks_hit int8
pg_statio_sys_indexes 12205:
    relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8,
    idx_blks_hit int8
pg_statio_sys_sequences 12218:
    relid oid, schemaname name, relname name, blks_read int8, blks_hit int8
pg_statio_sys_tables 12179:
    relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read
    int8, idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8,
    tidx_blks_hit int8
pg_statio_user_indexes 12209:
    relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8,
    idx_blks_hit int8
pg_statio_user_sequences 12222:
    relid oid, schemaname name, relname name, blks_read int8, blks_hit int8
pg_statio_user_tables 12183:
    relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read
    int8, idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8,
    tidx_blks_hit int8
pg_stats 12053:
    schemaname name, tablename name, attname name, inherited bool, null_frac float4, avg_width int4,
    n_distinct float4, most_common_vals text, most_common_freqs float4[], histogram_bounds text,
    correlation float4, most_common_elems text, most_common_elem_freqs float4[],
    elem_count_histogram float4[], range_length_histogram text, range_empty_frac float4,
    range_bounds_histogram text
pg_stats_ext 12058:
    schemaname name, tablename name, statistics_schemaname name, statistics_name name,
    statistics_owner name, attnames name[], exprs text[], kinds "char"[], inherited bool, n_distinct
    bytea, dependencies bytea, most_common_vals text[], most_common_val_nulls bool[],
    most_common_freqs float8[], most_common_base_freqs float8[]
pg_stats_ext_exprs 12063:
    schemaname name, tablename name, statistics_schemaname name, statistics_name name,
    statistics_owner name, expr text, inherited bool, null_frac float4, avg_width int4, n_distinct
    float4, most_common_vals text, most_common_freqs float4[], histogram_bounds text, correlation
    float4, most_common_elems text, most_common_elem_freqs float4[], elem_count_histogram float4[]
pg_tables 12033:
    schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, hasrules
    bool, hastriggers bool, rowsecurity bool
pg_timezone_abbrevs 12122: abbrev text, utc_offset interval, is_dst bool
pg_timezone_names 12126: name text, abbrev text, utc_offset interval, is_dst bool
pg_user 12014:
    usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool,
    passwd text, valuntil timestamptz, useconfig text[]
pg_user_mappings 12338:
    umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text[]
pg_views 12028: schemaname name, viewname name, viewowner name, definition text
pg_wait_events 12351: type text, name text, description text
"""
