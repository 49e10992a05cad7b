-- server_clock: what time it is there
SELECT clock_timestamp() AS now;

-- isolation: how this session's transactions see each other
SELECT lower(current_setting('transaction_isolation')) AS level;

-- durability: the settings that decide whether a commit survives a crash, and what is right
SELECT name, setting AS value,
       CASE name WHEN 'synchronous_commit' THEN 'on|local|remote_write|remote_apply' ELSE 'on' END AS wanted
  FROM pg_catalog.pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name;

-- id_generation: what the proof that no event is skipped stands on
SELECT 'identity of events.id' AS name, CASE a.attidentity WHEN 'a' THEN 'always' ELSE 'not always' END AS value,
       'always' AS wanted
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = 'events'::regclass AND a.attname = 'id'
UNION ALL
SELECT 'cache of the sequence', q.seqcache::text, '1'
  FROM pg_catalog.pg_sequence q WHERE q.seqrelid = pg_get_serial_sequence('events', 'id')::regclass
UNION ALL
SELECT 'increment of the sequence', q.seqincrement::text, '1'
  FROM pg_catalog.pg_sequence q WHERE q.seqrelid = pg_get_serial_sequence('events', 'id')::regclass
UNION ALL
SELECT 'role of the server', CASE WHEN pg_is_in_recovery() THEN 'replica' ELSE 'primary' END, 'primary';

-- routes_after: routes in the order in which they were made
SELECT id, event_domain, event_type, event_stream, target, task_biz_type, enabled, dry_run, created_at, updated_at
  FROM routes WHERE id > :after ORDER BY id LIMIT :limit;

-- gates_after: gates by name
SELECT name, is_open, reason, changed_by, changed_at FROM gates WHERE name > :after ORDER BY name LIMIT :limit;

-- routers_after: routers by name, or one only: where each is, what it has done, and what it waits for
SELECT c.worker_name, c.event_domain, c.position, c.last_event_id, c.runs, c.sent_count, c.dry_run_count,
       c.disabled_count, c.skipped_count, c.failed_count, c.last_run_summary, c.created_at, c.updated_at,
       (SELECT max(n.id) FROM events n) AS newest_event_id,
       c.last_event_id IS NULL OR e.id IS NOT NULL AS knows_its_last_event,
       h.hole_ranges, h.hole_ids, h.oldest_hole, {now} AS now
  FROM route_worker_cursors c
  LEFT JOIN events e ON e.id = c.last_event_id AND e.correlation_id = c.last_event_correlation_id
                    AND e.created_at = c.last_event_created_at
  LEFT JOIN (SELECT r.worker_name AS owner, count(*) AS hole_ranges, sum(r.hi - r.lo + 1) AS hole_ids,
                    min(r.seen_at) AS oldest_hole
               FROM route_holes r GROUP BY r.worker_name) h ON h.owner = c.worker_name
 WHERE c.worker_name > :after AND (c.worker_name = :only OR :only = '')
 ORDER BY c.worker_name LIMIT :limit;

-- router_holes: the first holes of one router
SELECT lo, hi, seen_at FROM route_holes WHERE worker_name = :worker_name ORDER BY lo LIMIT :limit;

-- newest_event: the highest id that is visible, if there is any
SELECT max(id) AS id FROM events;

-- open_writers: the transactions that may still bring events, as far as this login is shown them
SELECT l.pid, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS open_seconds
  FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
 WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted AND l.relation = 'events'::regclass
   AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
 ORDER BY open_seconds DESC NULLS LAST LIMIT 20;

-- route_dead_letters_before: events that could not be routed, newest first
SELECT id, event_id, worker_name, substr(error, 1, 200) AS error, created_at, resolved_at, resolution
  FROM route_dead_letters WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- unresolved_route_dead_letters_before: those of them that nobody has resolved
SELECT id, event_id, worker_name, substr(error, 1, 200) AS error, created_at, resolved_at, resolution
  FROM route_dead_letters WHERE id < :before AND resolved_at IS NULL ORDER BY id DESC LIMIT :limit;

-- route_dead_letter: one of them, with the whole event
SELECT id, event_id, worker_name, idempotency_key, event_snapshot, error, created_at, resolved_at, resolution
  FROM route_dead_letters WHERE id = :id;

