-- installation_id: which installation this is
SELECT installation_id FROM installation WHERE id = 1;

-- key: one that is valid now, with its hash, and whether its last use should be written down
SELECT id, key_hash, scopes, event_domain,
       last_used_at IS NULL OR last_used_at < {now - :seconds} AS is_stale
  FROM api_keys
 WHERE public_id = :public_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now});

-- mark_used: it was used just now
UPDATE api_keys SET last_used_at = {now} WHERE id = :id;

-- audit: what was refused to whom
INSERT INTO audit_log (actor, action, subject, detail, request_id, address)
VALUES (:actor, :action, :subject, :detail, :request_id, :address);
