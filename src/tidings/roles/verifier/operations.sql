-- subscription_to_judge: one, kept from others until the end of the transaction
SELECT id, event_domain, event_type, callback_url, pending_callback_url, active, verified, verification, paused,
       description, max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight, config_version
  FROM subscriptions WHERE id = :id FOR UPDATE;

-- put_in_force: this URL and no other, which is verified from now on
UPDATE subscriptions
   SET callback_url = :url, pending_callback_url = NULL, verified = TRUE,
       config_version = config_version + 1, updated_at = {now}
 WHERE id = :id AND COALESCE(pending_callback_url, callback_url) = :url;

-- audit: who put which URL in force
INSERT INTO audit_log (actor, action, subject, detail, request_id, address)
VALUES (:actor, :action, :subject, :detail, :request_id, :address);

-- checks_lately: how often this subscription and this host were to be called within so many seconds
SELECT (SELECT COUNT(*) FROM endpoint_checks
         WHERE subscription_id = :id AND created_at > {now - :seconds} AND kind = :kind) AS of_subscription,
       (SELECT COUNT(*) FROM endpoint_checks
         WHERE host = :host AND created_at > {now - :seconds} AND kind = :kind) AS of_host;

-- outdate_challenges: a new one makes the older ones void
UPDATE endpoint_checks SET outcome = 'outdated', finished_at = {now}
 WHERE subscription_id = :id AND kind = 'verification' AND finished_at IS NULL;

-- forget_checks: those of long ago, which no limit counts any more
DELETE FROM endpoint_checks WHERE subscription_id = :id AND created_at < {now - :seconds};

-- insert_check: its id
INSERT INTO endpoint_checks (subscription_id, kind, url, host, challenge, expires_at)
VALUES (:subscription_id, :kind, :url, :host, :challenge, {now + :lifetime})
RETURNING id;

-- inserted_id: the id of the row that was just inserted, where the INSERT itself can't tell
SELECT lastval() AS id;

-- submit_task: the task that makes the call
INSERT INTO sys_pending_tasks (biz_type, biz_key, payload, max_retries)
VALUES (:biz_type, :biz_key, :payload, :max_retries);

-- check_to_run: one check, and its subscription as it is now
SELECT c.id, c.subscription_id, c.kind, c.url, c.challenge,
       c.finished_at IS NULL AND c.expires_at > {now} AS is_open,
       s.callback_url, s.pending_callback_url, s.active, s.verified, s.verification, s.secrets, s.headers,
       s.timeout_seconds, {now} AS asked_at
  FROM endpoint_checks c JOIN subscriptions s ON s.id = c.subscription_id
 WHERE c.id = :id;

-- put_in_force_if_current: the URL that answered, if it and the challenge are still the current ones
UPDATE subscriptions
   SET callback_url = :url, pending_callback_url = NULL, verified = TRUE,
       config_version = config_version + 1, updated_at = {now}
 WHERE id = :id AND COALESCE(pending_callback_url, callback_url) = :url AND verification = :mode
   AND EXISTS (SELECT 1 FROM endpoint_checks c
                WHERE c.id = :check_id AND c.challenge = :challenge AND c.finished_at IS NULL
                  AND c.expires_at > {now});

-- finish_check: once, and no more of it than may be told
UPDATE endpoint_checks
   SET outcome = :outcome, error_code = :error_code, duration_ms = :duration_ms, finished_at = {now}
 WHERE id = :id AND finished_at IS NULL;

-- verdict: what has come of a check so far
SELECT outcome, error_code, duration_ms FROM endpoint_checks WHERE id = :id;
