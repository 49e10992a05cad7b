-- lock_tasks: those of these that are in the queue, and how they stand
SELECT id, status FROM sys_pending_tasks WHERE id {in :ids} ORDER BY id FOR UPDATE;

-- archived_tasks: those of these that are in the history
SELECT id, status, biz_type, biz_key FROM sys_pending_tasks_history WHERE id {in :ids};

-- retry_tasks: those that are locked and failed, as if they had never been run
UPDATE sys_pending_tasks
   SET status = 0, retry_count = 0, version = version + 1, next_run_time = {now}, updated_at = {now}
 WHERE id {in :ids};

-- submit_archived: archived tasks anew, under the same business keys; taken keys are left out
INSERT INTO sys_pending_tasks (biz_type, biz_key, priority, payload, max_retries, correlation_id)
SELECT h.biz_type, h.biz_key, h.priority, h.payload, h.max_retries, h.correlation_id
  FROM sys_pending_tasks_history h WHERE h.id {in :ids} ORDER BY h.id
ON CONFLICT (biz_type, biz_key) DO NOTHING
RETURNING id, biz_type, biz_key;

-- cancel_tasks: those that are locked and wait are not run any more
UPDATE sys_pending_tasks SET status = 4, result_msg = :message, version = version + 1, updated_at = {now}
 WHERE id {in :ids};

-- audit: who did what
INSERT INTO audit_log (actor, action, subject, detail, request_id, address)
{rows entries(actor text, action text, subject text, detail json, request_id text, address text)};
