-- insert_route: a new route; fails if another one has the same patterns and target
INSERT INTO routes (event_domain, event_type, event_stream, target, task_biz_type, enabled, dry_run)
VALUES (:event_domain, :event_type, :event_stream, :target, :task_biz_type, :enabled, :dry_run);

-- same_route: the route with these patterns and this target
SELECT id, event_domain, event_type, event_stream, target, task_biz_type, enabled, dry_run FROM routes
 WHERE target = :target AND task_biz_type = :task_biz_type
   AND event_domain = :event_domain AND event_type = :event_type AND event_stream = :event_stream;

-- lock_route: one route, ours until the end of the transaction
SELECT id, event_domain, event_type, event_stream, target, task_biz_type, enabled, dry_run FROM routes
 WHERE id = :id FOR UPDATE;

-- update_route: everything that can be changed of one route; fails as insert_route does
UPDATE routes
   SET event_domain = :event_domain, event_type = :event_type, event_stream = :event_stream, target = :target,
       task_biz_type = :task_biz_type, enabled = :enabled, dry_run = :dry_run, updated_at = {now}
 WHERE id = :id;

-- delete_route: one route less
DELETE FROM routes WHERE id = :id;

-- lock_gate: one gate as it is, ours until the end of the transaction
SELECT name, is_open, reason FROM gates WHERE name = :name FOR UPDATE;

-- insert_gate: a gate that was missing; fails if it is there by now
INSERT INTO gates (name, is_open, reason, changed_by, changed_at) VALUES (:name, :is_open, :reason, :actor, {now});

-- update_gate: a gate as it shall be
UPDATE gates SET is_open = :is_open, reason = :reason, changed_by = :actor, changed_at = {now} WHERE name = :name;

-- await_routers: nothing, when the passes that were running are over
SELECT worker_name FROM route_worker_cursors ORDER BY worker_name FOR UPDATE;

-- lock_cursor: where a router is; it stays there until the end of the transaction
SELECT worker_name, event_domain, position, last_event_id, last_event_correlation_id, last_event_created_at
  FROM route_worker_cursors WHERE worker_name = :worker_name FOR UPDATE;

-- lock_cursor_of_domain: the same for the router of a domain
SELECT worker_name, event_domain, position, last_event_id, last_event_correlation_id, last_event_created_at
  FROM route_worker_cursors WHERE event_domain = :event_domain FOR UPDATE;

-- routers_like: the routers that have this name or this domain
SELECT worker_name, event_domain FROM route_worker_cursors
 WHERE worker_name = :worker_name OR event_domain = :event_domain ORDER BY worker_name;

-- insert_cursor: a new router at this place
INSERT INTO route_worker_cursors (worker_name, event_domain, position,
                                  last_event_id, last_event_correlation_id, last_event_created_at)
VALUES (:worker_name, :event_domain, :position, :event_id, :correlation_id, :created_at);

-- copy_holes: the holes of one router become those of another, too
INSERT INTO route_holes (worker_name, lo, hi, seen_at)
SELECT :to_worker, h.lo, h.hi, h.seen_at FROM route_holes h WHERE h.worker_name = :from_worker;

-- move_cursor: the router goes on from this place
UPDATE route_worker_cursors
   SET position = :position, last_event_id = :event_id, last_event_correlation_id = :correlation_id,
       last_event_created_at = :created_at, updated_at = {now}
 WHERE worker_name = :worker_name;

-- holes_across: the holes that begin at or below an id and end above it
SELECT lo, seen_at FROM route_holes WHERE worker_name = :worker_name AND lo <= :id AND hi > :id;

-- delete_holes_above: nothing is left that reaches above an id
DELETE FROM route_holes WHERE worker_name = :worker_name AND hi > :id;

-- insert_hole: one hole
INSERT INTO route_holes (worker_name, lo, hi, seen_at) VALUES (:worker_name, :lo, :hi, :seen_at);

-- event_up_to: the visible event with the highest id that is not above this one
SELECT id, correlation_id, created_at FROM events WHERE id <= :id ORDER BY id DESC LIMIT 1;

-- last_event_number: the highest id that was ever drawn for an event
SELECT drawn FROM last_event_number();

-- audit: who did what, with this transaction or not at all
INSERT INTO audit_log (actor, action, subject, detail, request_id, address)
VALUES (:actor, :action, :subject, :detail, :request_id, :address);
