-- clock: what time it is there
SELECT {now} AS now;

-- insert_subscription: its id, unverified; its secret and its headers are sealed for that id, and follow
INSERT INTO subscriptions (event_domain, event_type, callback_url, verification, description,
                           max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight)
VALUES (:event_domain, :event_type, :callback_url, :verification, :description,
        :max_retry_limit, :base_delay_seconds, :timeout_seconds, :max_in_flight)
RETURNING id;

-- inserted_id: the id of the row that was just inserted, where the INSERT itself can't tell
SELECT lastval() AS id;

-- subscription: one, without what is secret
SELECT id, event_domain, event_type, callback_url, pending_callback_url, active, verified, verification, paused,
       description, max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight, config_version
  FROM subscriptions WHERE id = :id;

-- subscription_to_change: the same, kept from others until the end of the transaction
SELECT id, event_domain, event_type, callback_url, pending_callback_url, active, verified, verification, paused,
       description, max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight, config_version
  FROM subscriptions WHERE id = :id FOR UPDATE;

-- change_subscription: everything that can be edited and is no secret
UPDATE subscriptions
   SET event_domain = :event_domain, event_type = :event_type, pending_callback_url = :pending_callback_url,
       active = :active, paused = :paused, verification = :verification, description = :description,
       max_retry_limit = :max_retry_limit, base_delay_seconds = :base_delay_seconds,
       timeout_seconds = :timeout_seconds, max_in_flight = :max_in_flight,
       config_version = config_version + 1, updated_at = {now}
 WHERE id = :id;

-- replace_headers: all of them, sealed
UPDATE subscriptions SET headers = :headers, config_version = config_version + 1, updated_at = {now} WHERE id = :id;

-- add_secret: puts a sealed secret before the older ones; how many subscriptions there were
SELECT added FROM add_subscription_secret(:id, :sealed);

-- audit: who did what to which subscription
INSERT INTO audit_log (actor, action, subject, detail, request_id, address)
VALUES (:actor, :action, :subject, :detail, :request_id, :address);
