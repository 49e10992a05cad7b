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

-- alive_processes: processes that gave a sign of life lately
SELECT process, count(*) AS alive FROM worker_presence WHERE seen_at > {now - :seconds} GROUP BY process;

-- routes_after: routes in the order in which they were made
SELECT id, event_domain, event_type, event_stream, target, task_biz_type, enabled, dry_run, created_at, updated_at
  FROM routes WHERE id > :after ORDER BY id LIMIT :limit;

-- route: one of them
SELECT id, event_domain, event_type, event_stream, target, task_biz_type, enabled, dry_run, created_at, updated_at
  FROM routes WHERE id = :id;

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

-- holes_with: routers that have passed this number and watch for it
SELECT worker_name, lo, hi, seen_at FROM route_holes WHERE lo <= :id AND hi >= :id ORDER BY worker_name LIMIT 20;

-- open_writers: the transactions that may still bring events, as far as this login is shown them
SELECT l.pid, a.application_name AS application,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS open_seconds
  FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
 WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted AND l.relation = 'events'::regclass
   AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
 ORDER BY open_seconds DESC NULLS LAST LIMIT 20;

-- newest_event: the highest id that is visible, if there is any
SELECT max(id) AS id FROM events;

-- events_before: the log, newest first, without payloads
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- events_of_type_before: the events of one type
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events WHERE event_type = :event_type AND id < :before ORDER BY id DESC LIMIT :limit;

-- events_with_external_id: the one event that a producer knows by this name
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events WHERE event_domain = :event_domain AND external_id = :external_id;

-- events_with_correlation_id: what belongs together, newest first
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events
 WHERE correlation_id = :correlation_id AND id < :before AND (event_domain = :event_domain OR :event_domain = '')
 ORDER BY id DESC LIMIT :limit;

-- event_floor: how far down so many events reach, below an id
SELECT min(w.id) AS floor, count(*) AS seen
  FROM (SELECT id FROM events WHERE id < :before ORDER BY id DESC LIMIT :window) w;

-- events_of_domain: the events of one domain in a range of ids
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events WHERE id < :before AND id >= :floor AND event_domain = :event_domain ORDER BY id DESC LIMIT :limit;

-- event_of_type_floor: how far down so many events of one type reach
SELECT min(w.id) AS floor, count(*) AS seen
  FROM (SELECT id FROM events WHERE event_type = :event_type AND id < :before ORDER BY id DESC LIMIT :window) w;

-- events_of_type_and_domain: the events of one type and one domain in a range of ids
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events
 WHERE event_type = :event_type AND id < :before AND id >= :floor AND event_domain = :event_domain
 ORDER BY id DESC LIMIT :limit;

-- events_before_moment: the events of a span of time below a place in it, the last first
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events
 WHERE created_at >= :since AND created_at <= :until AND (created_at < :until OR id < :before)
 ORDER BY created_at DESC, id DESC LIMIT :limit;

-- first_event_after: the first that was written after a moment
SELECT id FROM events WHERE created_at > :moment ORDER BY created_at, id LIMIT 1;

-- last_event_before: the last that was written before a moment
SELECT id FROM events WHERE created_at < :moment ORDER BY created_at DESC, id DESC LIMIT 1;

-- events_of_type_and_time: the events of one type in a range of ids and a span of time
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events
 WHERE event_type = :event_type AND id < :before AND id >= :floor
   AND created_at >= :since AND created_at <= :until AND (event_domain = :event_domain OR :event_domain = '')
 ORDER BY id DESC LIMIT :limit;

-- event_time_floor: how far back so many events of a span of time reach, and how many there were
SELECT w.created_at, w.id, count(*) OVER () AS seen
  FROM (SELECT created_at, id FROM events
         WHERE created_at >= :since AND created_at <= :until AND (created_at < :until OR id < :before)
         ORDER BY created_at DESC, id DESC LIMIT :window) w
 ORDER BY w.created_at, w.id LIMIT 1;

-- events_of_domain_and_time: the events of one domain in a span of time
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events
 WHERE created_at >= :since AND created_at <= :until AND (created_at < :until OR id < :before)
   AND (created_at > :since OR id >= :floor) AND event_domain = :event_domain
 ORDER BY created_at DESC, id DESC LIMIT :limit;

-- types_among: of which type these events are
SELECT id, event_type FROM events WHERE id {in :ids};

-- events_since: the first events of a span of time
SELECT id, event_domain, event_type, event_stream, correlation_id, created_at
  FROM events WHERE created_at >= :since ORDER BY created_at, id LIMIT :limit;

-- decisions_about: what routers decided about these events
SELECT event_id, status FROM route_attempts WHERE event_id {in :ids} ORDER BY event_id, id LIMIT 1000;

-- decided_among: which of these events a router has decided about
SELECT DISTINCT event_id FROM route_attempts WHERE event_id {in :ids};

-- delivered_among: for which of these events one subscription has a delivery
SELECT event_id FROM webhook_delivery_sagas
 WHERE event_id {in :ids} AND subscription_id = :subscription_id AND generation = 0;

-- event: one event, whole
SELECT id, event_domain, event_type, event_stream, external_id, payload, correlation_id, created_at
  FROM events WHERE id = :id;

-- domain_of_event: of which domain it is
SELECT event_domain FROM events WHERE id = :id;

-- attempts_of_event: what routers decided about it
SELECT id, event_id, worker_name, route_id, route_kind, status, matched, reason, detail, attempt_no, idempotency_key,
       created_at
  FROM route_attempts WHERE event_id = :event_id ORDER BY id LIMIT :limit;

