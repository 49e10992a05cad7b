-- requeue: a new saga for each of these dead letters, once, however often it is asked
CALL requeue_dead_letters(CONCAT('[', CONCAT_WS(',', :ids), ']'));

-- resend: a new saga for each of these completed ones, once
CALL resend_sagas(CONCAT('[', CONCAT_WS(',', :ids), ']'));

-- mass: one of them
SELECT id, status, filter, rate, requested_by, total, position, last_id, started_count, already_count, refused_count
  FROM mass_requeues WHERE id = :id;

-- lock_mass: the same, unless another process is at it right now
SELECT id, status, filter, rate, requested_by, total, position, last_id, started_count, already_count, refused_count
  FROM mass_requeues WHERE id = :id FOR UPDATE SKIP LOCKED;
