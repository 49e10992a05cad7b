-- worker_presence: which processes are alive, and since when
CREATE TABLE worker_presence (
    worker_id  varchar(100) COLLATE "C" PRIMARY KEY,
    process    varchar(40) COLLATE "C" NOT NULL,
    host       varchar(255) COLLATE "C" NOT NULL,
    pid        integer NOT NULL,
    version    varchar(40) COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    seen_at    timestamptz NOT NULL DEFAULT statement_timestamp()
);

-- mass_requeues: requeues of many dead letters, with how far each has come
CREATE TABLE mass_requeues (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status        varchar(20) COLLATE "C" NOT NULL DEFAULT 'running',
    filter        json NOT NULL,
    rate          integer NOT NULL,
    requested_by  varchar(200) COLLATE "C" NOT NULL,
    total         bigint NOT NULL,
    position      bigint NOT NULL DEFAULT 0,
    last_id       bigint NOT NULL,
    started_count bigint NOT NULL DEFAULT 0,
    already_count bigint NOT NULL DEFAULT 0,
    refused_count bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT statement_timestamp(),
    finished_at   timestamptz,
    CONSTRAINT mass_requeue_status_known CHECK (status IN ('running', 'done', 'cancelled')),
    CONSTRAINT mass_requeue_counts CHECK (rate >= 1 AND total >= 0 AND position >= 0 AND last_id >= 0)
);

-- idx_dead_subscription: dead letters of one subscription, in order
CREATE INDEX idx_dead_subscription ON dead_letters (subscription_id, id);

-- mark_present: a process tells that it is alive; those that died without a word are forgotten after a day
CREATE FUNCTION mark_present(its_id text, its_process text, its_host text, its_pid integer, its_version text)
    RETURNS TABLE (is_new boolean)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS $$
BEGIN
    UPDATE worker_presence SET seen_at = statement_timestamp() WHERE worker_id = its_id;
    is_new := NOT FOUND;
    IF is_new THEN
        DELETE FROM worker_presence WHERE seen_at < statement_timestamp() - interval '1 day';
        INSERT INTO worker_presence (worker_id, process, host, pid, version)
        VALUES (its_id, its_process, its_host, its_pid, its_version) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NEXT;
END $$;

-- mark_gone: it ends
CREATE FUNCTION mark_gone(its_id text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS $$
    DELETE FROM worker_presence WHERE worker_id = its_id
$$;

-- delivery_routines_are_not_public: who may call them is said by the grants
REVOKE EXECUTE ON FUNCTION mark_present(text, text, text, integer, text), mark_gone(text) FROM PUBLIC;