-- route_dead_letters_of_event: where it was set aside
SELECT id, worker_name, created_at, resolved_at FROM route_dead_letters WHERE event_id = :event_id ORDER BY id LIMIT 20;

-- sagas_of_event: the deliveries of one event
SELECT id, event_id, subscription_id, generation, status, attempt_count, next_attempt_at, final_error_code,
       correlation_id, created_at, updated_at
  FROM webhook_delivery_sagas WHERE event_id = :event_id AND id < :before ORDER BY id DESC LIMIT :limit;

-- jobs_of_event: the attempts of all its deliveries
SELECT j.saga_id, j.id, j.attempt_no, j.status, j.attempt_at, j.worker_id, j.lease_until, j.lease_resets,
       j.response_status, j.error_code, j.retry_after, j.response_excerpt, j.duration_ms, j.created_at, j.finished_at,
       j.applied_at
  FROM webhook_delivery_sagas s JOIN webhook_delivery_jobs j ON j.saga_id = s.id
 WHERE s.event_id = :event_id ORDER BY j.id DESC LIMIT :limit;

-- dead_letters_of_event: what was given up of it
SELECT id, saga_id, subscription_id, final_error_code, failed_at
  FROM dead_letters WHERE event_id = :event_id ORDER BY id LIMIT :limit;

-- tasks_of_event: the tasks that routers made of it, waiting or archived
SELECT t.id, t.biz_type, t.biz_key, t.status, t.retry_count, t.result_msg, t.updated_at
  FROM route_attempts a JOIN routes r ON r.id = a.route_id
  JOIN sys_pending_tasks t ON t.biz_type = r.task_biz_type AND t.biz_key = :biz_key
 WHERE a.event_id = :event_id AND a.route_kind = 'task' AND a.status = 'sent'
UNION ALL
SELECT h.id, h.biz_type, h.biz_key, h.status, h.retry_count, h.result_msg, h.updated_at
  FROM route_attempts a JOIN routes r ON r.id = a.route_id
  JOIN sys_pending_tasks_history h ON h.biz_type = r.task_biz_type AND h.biz_key = :biz_key
 WHERE a.event_id = :event_id AND a.route_kind = 'task' AND a.status = 'sent';

-- route_dead_letters_before: events that could not be routed, newest first
SELECT id, event_id, worker_name, substr(error, 1, 200) AS error, created_at, resolved_at, resolution
  FROM route_dead_letters WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- route_dead_letter_floor: how far down so many events that could not be routed reach, below an id
SELECT min(w.id) AS floor, count(*) AS seen
  FROM (SELECT id FROM route_dead_letters WHERE id < :before ORDER BY id DESC LIMIT :window) w;

-- unresolved_between: those of a range of ids that nobody has resolved
SELECT id, event_id, worker_name, substr(error, 1, 200) AS error, created_at, resolved_at, resolution
  FROM route_dead_letters
 WHERE id < :before AND id >= :floor AND resolved_at IS NULL ORDER BY id DESC LIMIT :limit;

-- route_dead_letter: one of them, with the whole event
SELECT id, event_id, worker_name, idempotency_key, event_snapshot, error, created_at, resolved_at, resolution
  FROM route_dead_letters WHERE id = :id;

-- unresolved_among_newest: how many of the newest are unresolved, and the newest of those
SELECT count(*) AS unresolved, max(n.id) AS newest
  FROM (SELECT d.id, d.resolved_at FROM route_dead_letters d ORDER BY d.id DESC LIMIT :among) n
 WHERE n.resolved_at IS NULL;

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

-- subscriptions_among: these of them
SELECT id, event_domain, event_type, callback_url, pending_callback_url, active, verified, verification, paused,
       description, max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight, config_version, created_at,
       updated_at
  FROM subscriptions WHERE id {in :ids} ORDER BY id;

-- subscription_ceiling: how far up so many subscriptions reach, above an id
SELECT max(w.id) AS ceiling, count(*) AS seen
  FROM (SELECT id FROM subscriptions WHERE id > :after ORDER BY id LIMIT :window) w;

-- subscriptions_between: those of a range of ids that fit, in the order in which they were made
SELECT id, event_domain, event_type, callback_url, pending_callback_url, active, verified, verification, paused,
       description, max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight, config_version, created_at,
       updated_at
  FROM subscriptions
 WHERE id > :after AND id <= :ceiling
   AND (event_domain = :event_domain OR :event_domain = '') AND (event_type = :event_type OR :event_type = '')
   AND (:active = '' OR active = (:active = 'true')) AND (:verified = '' OR verified = (:verified = 'true'))
   AND (:paused = '' OR paused = (:paused = 'true'))
 ORDER BY id LIMIT :limit;

-- checks_of_subscription: the newest calls to its endpoint that people asked for
SELECT id, kind, url, outcome, error_code, duration_ms, created_at, expires_at, finished_at
  FROM endpoint_checks WHERE subscription_id = :subscription_id ORDER BY created_at DESC, id DESC LIMIT :limit;

-- job_floor: how far down so many attempts reach
SELECT min(w.id) AS floor
  FROM (SELECT id FROM webhook_delivery_jobs ORDER BY id DESC LIMIT :window) w;

-- attempts_of_subscription: its attempts among the newest ones of all
SELECT j.id, j.saga_id, s.event_id, j.attempt_no, j.status, j.worker_id, j.response_status, j.error_code, j.duration_ms,
       j.created_at, j.finished_at
  FROM (SELECT id, saga_id, attempt_no, status, worker_id, response_status, error_code, duration_ms, created_at,
               finished_at
          FROM webhook_delivery_jobs WHERE id >= :floor AND subscription_id = :subscription_id
         ORDER BY id DESC LIMIT :limit) j
  LEFT JOIN webhook_delivery_sagas s ON s.id = j.saga_id
 ORDER BY j.id DESC;

