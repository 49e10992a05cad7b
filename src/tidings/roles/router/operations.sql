-- lock_cursor: this router's cursor, unless another instance of it works right now
SELECT worker_name, event_domain, position, last_event_id, last_event_correlation_id, runs
  FROM route_worker_cursors WHERE worker_name = :worker_name FOR UPDATE SKIP LOCKED;

-- read_cursor: the same without a lock
SELECT worker_name, event_domain, position, last_event_id, last_event_correlation_id, runs
  FROM route_worker_cursors WHERE worker_name = :worker_name;

-- wait_for_cursor: one router's cursor, after the pass that is under way
SELECT worker_name FROM route_worker_cursors WHERE worker_name = :worker_name FOR UPDATE;

-- wait_for_cursors: every router's cursor, after the passes that are under way
SELECT worker_name FROM route_worker_cursors ORDER BY worker_name FOR UPDATE;

-- glance: how the cursor stands, and whether there is an event after the position where we left it
SELECT c.runs, c.position, (SELECT e.id FROM events e WHERE e.id > :position ORDER BY e.id LIMIT 1) IS NOT NULL AS is_more
  FROM route_worker_cursors c WHERE c.worker_name = :worker_name;

-- make_cursor: the first router covers every domain that no other names
INSERT INTO route_worker_cursors (worker_name, event_domain) VALUES (:worker_name, :event_domain)
    ON CONFLICT DO NOTHING;

-- open_gates: which of the two gates exist and are open
SELECT name FROM gates WHERE name {in :names} AND is_open;

-- standing: the version of the configuration, and whether the last routed event is still what it was
-- The event is found by its id and by nothing else. As EXISTS, or beside another table, PostgreSQL reads the whole log
-- to look it up, and with its time among the conditions may come by that.
SELECT (SELECT v.version FROM config_version v) AS version,
       c.last_event_id IS NULL OR (SELECT e.correlation_id = c.last_event_correlation_id
                                          AND e.created_at = c.last_event_created_at
                                     FROM events e WHERE e.id = c.last_event_id) IS TRUE AS is_same
  FROM route_worker_cursors c WHERE c.worker_name = :worker_name;

-- last_number: the highest number drawn for an event so far
SELECT drawn FROM last_event_number();

-- proof_conditions: what the proof that no event is skipped stands on
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

-- other_routers: who else routes, and which domain
SELECT worker_name, event_domain FROM route_worker_cursors WHERE worker_name <> :worker_name;

-- routes: all of them
SELECT id, event_domain, event_type, event_stream, target, task_biz_type, enabled, dry_run FROM routes;

-- subscribers: all subscriptions, as far as routing looks at them
SELECT id, event_domain, event_type, active, verified FROM subscriptions ORDER BY id;

-- events_after: what is new
SELECT id, event_domain, event_type, event_stream, correlation_id
  FROM events WHERE id > :position ORDER BY id LIMIT :limit;

-- events_within: what arrived late in these ranges
SELECT e.id, e.event_domain, e.event_type, e.event_stream, e.correlation_id
  FROM ({rows ranges(lo bigint, hi bigint)}) AS hole (lo, hi)
  CROSS JOIN LATERAL (SELECT id, event_domain, event_type, event_stream, correlation_id FROM events
                       WHERE id BETWEEN hole.lo AND hole.hi ORDER BY id LIMIT :limit) e
 ORDER BY e.id LIMIT :limit;

-- attempts_between: what was decided before about these events, by any router
SELECT event_id, route_id, status, reason, attempt_no
  FROM route_attempts WHERE event_id BETWEEN :lo AND :hi AND worker_name NOT LIKE 'replay:%';

-- attempts_among: the same for events that arrived late
SELECT event_id, route_id, status, reason, attempt_no
  FROM route_attempts WHERE event_id {in :ids} AND worker_name NOT LIKE 'replay:%';

-- sagas_among: which subscriptions these events have been sent to
SELECT event_id, subscription_id FROM webhook_delivery_sagas WHERE event_id {in :ids} AND generation = 0;

-- tasks_among: which types of task these events have come to, finished ones included
SELECT biz_type, biz_key FROM sys_pending_tasks WHERE biz_type {in :biz_types} AND biz_key {in :keys}
UNION ALL
SELECT biz_type, biz_key FROM sys_pending_tasks_history WHERE biz_type {in :biz_types} AND biz_key {in :keys};

-- unresolved_among: which of these events wait in the dead letters of routing
SELECT event_id FROM route_dead_letters WHERE event_id {in :ids} AND resolved_at IS NULL;

