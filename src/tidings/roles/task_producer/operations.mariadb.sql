-- find_tasks: which of these business keys are taken, by which task, how it stands, and the SHA-256 of its payload
SELECT t.id, t.biz_type, LOWER(HEX(t.biz_key)) AS key_hex, t.status, SHA2(t.payload, 256) AS digest
  FROM {table sys_pending_tasks} t FORCE INDEX (uk_biz)
 WHERE (t.biz_type, t.biz_key) IN (:keys.*);

-- find_tasks_now: the same, also those that were committed after this transaction began to look
SELECT t.id, t.biz_type, LOWER(HEX(t.biz_key)) AS key_hex, t.status, SHA2(t.payload, 256) AS digest
  FROM {table sys_pending_tasks} t FORCE INDEX (uk_biz)
 WHERE (t.biz_type, t.biz_key) IN (:keys.*)
  LOCK IN SHARE MODE;

-- archive_finished: those of these tasks that have ended, moved to the history
CALL {table archive_finished_tasks}(:ids);

-- insert_tasks: the new tasks with their ids; taken keys are left out
INSERT IGNORE INTO {table sys_pending_tasks} (biz_type, biz_key, payload, priority, max_retries, correlation_id)
{rows tasks(biz_type text, biz_key text, payload text, priority smallint, max_retries int, correlation_id text)}
RETURNING id, biz_type, LOWER(HEX(biz_key)) AS key_hex;

-- insert_later_tasks: the same for those that have a time of their own, which comes as UTC
INSERT IGNORE INTO {table sys_pending_tasks}
       (biz_type, biz_key, payload, priority, max_retries, correlation_id, next_run_time)
{rows tasks(biz_type text, biz_key text, payload text, priority smallint, max_retries int, correlation_id text,
            run_at text)}
RETURNING id, biz_type, LOWER(HEX(biz_key)) AS key_hex;
