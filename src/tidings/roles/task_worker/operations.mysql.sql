-- heads: the first waiting task of each stretch of priorities, due or not
{each stretches(biz_type, lowest, highest):
    SELECT biz_type, priority, next_run_time <= UTC_TIMESTAMP(6) AS is_due
      FROM sys_pending_tasks FORCE INDEX (idx_task_claim)
     WHERE claimable = 1 AND biz_type = stretches.biz_type
       -- Not BETWEEN: of a single priority it would read and sort all tasks.
       AND priority > stretches.lowest - 1 AND priority < stretches.highest + 1
     ORDER BY priority, next_run_time, id LIMIT 1};

-- heads_behind: the first waiting task of each lane; InnoDB is not slowed down by what was claimed before it
{each lanes(biz_type, priority, since, after):
    SELECT biz_type, priority, next_run_time <= UTC_TIMESTAMP(6) AS is_due
      FROM sys_pending_tasks FORCE INDEX (idx_task_claim)
     WHERE claimable = 1 AND biz_type = lanes.biz_type AND priority = lanes.priority
     ORDER BY next_run_time, id LIMIT 1};

-- candidates: what is due in each lane, longest due first; only read, with all that a handler needs
{each lanes(biz_type, priority, room, since, after):
    SELECT id, version, status, priority, next_run_time, biz_type, biz_key, payload, retry_count, max_retries,
           correlation_id
      FROM sys_pending_tasks FORCE INDEX (idx_task_claim)
     WHERE claimable = 1 AND biz_type = lanes.biz_type AND priority = lanes.priority
       AND next_run_time <= UTC_TIMESTAMP(6)
     ORDER BY next_run_time, id LIMIT lanes.room};

-- free_candidates: the same without those that somebody else is claiming at this moment
{each lanes(biz_type, priority, room, since, after):
    SELECT id, version, status, priority, next_run_time, biz_type, biz_key, payload, retry_count, max_retries,
           correlation_id
      FROM sys_pending_tasks FORCE INDEX (idx_task_claim)
     WHERE claimable = 1 AND biz_type = lanes.biz_type AND priority = lanes.priority
       AND next_run_time <= UTC_TIMESTAMP(6)
     ORDER BY next_run_time, id LIMIT lanes.room FOR UPDATE SKIP LOCKED};

-- claimed: those that this worker got
SELECT id FROM sys_pending_tasks FORCE INDEX (PRIMARY)
 WHERE id {in :ids} AND status = 1 AND worker_id = :worker_id
   AND version - 1 = {pick :versions bigint for id in :ids};

-- retry: they failed, and wait for their next time
UPDATE sys_pending_tasks
   SET status = 3, version = version + 1, retry_count = retry_count + 1, updated_at = {now},
       result_msg = {pick :messages text for id in :ids},
       next_run_time = UTC_TIMESTAMP(6)
           + INTERVAL ROUND({pick :delays double precision for id in :ids} * 1000000) MICROSECOND
 WHERE id {in :ids} AND status + 0 = 1 AND version = {pick :versions bigint for id in :ids};
