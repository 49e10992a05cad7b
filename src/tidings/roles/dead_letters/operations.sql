-- requeue: a new saga for each of these dead letters, once, however often it is asked
SELECT dead_letter_id AS id, saga_id, generation, outcome FROM requeue_dead_letters(:ids);

-- resend: a new saga for each of these completed ones, once
SELECT old_saga_id AS id, saga_id, generation, outcome FROM resend_sagas(:ids);

-- count_letters: how many dead letters a filter finds, up to a limit, and the last of them
SELECT COUNT(*) AS total, COALESCE(MAX(d.id), 0) AS last_id
  FROM (SELECT id FROM dead_letters
         WHERE (subscription_id = :subscription_id OR :subscription_id = 0)
           AND (final_error_code = :error_code OR :error_code = '')
           AND failed_at >= :since AND failed_at <= :until
           AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = dead_letters.event_id) = :event_type)
         ORDER BY id LIMIT :limit) d;

-- count_refused: how many of them belong to a subscription to which nothing may be sent
SELECT s.id AS subscription_id, s.active, COUNT(*) AS letters
  FROM (SELECT id, subscription_id FROM dead_letters
         WHERE (subscription_id = :subscription_id OR :subscription_id = 0)
           AND (final_error_code = :error_code OR :error_code = '')
           AND failed_at >= :since AND failed_at <= :until
           AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = dead_letters.event_id) = :event_type)
         ORDER BY id LIMIT :limit) d
  JOIN subscriptions s ON s.id = d.subscription_id WHERE NOT (s.active AND s.verified)
 GROUP BY s.id, s.active ORDER BY s.id;

-- insert_mass: a requeue of many
INSERT INTO mass_requeues (filter, rate, requested_by, total, last_id)
VALUES (:filter, :rate, :requested_by, :total, :last_id) RETURNING id;

-- mass: one of them
SELECT id, status, filter::text AS filter, rate, requested_by, total, position, last_id,
       started_count, already_count, refused_count
  FROM mass_requeues WHERE id = :id;

-- lock_mass: the same, unless another process is at it right now
SELECT id, status, filter::text AS filter, rate, requested_by, total, position, last_id,
       started_count, already_count, refused_count
  FROM mass_requeues WHERE id = :id FOR UPDATE SKIP LOCKED;

-- next_letters: the next ones of a filter
SELECT id FROM dead_letters
 WHERE id > :position AND id <= :last_id
   AND (subscription_id = :subscription_id OR :subscription_id = 0)
   AND (final_error_code = :error_code OR :error_code = '')
   AND failed_at >= :since AND failed_at <= :until
   AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = dead_letters.event_id) = :event_type)
 ORDER BY id LIMIT :limit;

-- move_mass: how far it has come
UPDATE mass_requeues
   SET position = :position, started_count = started_count + :started, already_count = already_count + :already,
       refused_count = refused_count + :refused, updated_at = {now}
 WHERE id = :id;

-- end_mass: it is over, done or cancelled
UPDATE mass_requeues SET status = :status, updated_at = {now}, finished_at = {now}
 WHERE id = :id AND status = 'running';

-- audit: who did what
INSERT INTO audit_log (actor, action, subject, detail, request_id, address)
VALUES (:actor, :action, :subject, :detail, :request_id, :address);
