-- find_events: which of these external ids are taken, by which event, and the SHA-256 of its payload
SELECT e.id, e.event_domain, LOWER(HEX(e.external_id)) AS external_key, SHA2(e.payload, 256) AS digest
  FROM {table events} e FORCE INDEX (uniq_event_external)
 WHERE (e.event_domain, e.external_id) IN (:keys.*);

-- find_events_now: the same, also those that were committed after this transaction began to look
SELECT e.id, e.event_domain, LOWER(HEX(e.external_id)) AS external_key, SHA2(e.payload, 256) AS digest
  FROM {table events} e FORCE INDEX (uniq_event_external)
 WHERE (e.event_domain, e.external_id) IN (:keys.*)
  LOCK IN SHARE MODE;

-- insert_events: the new events with their ids, which ascend in the order given; taken external ids are left out
INSERT IGNORE INTO {table events} (event_domain, event_type, event_stream, external_id, payload, correlation_id)
{rows events(event_domain text, event_type text, event_stream text, external_id text, payload text,
             correlation_id text)}
RETURNING id, event_domain, LOWER(HEX(external_id)) AS external_key;
