-- heads: the first waiting task of each stretch of priorities, due or not
SELECT stretch.biz_type, head.priority, head.next_run_time <= {now} AS is_due
  FROM ({rows stretches(biz_type text, lowest int, highest int)}) AS stretch (biz_type, lowest, highest)
  CROSS JOIN LATERAL (
      SELECT priority, next_run_time FROM sys_pending_tasks
       WHERE biz_type = stretch.biz_type AND status IN (0, 3) AND priority BETWEEN stretch.lowest AND stretch.highest
       ORDER BY priority, next_run_time, id LIMIT 1) head;

-- heads_behind: the first waiting task of each lane behind the one that was taken last
-- What was claimed before it stays in the index for as long as anybody's old transaction may see it.
SELECT lane.biz_type, lane.priority, head.next_run_time <= {now} AS is_due
  FROM ({rows lanes(biz_type text, priority int, since timestamptz, after bigint)})
       AS lane (biz_type, priority, since, after)
  CROSS JOIN LATERAL (
      SELECT next_run_time FROM sys_pending_tasks
       WHERE biz_type = lane.biz_type AND priority = lane.priority AND status IN (0, 3)
         AND (next_run_time, id) > (lane.since, lane.after)
       ORDER BY next_run_time, id LIMIT 1) head;

-- candidates: what is due in each lane, longest due first; only read, with all that a handler needs
SELECT task.id, task.version, task.status, task.priority, task.next_run_time, task.biz_type, task.biz_key,
       task.payload::text AS payload, task.retry_count, task.max_retries, task.correlation_id
  FROM ({rows lanes(biz_type text, priority int, room int, since timestamptz, after bigint)})
       AS lane (biz_type, priority, room, since, after)
  CROSS JOIN LATERAL (
      SELECT id, version, status, priority, next_run_time, biz_type, biz_key, payload, retry_count, max_retries,
             correlation_id
        FROM sys_pending_tasks
       WHERE biz_type = lane.biz_type AND priority = lane.priority AND status IN (0, 3)
         AND (next_run_time, id) > (lane.since, lane.after) AND next_run_time <= {now}
       ORDER BY next_run_time, id LIMIT lane.room) task;

-- free_candidates: the same without those that somebody else is claiming at this moment
SELECT task.id, task.version, task.status, task.priority, task.next_run_time, task.biz_type, task.biz_key,
       task.payload::text AS payload, task.retry_count, task.max_retries, task.correlation_id
  FROM ({rows lanes(biz_type text, priority int, room int, since timestamptz, after bigint)})
       AS lane (biz_type, priority, room, since, after)
  CROSS JOIN LATERAL (
      SELECT id, version, status, priority, next_run_time, biz_type, biz_key, payload, retry_count, max_retries,
             correlation_id
        FROM sys_pending_tasks
       WHERE biz_type = lane.biz_type AND priority = lane.priority AND status IN (0, 3)
         AND (next_run_time, id) > (lane.since, lane.after) AND next_run_time <= {now}
       ORDER BY next_run_time, id LIMIT lane.room FOR UPDATE SKIP LOCKED) task;

-- claim: each one whose version is still the one that was read belongs to this worker
-- Not a bare column: the planner must come by id, not by the index on status.
UPDATE sys_pending_tasks SET status = 1, version = version + 1, worker_id = :worker_id, updated_at = {now}
 WHERE id {in :ids} AND status + 0 IN (0, 3) AND version = {pick :versions bigint for id in :ids};

-- claimed: those that this worker got
SELECT id FROM sys_pending_tasks
 WHERE id {in :ids} AND status + 0 = 1 AND worker_id = :worker_id
   AND version - 1 = {pick :versions bigint for id in :ids};

-- succeed: their handlers returned, and the fence is still this worker's
UPDATE sys_pending_tasks SET status = 2, version = version + 1, result_msg = 'OK', updated_at = {now}
 WHERE id {in :ids} AND status + 0 = 1 AND version = {pick :versions bigint for id in :ids};

-- retry: they failed, and wait for their next time
UPDATE sys_pending_tasks
   SET status = 3, version = version + 1, retry_count = retry_count + 1, updated_at = {now},
       result_msg = {pick :messages text for id in :ids},
       next_run_time = statement_timestamp() + make_interval(secs => {pick :delays double precision for id in :ids})
 WHERE id {in :ids} AND status + 0 = 1 AND version = {pick :versions bigint for id in :ids};

-- bury: they failed for good
UPDATE sys_pending_tasks
   SET status = 4, version = version + 1, updated_at = {now}, result_msg = {pick :messages text for id in :ids}
 WHERE id {in :ids} AND status + 0 = 1 AND version = {pick :versions bigint for id in :ids};

-- finished: those of these that ended as this worker said
SELECT id FROM sys_pending_tasks
 WHERE id {in :ids} AND version - 1 = {pick :versions bigint for id in :ids} AND worker_id = :worker_id
   AND status + 0 = :status AND result_msg = {pick :messages text for id in :ids};

-- beat: their worker is alive
UPDATE sys_pending_tasks SET updated_at = {now}
 WHERE id {in :ids} AND status + 0 = 1 AND version = {pick :versions bigint for id in :ids};

-- give_back: never begun; anybody may claim them, as before
UPDATE sys_pending_tasks
   SET status = {pick :statuses smallint for id in :ids}, version = version + 1, worker_id = NULL, updated_at = {now}
 WHERE id {in :ids} AND status + 0 = 1 AND version = {pick :versions bigint for id in :ids} AND worker_id = :worker_id;
