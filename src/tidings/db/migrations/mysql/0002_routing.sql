-- attempt_detail: what a decision left out, and why
ALTER TABLE route_attempts {add_column} detail VARCHAR(500) NOT NULL DEFAULT '' AFTER created_at;

-- route_added: routers notice every change of configuration, whoever made it
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS route_added AFTER INSERT ON routes FOR EACH ROW
UPDATE config_version SET version = version + 1, updated_at = UTC_TIMESTAMP(6);

-- route_changed: a change of routes is a change of configuration
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS route_changed AFTER UPDATE ON routes FOR EACH ROW
UPDATE config_version SET version = version + 1, updated_at = UTC_TIMESTAMP(6);

-- route_removed: a change of routes is a change of configuration
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS route_removed AFTER DELETE ON routes FOR EACH ROW
UPDATE config_version SET version = version + 1, updated_at = UTC_TIMESTAMP(6);

-- subscription_added: a change of subscriptions is a change of configuration
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS subscription_added AFTER INSERT ON subscriptions FOR EACH ROW
UPDATE config_version SET version = version + 1, updated_at = UTC_TIMESTAMP(6);

-- subscription_changed: a change of subscriptions is a change of configuration
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS subscription_changed AFTER UPDATE ON subscriptions FOR EACH ROW
UPDATE config_version SET version = version + 1, updated_at = UTC_TIMESTAMP(6);

-- subscription_removed: a change of subscriptions is a change of configuration
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS subscription_removed AFTER DELETE ON subscriptions FOR EACH ROW
UPDATE config_version SET version = version + 1, updated_at = UTC_TIMESTAMP(6);

-- last_event_number: the highest number drawn for an event, visible or not
CREATE DEFINER = {definer} PROCEDURE IF NOT EXISTS last_event_number() SQL SECURITY DEFINER
SELECT COALESCE(t.AUTO_INCREMENT, 1) - 1 AS drawn FROM information_schema.tables t
 WHERE t.table_schema = DATABASE() AND t.table_name = 'events';

-- add_subscription_secret: puts a sealed secret before the older ones, for somebody who may not read them
CREATE DEFINER = {definer} PROCEDURE IF NOT EXISTS add_subscription_secret(IN subscription BIGINT, IN sealed BLOB)
    SQL SECURITY DEFINER
BEGIN
    -- A reader drops what the cut leaves of the oldest one.
    UPDATE subscriptions
       SET secrets = LEFT(CONCAT(sealed, COALESCE(secrets, x'')), 8192),
           config_version = config_version + 1, updated_at = UTC_TIMESTAMP(6)
     WHERE id = subscription;
    SELECT ROW_COUNT() AS added;
END;