-- unresolved_among_newest: how many of the newest are unresolved, and the newest of those
SELECT count(*) AS unresolved, max(n.id) AS newest
  FROM (SELECT d.id, d.resolved_at FROM route_dead_letters d ORDER BY d.id DESC LIMIT :among) n
 WHERE n.resolved_at IS NULL;

-- events_before: the log, newest first, without payloads
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- events_of_type_before: the events of one type
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events WHERE event_type = :event_type AND id < :before ORDER BY id DESC LIMIT :limit;

-- events_between: the events of a span of time, the last first
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events
 WHERE created_at >= :since AND created_at <= :until AND (created_at < :until OR id < :before)
 ORDER BY created_at DESC, id DESC LIMIT :limit;

-- events_with_external_id: the one event that a producer knows by this name
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events WHERE event_domain = :event_domain AND external_id = :external_id;

-- event: one event, whole
SELECT id, event_domain, event_type, event_stream, external_id, payload, correlation_id, created_at
  FROM events WHERE id = :id;

-- attempts_of_event: what routers decided about it
SELECT id, event_id, worker_name, route_id, route_kind, status, matched, reason, detail, attempt_no, idempotency_key,
       created_at
  FROM route_attempts WHERE event_id = :event_id ORDER BY id LIMIT :limit;

-- subscriptions: in the order in which they were made, without what is secret
SELECT id, event_domain, event_type, callback_url, pending_callback_url, active, verified, verification, paused,
       description, max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight, config_version, created_at,
       updated_at
  FROM subscriptions WHERE id > :after ORDER BY id LIMIT :limit;

-- subscription: one of them
SELECT id, event_domain, event_type, callback_url, pending_callback_url, active, verified, verification, paused,
       description, max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight, config_version, created_at,
       updated_at
  FROM subscriptions WHERE id = :id;

-- active_depths: jobs by status, and since when the first of each could have been leased or has been
SELECT status, count(*) AS jobs,
       (CASE WHEN min(lease_until) < {now} THEN min(lease_until) END) AS oldest, {now} AS now
  FROM webhook_delivery_jobs WHERE status IN ('Pending', 'Leased') GROUP BY status;

-- unapplied_depth: finished jobs that their sagas have not taken in
SELECT count(*) AS jobs, min(u.finished_at) AS oldest, {now} AS now
  FROM (SELECT finished_at FROM webhook_delivery_jobs
         WHERE status IN ('Completed', 'Failed') AND applied_at IS NULL ORDER BY id LIMIT :most) u;

-- due_depth: sagas of one status whose time has come, and since when the first of them waits
SELECT count(*) AS sagas, min(d.next_attempt_at) AS oldest, {now} AS now
  FROM (SELECT next_attempt_at FROM webhook_delivery_sagas
         WHERE status = :status AND next_attempt_at <= {now} ORDER BY next_attempt_at LIMIT :most) d;

-- later_depth: sagas that wait for their next attempt
SELECT count(*) AS sagas
  FROM (SELECT next_attempt_at FROM webhook_delivery_sagas
         WHERE status = 'PendingRetry' AND next_attempt_at > {now} ORDER BY next_attempt_at LIMIT :most) d;

-- router_lags: how far each router is behind the log
SELECT c.worker_name, c.position, (SELECT max(n.id) FROM events n) AS newest,
       (SELECT e.created_at FROM events e WHERE e.id > c.position ORDER BY e.id LIMIT 1) AS oldest, {now} AS now,
       (SELECT count(*) FROM route_holes h WHERE h.worker_name = c.worker_name) AS holes
  FROM route_worker_cursors c ORDER BY c.worker_name LIMIT :most;

-- alive_processes: processes that gave a sign of life lately
SELECT process, count(*) AS alive FROM worker_presence WHERE seen_at > {now - :seconds} GROUP BY process;

-- sagas_before: deliveries, newest first
SELECT id, event_id, subscription_id, generation, status, attempt_count, next_attempt_at, final_error_code,
       correlation_id, created_at, updated_at
  FROM webhook_delivery_sagas WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- sagas_of_event: the deliveries of one event
