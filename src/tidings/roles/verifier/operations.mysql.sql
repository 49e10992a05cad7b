-- insert_check: MySQL tells the id only when asked
INSERT INTO endpoint_checks (subscription_id, kind, url, host, challenge, expires_at)
VALUES (:subscription_id, :kind, :url, :host, :challenge, {now + :lifetime});

-- inserted_id: the id of the row that was just inserted
SELECT LAST_INSERT_ID() AS id;
