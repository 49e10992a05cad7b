-- finished_tasks: tasks that ended so long ago, but for some
SELECT id FROM sys_pending_tasks
 WHERE status IN (2, 4) AND updated_at < {now - :seconds} AND NOT (id {in :but})
 ORDER BY status, updated_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- archive_tasks: into the history, as they are
INSERT INTO sys_pending_tasks_history
       (id, biz_type, biz_key, status, priority, payload, result_msg, retry_count, max_retries, next_run_time, version,
        worker_id, correlation_id, created_at, updated_at)
SELECT id, biz_type, biz_key, status, priority, payload, result_msg, retry_count, max_retries, next_run_time, version,
       worker_id, correlation_id, created_at, updated_at
  FROM sys_pending_tasks WHERE id {in :ids};

-- remove_tasks: out of the queue; their business keys are free
DELETE FROM sys_pending_tasks WHERE id {in :ids};
