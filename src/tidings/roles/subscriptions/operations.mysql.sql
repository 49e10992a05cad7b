-- insert_subscription: unverified; MySQL tells the id only when asked
INSERT INTO subscriptions (event_domain, event_type, callback_url, verification, description,
                           max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight)
VALUES (:event_domain, :event_type, :callback_url, :verification, :description,
        :max_retry_limit, :base_delay_seconds, :timeout_seconds, :max_in_flight);

-- inserted_id: the id of the row that was just inserted
SELECT LAST_INSERT_ID() AS id;

-- add_secret: puts a sealed secret before the older ones; how many subscriptions there were
CALL add_subscription_secret(:id, :sealed);
