-- events: the append-only log; its numbers are drawn by the database, one by one
CREATE TABLE events (
    id             bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    event_domain   varchar(100) COLLATE "C" NOT NULL DEFAULT 'default',
    event_type     varchar(100) COLLATE "C" NOT NULL,
    event_stream   varchar(100) COLLATE "C" NOT NULL DEFAULT '',
    external_id    varchar(255) COLLATE "C",
    payload        json NOT NULL,
    correlation_id varchar(128) COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
    created_at     timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT event_domain_given CHECK (event_domain <> ''),
    CONSTRAINT event_type_visible_ascii CHECK (event_type <> '' AND event_type !~ '[^!-~]'),
    CONSTRAINT event_external_id_given CHECK (external_id <> ''),
    CONSTRAINT event_correlation_id_visible_ascii CHECK (correlation_id <> '' AND correlation_id !~ '[^!-~]'),
    CONSTRAINT event_payload_size CHECK (octet_length(payload::text) <= 1048576)
);

-- idx_event_created: events by time
CREATE INDEX idx_event_created ON events (created_at);

-- idx_event_type: events by type
CREATE INDEX idx_event_type ON events (event_type);

-- uniq_event_external: the same external id twice in one domain is one event
CREATE UNIQUE INDEX uniq_event_external ON events (event_domain, external_id) WHERE external_id IS NOT NULL;

-- subscriptions: who wants which events, and where to
CREATE TABLE subscriptions (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_domain         varchar(100) COLLATE "C" NOT NULL DEFAULT 'default',
    event_type           varchar(100) COLLATE "C" NOT NULL,
    callback_url         varchar(2048) COLLATE "C" NOT NULL,
    pending_callback_url varchar(2048) COLLATE "C",
    active               boolean NOT NULL DEFAULT true,
    verified             boolean NOT NULL DEFAULT false,
    verification         varchar(20) COLLATE "C" NOT NULL DEFAULT 'proof',
    paused               boolean NOT NULL DEFAULT false,
    description          varchar(500) COLLATE "C" NOT NULL DEFAULT '',
    secrets              bytea,
    headers              bytea,
    max_retry_limit      integer,
    base_delay_seconds   double precision,
    timeout_seconds      double precision,
    max_in_flight        integer,
    config_version       bigint NOT NULL DEFAULT 1,
    created_at           timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at           timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT subscription_event_type_visible_ascii CHECK (event_type <> '' AND event_type !~ '[^!-~]'),
    CONSTRAINT subscription_verification_known CHECK (verification IN ('proof', 'echo', 'none')),
    CONSTRAINT subscription_limits_positive CHECK (
        -- Not NaN either, which is greater than every number.
        max_retry_limit >= 1 AND base_delay_seconds > 0 AND base_delay_seconds < 'Infinity'
        AND timeout_seconds > 0 AND timeout_seconds < 'Infinity' AND max_in_flight >= 1)
);

-- webhook_delivery_sagas: the delivery of one event to one subscription, and the backlog
CREATE TABLE webhook_delivery_sagas (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id         bigint NOT NULL,
    subscription_id  bigint NOT NULL,
    generation       integer NOT NULL DEFAULT 0,
    status           varchar(20) COLLATE "C" NOT NULL DEFAULT 'Pending',
    attempt_count    integer NOT NULL DEFAULT 0,
    next_attempt_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    final_error_code varchar(100) COLLATE "C",
    correlation_id   varchar(128) COLLATE "C" NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at       timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT saga_status_known
        CHECK (status IN ('Pending', 'InProgress', 'PendingRetry', 'Completed', 'DeadLettered')),
    CONSTRAINT saga_counts_not_negative CHECK (generation >= 0 AND attempt_count >= 0)
);

-- idx_saga_event: sagas of one event
CREATE INDEX idx_saga_event ON webhook_delivery_sagas (event_id, subscription_id);

-- idx_saga_status_retry: open sagas by due time
CREATE INDEX idx_saga_status_retry ON webhook_delivery_sagas (status, next_attempt_at)
    WHERE status IN ('Pending', 'InProgress', 'PendingRetry');

-- idx_saga_status: sagas by status
CREATE INDEX idx_saga_status ON webhook_delivery_sagas (status);

