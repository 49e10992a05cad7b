-- isolation: how this session's transactions see each other
SELECT LOWER(REPLACE(@@tx_isolation, '-', ' ')) AS level;

-- id_generation: what the proof that no event is skipped stands on
SELECT 'role of the server' AS name, IF(@@read_only, 'replica', 'primary') AS value, 'primary' AS wanted
UNION ALL
SELECT 'Galera', IF(@@wsrep_on, 'on', 'off'), 'off'
UNION ALL
SELECT 'binlog_format', IF(@@log_bin, @@binlog_format, 'no binlog'), 'ROW|MIXED|no binlog';