-- lane: how wide one subscription's window is, and how it has failed lately
SELECT window_size, failures, last_failure_at, last_error_code, updated_at
  FROM delivery_lanes WHERE subscription_id = :subscription_id;

-- lanes_among: how wide the windows of these subscriptions are, and how they have failed lately
SELECT subscription_id, window_size, failures, last_failure_at, last_error_code, updated_at
  FROM delivery_lanes WHERE subscription_id {in :ids};

-- narrow_lanes: the narrowest windows
SELECT subscription_id, window_size FROM delivery_lanes
 WHERE window_size < :below ORDER BY window_size, subscription_id LIMIT :most;

-- first_of_lane: the first delivery of each open status that one subscription has
SELECT p.status, p.next_attempt_at
  FROM (SELECT status, next_attempt_at FROM webhook_delivery_sagas
         WHERE status = 'Pending' AND subscription_id = :subscription_id ORDER BY next_attempt_at LIMIT 1) p
UNION ALL
SELECT r.status, r.next_attempt_at
  FROM (SELECT status, next_attempt_at FROM webhook_delivery_sagas
         WHERE status = 'PendingRetry' AND subscription_id = :subscription_id ORDER BY next_attempt_at LIMIT 1) r
UNION ALL
SELECT u.status, u.next_attempt_at
  FROM (SELECT status, next_attempt_at FROM webhook_delivery_sagas
         WHERE status = 'InProgress' AND subscription_id = :subscription_id ORDER BY next_attempt_at LIMIT 1) u;

-- backlogs: how many deliveries of each of these subscriptions are open, as far as is counted, and since when
SELECT lane.subscription_id, b.status, b.sagas, b.oldest, {now} AS now
  FROM ({rows lanes(subscription_id bigint, most int)}) AS lane (subscription_id, most)
  CROSS JOIN LATERAL (
      SELECT 'Pending' AS status, count(*) AS sagas, min(p.next_attempt_at) AS oldest
        FROM (SELECT next_attempt_at FROM webhook_delivery_sagas
               WHERE status = 'Pending' AND subscription_id = lane.subscription_id
               ORDER BY next_attempt_at LIMIT lane.most) p
      UNION ALL
      SELECT 'PendingRetry', count(*), min(r.next_attempt_at)
        FROM (SELECT next_attempt_at FROM webhook_delivery_sagas
               WHERE status = 'PendingRetry' AND subscription_id = lane.subscription_id
               ORDER BY next_attempt_at LIMIT lane.most) r
      UNION ALL
      SELECT 'InProgress', count(*), min(u.next_attempt_at)
        FROM (SELECT next_attempt_at FROM webhook_delivery_sagas
               WHERE status = 'InProgress' AND subscription_id = lane.subscription_id
               ORDER BY next_attempt_at LIMIT lane.most) u) b;

-- sagas_before: deliveries, newest first
SELECT id, event_id, subscription_id, generation, status, attempt_count, next_attempt_at, final_error_code,
       correlation_id, created_at, updated_at
  FROM webhook_delivery_sagas WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- sagas_of_events: the deliveries of each of these events, at most so many of one
SELECT s.event_id, s.subscription_id, s.generation, s.status
  FROM ({rows asked(event_id bigint, most int)}) AS asked (event_id, most)
  CROSS JOIN LATERAL (
      SELECT event_id, subscription_id, generation, status FROM webhook_delivery_sagas
       WHERE event_id = asked.event_id ORDER BY subscription_id, generation LIMIT asked.most) s;

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

-- saga_floor: how far down so many deliveries reach, below an id
SELECT min(w.id) AS floor, count(*) AS seen
  FROM (SELECT id FROM webhook_delivery_sagas WHERE id < :before ORDER BY id DESC LIMIT :window) w;

-- sagas_between: deliveries in a range of ids that fit
SELECT s.id, s.event_id, s.subscription_id, s.generation, s.status, s.attempt_count, s.next_attempt_at,
       s.final_error_code, s.correlation_id, s.created_at, s.updated_at
  FROM webhook_delivery_sagas s
 WHERE s.id < :before AND s.id >= :floor
   AND (s.status = :status OR :status = '') AND (s.subscription_id = :subscription_id OR :subscription_id = 0)
   AND s.created_at >= :since AND s.created_at <= :until
   -- As a value: what EXISTS asks under an OR may be answered by reading all of the log.
   AND (:event_domain = '' OR (SELECT e.event_domain FROM events e WHERE e.id = s.event_id) = :event_domain)
   AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = s.event_id) = :event_type)
 ORDER BY s.id DESC LIMIT :limit;

-- saga_made_at: when one was made
SELECT created_at FROM webhook_delivery_sagas WHERE id = :id;

-- sagas_with_correlation_id: the deliveries of events that belong together, newest first
SELECT s.id, s.event_id, s.subscription_id, s.generation, s.status, s.attempt_count, s.next_attempt_at,
       s.final_error_code, s.correlation_id, s.created_at, s.updated_at
  FROM events e JOIN webhook_delivery_sagas s ON s.event_id = e.id
 WHERE e.correlation_id = :correlation_id AND s.id < :before AND (e.event_domain = :event_domain OR :event_domain = '')
 ORDER BY s.id DESC LIMIT :limit;

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

-- next_generation: the delivery that a requeue made of another
SELECT n.id FROM webhook_delivery_sagas s
  JOIN webhook_delivery_sagas n ON n.event_id = s.event_id AND n.subscription_id = s.subscription_id
                               AND n.generation = s.generation + 1
 WHERE s.id = :id;

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

