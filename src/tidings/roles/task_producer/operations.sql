-- find_tasks: which of these business keys are taken, by which task, how it stands, and the SHA-256 of its payload
SELECT t.id, t.biz_type, t.key_hex, t.status, t.digest
  FROM unnest(:keys.biz_type::text[], :keys.biz_key::text[]) AS w (biz_type, biz_key)
 -- One look into the index for each, also where the planner knows nothing of the table yet.
 CROSS JOIN LATERAL (
       SELECT s.id, s.biz_type, encode(convert_to(s.biz_key, 'UTF8'), 'hex') AS key_hex, s.status,
              encode(sha256(convert_to(s.payload::text, 'UTF8')), 'hex') AS digest
         FROM {table sys_pending_tasks} s
        WHERE s.biz_type = w.biz_type AND s.biz_key = w.biz_key LIMIT 1) AS t;

-- find_tasks_now: the same, also those that were committed after this transaction began to look
SELECT t.id, t.biz_type, t.key_hex, t.status, t.digest
  FROM unnest(:keys.biz_type::text[], :keys.biz_key::text[]) AS w (biz_type, biz_key)
 CROSS JOIN LATERAL (
       SELECT s.id, s.biz_type, encode(convert_to(s.biz_key, 'UTF8'), 'hex') AS key_hex, s.status,
              encode(sha256(convert_to(s.payload::text, 'UTF8')), 'hex') AS digest
         FROM {table sys_pending_tasks} s
        WHERE s.biz_type = w.biz_type AND s.biz_key = w.biz_key LIMIT 1) AS t;

-- archive_finished: those of these tasks that have ended, moved to the history
SELECT archived_id
  FROM {table archive_finished_tasks}(ARRAY(SELECT e::bigint FROM json_array_elements_text(:ids::json) AS e));

-- insert_tasks: the new tasks with their ids; taken keys are left out
INSERT INTO {table sys_pending_tasks} (biz_type, biz_key, payload, priority, max_retries, correlation_id)
SELECT n.biz_type, n.biz_key, n.payload::json, n.priority, n.max_retries, n.correlation_id
  FROM unnest(:tasks.biz_type::text[], :tasks.biz_key::text[], :tasks.payload::text[], :tasks.priority::smallint[],
              :tasks.max_retries::integer[], :tasks.correlation_id::text[])
       WITH ORDINALITY AS n (biz_type, biz_key, payload, priority, max_retries, correlation_id, place)
 ORDER BY n.place
ON CONFLICT (biz_type, biz_key) DO NOTHING
RETURNING id, biz_type, encode(convert_to(biz_key, 'UTF8'), 'hex') AS key_hex;

-- insert_later_tasks: the same for those that have a time of their own, which comes as UTC
INSERT INTO {table sys_pending_tasks} (biz_type, biz_key, payload, priority, max_retries, correlation_id, next_run_time)
SELECT n.biz_type, n.biz_key, n.payload::json, n.priority, n.max_retries, n.correlation_id,
       (n.run_at || '+00')::timestamptz
  FROM unnest(:tasks.biz_type::text[], :tasks.biz_key::text[], :tasks.payload::text[], :tasks.priority::smallint[],
              :tasks.max_retries::integer[], :tasks.correlation_id::text[], :tasks.run_at::text[])
       WITH ORDINALITY AS n (biz_type, biz_key, payload, priority, max_retries, correlation_id, run_at, place)
 ORDER BY n.place
ON CONFLICT (biz_type, biz_key) DO NOTHING
RETURNING id, biz_type, encode(convert_to(biz_key, 'UTF8'), 'hex') AS key_hex;