SELECT id, event_id, subscription_id, generation, status, attempt_count, next_attempt_at, final_error_code,
       correlation_id, created_at, updated_at
  FROM webhook_delivery_sagas WHERE event_id = :event_id AND id < :before ORDER BY id DESC LIMIT :limit;

-- open_sagas: the deliveries of one status that is not final, the longest due first
SELECT id, event_id, subscription_id, generation, status, attempt_count, next_attempt_at, final_error_code,
       correlation_id, created_at, updated_at
  FROM webhook_delivery_sagas
 WHERE status = :status AND next_attempt_at >= :since AND (next_attempt_at > :since OR id > :after)
 ORDER BY next_attempt_at, id LIMIT :limit;

-- open_sagas_of_subscription: the same of one subscription
SELECT id, event_id, subscription_id, generation, status, attempt_count, next_attempt_at, final_error_code,
       correlation_id, created_at, updated_at
  FROM webhook_delivery_sagas
 WHERE status = :status AND subscription_id = :subscription_id
   AND next_attempt_at >= :since AND (next_attempt_at > :since OR id > :after)
 ORDER BY next_attempt_at, id LIMIT :limit;

-- saga: one delivery, with its event's type and its dead letter
SELECT s.id, s.event_id, e.event_type, s.subscription_id, s.generation, s.status, s.attempt_count, s.next_attempt_at,
       s.final_error_code, s.correlation_id, s.created_at, s.updated_at, d.id AS dead_letter_id
  FROM webhook_delivery_sagas s
  LEFT JOIN events e ON e.id = s.event_id LEFT JOIN dead_letters d ON d.saga_id = s.id
 WHERE s.id = :id;

-- jobs_of_saga: its attempts
SELECT id, attempt_no, status, attempt_at, worker_id, lease_until, lease_resets, response_status, error_code,
       retry_after, response_excerpt, duration_ms, created_at, finished_at, applied_at
  FROM webhook_delivery_jobs WHERE saga_id = :saga_id ORDER BY id DESC LIMIT :limit;

-- dead_letters_before: what was given up, newest first, and the delivery that a requeue made of it
SELECT d.id, d.saga_id, d.event_id, d.subscription_id, d.final_error_code, d.failed_at, n.id AS requeued_as,
       n.status AS requeued_status
  FROM (SELECT id, saga_id, event_id, subscription_id, final_error_code, failed_at
          FROM dead_letters WHERE id < :before ORDER BY id DESC LIMIT :limit) d
  LEFT JOIN webhook_delivery_sagas o ON o.id = d.saga_id
  LEFT JOIN webhook_delivery_sagas n ON n.event_id = d.event_id AND n.subscription_id = d.subscription_id
                                    AND n.generation = o.generation + 1
 ORDER BY d.id DESC;

-- dead_letters_of_subscription_before: those of one subscription
SELECT d.id, d.saga_id, d.event_id, d.subscription_id, d.final_error_code, d.failed_at, n.id AS requeued_as,
       n.status AS requeued_status
  FROM (SELECT id, saga_id, event_id, subscription_id, final_error_code, failed_at
          FROM dead_letters WHERE subscription_id = :subscription_id AND id < :before
         ORDER BY id DESC LIMIT :limit) d
  LEFT JOIN webhook_delivery_sagas o ON o.id = d.saga_id
  LEFT JOIN webhook_delivery_sagas n ON n.event_id = d.event_id AND n.subscription_id = d.subscription_id
                                    AND n.generation = o.generation + 1
 ORDER BY d.id DESC;

-- dead_letter: one of them, with what the event said
SELECT d.id, d.saga_id, d.event_id, d.subscription_id, d.final_error_code, d.failed_at, d.payload_snapshot,
       n.id AS requeued_as, n.status AS requeued_status
  FROM dead_letters d
  LEFT JOIN webhook_delivery_sagas o ON o.id = d.saga_id
  LEFT JOIN webhook_delivery_sagas n ON n.event_id = d.event_id AND n.subscription_id = d.subscription_id
                                    AND n.generation = o.generation + 1
 WHERE d.id = :id;

-- mass_requeues_before: requeues of many, newest first
SELECT id, status, filter, rate, requested_by, total, started_count, already_count, refused_count, created_at,
       updated_at, finished_at
  FROM mass_requeues WHERE id < :before ORDER BY id DESC LIMIT :limit;
