-- endpoint_checks: calls to one endpoint that a person asked for; of an answer only the verdict is kept
CREATE TABLE endpoint_checks (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id bigint NOT NULL,
    kind            varchar(20) COLLATE "C" NOT NULL,
    url             varchar(2048) COLLATE "C" NOT NULL,
    host            varchar(253) COLLATE "C" NOT NULL,
    challenge       varchar(64) COLLATE "C" NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT statement_timestamp(),
    expires_at      timestamptz NOT NULL,
    outcome         varchar(20) COLLATE "C",
    error_code      varchar(100) COLLATE "C",
    duration_ms     integer,
    finished_at     timestamptz,
    CONSTRAINT endpoint_check_kind_known CHECK (kind IN ('verification', 'test')),
    CONSTRAINT endpoint_check_outcome_known
        CHECK (outcome IN ('passed', 'failed', 'timeout', 'blocked', 'outdated'))
);

-- idx_endpoint_check_subscription: checks of one subscription by time
CREATE INDEX idx_endpoint_check_subscription ON endpoint_checks (subscription_id, created_at);

-- idx_endpoint_check_host: checks of one host by time, whoever's they are
CREATE INDEX idx_endpoint_check_host ON endpoint_checks (host, created_at);

-- retention_walks: how far retention has looked, and since when; who holds the row walks
CREATE TABLE retention_walks (
    name     varchar(20) COLLATE "C" PRIMARY KEY,
    at_time  timestamptz,
    at_id    bigint NOT NULL DEFAULT 0,
    began_at timestamptz NOT NULL DEFAULT statement_timestamp()
);

-- retention_totals: what retention has removed, by the day on which it had begun
CREATE TABLE retention_totals (
    day                varchar(10) COLLATE "C" PRIMARY KEY,
    events             bigint NOT NULL DEFAULT 0,
    sent               bigint NOT NULL DEFAULT 0,
    dry_run            bigint NOT NULL DEFAULT 0,
    failed             bigint NOT NULL DEFAULT 0,
    disabled           bigint NOT NULL DEFAULT 0,
    skipped            bigint NOT NULL DEFAULT 0,
    attempts           bigint NOT NULL DEFAULT 0,
    wanted_deliveries  bigint NOT NULL DEFAULT 0,
    wanted_tasks       bigint NOT NULL DEFAULT 0,
    sagas              bigint NOT NULL DEFAULT 0,
    delivered          bigint NOT NULL DEFAULT 0,
    dead               bigint NOT NULL DEFAULT 0,
    jobs               bigint NOT NULL DEFAULT 0,
    dead_letters       bigint NOT NULL DEFAULT 0,
    route_dead_letters bigint NOT NULL DEFAULT 0,
    tasks              bigint NOT NULL DEFAULT 0,
    updated_at         timestamptz NOT NULL DEFAULT statement_timestamp()
);