-- idx_saga_lane: open sagas of one subscription by due time
CREATE INDEX idx_saga_lane ON webhook_delivery_sagas (status, subscription_id, next_attempt_at)
    WHERE status IN ('Pending', 'InProgress', 'PendingRetry');

-- uniq_saga_event_subscription: routing the same event twice makes one saga
CREATE UNIQUE INDEX uniq_saga_event_subscription
    ON webhook_delivery_sagas (event_id, subscription_id, generation);

-- webhook_delivery_jobs: one attempt each; only the window that is being sent, not the backlog
CREATE TABLE webhook_delivery_jobs (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    saga_id          bigint NOT NULL,
    subscription_id  bigint NOT NULL,
    status           varchar(20) COLLATE "C" NOT NULL DEFAULT 'Pending',
    lease_until      timestamptz NOT NULL DEFAULT statement_timestamp(),
    attempt_at       timestamptz NOT NULL,
    attempt_no       integer NOT NULL,
    worker_id        varchar(100) COLLATE "C",
    lease_token      bigint NOT NULL DEFAULT 0,
    lease_resets     integer NOT NULL DEFAULT 0,
    response_status  integer,
    error_code       varchar(100) COLLATE "C",
    retry_after      integer,
    response_excerpt bytea,
    duration_ms      integer,
    created_at       timestamptz NOT NULL DEFAULT statement_timestamp(),
    finished_at      timestamptz,
    applied_at       timestamptz,
    CONSTRAINT job_status_known CHECK (status IN ('Pending', 'Leased', 'Completed', 'Failed')),
    CONSTRAINT job_counts_not_negative
        CHECK (attempt_no >= 1 AND lease_resets >= 0 AND (retry_after >= 0) IS NOT false)
);

-- idx_job_saga: jobs of one saga
CREATE INDEX idx_job_saga ON webhook_delivery_jobs (saga_id);

-- idx_job_status_lease: active jobs, in the order in which they may be leased or have expired
CREATE INDEX idx_job_status_lease ON webhook_delivery_jobs (status, lease_until)
    WHERE status IN ('Pending', 'Leased');

-- uniq_job_saga_attempt: one job for one due time of a saga
CREATE UNIQUE INDEX uniq_job_saga_attempt ON webhook_delivery_jobs (saga_id, attempt_at);

-- uniq_job_active: one active job for one saga
CREATE UNIQUE INDEX uniq_job_active ON webhook_delivery_jobs (saga_id) WHERE status IN ('Pending', 'Leased');

-- idx_job_unapplied: finished jobs whose result the saga has not taken in yet
CREATE INDEX idx_job_unapplied ON webhook_delivery_jobs (id)
    WHERE status IN ('Completed', 'Failed') AND applied_at IS NULL;

-- dead_letters: what could not be delivered, with what it said
CREATE TABLE dead_letters (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    saga_id          bigint NOT NULL,
    event_id         bigint NOT NULL,
    subscription_id  bigint NOT NULL,
    final_error_code varchar(100) COLLATE "C",
    failed_at        timestamptz NOT NULL DEFAULT statement_timestamp(),
    payload_snapshot json NOT NULL
);

-- idx_dead_saga: one dead letter for one saga
CREATE UNIQUE INDEX idx_dead_saga ON dead_letters (saga_id);

-- idx_dead_event: dead letters of one event
CREATE INDEX idx_dead_event ON dead_letters (event_id);

-- routes: which events go to webhooks, which become tasks
CREATE TABLE routes (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_domain  varchar(100) COLLATE "C" NOT NULL DEFAULT '*',
    event_type    varchar(100) COLLATE "C" NOT NULL,
    event_stream  varchar(100) COLLATE "C" NOT NULL DEFAULT '*',
    target        varchar(20) COLLATE "C" NOT NULL,
    task_biz_type varchar(50) COLLATE "C" NOT NULL DEFAULT '',
    enabled       boolean NOT NULL DEFAULT true,
    dry_run       boolean NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT route_target_known CHECK (target IN ('webhook', 'task')),
    CONSTRAINT route_task_named CHECK ((target = 'task') = (task_biz_type <> ''))
);

-- uniq_route: two routes with the same patterns and target would tie
CREATE UNIQUE INDEX uniq_route ON routes (target, task_biz_type, event_domain, event_type, event_stream);

