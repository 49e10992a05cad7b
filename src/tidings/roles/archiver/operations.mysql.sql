-- finished_tasks: tasks that ended so long ago, but for some
SELECT id FROM sys_pending_tasks FORCE INDEX (idx_task_updated)
 WHERE status IN (2, 4) AND updated_at < {now - :seconds} AND NOT (id {in :but}) LIMIT :limit FOR UPDATE SKIP LOCKED;