-- insert_attempts: the decisions
INSERT INTO route_attempts
       (event_id, worker_name, route_id, route_kind, status, matched, reason, detail, attempt_no, idempotency_key)
{rows attempts(event_id bigint, worker_name text, route_id bigint, route_kind text, status text, matched int,
               reason text, detail text, attempt_no int, idempotency_key text)};

-- insert_sagas: one for each event and subscription, unless it is there
INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)
{rows sagas(event_id bigint, subscription_id bigint, correlation_id text)}
    ON CONFLICT (event_id, subscription_id, generation) DO NOTHING;

-- insert_tasks: one for each event, unless it is there
INSERT INTO sys_pending_tasks (biz_type, biz_key, payload, correlation_id)
SELECT :biz_type, e.id::text, e.payload, e.correlation_id FROM events e WHERE e.id {in :ids} ORDER BY e.id
    ON CONFLICT (biz_type, biz_key) DO NOTHING;

-- whole_event: for the snapshot of one that can't be routed
SELECT id, event_domain, event_type, event_stream, external_id, payload::text AS payload, correlation_id,
       to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at
  FROM events WHERE id = :id;

-- bury: sets one event aside, whole
INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error)
VALUES (:event_id, :worker_name, :idempotency_key, :snapshot, :error) ON CONFLICT (idempotency_key) DO NOTHING;

-- unresolve: an event that was set aside before and fails again waits again
UPDATE route_dead_letters SET resolved_at = NULL, resolution = NULL WHERE idempotency_key = :idempotency_key;

-- dead_letter: one of them
SELECT id, event_id, worker_name, event_snapshot::text AS snapshot, resolved_at IS NOT NULL AS is_resolved
  FROM route_dead_letters WHERE id = :id;

-- resolve: it has been routed
UPDATE route_dead_letters SET resolved_at = {now}, resolution = :resolution WHERE id = :id AND resolved_at IS NULL;

-- holes: the ranges this router has passed and that may still appear
SELECT lo, hi FROM route_holes WHERE worker_name = :worker_name ORDER BY lo;

-- close_holes: ranges that were filled, split, or proven to stay empty
DELETE FROM route_holes WHERE worker_name = :worker_name AND lo {in :los};

-- insert_holes: new ranges
INSERT INTO route_holes (worker_name, lo, hi) {rows holes(worker_name text, lo bigint, hi bigint)};

-- move_cursor: how far this router has come, which event was the last, and what it did
UPDATE route_worker_cursors
   SET position = :position, last_event_id = :last_event_id,
       last_event_correlation_id = (SELECT correlation_id FROM events WHERE id = :last_event_id),
       last_event_created_at = (SELECT created_at FROM events WHERE id = :last_event_id),
       runs = runs + 1, sent_count = sent_count + :sent, dry_run_count = dry_run_count + :dry_run,
       disabled_count = disabled_count + :disabled, skipped_count = skipped_count + :skipped,
       failed_count = failed_count + :failed, last_run_summary = :summary, updated_at = {now}
 WHERE worker_name = :worker_name;

-- correlation_of: by which an event can be told from another one that got its id
SELECT correlation_id FROM events WHERE id = :id;

-- remember_lost: an event that was routed is not in the log any more; nobody goes on before a person has confirmed that
UPDATE route_worker_cursors
   SET last_event_id = :id, last_event_correlation_id = :correlation_id, last_event_created_at = NULL, updated_at = {now}
 WHERE worker_name = :worker_name;

-- settled_writers: markers of transactions that have committed; there are none where locks tell it
SELECT 0 AS writer WHERE :limit < 0;

-- present_writers: who may still bring events; after a restart a prepared transaction has lost its name
SELECT l.virtualtransaction AS writer, l.virtualtransaction LIKE '-1/%' AS is_nameless
  FROM pg_catalog.pg_locks l
 WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted AND l.relation = 'events'::regclass
   AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
 LIMIT :limit;

-- forget_writers: markers prove nothing once their transactions have committed; there are none here
{rows writers(id bigint)} WHERE false;

-- audit: who did what
INSERT INTO audit_log (actor, action, subject, detail, request_id, address)
VALUES (:actor, :action, :subject, :detail, :request_id, :address);

-- clock: what time it is
SELECT {now} AS now;

-- past_events: the next events by time
SELECT id, event_domain, event_type, event_stream, correlation_id, created_at FROM events
 WHERE created_at >= :created_at AND (created_at > :created_at OR id > :event_id) AND created_at <= :until
 ORDER BY created_at, id LIMIT :limit;

-- decided_among: which of these events some router has decided about
SELECT DISTINCT event_id FROM route_attempts WHERE event_id {in :ids} AND worker_name NOT LIKE 'replay:%';