-- gates: what may flow at all; a missing gate is a closed one
CREATE TABLE gates (
    name       varchar(120) COLLATE "C" PRIMARY KEY,
    is_open    boolean NOT NULL DEFAULT false,
    reason     varchar(500) COLLATE "C" NOT NULL DEFAULT '',
    changed_by varchar(200) COLLATE "C" NOT NULL DEFAULT '',
    changed_at timestamptz NOT NULL DEFAULT statement_timestamp()
);

-- route_worker_cursors: how far each router has read, and which event it saw last
CREATE TABLE route_worker_cursors (
    worker_name               varchar(100) COLLATE "C" PRIMARY KEY,
    event_domain              varchar(100) COLLATE "C" NOT NULL DEFAULT '*',
    position                  bigint NOT NULL DEFAULT 0,
    last_event_id             bigint,
    last_event_correlation_id varchar(128) COLLATE "C",
    last_event_created_at     timestamptz,
    runs                      bigint NOT NULL DEFAULT 0,
    sent_count                bigint NOT NULL DEFAULT 0,
    dry_run_count             bigint NOT NULL DEFAULT 0,
    disabled_count            bigint NOT NULL DEFAULT 0,
    skipped_count             bigint NOT NULL DEFAULT 0,
    failed_count              bigint NOT NULL DEFAULT 0,
    last_run_summary          json,
    created_at                timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at                timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT cursor_position_not_negative CHECK (position >= 0)
);

-- uniq_cursor_domain: each domain has one router
CREATE UNIQUE INDEX uniq_cursor_domain ON route_worker_cursors (event_domain);

-- route_holes: ranges of event ids that a router has passed and that may still appear
CREATE TABLE route_holes (
    worker_name varchar(100) COLLATE "C" NOT NULL,
    lo          bigint NOT NULL,
    hi          bigint NOT NULL,
    seen_at     timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (worker_name, lo),
    CONSTRAINT hole_is_a_range CHECK (lo <= hi)
);

-- route_attempts: one row for each decision of a router
CREATE TABLE route_attempts (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id        bigint NOT NULL,
    worker_name     varchar(100) COLLATE "C" NOT NULL,
    route_id        bigint,
    route_kind      varchar(20) COLLATE "C" NOT NULL DEFAULT '',
    status          varchar(20) COLLATE "C" NOT NULL,
    matched         integer NOT NULL DEFAULT 0,
    reason          varchar(500) COLLATE "C" NOT NULL DEFAULT '',
    attempt_no      integer NOT NULL DEFAULT 1,
    idempotency_key varchar(200) COLLATE "C" NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT route_attempt_status_known
        CHECK (status IN ('sent', 'dry_run', 'disabled', 'skipped', 'failed'))
);

-- uniq_route_attempt: the same decision is recorded once
CREATE UNIQUE INDEX uniq_route_attempt ON route_attempts (idempotency_key, attempt_no);

-- idx_route_attempt_event: decisions about one event
CREATE INDEX idx_route_attempt_event ON route_attempts (event_id);

-- route_dead_letters: events that could not be routed, whole
CREATE TABLE route_dead_letters (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id        bigint NOT NULL,
    worker_name     varchar(100) COLLATE "C" NOT NULL,
    idempotency_key varchar(200) COLLATE "C" NOT NULL,
    event_snapshot  json NOT NULL,
    error           text COLLATE "C" NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT statement_timestamp(),
    resolved_at     timestamptz,
    resolution      varchar(100) COLLATE "C"
);

-- uniq_route_dead_letter: one routing dead letter for one decision
CREATE UNIQUE INDEX uniq_route_dead_letter ON route_dead_letters (idempotency_key);

-- idx_route_dead_letter_event: routing dead letters of one event
CREATE INDEX idx_route_dead_letter_event ON route_dead_letters (event_id);

-- sys_pending_tasks: the generic queue of work for internal handlers
CREATE TABLE sys_pending_tasks (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    biz_type       varchar(50) COLLATE "C" NOT NULL,
    biz_key        varchar(100) COLLATE "C" NOT NULL,
    status         smallint NOT NULL DEFAULT 0,
    priority       smallint NOT NULL DEFAULT 10,
    payload        json,
    result_msg     text COLLATE "C",
    retry_count    integer NOT NULL DEFAULT 0,
    max_retries    integer NOT NULL DEFAULT 3,
    next_run_time  timestamptz NOT NULL DEFAULT statement_timestamp(),
    version        integer NOT NULL DEFAULT 0,
    worker_id      varchar(100) COLLATE "C",
    correlation_id varchar(128) COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
    created_at     timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at     timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT task_status_known CHECK (status BETWEEN 0 AND 4),
    CONSTRAINT task_counts_not_negative CHECK (retry_count >= 0 AND max_retries >= 0 AND version >= 0)
);

