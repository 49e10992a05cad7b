-- insert_session: somebody signed in
INSERT INTO console_sessions (session_hash, public_id) VALUES (:session_hash, :public_id);

-- session: one that is not over, with what its key allows now, and whether its last use should be written down
SELECT s.public_id, k.name, k.scopes, k.event_domain, s.seen_at < {now - :seconds} AS is_stale
  FROM console_sessions s JOIN api_keys k ON k.public_id = s.public_id
 WHERE s.session_hash = :session_hash AND s.seen_at > {now - :idle} AND s.created_at > {now - :absolute}
   AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > {now});

-- mark_seen: it was used just now
UPDATE console_sessions SET seen_at = {now} WHERE session_hash = :session_hash;

-- remove_session: somebody signed out
DELETE FROM console_sessions WHERE session_hash = :session_hash;

-- remove_idle: those that nobody has used for so long that they are over
DELETE FROM console_sessions WHERE seen_at < {now - :idle};

-- audit: who did what
INSERT INTO audit_log (actor, action, subject, request_id, address)
VALUES (:actor, :action, :subject, :request_id, :address);
