-- proof_conditions: what the proof that no event is skipped stands on
SELECT 'role of the server' AS name, IF(@@read_only, 'replica', 'primary') AS value, 'primary' AS wanted
UNION ALL
SELECT 'Galera', IF(@@wsrep_on, 'on', 'off'), 'off';
