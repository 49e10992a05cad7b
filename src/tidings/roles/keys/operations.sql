-- installation_id: which installation this is
SELECT installation_id FROM installation WHERE id = 1;

-- insert_key: a new key; fails if its public id is taken
INSERT INTO api_keys (public_id, key_hash, name, scopes, event_domain, created_by, expires_at)
VALUES (:public_id, :key_hash, :name, :scopes, :event_domain, :created_by, {now + :lifetime});

-- key: one, without its hash
SELECT id, public_id, name, scopes, event_domain, created_by, created_at, last_used_at, expires_at, revoked_at,
       revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now}) AS is_valid
  FROM api_keys WHERE public_id = :public_id;

-- keys_after: in the order in which they were made
SELECT id, public_id, name, scopes, event_domain, created_by, created_at, last_used_at, expires_at, revoked_at,
       revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now}) AS is_valid
  FROM api_keys WHERE id > :after ORDER BY id LIMIT :limit;

-- revoke_key: it is valid no longer
UPDATE api_keys SET revoked_at = {now} WHERE public_id = :public_id AND revoked_at IS NULL;

-- audit: who did what
INSERT INTO audit_log (actor, action, subject, detail, request_id, address)
VALUES (:actor, :action, :subject, :detail, :request_id, :address);
