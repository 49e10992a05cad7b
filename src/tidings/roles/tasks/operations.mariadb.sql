-- submit_archived: archived tasks anew, under the same business keys; taken keys are left out
INSERT IGNORE INTO sys_pending_tasks (biz_type, biz_key, priority, payload, max_retries, correlation_id)
SELECT h.biz_type, h.biz_key, h.priority, h.payload, h.max_retries, h.correlation_id
  FROM sys_pending_tasks_history h WHERE h.id {in :ids} ORDER BY h.id
RETURNING id, biz_type, biz_key;
