-- server_clock: what time it is there
SELECT UTC_TIMESTAMP(6) AS now;

-- isolation: how this session's transactions see each other
SELECT LOWER(REPLACE(@@transaction_isolation, '-', ' ')) AS level;

-- durability: the settings that decide whether a commit survives a crash, and what is right
SELECT 'innodb_flush_log_at_trx_commit' AS name, CAST(@@innodb_flush_log_at_trx_commit AS CHAR) AS value, '1' AS wanted
UNION ALL
SELECT 'innodb_doublewrite', CAST(@@innodb_doublewrite AS CHAR), '1|ON'
UNION ALL
SELECT 'sync_binlog', IF(@@log_bin, CAST(@@sync_binlog AS CHAR), 'no binlog'), '1|no binlog';

-- id_generation: what the proof that no event is skipped stands on
SELECT 'role of the server' AS name, IF(@@read_only, 'replica', 'primary') AS value, 'primary' AS wanted
UNION ALL
SELECT 'binlog_format', IF(@@log_bin, @@binlog_format, 'no binlog'), 'ROW|MIXED|no binlog';

-- open_writers: nobody: a plain read does not show who has not committed yet
SELECT NULL AS pid, NULL AS open_seconds FROM event_writers WHERE FALSE;