-- dead_letter_floor: how far down so many dead letters reach, below an id
SELECT min(w.id) AS floor, count(*) AS seen
  FROM (SELECT id FROM dead_letters WHERE id < :before ORDER BY id DESC LIMIT :window) w;

-- dead_letters_between: dead letters in a range of ids that fit, and the delivery that a requeue made of each
SELECT d.id, d.saga_id, d.event_id, d.subscription_id, d.final_error_code, d.failed_at, n.id AS requeued_as,
       n.status AS requeued_status
  FROM (SELECT x.id, x.saga_id, x.event_id, x.subscription_id, x.final_error_code, x.failed_at
          FROM dead_letters x
         WHERE x.id < :before AND x.id >= :floor
           AND (x.final_error_code = :error_code OR :error_code = '')
           AND x.failed_at >= :since AND x.failed_at <= :until
           AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = x.event_id) = :event_type)
           AND (:event_domain = '' OR (SELECT e.event_domain FROM events e WHERE e.id = x.event_id) = :event_domain)
         ORDER BY x.id DESC LIMIT :limit) d
  LEFT JOIN webhook_delivery_sagas o ON o.id = d.saga_id
  LEFT JOIN webhook_delivery_sagas n ON n.event_id = d.event_id AND n.subscription_id = d.subscription_id
                                    AND n.generation = o.generation + 1
 ORDER BY d.id DESC;

-- dead_letter_of_subscription_floor: how far down so many dead letters of one subscription reach, below an id
SELECT min(w.id) AS floor, count(*) AS seen
  FROM (SELECT id FROM dead_letters
         WHERE subscription_id = :subscription_id AND id < :before ORDER BY id DESC LIMIT :window) w;

-- dead_letters_of_subscription_between: dead letters of one subscription in a range of ids that fit
SELECT d.id, d.saga_id, d.event_id, d.subscription_id, d.final_error_code, d.failed_at, n.id AS requeued_as,
       n.status AS requeued_status
  FROM (SELECT x.id, x.saga_id, x.event_id, x.subscription_id, x.final_error_code, x.failed_at
          FROM dead_letters x
         WHERE x.subscription_id = :subscription_id AND x.id < :before AND x.id >= :floor
           AND (x.final_error_code = :error_code OR :error_code = '')
           AND x.failed_at >= :since AND x.failed_at <= :until
           AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = x.event_id) = :event_type)
           AND (:event_domain = '' OR (SELECT e.event_domain FROM events e WHERE e.id = x.event_id) = :event_domain)
         ORDER BY x.id DESC LIMIT :limit) d
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

-- letters_among: these dead letters, and the delivery that a requeue made of each
SELECT d.id, d.saga_id, d.event_id, d.subscription_id, d.final_error_code, d.failed_at, n.id AS requeued_as,
       n.status AS requeued_status
  FROM dead_letters d
  LEFT JOIN webhook_delivery_sagas o ON o.id = d.saga_id
  LEFT JOIN webhook_delivery_sagas n ON n.event_id = d.event_id AND n.subscription_id = d.subscription_id
                                    AND n.generation = o.generation + 1
 WHERE d.id {in :ids} ORDER BY d.id DESC;

-- count_letters_between: dead letters in a range of ids that fit, by subscription, and whether anything is sent there
SELECT x.subscription_id, s.active, s.verified, count(*) AS letters
  FROM dead_letters x LEFT JOIN subscriptions s ON s.id = x.subscription_id
 WHERE x.id >= :floor
   AND (x.final_error_code = :error_code OR :error_code = '')
   AND x.failed_at >= :since AND x.failed_at <= :until
   AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = x.event_id) = :event_type)
 GROUP BY x.subscription_id, s.active, s.verified ORDER BY x.subscription_id;

-- count_letters_of_subscription_between: the same of one subscription
SELECT x.subscription_id, s.active, s.verified, count(*) AS letters
  FROM dead_letters x LEFT JOIN subscriptions s ON s.id = x.subscription_id
 WHERE x.subscription_id = :subscription_id AND x.id >= :floor
   AND (x.final_error_code = :error_code OR :error_code = '')
   AND x.failed_at >= :since AND x.failed_at <= :until
   AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = x.event_id) = :event_type)
 GROUP BY x.subscription_id, s.active, s.verified;

-- mass_requeues_before: requeues of many, newest first
SELECT id, status, filter, rate, requested_by, total, started_count, already_count, refused_count, created_at,
       updated_at, finished_at
  FROM mass_requeues WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- mass_requeue: one of them, with how far it has come
SELECT id, status, filter, rate, requested_by, total, position, last_id, started_count, already_count, refused_count,
       created_at, updated_at, finished_at
  FROM mass_requeues WHERE id = :id;

-- tasks_before: the queue, newest first, without payloads
SELECT id, biz_type, biz_key, status, priority, retry_count, max_retries, next_run_time, version, worker_id,
       correlation_id, substr(result_msg, 1, 200) AS result_msg, created_at, updated_at
  FROM sys_pending_tasks WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- tasks_of_status: tasks of one status, the longest due first
SELECT id, biz_type, biz_key, status, priority, retry_count, max_retries, next_run_time, version, worker_id,
       correlation_id, substr(result_msg, 1, 200) AS result_msg, created_at, updated_at
  FROM sys_pending_tasks
 WHERE status = :status AND next_run_time >= :since
   AND (next_run_time > :since OR priority > :priority OR (priority = :priority AND id > :after))
 ORDER BY next_run_time, priority, id LIMIT :limit;

