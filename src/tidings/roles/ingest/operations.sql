-- find_events: which of these external ids are taken, by which event, and the SHA-256 of its payload
SELECT e.id, e.event_domain, e.external_key, e.digest
  FROM unnest(:keys.event_domain::text[], :keys.external_id::text[]) AS w (event_domain, external_id)
 -- One look into the index for each, also where the planner knows nothing of the table yet.
 CROSS JOIN LATERAL (
       SELECT s.id, s.event_domain, encode(convert_to(s.external_id, 'UTF8'), 'hex') AS external_key,
              encode(sha256(convert_to(s.payload::text, 'UTF8')), 'hex') AS digest
         FROM {table events} s
        WHERE s.event_domain = w.event_domain AND s.external_id = w.external_id LIMIT 1) AS e;

-- find_events_now: the same, also those that were committed after this transaction began to look
SELECT e.id, e.event_domain, e.external_key, e.digest
  FROM unnest(:keys.event_domain::text[], :keys.external_id::text[]) AS w (event_domain, external_id)
 CROSS JOIN LATERAL (
       SELECT s.id, s.event_domain, encode(convert_to(s.external_id, 'UTF8'), 'hex') AS external_key,
              encode(sha256(convert_to(s.payload::text, 'UTF8')), 'hex') AS digest
         FROM {table events} s
        WHERE s.event_domain = w.event_domain AND s.external_id = w.external_id LIMIT 1) AS e;

-- insert_events: the new events with their ids, which ascend in the order given; taken external ids are left out
INSERT INTO {table events} (event_domain, event_type, event_stream, external_id, payload, correlation_id)
SELECT n.event_domain, n.event_type, n.event_stream, n.external_id, n.payload::json, n.correlation_id
  FROM unnest(:events.event_domain::text[], :events.event_type::text[], :events.event_stream::text[],
              :events.external_id::text[], :events.payload::text[], :events.correlation_id::text[])
       WITH ORDINALITY AS n (event_domain, event_type, event_stream, external_id, payload, correlation_id, place)
 ORDER BY n.place
ON CONFLICT (event_domain, external_id) WHERE external_id IS NOT NULL DO NOTHING
RETURNING id, event_domain, encode(convert_to(external_id, 'UTF8'), 'hex') AS external_key;
