-- audit_address: from where somebody asked, if it was over HTTP
ALTER TABLE audit_log ADD COLUMN address varchar(64) COLLATE "C";