-- tasks_of_type: tasks of one type, by business key
SELECT id, biz_type, biz_key, status, priority, retry_count, max_retries, next_run_time, version, worker_id,
       correlation_id, substr(result_msg, 1, 200) AS result_msg, created_at, updated_at
  FROM sys_pending_tasks WHERE biz_type = :biz_type AND biz_key > :after_key ORDER BY biz_key LIMIT :limit;

-- task_of_key: the one task that has this business key
SELECT id, biz_type, biz_key, status, priority, retry_count, max_retries, next_run_time, version, worker_id,
       correlation_id, substr(result_msg, 1, 200) AS result_msg, created_at, updated_at
  FROM sys_pending_tasks WHERE biz_type = :biz_type AND biz_key = :biz_key;

-- tasks_lately: of so many tasks that run or have ended in one way, the last to change first, those of one type
SELECT t.id, t.biz_type, t.biz_key, t.status, t.priority, t.retry_count, t.max_retries, t.next_run_time, t.version,
       t.worker_id, t.correlation_id, substr(t.result_msg, 1, 200) AS result_msg, t.created_at, t.updated_at
  FROM (SELECT k.id, k.updated_at
          FROM (SELECT id, biz_type, updated_at FROM sys_pending_tasks
                 WHERE status = :status AND status IN (1, 2, 4)
                   AND updated_at <= :until AND (updated_at < :until OR id < :before)
                 ORDER BY updated_at DESC, id DESC LIMIT :most) k
         WHERE k.biz_type = :biz_type OR :biz_type = ''
         ORDER BY k.updated_at DESC, k.id DESC LIMIT :limit) w
  JOIN sys_pending_tasks t ON t.id = w.id
 ORDER BY w.updated_at DESC, w.id DESC;

-- tasks_lately_end: the last of so many tasks, and how many there were
SELECT w.updated_at, w.id, count(*) OVER () AS seen
  FROM (SELECT updated_at, id FROM sys_pending_tasks
         WHERE status = :status AND status IN (1, 2, 4)
           AND updated_at <= :until AND (updated_at < :until OR id < :before)
         ORDER BY updated_at DESC, id DESC LIMIT :most) w
 ORDER BY w.updated_at, w.id LIMIT 1;

-- waiting_of_type: of so many tasks of one type that wait, in the order in which they are claimed, those of one status
SELECT t.id, t.biz_type, t.biz_key, t.status, t.priority, t.retry_count, t.max_retries, t.next_run_time, t.version,
       t.worker_id, t.correlation_id, substr(t.result_msg, 1, 200) AS result_msg, t.created_at, t.updated_at
  FROM (SELECT k.id, k.priority, k.next_run_time
          FROM (SELECT u.id, u.status, u.priority, u.next_run_time
                  FROM ((SELECT id, status, priority, next_run_time FROM sys_pending_tasks
                          WHERE status IN (0, 3) AND biz_type = :biz_type AND priority = :priority
                            AND next_run_time >= :since AND (next_run_time > :since OR id > :after)
                          ORDER BY next_run_time, id LIMIT :most)
                        UNION ALL
                        (SELECT id, status, priority, next_run_time FROM sys_pending_tasks
                          WHERE status IN (0, 3) AND biz_type = :biz_type AND priority > :priority
                          ORDER BY priority, next_run_time, id LIMIT :most)) u
                 ORDER BY u.priority, u.next_run_time, u.id LIMIT :most) k
         WHERE k.status = :status
         ORDER BY k.priority, k.next_run_time, k.id LIMIT :limit) w
  JOIN sys_pending_tasks t ON t.id = w.id
 ORDER BY w.priority, w.next_run_time, w.id;

-- waiting_of_type_end: the last of so many of them, and how many there were
SELECT w.priority, w.next_run_time, w.id, count(*) OVER () AS seen
  FROM (SELECT u.priority, u.next_run_time, u.id
          FROM ((SELECT priority, next_run_time, id FROM sys_pending_tasks
                  WHERE status IN (0, 3) AND biz_type = :biz_type AND priority = :priority
                    AND next_run_time >= :since AND (next_run_time > :since OR id > :after)
                  ORDER BY next_run_time, id LIMIT :most)
                UNION ALL
                (SELECT priority, next_run_time, id FROM sys_pending_tasks
                  WHERE status IN (0, 3) AND biz_type = :biz_type AND priority > :priority
                  ORDER BY priority, next_run_time, id LIMIT :most)) u
         ORDER BY u.priority, u.next_run_time, u.id LIMIT :most) w
 ORDER BY w.priority DESC, w.next_run_time DESC, w.id DESC LIMIT 1;

-- kinds_lately: of the last of those that run and that have failed for good, how many are of each type
SELECT n.status, n.biz_type, count(*) AS tasks
  FROM ((SELECT status, biz_type FROM sys_pending_tasks WHERE status = 1 ORDER BY updated_at DESC LIMIT :most)
        UNION ALL
        (SELECT status, biz_type FROM sys_pending_tasks WHERE status = 4 ORDER BY updated_at DESC LIMIT :most)) n
 GROUP BY n.status, n.biz_type;

-- archived_tasks_before: the history, newest first, without payloads
SELECT id, biz_type, biz_key, status, priority, retry_count, max_retries, next_run_time, version, worker_id,
       correlation_id, substr(result_msg, 1, 200) AS result_msg, created_at, updated_at, archived_at
  FROM sys_pending_tasks_history WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- archived_tasks_of_type: archived tasks of one type, by business key
SELECT id, biz_type, biz_key, status, priority, retry_count, max_retries, next_run_time, version, worker_id,
       correlation_id, substr(result_msg, 1, 200) AS result_msg, created_at, updated_at, archived_at
  FROM sys_pending_tasks_history
 WHERE biz_type = :biz_type AND biz_key >= :after_key AND (biz_key > :after_key OR id > :after)
 ORDER BY biz_key, id LIMIT :limit;