-- uk_biz: the same task is submitted once
CREATE UNIQUE INDEX uk_biz ON sys_pending_tasks (biz_type, biz_key);

-- idx_scan: tasks by status and due time
CREATE INDEX idx_scan ON sys_pending_tasks (status, next_run_time, priority);

-- idx_task_claim: tasks of one type that may be claimed, in claim order
CREATE INDEX idx_task_claim ON sys_pending_tasks (biz_type, priority, next_run_time, id) WHERE status IN (0, 3);

-- sys_pending_tasks_history: finished tasks, moved out of the queue
CREATE TABLE sys_pending_tasks_history (
    id             bigint PRIMARY KEY,
    biz_type       varchar(50) COLLATE "C" NOT NULL,
    biz_key        varchar(100) COLLATE "C" NOT NULL,
    status         smallint NOT NULL DEFAULT 0,
    priority       smallint NOT NULL DEFAULT 10,
    payload        json,
    result_msg     text COLLATE "C",
    retry_count    integer NOT NULL DEFAULT 0,
    max_retries    integer NOT NULL DEFAULT 3,
    next_run_time  timestamptz NOT NULL DEFAULT statement_timestamp(),
    version        integer NOT NULL DEFAULT 0,
    worker_id      varchar(100) COLLATE "C",
    correlation_id varchar(128) COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
    created_at     timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at     timestamptz NOT NULL DEFAULT statement_timestamp(),
    archived_at    timestamptz NOT NULL DEFAULT statement_timestamp()
);

-- idx_task_history_biz: archived tasks by their business key
CREATE INDEX idx_task_history_biz ON sys_pending_tasks_history (biz_type, biz_key);

-- idx_task_history_archived: archived tasks by time
CREATE INDEX idx_task_history_archived ON sys_pending_tasks_history (archived_at);

-- api_keys: who may call the HTTP API; of a key only its public id and a hash are kept
CREATE TABLE api_keys (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id    varchar(40) COLLATE "C" NOT NULL,
    key_hash     bytea NOT NULL,
    name         varchar(200) COLLATE "C" NOT NULL DEFAULT '',
    scopes       varchar(200) COLLATE "C" NOT NULL,
    event_domain varchar(100) COLLATE "C",
    created_by   varchar(200) COLLATE "C" NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz
);

-- uniq_api_key_public_id: keys are looked up by their public id
CREATE UNIQUE INDEX uniq_api_key_public_id ON api_keys (public_id);

-- audit_log: what people and programs changed
CREATE TABLE audit_log (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    actor      varchar(200) COLLATE "C" NOT NULL,
    action     varchar(100) COLLATE "C" NOT NULL,
    subject    varchar(300) COLLATE "C" NOT NULL,
    detail     json,
    request_id varchar(128) COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT statement_timestamp()
);

-- idx_audit_created: the audit log by time
CREATE INDEX idx_audit_created ON audit_log (created_at);

-- idx_audit_subject: what was done to one thing
CREATE INDEX idx_audit_subject ON audit_log (subject);

-- config_version: one row; its number changes with every change of configuration
CREATE TABLE config_version (
    id         smallint PRIMARY KEY DEFAULT 1,
    version    bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT config_version_is_one_row CHECK (id = 1)
);

-- first_config_version: the one row
INSERT INTO config_version DEFAULT VALUES;

-- installation: one row; the identity from which webhook ids are derived
CREATE TABLE installation (
    id              smallint PRIMARY KEY DEFAULT 1,
    installation_id varchar(36) COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
    created_at      timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT installation_is_one_row CHECK (id = 1)
);

-- first_installation: the one row
INSERT INTO installation DEFAULT VALUES;

-- refuse: says no, in the words given to the trigger
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE = TG_ARGV[0];
END $$;

-- is_retention: whether it is the retention role that acts; being able to become it is not enough
CREATE FUNCTION is_retention() RETURNS boolean LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT current_user IN ('{group_retention}', '{login_retention}')
$$;

