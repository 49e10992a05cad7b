-- audit_address: from where somebody asked, if it was over HTTP
ALTER TABLE audit_log {add_column} address VARCHAR(64) AFTER created_at;
