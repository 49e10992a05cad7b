-- silent_tasks: running tasks without a sign of life for so long, of all types but some; locked
SELECT id, biz_type, retry_count, max_retries, worker_id, correlation_id FROM sys_pending_tasks
 WHERE status = 1 AND updated_at <= {now - :seconds} AND NOT biz_type {in :but}
 ORDER BY updated_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- silent_tasks_of: the same of some types; locked
SELECT id, biz_type, retry_count, max_retries, worker_id, correlation_id FROM sys_pending_tasks
 WHERE status = 1 AND updated_at <= {now - :seconds} AND biz_type {in :types}
 ORDER BY updated_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- rescue: one retry is used up, and they may be claimed at once; the old worker's result will find another version
-- Not a bare column: the planner must come by id, not by the index on status.
UPDATE sys_pending_tasks
   SET status = 3, retry_count = retry_count + 1, version = version + 1, result_msg = :result_msg,
       next_run_time = {now}, updated_at = {now}
 WHERE id {in :ids} AND status + 0 = 1;

-- give_up: no retry is left
UPDATE sys_pending_tasks SET status = 4, version = version + 1, result_msg = :result_msg, updated_at = {now}
 WHERE id {in :ids} AND status + 0 = 1;