-- refuse_but_retention: says no to everybody but the retention role
CREATE FUNCTION refuse_but_retention() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF {schema}.is_retention() THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE = TG_ARGV[0];
END $$;

-- refuse_unfinished_event: an event goes only after its sagas, and only once it was routed
CREATE FUNCTION refuse_unfinished_event() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF {schema}.is_retention()
       AND NOT EXISTS (SELECT FROM {schema}.webhook_delivery_sagas WHERE event_id = OLD.id)
       AND NOT EXISTS (SELECT FROM {schema}.route_dead_letters WHERE event_id = OLD.id AND resolved_at IS NULL)
       AND EXISTS (SELECT FROM {schema}.route_attempts WHERE event_id = OLD.id) THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE = TG_ARGV[0];
END $$;

-- refuse_jobs_of_terminal_sagas: looks at all new jobs of one statement at once
CREATE FUNCTION refuse_jobs_of_terminal_sagas() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp
    -- A session keeps the plan it made while the table was small.
    SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM webhook_delivery_sagas
                WHERE id = ANY (ARRAY(SELECT saga_id FROM new_jobs))
                  -- Not a bare column: the planner must come by id, not by the index on status.
                  AND (status || '') IN ('Completed', 'DeadLettered')) THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation',
            MESSAGE = 'no job can be created for a saga that has ended';
    END IF;
    RETURN NULL;
END $$;

-- event_changed: events never change
CREATE TRIGGER event_changed AFTER UPDATE ON events FOR EACH ROW
    EXECUTE FUNCTION refuse('events never change');

-- event_removed: events never go, unless retention removes a finished story
CREATE TRIGGER event_removed AFTER DELETE ON events FOR EACH ROW
    EXECUTE FUNCTION refuse_unfinished_event('events are never deleted');

-- event_truncated: events never go
CREATE TRIGGER event_truncated BEFORE TRUNCATE ON events
    EXECUTE FUNCTION refuse('events are never deleted');

-- saga_terminal: a saga that has ended never changes
CREATE TRIGGER saga_terminal AFTER UPDATE ON webhook_delivery_sagas FOR EACH ROW
    WHEN (OLD.status IN ('Completed', 'DeadLettered'))
    EXECUTE FUNCTION refuse('a saga that has ended never changes');

-- saga_removed_open: an open saga is never deleted, not even by retention
CREATE TRIGGER saga_removed_open AFTER DELETE ON webhook_delivery_sagas FOR EACH ROW
    WHEN (OLD.status NOT IN ('Completed', 'DeadLettered'))
    EXECUTE FUNCTION refuse('sagas are never deleted');

-- saga_removed: sagas are never deleted, unless retention removes a finished story
CREATE TRIGGER saga_removed AFTER DELETE ON webhook_delivery_sagas FOR EACH ROW
    EXECUTE FUNCTION refuse_but_retention('sagas are never deleted');

-- saga_truncated: sagas are never deleted
CREATE TRIGGER saga_truncated BEFORE TRUNCATE ON webhook_delivery_sagas
    EXECUTE FUNCTION refuse('sagas are never deleted');

-- job_saga_open: no job can be created for a saga that has ended
CREATE TRIGGER job_saga_open AFTER INSERT ON webhook_delivery_jobs
    REFERENCING NEW TABLE AS new_jobs FOR EACH STATEMENT
    EXECUTE FUNCTION refuse_jobs_of_terminal_sagas();

-- job_finished: a finished job changes only applied_at, and that once
CREATE TRIGGER job_finished AFTER UPDATE ON webhook_delivery_jobs FOR EACH ROW
    WHEN (OLD.status IN ('Completed', 'Failed') AND (
        OLD.applied_at IS NOT NULL OR NEW.applied_at IS NULL
        OR (OLD.id, OLD.saga_id, OLD.subscription_id, OLD.status, OLD.lease_until, OLD.attempt_at, OLD.attempt_no,
            OLD.worker_id, OLD.lease_token, OLD.lease_resets, OLD.response_status, OLD.error_code, OLD.retry_after,
            OLD.response_excerpt, OLD.duration_ms, OLD.created_at, OLD.finished_at)
           IS DISTINCT FROM
           (NEW.id, NEW.saga_id, NEW.subscription_id, NEW.status, NEW.lease_until, NEW.attempt_at, NEW.attempt_no,
            NEW.worker_id, NEW.lease_token, NEW.lease_resets, NEW.response_status, NEW.error_code, NEW.retry_after,
            NEW.response_excerpt, NEW.duration_ms, NEW.created_at, NEW.finished_at)))
    EXECUTE FUNCTION refuse('a finished job changes only applied_at, and that once');

