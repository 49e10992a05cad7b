-- make_walk: the row that remembers how far one of the walks has come
INSERT INTO retention_walks (name) VALUES (:name) ON CONFLICT DO NOTHING;

-- take_walk: where it stands and what is old by now, unless another instance walks right now
SELECT at_time, at_id, {now - :keep} AS cutoff, began_at < {now - :round} AS is_long_ago
  FROM retention_walks WHERE name = :name FOR UPDATE SKIP LOCKED;

-- move_walk: what lies before was looked at
UPDATE retention_walks SET at_time = :at_time, at_id = :at_id WHERE name = :name;

-- begin_walk: from the oldest on again, for what was not finished the last time
UPDATE retention_walks SET at_time = NULL, at_id = 0, began_at = {now} WHERE name = :name;

-- old_events: the next events by time
SELECT id, created_at, event_domain FROM events
 WHERE created_at >= :at_time AND (created_at > :at_time OR id > :at_id) AND created_at < :cutoff
 ORDER BY created_at, id LIMIT :limit;

-- hold_cursors: how far the routers have come; none of them is moved until the end of the transaction
SELECT worker_name, event_domain, position, last_event_id
  FROM route_worker_cursors ORDER BY worker_name FOR SHARE;

-- holes_between: ranges among which a router may still look for these events
SELECT lo, hi FROM route_holes WHERE worker_name {in :names} AND lo <= :highest AND hi >= :lowest;

-- attempts_of: what was decided about these events
SELECT event_id, route_kind, status, COUNT(*) AS attempts, SUM(matched) AS matched,
       MAX(created_at) >= :cutoff AS is_recent
  FROM route_attempts WHERE event_id {in :ids} GROUP BY event_id, route_kind, status;

-- saga_counts: how many sagas each of these events has
SELECT event_id, COUNT(*) AS sagas FROM webhook_delivery_sagas WHERE event_id {in :ids} GROUP BY event_id;

-- sagas_of: the sagas of these events
SELECT id, event_id, subscription_id, generation, status, updated_at >= :cutoff AS is_recent
  FROM webhook_delivery_sagas WHERE event_id {in :ids};

-- jobs_of: how many jobs these sagas have had, and how many of them were not taken in
SELECT saga_id, COUNT(*) AS jobs, COUNT(*) - COUNT(applied_at) AS unapplied
  FROM webhook_delivery_jobs WHERE saga_id {in :saga_ids} GROUP BY saga_id;

-- letters_of: dead letters of routing about these events
SELECT event_id, COUNT(*) AS letters, COUNT(*) - COUNT(resolved_at) AS unresolved,
       COALESCE(MAX(resolved_at) >= :cutoff, FALSE) AS is_recent
  FROM route_dead_letters WHERE event_id {in :ids} GROUP BY event_id;

-- dead_letters_of: how many dead letters these events have
SELECT event_id, COUNT(*) AS letters FROM dead_letters WHERE event_id {in :ids} GROUP BY event_id;

-- next_task_type: the type after this one of tasks that are not in the history
SELECT MIN(biz_type) AS biz_type FROM sys_pending_tasks WHERE biz_type > :after;

-- open_tasks: of these keys those with a task that is not in the history
SELECT DISTINCT biz_key FROM sys_pending_tasks WHERE biz_type {in :biz_types} AND biz_key {in :keys};

-- remove_jobs: first, as they hang on sagas
DELETE FROM webhook_delivery_jobs WHERE saga_id {in :saga_ids};

-- remove_dead_letters: of these events
DELETE FROM dead_letters WHERE event_id {in :ids};

-- remove_sagas: these and no others: where there is a new one, its event can't go, and so nothing does
DELETE FROM webhook_delivery_sagas WHERE id {in :saga_ids};

-- remove_route_dead_letters: of these events
DELETE FROM route_dead_letters WHERE event_id {in :ids};

-- remove_events: after their sagas, and before what was decided about them: the guard asks for both
DELETE FROM events WHERE id {in :ids};

-- remove_attempts: at last
DELETE FROM route_attempts WHERE event_id {in :ids};

-- add_totals: what went, by day
INSERT INTO retention_totals
       (day, events, sent, dry_run, failed, disabled, skipped, attempts, wanted_deliveries, wanted_tasks, sagas,
        delivered, dead, jobs, dead_letters, route_dead_letters, tasks)
{rows totals(day text, events bigint, sent bigint, dry_run bigint, failed bigint, disabled bigint, skipped bigint,
             attempts bigint, wanted_deliveries bigint, wanted_tasks bigint, sagas bigint, delivered bigint,
             dead bigint, jobs bigint, dead_letters bigint, route_dead_letters bigint, tasks bigint)}
    ON CONFLICT (day) DO UPDATE
   SET events = retention_totals.events + excluded.events, sent = retention_totals.sent + excluded.sent,
       dry_run = retention_totals.dry_run + excluded.dry_run, failed = retention_totals.failed + excluded.failed,
       disabled = retention_totals.disabled + excluded.disabled,
       skipped = retention_totals.skipped + excluded.skipped,
       attempts = retention_totals.attempts + excluded.attempts,
       wanted_deliveries = retention_totals.wanted_deliveries + excluded.wanted_deliveries,
       wanted_tasks = retention_totals.wanted_tasks + excluded.wanted_tasks,
       sagas = retention_totals.sagas + excluded.sagas, delivered = retention_totals.delivered + excluded.delivered,
       dead = retention_totals.dead + excluded.dead, jobs = retention_totals.jobs + excluded.jobs,
       dead_letters = retention_totals.dead_letters + excluded.dead_letters,
       route_dead_letters = retention_totals.route_dead_letters + excluded.route_dead_letters,
       tasks = retention_totals.tasks + excluded.tasks, updated_at = {now};

-- old_tasks: the next archived tasks by time
SELECT id, biz_key, archived_at FROM sys_pending_tasks_history
 WHERE archived_at >= :at_time AND (archived_at > :at_time OR id > :at_id) AND archived_at < :cutoff
 ORDER BY archived_at, id LIMIT :limit;

-- events_with_tasks: of these events those that came to tasks, and are still there
SELECT DISTINCT event_id FROM route_attempts WHERE event_id {in :ids} AND route_kind = 'task' AND status = 'sent';

-- remove_tasks: from the history
DELETE FROM sys_pending_tasks_history WHERE id {in :ids};
