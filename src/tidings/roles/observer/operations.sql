-- server_clock: what time it is there
SELECT clock_timestamp() AS now;

-- isolation: how this session's transactions see each other
SELECT lower(current_setting('transaction_isolation')) AS level;

-- durability: the settings that decide whether a commit survives a crash, and what is right
SELECT name, setting AS value,
       CASE name WHEN 'synchronous_commit' THEN 'on|local|remote_write|remote_apply' ELSE 'on' END AS wanted
  FROM pg_catalog.pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name;

-- id_generation: what the proof that no event is skipped stands on
SELECT 'identity of events.id' AS name, CASE a.attidentity WHEN 'a' THEN 'always' ELSE 'not always' END AS value,
       'always' AS wanted
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = 'events'::regclass AND a.attname = 'id'
UNION ALL
SELECT 'cache of the sequence', q.seqcache::text, '1'
  FROM pg_catalog.pg_sequence q WHERE q.seqrelid = pg_get_serial_sequence('events', 'id')::regclass
UNION ALL
SELECT 'increment of the sequence', q.seqincrement::text, '1'
  FROM pg_catalog.pg_sequence q WHERE q.seqrelid = pg_get_serial_sequence('events', 'id')::regclass
UNION ALL
SELECT 'role of the server', CASE WHEN pg_is_in_recovery() THEN 'replica' ELSE 'primary' END, 'primary';
