-- thread: the server's thread that serves this session
SELECT TID AS id FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID();

-- insert_sagas: one saga for each event and subscription
INSERT IGNORE INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)
{rows sagas(event_id bigint, subscription_id bigint, correlation_id text)};
