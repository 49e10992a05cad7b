-- attempt_detail: what a decision left out, and why
ALTER TABLE route_attempts ADD COLUMN detail varchar(500) COLLATE "C" NOT NULL DEFAULT '';

-- bump_config: routers notice every change of configuration, whoever made it
CREATE FUNCTION bump_config() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS $$
BEGIN
    UPDATE config_version SET version = version + 1, updated_at = clock_timestamp();
    RETURN NULL;
END $$;

-- route_config_changed: a change of routes is a change of configuration
CREATE TRIGGER route_config_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON routes
    EXECUTE FUNCTION bump_config();

-- subscription_config_changed: a change of subscriptions is a change of configuration
CREATE TRIGGER subscription_config_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON subscriptions
    EXECUTE FUNCTION bump_config();

-- last_event_number: the highest number drawn for an event, visible or not; the sequence itself is nobody's to touch
CREATE FUNCTION last_event_number() RETURNS TABLE (drawn bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS $$
    SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM events_id_seq
$$;

-- add_subscription_secret: puts a sealed secret before the older ones, for somebody who may not read them
CREATE FUNCTION add_subscription_secret(subscription bigint, sealed bytea) RETURNS TABLE (added integer)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS $$
BEGIN
    -- A reader drops what the cut leaves of the oldest one.
    UPDATE subscriptions
       SET secrets = substring(sealed || coalesce(secrets, '') FROM 1 FOR 8192),
           config_version = config_version + 1, updated_at = statement_timestamp()
     WHERE id = subscription;
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN NEXT;
END $$;

-- routing_routines_are_not_public: who may call them is said by the grants
REVOKE EXECUTE ON FUNCTION last_event_number(), add_subscription_secret(bigint, bytea), bump_config() FROM PUBLIC;