-- job_removed_unapplied: a job without effect on its saga is never deleted, not even by retention
CREATE TRIGGER job_removed_unapplied AFTER DELETE ON webhook_delivery_jobs FOR EACH ROW
    WHEN (OLD.applied_at IS NULL)
    EXECUTE FUNCTION refuse('jobs are never deleted');

-- job_removed: jobs are never deleted, unless retention removes a finished story
CREATE TRIGGER job_removed AFTER DELETE ON webhook_delivery_jobs FOR EACH ROW
    EXECUTE FUNCTION refuse_but_retention('jobs are never deleted');

-- job_truncated: jobs are never deleted
CREATE TRIGGER job_truncated BEFORE TRUNCATE ON webhook_delivery_jobs
    EXECUTE FUNCTION refuse('jobs are never deleted');

-- dead_letter_changed: dead letters never change
CREATE TRIGGER dead_letter_changed AFTER UPDATE ON dead_letters FOR EACH ROW
    EXECUTE FUNCTION refuse('dead letters never change');

-- dead_letter_removed: dead letters are never deleted, unless retention removes a finished story
CREATE TRIGGER dead_letter_removed AFTER DELETE ON dead_letters FOR EACH ROW
    EXECUTE FUNCTION refuse_but_retention('dead letters are never deleted');

-- dead_letter_truncated: dead letters are never deleted
CREATE TRIGGER dead_letter_truncated BEFORE TRUNCATE ON dead_letters
    EXECUTE FUNCTION refuse('dead letters are never deleted');

-- route_attempt_changed: routing decisions never change
CREATE TRIGGER route_attempt_changed AFTER UPDATE ON route_attempts FOR EACH ROW
    EXECUTE FUNCTION refuse('routing decisions never change');

-- route_attempt_removed: routing decisions are never deleted, unless retention removes a finished story
CREATE TRIGGER route_attempt_removed AFTER DELETE ON route_attempts FOR EACH ROW
    EXECUTE FUNCTION refuse_but_retention('routing decisions are never deleted');

-- route_attempt_truncated: routing decisions are never deleted
CREATE TRIGGER route_attempt_truncated BEFORE TRUNCATE ON route_attempts
    EXECUTE FUNCTION refuse('routing decisions are never deleted');

-- route_dead_letter_changed: of a routing dead letter only its resolution changes
CREATE TRIGGER route_dead_letter_changed AFTER UPDATE ON route_dead_letters FOR EACH ROW
    WHEN ((OLD.id, OLD.event_id, OLD.worker_name, OLD.idempotency_key, OLD.event_snapshot::text, OLD.error,
           OLD.created_at)
          IS DISTINCT FROM
          (NEW.id, NEW.event_id, NEW.worker_name, NEW.idempotency_key, NEW.event_snapshot::text, NEW.error,
           NEW.created_at))
    EXECUTE FUNCTION refuse('of a routing dead letter only its resolution changes');

-- route_dead_letter_removed_unresolved: an unresolved one is never deleted, not even by retention
CREATE TRIGGER route_dead_letter_removed_unresolved AFTER DELETE ON route_dead_letters FOR EACH ROW
    WHEN (OLD.resolved_at IS NULL)
    EXECUTE FUNCTION refuse('routing dead letters are never deleted');

-- route_dead_letter_removed: they are never deleted, unless retention removes a finished story
CREATE TRIGGER route_dead_letter_removed AFTER DELETE ON route_dead_letters FOR EACH ROW
    EXECUTE FUNCTION refuse_but_retention('routing dead letters are never deleted');

-- route_dead_letter_truncated: routing dead letters are never deleted
CREATE TRIGGER route_dead_letter_truncated BEFORE TRUNCATE ON route_dead_letters
    EXECUTE FUNCTION refuse('routing dead letters are never deleted');

