-- make_walk: the row that remembers how far one of the walks has come
INSERT IGNORE INTO retention_walks (name) VALUES (:name);

-- hold_cursors: how far the routers have come; none of them is moved until the end of the transaction
SELECT worker_name, event_domain, position, last_event_id
  FROM route_worker_cursors ORDER BY worker_name LOCK IN SHARE MODE;

-- add_totals: what went, by day
INSERT INTO retention_totals
       (day, events, sent, dry_run, failed, disabled, skipped, attempts, wanted_deliveries, wanted_tasks, sagas,
        delivered, dead, jobs, dead_letters, route_dead_letters, tasks)
{rows totals(day text, events bigint, sent bigint, dry_run bigint, failed bigint, disabled bigint, skipped bigint,
             attempts bigint, wanted_deliveries bigint, wanted_tasks bigint, sagas bigint, delivered bigint,
             dead bigint, jobs bigint, dead_letters bigint, route_dead_letters bigint, tasks bigint)}
    ON DUPLICATE KEY UPDATE
       events = events + VALUES(events), sent = sent + VALUES(sent), dry_run = dry_run + VALUES(dry_run),
       failed = failed + VALUES(failed), disabled = disabled + VALUES(disabled),
       skipped = skipped + VALUES(skipped), attempts = attempts + VALUES(attempts),
       wanted_deliveries = wanted_deliveries + VALUES(wanted_deliveries),
       wanted_tasks = wanted_tasks + VALUES(wanted_tasks), sagas = sagas + VALUES(sagas),
       delivered = delivered + VALUES(delivered), dead = dead + VALUES(dead), jobs = jobs + VALUES(jobs),
       dead_letters = dead_letters + VALUES(dead_letters),
       route_dead_letters = route_dead_letters + VALUES(route_dead_letters), tasks = tasks + VALUES(tasks),
       updated_at = {now};
