-- cast: MySQL has a function for it
SELECT CAST('42' AS int) AS answer;

-- joined: here VALUES has no place for names
WITH asked(id, words) AS ({rows asked(id bigint, words text)})
SELECT k.id, asked.words FROM keepsakes k JOIN asked ON asked.id = k.id ORDER BY k.id;

-- nearest: here there is no LATERAL
{each lanes(id, room): SELECT whole AS lane, id FROM keepsakes WHERE whole = lanes.id ORDER BY id LIMIT lanes.room}
ORDER BY 1, 2;

-- dawdle: takes its time
SELECT SLEEP(:seconds);

-- session_id: which of the server's sessions this is
SELECT CONNECTION_ID() AS id;

-- wait_briefly: whole seconds only
SET SESSION innodb_lock_wait_timeout = 1;

-- settings: what the session brings along
SELECT @@session.time_zone AS zone, REPLACE(LOWER(@@session.tx_isolation), '-', ' ') AS isolation,
       CURRENT_ROLE() AS acts_as;
