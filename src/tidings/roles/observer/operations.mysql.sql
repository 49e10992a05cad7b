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

-- active_depths: jobs by status, and since when the first of each could have been leased or has been
SELECT status, COUNT(*) AS jobs,
       (CASE WHEN MIN(lease_until) < {now} THEN MIN(lease_until) END) AS oldest, {now} AS now
  FROM webhook_delivery_jobs FORCE INDEX (idx_job_status_lease)
 WHERE status IN ('Pending', 'Leased') GROUP BY status;

-- unapplied_depth: finished jobs that their sagas have not taken in
SELECT COUNT(*) AS jobs, MIN(u.finished_at) AS oldest, {now} AS now
  FROM (SELECT finished_at FROM webhook_delivery_jobs FORCE INDEX (idx_job_unapplied)
         WHERE unapplied = 1 ORDER BY id LIMIT :most) u;

-- due_depth: sagas of one status whose time has come, and since when the first of them waits
SELECT COUNT(*) AS sagas, MIN(d.next_attempt_at) AS oldest, {now} AS now
  FROM (SELECT next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_status_retry)
         WHERE status = :status AND next_attempt_at <= {now} ORDER BY next_attempt_at LIMIT :most) d;

-- later_depth: sagas that wait for their next attempt
SELECT COUNT(*) AS sagas
  FROM (SELECT next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_status_retry)
         WHERE status = 'PendingRetry' AND next_attempt_at > {now} ORDER BY next_attempt_at LIMIT :most) d;