-- archived_tasks_of_key: those that had this business key, one after the other
SELECT id, biz_type, biz_key, status, priority, retry_count, max_retries, next_run_time, version, worker_id,
       correlation_id, substr(result_msg, 1, 200) AS result_msg, created_at, updated_at, archived_at
  FROM sys_pending_tasks_history
 WHERE biz_type = :biz_type AND biz_key = :biz_key AND id > :after ORDER BY id LIMIT :limit;

-- archived_between: of so many archived tasks of a span of time, the last first, those of one type and status
SELECT t.id, t.biz_type, t.biz_key, t.status, t.priority, t.retry_count, t.max_retries, t.next_run_time, t.version,
       t.worker_id, t.correlation_id, substr(t.result_msg, 1, 200) AS result_msg, t.created_at, t.updated_at,
       t.archived_at
  FROM (SELECT k.id, k.archived_at
          FROM (SELECT id, biz_type, status, archived_at FROM sys_pending_tasks_history
                 WHERE archived_at >= :since AND archived_at <= :until AND (archived_at < :until OR id < :before)
                 ORDER BY archived_at DESC, id DESC LIMIT :most) k
         WHERE (k.biz_type = :biz_type OR :biz_type = '') AND (k.status = :status OR :status < 0)
         ORDER BY k.archived_at DESC, k.id DESC LIMIT :limit) w
  JOIN sys_pending_tasks_history t ON t.id = w.id
 ORDER BY w.archived_at DESC, w.id DESC;

-- archived_between_end: the last of so many of them, and how many there were
SELECT w.archived_at, w.id, count(*) OVER () AS seen
  FROM (SELECT archived_at, id FROM sys_pending_tasks_history
         WHERE archived_at >= :since AND archived_at <= :until AND (archived_at < :until OR id < :before)
         ORDER BY archived_at DESC, id DESC LIMIT :most) w
 ORDER BY w.archived_at, w.id LIMIT 1;

-- task: one task of the queue, whole
SELECT id, biz_type, biz_key, status, priority, payload, result_msg, retry_count, max_retries, next_run_time, version,
       worker_id, correlation_id, created_at, updated_at
  FROM sys_pending_tasks WHERE id = :id;

-- archived_task: one task of the history, whole
SELECT id, biz_type, biz_key, status, priority, payload, result_msg, retry_count, max_retries, next_run_time, version,
       worker_id, correlation_id, created_at, updated_at, archived_at
  FROM sys_pending_tasks_history WHERE id = :id;

-- audits_of: what people did to one thing
SELECT actor, action, detail, created_at FROM audit_log WHERE subject = :subject ORDER BY id LIMIT :limit;

-- last_done_to: the newest of what people did to something
SELECT actor, action, detail, created_at FROM audit_log WHERE subject = :subject
 -- Not the bare id: the planner would walk back through the whole log by it.
 ORDER BY id + 0 DESC LIMIT :limit;

-- audits_of_before: what was done to one thing, the last first
SELECT id, actor, action, subject, detail, request_id, address, created_at FROM audit_log
 WHERE subject = :subject AND id < :before
   AND (actor = :actor OR :actor = '') AND (action = :action OR :action = '')
   AND created_at >= :since AND created_at <= :until
 -- By what was done to it, and not back through all of the log.
 ORDER BY id + 0 DESC LIMIT :limit;

-- audits_between: of so many deeds of a span of time, the last first, those of one actor, one action, one kind of thing
SELECT t.id, t.actor, t.action, t.subject, t.detail, t.request_id, t.address, t.created_at
  FROM (SELECT k.id, k.created_at
          FROM (SELECT id, actor, action, subject, created_at FROM audit_log
                 WHERE created_at >= :since AND created_at <= :until AND (created_at < :until OR id < :before)
                 ORDER BY created_at DESC, id DESC LIMIT :most) k
         WHERE (k.actor = :actor OR :actor = '') AND (k.action = :action OR :action = '')
           AND (substr(k.subject, 1, :kind_length) = :kind OR :kind = '')
         ORDER BY k.created_at DESC, k.id DESC LIMIT :limit) w
  JOIN audit_log t ON t.id = w.id
 ORDER BY w.created_at DESC, w.id DESC;

-- audits_between_end: the last of so many of them, and how many there were
SELECT w.created_at, w.id, count(*) OVER () AS seen
  FROM (SELECT created_at, id FROM audit_log
         WHERE created_at >= :since AND created_at <= :until AND (created_at < :until OR id < :before)
         ORDER BY created_at DESC, id DESC LIMIT :most) w
 ORDER BY w.created_at, w.id LIMIT 1;

-- deeds_on_letters: who gave dead letters or delivered ones a next generation, in a span of time
SELECT actor, action, detail, created_at FROM audit_log
 WHERE created_at >= :since AND created_at <= :until AND subject IN ('dead_letters', 'sagas')
 ORDER BY created_at LIMIT :limit;

-- key_names: what the keys of these public ids are called
SELECT public_id, name FROM api_keys WHERE public_id {in :public_ids};

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

-- running_tasks_depth: tasks whose handlers are at work, and since when the first of them gave no sign of life
SELECT count(*) AS tasks, min(r.updated_at) AS oldest, {now} AS now
  FROM (SELECT updated_at FROM sys_pending_tasks
         WHERE status = 1 ORDER BY updated_at LIMIT :most) r;