-- task_terminal: a task that succeeded never changes, one that failed for good only starts anew
CREATE TRIGGER task_terminal AFTER UPDATE ON sys_pending_tasks FOR EACH ROW
    WHEN (OLD.status = 2 OR (OLD.status = 4 AND NEW.status <> 0))
    EXECUTE FUNCTION refuse('a task that has ended never changes');

-- audit_changed: the audit log never changes
CREATE TRIGGER audit_changed AFTER UPDATE ON audit_log FOR EACH ROW
    EXECUTE FUNCTION refuse('the audit log never changes');

-- audit_removed: the audit log is never deleted
CREATE TRIGGER audit_removed AFTER DELETE ON audit_log FOR EACH ROW
    EXECUTE FUNCTION refuse('the audit log is never deleted');

-- audit_truncated: the audit log is never deleted
CREATE TRIGGER audit_truncated BEFORE TRUNCATE ON audit_log
    EXECUTE FUNCTION refuse('the audit log is never deleted');

-- start_next_generation: a new saga for each ended one given, once, however often and by how many it is asked
CREATE FUNCTION start_next_generation(saga_ids bigint[], ended_as text)
    RETURNS TABLE (old_saga_id bigint, saga_id bigint, generation integer, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS $$
#variable_conflict use_column
BEGIN
    -- Two callers take turns at the old saga, so that the second one finds the first one's new saga.
    PERFORM 1 FROM webhook_delivery_sagas w WHERE w.id = ANY (saga_ids) ORDER BY w.id FOR UPDATE;
    RETURN QUERY
    WITH asked AS (
        SELECT DISTINCT old.id, old.event_id, old.subscription_id, old.generation + 1 AS generation,
               old.correlation_id, s.active, s.verified, old.status = ended_as AS fits, next.id AS next_id
          FROM webhook_delivery_sagas old
          JOIN subscriptions s ON s.id = old.subscription_id
          LEFT JOIN webhook_delivery_sagas next ON next.event_id = old.event_id
               AND next.subscription_id = old.subscription_id AND next.generation = old.generation + 1
         WHERE old.id = ANY (saga_ids)
    ), made AS (
        INSERT INTO webhook_delivery_sagas (event_id, subscription_id, generation, correlation_id)
        SELECT k.event_id, k.subscription_id, k.generation, k.correlation_id FROM asked k
         WHERE k.fits AND k.next_id IS NULL AND k.active AND k.verified
        RETURNING id, event_id, subscription_id, generation
    )
    SELECT k.id, coalesce(k.next_id, m.id), k.generation,
           CASE WHEN NOT k.fits THEN 'not_ended_so'
                WHEN k.next_id IS NOT NULL THEN 'already_started'
                WHEN NOT k.active THEN 'subscription_inactive'
                WHEN NOT k.verified THEN 'subscription_unverified'
                ELSE 'started' END
      FROM asked k
      LEFT JOIN made m ON (m.event_id, m.subscription_id, m.generation)
                        = (k.event_id, k.subscription_id, k.generation)
     ORDER BY k.id;
END $$;

-- requeue_dead_letters: a new saga for each dead letter given
CREATE FUNCTION requeue_dead_letters(ids bigint[])
    RETURNS TABLE (dead_letter_id bigint, saga_id bigint, generation integer, outcome text)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS $$
    SELECT a.id, n.saga_id, n.generation, coalesce(n.outcome, 'not_found')
      FROM unnest(ids) AS a (id)
      LEFT JOIN dead_letters d ON d.id = a.id
      LEFT JOIN start_next_generation(ARRAY(SELECT saga_id FROM dead_letters WHERE id = ANY (ids)),
                                      'DeadLettered') n ON n.old_saga_id = d.saga_id
     ORDER BY a.id
$$;

-- resend_sagas: a new saga for each completed one given
CREATE FUNCTION resend_sagas(ids bigint[])
    RETURNS TABLE (old_saga_id bigint, saga_id bigint, generation integer, outcome text)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS $$
    SELECT a.id, n.saga_id, n.generation, coalesce(n.outcome, 'not_found')
      FROM unnest(ids) AS a (id)
      LEFT JOIN start_next_generation(ids, 'Completed') n ON n.old_saga_id = a.id
     ORDER BY a.id
$$;

-- routines_are_not_public: who may call them is said by the grants
REVOKE EXECUTE ON FUNCTION start_next_generation(bigint[], text), requeue_dead_letters(bigint[]),
    resend_sagas(bigint[]) FROM PUBLIC;
