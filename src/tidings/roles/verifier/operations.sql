-- subscription_to_judge: one, kept from others until the end of the transaction
SELECT id, event_domain, event_type, callback_url, pending_callback_url, active, verified, verification, paused,
       description, max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight, config_version
  FROM subscriptions WHERE id = :id FOR UPDATE;

-- put_in_force: this URL and no other, which is verified from now on
UPDATE subscriptions
   SET callback_url = :url, pending_callback_url = NULL, verified = TRUE,
       config_version = config_version + 1, updated_at = {now}
 WHERE id = :id AND COALESCE(pending_callback_url, callback_url) = :url;

-- record: who put which URL in force
INSERT INTO audit_log (actor, action, subject, detail) VALUES (:actor, :action, :subject, :detail);
