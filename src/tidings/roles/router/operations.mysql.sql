-- make_cursor: the first router covers every domain that no other names
INSERT IGNORE INTO route_worker_cursors (worker_name, event_domain) VALUES (:worker_name, :event_domain);

-- last_number: the highest number drawn for an event so far
CALL last_event_number();

-- proof_conditions: what the proof that no event is skipped stands on
SELECT 'role of the server' AS name, IF(@@read_only, 'replica', 'primary') AS value, 'primary' AS wanted;

-- events_within: what arrived late in these ranges
SELECT id, event_domain, event_type, event_stream, correlation_id FROM events FORCE INDEX (PRIMARY)
 WHERE ({any ranges(lo, hi): id BETWEEN ranges.lo AND ranges.hi}) ORDER BY id LIMIT :limit;

-- insert_sagas: one for each event and subscription, unless it is there
INSERT IGNORE INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)
{rows sagas(event_id bigint, subscription_id bigint, correlation_id text)};

-- insert_tasks: one for each event, unless it is there
INSERT IGNORE INTO sys_pending_tasks (biz_type, biz_key, payload, correlation_id)
SELECT :biz_type, e.id, e.payload, e.correlation_id FROM events e WHERE e.id {in :ids} ORDER BY e.id;

-- whole_event: for the snapshot of one that can't be routed
SELECT id, event_domain, event_type, event_stream, external_id, payload, correlation_id,
       DATE_FORMAT(created_at, '%Y-%m-%dT%H:%i:%s.%fZ') AS created_at
  FROM events WHERE id = :id;

-- bury: sets one event aside, whole
INSERT IGNORE INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error)
VALUES (:event_id, :worker_name, :idempotency_key, :snapshot, :error);

-- dead_letter: one of them
SELECT id, event_id, worker_name, event_snapshot AS snapshot, resolved_at IS NOT NULL AS is_resolved
  FROM route_dead_letters WHERE id = :id;

-- settled_writers: markers of transactions that have committed
SELECT id AS writer FROM event_writers ORDER BY id LIMIT :limit;

-- present_writers: all markers, those of open transactions too when read uncommitted
SELECT id AS writer, FALSE AS is_nameless FROM event_writers ORDER BY id LIMIT :limit;

-- forget_writers: markers prove nothing once their transactions have committed
-- Looked up one by one: over a list the planner goes through the whole table, and waits for every open transaction.
DELETE FROM event_writers USING (SELECT 0 AS id UNION ALL {rows writers(id bigint)}) w
  STRAIGHT_JOIN event_writers FORCE INDEX (PRIMARY) ON event_writers.id = w.id;