-- task_depth: the next type of task of which something waits: how many, how many are due, and since when
SELECT w.biz_type, count(*) AS waiting, sum(CASE WHEN w.next_run_time <= {now} THEN 1 ELSE 0 END) AS due,
       min(CASE WHEN w.next_run_time <= {now} THEN w.next_run_time END) AS oldest, {now} AS now
  FROM (SELECT biz_type, next_run_time FROM sys_pending_tasks
         WHERE status IN (0, 3) AND biz_type = (SELECT n.biz_type FROM sys_pending_tasks n
                                                 WHERE n.status IN (0, 3) AND n.biz_type > :after
                                                 ORDER BY n.biz_type, n.priority, n.next_run_time LIMIT 1)
         ORDER BY priority, next_run_time, id LIMIT :most) w
 GROUP BY w.biz_type;

-- router_lags: how far each router is behind the log
SELECT c.worker_name, c.position, (SELECT max(n.id) FROM events n) AS newest, {now} AS now,
       (SELECT count(*) FROM route_holes h WHERE h.worker_name = c.worker_name) AS holes
  FROM route_worker_cursors c ORDER BY c.worker_name LIMIT :most;

-- first_events_after: when the first event above each of these places was written, where there is one
SELECT p.position, e.created_at
  FROM ({rows places(position bigint)}) AS p(position)
  CROSS JOIN LATERAL (SELECT v.created_at FROM events v WHERE v.id > p.position ORDER BY v.id LIMIT 1) e;

-- health_among: what came of the attempts of each of these subscriptions in the last hours
SELECT subscription_id, sum(delivered) AS delivered, sum(failed) AS failed, sum(dead) AS dead,
       sum(within_100ms) AS within_100ms, sum(within_300ms) AS within_300ms, sum(within_1s) AS within_1s,
       sum(within_3s) AS within_3s, sum(within_10s) AS within_10s, sum(slower) AS slower
  FROM delivery_totals WHERE subscription_id {in :ids} AND began_at > {now - :seconds} GROUP BY subscription_id;

-- hours_of_subscription: the same of one of them, hour by hour
SELECT began_at, sum(delivered) AS delivered, sum(failed) AS failed, sum(dead) AS dead,
       sum(within_100ms) AS within_100ms, sum(within_300ms) AS within_300ms, sum(within_1s) AS within_1s,
       sum(within_3s) AS within_3s, sum(within_10s) AS within_10s, sum(slower) AS slower
  FROM delivery_totals WHERE subscription_id = :subscription_id AND began_at > {now - :seconds}
 GROUP BY began_at ORDER BY began_at;

-- spans_of_all: what came of all attempts, in spans of so many minutes, each by its first one
SELECT min(began_at) AS began_at, sum(delivered) AS delivered, sum(failed) AS failed, sum(dead) AS dead
  FROM delivery_totals WHERE subscription_id = 0 AND began_at >= :since GROUP BY floor(place / :each);

-- failing_most: whose attempts failed most in the last hours, with what is known of their endpoints
SELECT f.subscription_id, f.delivered, f.failed, f.dead, s.event_type, s.event_domain, s.callback_url, s.description,
       s.paused, s.active, l.window_size, l.failures, l.last_error_code, l.last_failure_at
  FROM (SELECT subscription_id, sum(delivered) AS delivered, sum(failed) AS failed, sum(dead) AS dead
          FROM delivery_totals WHERE began_at > {now - :seconds} AND subscription_id > 0
         GROUP BY subscription_id HAVING sum(failed) > 0 ORDER BY failed DESC, subscription_id LIMIT :most) f
  JOIN subscriptions s ON s.id = f.subscription_id
  LEFT JOIN delivery_lanes l ON l.subscription_id = f.subscription_id
 ORDER BY f.failed DESC, f.subscription_id;

-- recorded_range: the lowest and the highest event that anything is recorded about, in all the log
SELECT min(r.lo) AS lo, max(r.hi) AS hi
  FROM (SELECT min(id) AS lo, max(id) AS hi FROM events
        UNION ALL SELECT min(event_id), max(event_id) FROM route_attempts
        UNION ALL SELECT min(event_id), max(event_id) FROM webhook_delivery_sagas
        UNION ALL SELECT min(event_id), max(event_id) FROM dead_letters
        UNION ALL SELECT min(event_id), max(event_id) FROM route_dead_letters) r;

-- range_of_time: the lowest and the highest event of a span of time
SELECT min(id) AS lo, max(id) AS hi FROM events WHERE created_at BETWEEN :since AND :until;

-- tally: both sides of the ledger for a range of events, as they stand at one moment
SELECT 'event' AS side, f.fate, count(*) AS n
  FROM (SELECT e.id,
               CASE WHEN max(CASE WHEN a.status = 'sent' THEN 1 ELSE 0 END) = 1 THEN 'sent'
                    WHEN max(CASE WHEN a.status = 'dry_run' THEN 1 ELSE 0 END) = 1 THEN 'dry_run'
                    WHEN max(CASE WHEN a.status = 'failed' THEN 1 ELSE 0 END) = 1 THEN 'failed'
                    WHEN max(CASE WHEN a.status = 'disabled' THEN 1 ELSE 0 END) = 1 THEN 'disabled'
                    WHEN count(a.id) > 0 THEN 'skipped' ELSE 'unrouted' END AS fate
          FROM events e LEFT JOIN route_attempts a ON a.event_id = e.id AND a.event_id BETWEEN :lo AND :hi
         WHERE e.id BETWEEN :lo AND :hi GROUP BY e.id) f
 GROUP BY f.fate
UNION ALL
SELECT 'wanted', p.route_kind, sum(p.matched)
  FROM route_attempts p WHERE p.event_id BETWEEN :lo AND :hi AND p.status = 'sent' GROUP BY p.route_kind
