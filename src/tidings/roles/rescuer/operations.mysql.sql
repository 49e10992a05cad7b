-- silent_tasks: running tasks without a sign of life for so long, of all types but some; locked
SELECT id, biz_type, retry_count, max_retries, worker_id, correlation_id
  FROM sys_pending_tasks FORCE INDEX (idx_task_updated)
 WHERE status = 1 AND updated_at <= {now - :seconds} AND NOT biz_type {in :but}
 ORDER BY updated_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- silent_tasks_of: the same of some types; locked
SELECT id, biz_type, retry_count, max_retries, worker_id, correlation_id
  FROM sys_pending_tasks FORCE INDEX (idx_task_updated)
 WHERE status = 1 AND updated_at <= {now - :seconds} AND biz_type {in :types}
 ORDER BY updated_at LIMIT :limit FOR UPDATE SKIP LOCKED;