UNION ALL
SELECT 'delivery', d.fate, count(*)
  FROM (SELECT CASE s.status WHEN 'Completed' THEN 'delivered' WHEN 'DeadLettered' THEN 'dead'
                    ELSE CASE WHEN u.active AND u.verified AND NOT u.paused THEN 'pending' ELSE 'held' END END AS fate
          FROM webhook_delivery_sagas s LEFT JOIN subscriptions u ON u.id = s.subscription_id
         WHERE s.event_id BETWEEN :lo AND :hi
           AND NOT EXISTS (SELECT 1 FROM webhook_delivery_sagas n
                            WHERE n.event_id = s.event_id AND n.subscription_id = s.subscription_id
                              AND n.generation > s.generation)) d
 GROUP BY d.fate;

-- removed: what retention has taken away over the years, finished and added up when it went
SELECT sum(events) AS events, sum(wanted_deliveries) AS wanted, sum(delivered) AS delivered, sum(dead) AS dead,
       sum(tasks) AS tasks
  FROM retention_totals;

-- unequal_sagas: events whose sagas are not as many as the routers wrote down
SELECT l.event_id, sum(l.wanted) AS wanted, sum(l.there) AS there
  FROM (SELECT event_id, matched AS wanted, 0 AS there FROM route_attempts
         WHERE event_id BETWEEN :lo AND :hi AND status = 'sent' AND route_kind = 'webhook'
        UNION ALL
        SELECT event_id, 0, 1 FROM webhook_delivery_sagas
         WHERE event_id BETWEEN :lo AND :hi AND generation = 0) l
 GROUP BY l.event_id HAVING sum(l.wanted) <> sum(l.there) ORDER BY l.event_id;

-- uneven_sagas: sagas that their jobs and dead letters contradict
SELECT s.id, s.event_id, s.status, s.attempt_count, s.applied, s.delivered, s.under_way, s.dead_letters
  FROM (SELECT w.id, w.event_id, w.status, w.attempt_count,
               (SELECT count(*) FROM webhook_delivery_jobs j
                 WHERE j.saga_id = w.id AND j.applied_at IS NOT NULL) AS applied,
               (SELECT count(*) FROM webhook_delivery_jobs j
                 WHERE j.saga_id = w.id AND j.applied_at IS NOT NULL AND j.status = 'Completed') AS delivered,
               (SELECT count(*) FROM webhook_delivery_jobs j
                 WHERE j.saga_id = w.id AND j.applied_at IS NULL) AS under_way,
               (SELECT count(*) FROM dead_letters d WHERE d.saga_id = w.id) AS dead_letters
          FROM webhook_delivery_sagas w WHERE w.event_id BETWEEN :lo AND :hi) s
 WHERE s.applied <> s.attempt_count
    OR s.delivered <> CASE s.status WHEN 'Completed' THEN 1 ELSE 0 END
    OR s.under_way <> CASE s.status WHEN 'InProgress' THEN 1 ELSE 0 END
    OR s.dead_letters <> CASE s.status WHEN 'DeadLettered' THEN 1 ELSE 0 END
 ORDER BY s.id;

-- strays: what stands there of events, or of generations, that do not
SELECT 'route_attempts' AS place, a.id, a.event_id
  FROM route_attempts a LEFT JOIN events e ON e.id = a.event_id
 WHERE a.event_id BETWEEN :lo AND :hi AND e.id IS NULL
UNION ALL
SELECT 'webhook_delivery_sagas', s.id, s.event_id
  FROM webhook_delivery_sagas s LEFT JOIN events e ON e.id = s.event_id
 WHERE s.event_id BETWEEN :lo AND :hi AND e.id IS NULL
UNION ALL
SELECT 'dead_letters', d.id, d.event_id
  FROM dead_letters d LEFT JOIN webhook_delivery_sagas s ON s.id = d.saga_id
 WHERE d.event_id BETWEEN :lo AND :hi AND s.id IS NULL
UNION ALL
SELECT 'route_dead_letters', r.id, r.event_id
  FROM route_dead_letters r LEFT JOIN events e ON e.id = r.event_id
 WHERE r.event_id BETWEEN :lo AND :hi AND e.id IS NULL
UNION ALL
SELECT 'generations', s.id, s.event_id
  FROM webhook_delivery_sagas s
 WHERE s.event_id BETWEEN :lo AND :hi AND s.generation > 0
   AND NOT EXISTS (SELECT 1 FROM webhook_delivery_sagas p
                    WHERE p.event_id = s.event_id AND p.subscription_id = s.subscription_id
                      AND p.generation = s.generation - 1);

-- missing_tasks: events for which a router wrote down a task that is neither waiting nor in the history
SELECT a.event_id, r.task_biz_type AS biz_type
  FROM route_attempts a JOIN routes r ON r.id = a.route_id
 WHERE a.event_id BETWEEN :lo AND :hi AND a.status = 'sent' AND a.route_kind = 'task' AND a.matched > 0
   AND NOT EXISTS (SELECT 1 FROM sys_pending_tasks t
                    WHERE t.biz_type = r.task_biz_type AND t.biz_key = a.event_id::text)
   AND NOT EXISTS (SELECT 1 FROM sys_pending_tasks_history h
                    WHERE h.biz_type = r.task_biz_type AND h.biz_key = a.event_id::text);

-- doubled_tasks: tasks that are waiting and in the history too
SELECT t.id, t.biz_type, t.biz_key FROM sys_pending_tasks t JOIN sys_pending_tasks_history h ON h.id = t.id
 WHERE t.id > :after ORDER BY t.id LIMIT :limit;
